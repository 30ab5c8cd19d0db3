// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/engine/loop.hpp>
#include <tidegate/engine/transport.hpp>
#include <tidegate/wire/http1_body.hpp>

namespace tidegate::gateway {

class upstream_pool;
class worker;

/// Why an upstream did not answer.
enum class upstream_failure : std::uint8_t {
  connect_refused,    ///< nothing was sent
  connect_timeout,    ///< nothing was sent
  closed_unanswered,  ///< a connection that was used before ended without a byte of an answer
  closed,             ///< in the middle of an answer, or a new connection without one
  malformed,          ///< an answer that HTTP does not allow
  timeout,            ///< no head in time
  idle,               ///< too long between two bytes
  no_descriptor,      ///< nothing was sent: there are as many connections as there may be
};

/// How a request and its response flow between a client and an upstream.
class upstream_flow {
 public:
  /// An answer is about to be read: prefetch what handling it will touch.
  virtual void prefetch() const noexcept {}
  /// More of the request can be sent.
  virtual void upstream_resumed() = 0;
  /// What was given so far is all for now.
  virtual void flush_client() = 0;
  [[nodiscard]] virtual auto wants_framing() const -> bool = 0;
  /// True when the upstream has all of the request.
  [[nodiscard]] virtual auto request_done() const -> bool = 0;
  /// True when no more of the response is to be read for now.
  [[nodiscard]] virtual auto client_is_full() const -> bool = 0;

 protected:
  upstream_flow() = default;
  upstream_flow(upstream_flow const&) = default;
  auto operator=(upstream_flow const&) -> upstream_flow& = default;
  virtual ~upstream_flow() = default;
};

/// Has a request sent to an upstream and takes its response. Everything is called on the thread of
/// the worker.
class upstream_user : public upstream_flow {
 public:
  /// The connection is there; only where `start` found none that was.
  virtual void upstream_connected() {}
  virtual void upstream_interim(wire::response_head const& head) = 0;
  virtual void upstream_head(wire::response_head const& head) = 0;
  /// A 101. False when it does not answer the request; else another user has the connection now.
  [[nodiscard]] virtual auto upstream_upgraded(wire::response_head const& /*head*/) -> bool {
    return false;
  }
  /// After a 101: the server sends no more.
  virtual void upstream_ended() {}
  /// A part of the response's content, `content_octets` of it; with its framing when
  /// `wants_framing`.
  virtual void upstream_body(std::string_view bytes, std::uint64_t content_octets) = 0;
  virtual void upstream_done() = 0;
  /// `unsent` is all of the request so far when none of it was sent.
  virtual void upstream_failed(upstream_failure why, std::string unsent) = 0;
  /// The head of the response did not come in time. How much longer to wait; nothing: the request
  /// has failed.
  [[nodiscard]] virtual auto upstream_is_late() -> std::optional<std::chrono::nanoseconds> {
    return std::nullopt;
  }

 protected:
  ~upstream_user() override = default;
};

/// A connection to one server of an upstream. Serves one exchange at a time and rests in its pool
/// in between.
class upstream_connection final : public engine::watched, private engine::timer {
 public:
  upstream_connection(worker& on, upstream_pool& pool, std::size_t server,
                      engine::transport transport);

  /// Sends the request of `user`: `head` and perhaps the beginning of its body.
  void start(upstream_user& user, wire::method method, std::string_view bytes);
  /// False until a new connection has come about.
  [[nodiscard]] auto is_connected() const noexcept -> bool { return phase_ != phase::connecting; }
  /// Counts the time until the head of the response from now on.
  void await_answer();
  /// Sends more of the body.
  void send(std::string_view bytes);
  /// True when more is waiting to be sent than should.
  [[nodiscard]] auto is_above_high_watermark() const noexcept -> bool;
  /// What waits to be sent.
  [[nodiscard]] auto waiting_octets() const noexcept -> std::size_t { return out_.size(); }
  /// Goes on reading after the client has taken what there was.
  void resume();
  /// The exchange wants no answer any more.
  void abandon();

  // After a 101, when octets go both ways as they are.
  /// What comes is for `user` from now on.
  void hand_over(upstream_user& user) noexcept { user_ = &user; }
  /// Sends no more than what waits.
  void end_sending();
  /// The user is gone: closes when what waits is sent.
  void leave_tunnel();

  [[nodiscard]] auto server() const noexcept -> std::size_t { return server_; }

 private:
  friend class upstream_pool;
  void ready(engine::readiness what) override;
  void out_of_memory() override;
  void expired() override;

  void flush();
  /// Has the worker know what waits to be sent.
  void count_waiting();
  void read();
  void take(std::string_view bytes);
  void take_body(std::string_view bytes);
  void take_upgrade(std::string_view rest);
  void take_octets(std::string_view bytes);
  void tunnel_has_ended(engine::io_state how);
  void tunnel_failed();
  void finish(bool reusable);
  /// `detail` says more of it than `why` does, for people.
  void fail(upstream_failure why, std::string const& detail = {});
  [[nodiscard]] auto describe(upstream_failure why) const -> std::string;
  void close();
  void set_deadline(std::chrono::nanoseconds wait);

  /// The beginning of a head or of a line, whose rest has not come.
  struct unparsed {
    std::string text;
    std::size_t seen = 0;  // of a head, by the parser
  };
  enum class phase : std::uint8_t {
    connecting,
    idle,
    head,
    body,
    tunnel,     // after a 101
    finishing,  // the same, and nothing is sent but what waits
    closed,
  };

  worker& worker_;
  upstream_pool& pool_;
  std::size_t server_;
  engine::transport transport_;
  upstream_user* user_ = nullptr;
  phase phase_ = phase::connecting;
  wire::method method_ = wire::method::get;
  bool connected_ = false;  // though a handshake may be under way
  bool used_before_ = false;
  bool keep_alive_ = false;
  bool answered_ = false;  // a byte of the answer has come
  bool readable_ = false;
  bool closing_ = false;
  bool paused_ = false;
  bool taking_ = false;  // bytes are being handed on: what they lead to must not read again
  instant started_{};    // the request that it serves
  std::string out_;
  std::size_t counted_ = 0;  // of it
  unparsed in_;
  wire::body_decoder body_;
};

}  // namespace tidegate::gateway
