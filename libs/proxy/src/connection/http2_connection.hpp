// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "phases/exchange_pool.hpp"

#include <tidegate/wire/http2_session.hpp>

namespace tidegate::gateway {

class http2_client_stream;

/// A connection of a client that speaks HTTP/2: many exchanges at once. What they have to say is
/// gathered and written at the end of the turn.
class http2_connection final : public engine::watched,
                               public client_connection,
                               private engine::timer,
                               private wire::http2_events {
 public:
  http2_connection(worker& on, worker::client_place at, engine::transport transport,
                   client_address from);
  ~http2_connection() override;

  /// Goes on with a connection on which `bytes` have come already, the preface first; `closing`:
  /// the client sends no more.
  void start(std::string_view bytes, bool closing);
  void drain() override;
  void drop() override { close(); }
  [[nodiscard]] auto waiting_octets() const -> std::size_t override;
  [[nodiscard]] auto waiting_since(instant now) const -> instant override;

 private:
  friend class http2_client_stream;

  void ready(engine::readiness what) override;
  void turn_ends() override;
  void out_of_memory() override { close(); }
  void expired() override;
  void time_is_up();

  // For the session.
  void request(wire::http2_stream& on, wire::request_head const& head) override;
  void refused_request(wire::http2_stream& on, wire::head_fault fault) override;
  [[nodiscard]] auto content(wire::http2_stream& on, std::string_view bytes) -> bool override;
  void end_of_request(wire::http2_stream& on, std::string_view trailers) override;
  void closed(wire::http2_stream& on) override;

  [[nodiscard]] auto add_stream(wire::http2_stream& on) -> http2_client_stream&;
  void read();
  void take(std::string_view bytes);
  void write_soon() {
    if (phase_ != phase::closed && !std::exchange(writes_soon_, true)) {
      worker_.loop.at_end_of_turn(*this);
    }
  }
  void write();
  [[nodiscard]] auto write_some() -> bool;
  void resume_streams();
  [[nodiscard]] auto is_full() const -> bool;
  /// Whether one more stream may wait for the directory.
  [[nodiscard]] auto may_ask() const -> bool;
  void linger();
  void close();
  void set_deadline(std::chrono::nanoseconds wait);

  enum class phase : std::uint8_t {
    open,
    ending,     // what is left is written, then nothing more
    lingering,  // all is said; what the client still sends is thrown away
    closed,
  };

  /// How the client takes what is written.
  struct write_progress {
    instant written_at{};  // when it last took something, or began to take nothing
    instant content_sent_at{};
    std::uint64_t content_octets_sent = 0;
    reading_pace pace;
  };

  worker& worker_;
  engine::transport transport_;
  client_address from_;
  wire::http2_session session_;
  phase phase_ = phase::open;
  bool readable_ = false;
  bool writable_ = true;
  bool closing_ = false;      // the client sends no more
  bool writes_soon_ = false;  // at the end of the turn
  bool drains_ = false;
  bool has_full_stream_ = false;  // a stream waits until the client has taken something
  std::uint8_t asking_ = 0;       // streams that wait for the directory
  instant idle_until_{};          // while there are no streams
  std::string out_;               // what the socket has not taken
  std::size_t counted_ = 0;       // of what waits
  write_progress progress_;
  std::vector<std::unique_ptr<http2_client_stream>> spare_streams_;
  worker::client_place place_;
};

}  // namespace tidegate::gateway
