// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "upstream/upstream_stream.hpp"

#include <tidegate/engine/timer.hpp>
#include <tidegate/wire/http1_body.hpp>
#include <tidegate/wire/http2_client_session.hpp>

namespace tidegate::gateway {

class http2_upstream_connection;

/// One request on a connection of HTTP/2 to a server of an upstream. Of the connection.
class http2_upstream_stream final : public upstream_stream, private engine::timer {
 public:
  http2_upstream_stream(http2_upstream_connection& on, server_slot& server)
      : upstream_stream(server), connection_(on) {}
  http2_upstream_stream(http2_upstream_stream const&) = delete;
  auto operator=(http2_upstream_stream const&) -> http2_upstream_stream& = delete;
  ~http2_upstream_stream() override = default;

  void start(upstream_user& user, wire::method method, std::string_view bytes) override;
  [[nodiscard]] auto is_connected() const noexcept -> bool override { return is_told_; }
  void await_answer() override;
  void send(std::string_view bytes) override;
  [[nodiscard]] auto is_above_high_watermark() const noexcept -> bool override;
  [[nodiscard]] auto waiting_octets() const noexcept -> std::size_t override {
    return stream_ != nullptr ? stream_->waiting_octets() : kept_.size();
  }
  void resume() override;
  void abandon() override;
  void hand_over(upstream_user& user) noexcept override { user_ = &user; }
  void end_sending() override;
  void leave_tunnel() override;

 private:
  friend class http2_upstream_connection;
  friend class spare_streams;

  /// What it knows of the request that is over.
  void forget();

  void expired() override;
  void set_deadline(std::chrono::nanoseconds wait);

  /// Sends what is in `kept_`, from its head on.
  void open();
  /// The same as an extended CONNECT (RFC 8441), once the server's settings are there.
  void open_tunnel(wire::http2_request request);
  void send_body(std::string_view bytes);
  /// The connection has come about, and whether it takes this request is not known yet.
  void await_turn();
  /// It does.
  void connected();

  // What comes.
  void take_head(wire::response_head const& head);
  void take_upgrade(wire::response_head const& head);
  [[nodiscard]] auto take_content(std::string_view bytes) -> bool;
  void take_end(std::string_view trailers);
  /// Why the request has failed when its stream, or its connection, has ended like that.
  [[nodiscard]] auto failure_of(wire::http2_stream_end how) const -> upstream_failure;

  http2_upstream_connection& connection_;
  wire::http2_stream* stream_ = nullptr;  // null until the head is sent
  upstream_user* user_ = nullptr;         // null when it is over, or was left
  std::size_t position_ = 0;              // among those of the connection
  wire::method method_ = wire::method::get;
  bool follows_others_ = false;    // the connection has brought answers before
  bool is_told_ = false;           // that the connection is there and takes it
  bool keeps_ = true;              // `kept_` is all of the request so far
  bool is_whole_ = false;          // so is what was sent
  bool answered_ = false;          // the head of the response has come
  bool has_failed_ = false;        // it counts as a failure
  bool paused_ = false;            // until the client has taken what there was
  mutable bool was_full_ = false;  // its user waits until less is waiting
  instant started_{};
  wire::body_decoder body_;
  std::string kept_;
  std::string rest_;      // the beginning of a trailer line
  std::string trailers_;  // of the request
  struct {
    bool is_unwanted = false;  // the server takes no extended CONNECT
    bool is_open = false;      // octets go both ways as they are
    bool is_left = false;      // its user is gone; what waits is still sent
    std::string key;           // of the request, which HTTP/2 has no field for
  } tunnel_;
};

}  // namespace tidegate::gateway
