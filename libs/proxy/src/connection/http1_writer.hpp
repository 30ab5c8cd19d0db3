// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "phases/exchange_pool.hpp"

namespace tidegate::gateway {

/// The half of a connection of HTTP/1.1 or HTTP/1.0 that writes: it frames responses, gathers what
/// is short, and keeps what the socket does not take.
class http1_writer : protected engine::timer, protected client_stream {
 protected:
  enum class phase : std::uint8_t {
    head,       // of the next request
    body,       // of the request, while the exchange goes on
    waiting,    // for the response
    tunnel,     // octets go both ways as they are
    skipping,   // the rest of a body that is not wanted, after the response
    lingering,  // all is said; what the client still sends is thrown away
    closed,
  };

  /// What the socket has not taken.
  struct unsent {
    std::string text;
    std::size_t counted = 0;            // of `text`
    std::string_view rest;              // behind it
    std::shared_ptr<void const> owner;  // of `rest`
    slow_client_shedder::held_text held;
    reading_pace pace;

    [[nodiscard]] auto octets() const -> std::size_t { return text.size() + rest.size(); }
  };

  /// Longer than any exchange.
  static constexpr std::chrono::nanoseconds forever = std::chrono::hours(24 * 365);

  http1_writer(worker& on, engine::transport transport)
      : worker_(on), transport_(std::move(transport)) {}
  ~http1_writer() override = default;

  // For the exchange.
  void send_interim(wire::response_head const& head, dropped_fields const& drop) override;
  void send_head(wire::response_head const& head, dropped_fields const& drop,
                 std::string_view field_lines) override;
  void send_own_head(int status, std::string_view field_lines,
                     std::optional<std::uint64_t> length) override;
  void send_body(std::string_view bytes) override;
  void send_whole(local_reply const& reply, std::string_view field_lines) override;
  void flush() override;
  void end_sending() override;
  [[nodiscard]] auto wants_framing() const -> bool override { return minor_version_ == 1; }
  [[nodiscard]] auto is_above_high_watermark() const -> bool override;
  [[nodiscard]] auto protocol() const -> std::string_view override {
    return minor_version_ == 1 ? "HTTP/1.1" : "HTTP/1.0";
  }

  /// All of a response was gathered or written.
  virtual void response_is_complete() = 0;
  /// The socket is broken.
  virtual void close() = 0;

  /// Whether the next request may begin. It waits as long as a text does that is not copied, so
  /// that there is one at most.
  [[nodiscard]] auto may_begin() const -> bool {
    return !unsent_ || (unsent_->rest.empty() && !is_above_high_watermark());
  }
  /// A client that does not read its response is not waited for longer than one that says nothing.
  void wait_for_reader(std::size_t taken = 0);
  /// Forgets what the socket has not taken.
  void drop_unsent();
  void set_deadline(std::chrono::nanoseconds wait) {
    set(worker_.loop.timers(), worker_.loop.now() + wait);
  }

  worker& worker_;
  engine::transport transport_;
  std::unique_ptr<unsent> unsent_;  // null when all was taken
  phase phase_ = phase::head;
  std::uint8_t minor_version_ = 1;
  bool keep_alive_ = true;
  bool is_head_request_ = false;
  bool head_sent_ = false;  // of a response that goes on
  bool chunks_ = false;     // the body is framed here
  bool finishing_ = false;  // in a tunnel: nothing is sent but what waits
  bool may_skip_ = false;   // the rest of the body is worth reading for the sake of the connection

 private:
  void send_large(local_reply const& reply);
  /// Keeps what the socket does not take now.
  void keep(std::string_view bytes);
};

}  // namespace tidegate::gateway
