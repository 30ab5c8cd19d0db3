// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "exchange.hpp"

#include <tidegate/engine/loop.hpp>
#include <tidegate/engine/transport.hpp>
#include <tidegate/wire/http1_body.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace tidegate::gateway {

/// A connection of a client that speaks HTTP/1.1 or HTTP/1.0. It answers one request after the other; what
/// comes of the next one meanwhile waits in the socket. None is begun while too much waits for the client.
class http1_connection final : public engine::watched,
                               public client_connection,
                               private engine::timer,
                               private client_stream {
 public:
  /// With `http2`, a client that begins with the preface of HTTP/2 is handed to a `http2_connection`.
  http1_connection(worker& on, worker::client_place at, engine::transport transport,
                   http::ip_address const& peer, bool http2);
  ~http1_connection() override;

  /// Begins to listen to the socket, which something else does so far when it `is_watched`; false when the
  /// system does not let it.
  [[nodiscard]] auto start(bool is_watched) -> bool;
  void drain() override;
  void drop() override { close(); }
  /// What the client says of others that it asks for counts as a stranger's, though its peer is trusted.
  void believe_no_fields() { from_.may_name_others = false; }
  [[nodiscard]] auto waiting_octets() const -> std::size_t override;
  [[nodiscard]] auto waiting_since(instant now) const -> instant override;

 private:
  void ready(engine::readiness what) override;
  void out_of_memory() override;
  void expired() override;
  void time_is_up();

  // For the exchange.
  void send_interim(wire::response_head const& head) override;
  void send_head(wire::response_head const& head, wire::field_set const& drop,
                 std::string_view field_lines) override;
  void send_own_head(int status, std::string_view field_lines,
                     std::optional<std::uint64_t> length) override;
  void send_body(std::string_view bytes) override;
  void send_end(bool is_cut) override;
  void send_whole(whole_response const& response) override;
  void give_up() override { out_of_memory(); }
  void flush() override;
  [[nodiscard]] auto wants_framing() const -> bool override { return minor_version_ == 1; }
  [[nodiscard]] auto is_above_high_watermark() const -> bool override;
  void resume() override;
  [[nodiscard]] auto protocol() const -> std::string_view override {
    return minor_version_ == 1 ? "HTTP/1.1" : "HTTP/1.0";
  }

  [[nodiscard]] auto may_read() const -> bool;
  [[nodiscard]] auto may_begin() const -> bool;
  void read();
  void take(std::string_view bytes);
  [[nodiscard]] auto take_head(std::string_view& bytes) -> bool;
  [[nodiscard]] auto take_body(std::string_view& bytes) -> bool;
  [[nodiscard]] auto skip_body(std::string_view& bytes) -> bool;
  void await_request();
  void become_http2(std::string_view bytes);
  void respond_to_malformed(int status);
  void response_is_complete();
  void send_large(whole_response const& response);
  void keep(std::string_view bytes);
  void count_waiting();
  void next_request();
  void resume_reading();
  void write_out();
  [[nodiscard]] auto unsent_octets() const -> std::size_t {
    return unsent_ ? unsent_->text.size() + unsent_->rest.size() : 0;
  }
  void wait_for_reader(std::size_t taken = 0);
  void linger();
  void close();
  void set_deadline(std::chrono::nanoseconds wait);

  enum class phase : std::uint8_t {
    head,       // of the next request
    body,       // of the request, while the exchange goes on
    waiting,    // for the response
    skipping,   // the rest of a body that nobody wants, after the response
    lingering,  // all is said; what the client still sends is thrown away
    closed,
  };

  /// What the socket has not taken.
  struct unsent {
    std::string text;
    std::string_view rest;              // behind it
    std::shared_ptr<void const> owner;  // of `rest`
    slow_client_shedder::held_text held;
    reading_pace pace;
  };

  worker& worker_;
  engine::transport transport_;
  phase phase_ = phase::head;
  bool may_be_http2_;   // until the first request has come
  bool is_new_ = true;  // no request has come yet
  bool readable_ = false;
  bool closing_ = false;  // the client sends no more
  bool keep_alive_ = true;
  bool taking_ = false;  // input is being taken: what it leads to must not take more
  bool response_done_ = false;
  bool chunks_ = false;  // the body is framed here
  bool is_head_request_ = false;
  bool may_skip_ = false;  // the rest of the body is worth reading for the sake of the connection
  int minor_version_ = 1;
  std::unique_ptr<exchange> exchange_;
  wire::body_decoder body_;
  std::uint64_t body_octets_ = 0;
  std::size_t seen_ = 0;
  instant came_at_{};  // what was read last
  std::string in_;
  std::unique_ptr<unsent> unsent_;  // null when all was taken
  std::size_t counted_ = 0;         // of what waits
  client_address from_;
  worker::client_place place_;  // behind the last when the connection has another owner
};

}  // namespace tidegate::gateway
