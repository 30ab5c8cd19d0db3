// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "upstream/connection_limit.hpp"
#include "upstream/http2_upstream_stream.hpp"
#include "upstream/spare_streams.hpp"

#include <tidegate/engine/loop.hpp>
#include <tidegate/engine/transport.hpp>

#include <memory>
#include <vector>

namespace tidegate::gateway {

class upstream_pool;
class worker;
struct server_slot;

/// A connection of HTTP/2 to one server of an upstream: requests of many clients at once. What they
/// have to say is gathered and written at the end of the turn.
class http2_upstream_connection final : public engine::watched,
                                        private engine::timer,
                                        private wire::http2_client_events {
 public:
  /// `is_check`: for one exchange that counts nowhere.
  http2_upstream_connection(worker& on, upstream_pool& pool, server_slot& server,
                            engine::transport transport, bool is_check);
  ~http2_upstream_connection() override;

  /// Waits for the connection to come about.
  void connect();
  /// The connection is there, and the server has agreed to HTTP/2.
  void handshake_is_done();

  /// True when one more request can be sent by it.
  [[nodiscard]] auto has_room() const -> bool;
  /// True when the server has refused a request a moment ago.
  [[nodiscard]] auto has_refused() const -> bool;
  [[nodiscard]] auto is_idle() const noexcept -> bool { return streams_.empty(); }
  /// For one more request.
  [[nodiscard]] auto add_stream() -> http2_upstream_stream&;
  /// Ends it; requests on it fail.
  void close();
  [[nodiscard]] auto socket() const noexcept -> engine::descriptor const& {
    return transport_.socket();
  }

 private:
  friend class http2_upstream_stream;

  enum class phase : std::uint8_t { connecting, open, ending, closed };

  void ready(engine::readiness what) override;
  void turn_ends() override;
  void out_of_memory() override;
  void expired() override;

  // For the session.
  void interim(wire::http2_stream& on, wire::response_head const& head) override;
  void response(wire::http2_stream& on, wire::response_head const& head) override;
  [[nodiscard]] auto content(wire::http2_stream& on, std::string_view bytes) -> bool override;
  void end_of_response(wire::http2_stream& on, std::string_view trailers) override;
  void closed(wire::http2_stream& on, wire::http2_stream_end how) override;

  void resume_connecting(engine::readiness what);
  void read();
  void write();
  [[nodiscard]] auto write_some() -> bool;
  void write_soon() {
    if (phase_ != phase::closed && !std::exchange(writes_soon_, true)) {
      wake();
    }
  }
  void wake();
  void resume_full();
  void settle_unsent();
  /// Lets requests go that wait for the connection, as many as the server takes. Those that are
  /// too many, once it has said so, have another connection chosen.
  void tell_waiting();
  /// What is given to clients goes by one buffer: before another one is given something, the last
  /// one is flushed.
  void switch_to(http2_upstream_stream* next);
  /// The request of `stream` is over: it can be used for another one.
  [[nodiscard]] auto release(http2_upstream_stream& stream) -> upstream_user*;
  /// The request has failed. `detail` says more of it, for people; `counts`: against the server.
  void fail(http2_upstream_stream& stream, upstream_failure why, std::string const& detail,
            bool counts);
  /// The connection is of no use any more, and so are its requests.
  void fail_all(upstream_failure why, std::string const& detail);
  void set_deadline(std::chrono::nanoseconds wait);
  void count_waiting();

  worker& worker_;
  upstream_pool& pool_;
  server_slot* server_;
  engine::transport transport_;
  wire::http2_client_session session_;
  phase phase_ = phase::connecting;
  struct {
    bool connected = false;  // though a handshake may be under way
    bool readable = false;
    bool writable = true;
    bool closing = false;
    bool read_all = false;  // that has come so far
  } socket_;
  bool writes_soon_ = false;
  bool has_full_ = false;     // a request waits until less is waiting to be sent
  bool has_refused_ = false;  // requests that it does not take wait for the end of the turn
  connection_use use_;
  struct {
    bool sent = false;  // since the last head or content that came
    bool answered = false;
  } ping_;
  instant received_at_{};
  instant refused_at_{instant::min()};
  http2_upstream_stream* fed_ = nullptr;  // what it was given is not flushed yet
  std::string out_;                       // what the socket has not taken
  std::size_t counted_ = 0;               // of what waits
  std::size_t told_ = 0;                  // of the streams: that they may send
  std::vector<std::unique_ptr<http2_upstream_stream>> streams_;
  spare_streams spare_;
};

}  // namespace tidegate::gateway
