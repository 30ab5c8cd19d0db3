// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/values.hpp>
#include <tidegate/wire/http1_head.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tidegate::gateway {

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
  refused_stream,     ///< of HTTP/2: the server says that it has done nothing with the request
  busy,               ///< nothing was sent: `max-connections` are open
  no_server,          ///< nothing was sent: no server takes requests, or none has an address yet
  no_websocket,       ///< of HTTP/2: nothing was sent, for the server takes no extended CONNECT
};

/// For people.
[[nodiscard]] inline auto describe_timeout(std::chrono::nanoseconds waited) -> std::string {
  return "no response within " + format_duration(waited) + " (timeout)";
}

class upstream_stream;
struct server_slot;

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
  /// The connection that `start` was called of turned out to speak another protocol: from now on
  /// the request is `to`. Comes before `upstream_connected`.
  virtual void upstream_moved(upstream_stream& to) = 0;
  /// The connection is there; only where `start` found none that was.
  virtual void upstream_connected() {}
  virtual void upstream_interim(wire::response_head const& head) = 0;
  virtual void upstream_head(wire::response_head const& head) = 0;
  /// Whether the request asks for a WebSocket, as HTTP/1.1 does it.
  [[nodiscard]] virtual auto wants_upgrade() const -> bool { return false; }
  /// A 101, or what stands for it. False when it does not answer the request; else another user
  /// has the stream now.
  [[nodiscard]] virtual auto upstream_upgraded(wire::response_head const& /*head*/) -> bool {
    return false;
  }
  /// After a 101: the server sends no more.
  virtual void upstream_ended() {}
  /// A part of the response's content, `content_octets` of it; with its framing when
  /// `wants_framing`.
  virtual void upstream_body(std::string_view bytes, std::uint64_t content_octets) = 0;
  /// The end of the response. `trailers` are complete lines: those that were not in `upstream_body`
  /// as framing.
  virtual void upstream_done(std::string_view trailers) = 0;
  /// `unsent` is all of the request so far when none of it was sent or all of it was refused, as
  /// far as it was kept.
  virtual void upstream_failed(upstream_failure why, std::string unsent) = 0;
  /// How long the head of the response is waited for; `of_upstream` where nothing else is said.
  [[nodiscard]] virtual auto answer_timeout(std::chrono::nanoseconds of_upstream) const
      -> std::chrono::nanoseconds {
    return of_upstream;
  }
  /// The head of the response did not come in time. How much longer to wait; nothing: the request
  /// has failed.
  [[nodiscard]] virtual auto upstream_is_late() -> std::optional<std::chrono::nanoseconds> {
    return std::nullopt;
  }

 protected:
  ~upstream_user() override = default;
};

/// How long a user, if there is one, waits for the head of its response.
[[nodiscard]] inline auto answer_timeout_of(upstream_user const* user,
                                            std::chrono::nanoseconds of_upstream)
    -> std::chrono::nanoseconds {
  return user != nullptr ? user->answer_timeout(of_upstream) : of_upstream;
}

/// Takes a request on its way to a server.
class request_sink {
 public:
  /// Sends more of a request, as HTTP/1.1 has it. A head comes in one piece.
  virtual void send(std::string_view bytes) = 0;
  /// True when more is waiting to be sent than should.
  [[nodiscard]] virtual auto is_above_high_watermark() const noexcept -> bool = 0;
  /// What waits to be sent.
  [[nodiscard]] virtual auto waiting_octets() const noexcept -> std::size_t = 0;

 protected:
  request_sink() = default;
  request_sink(request_sink const&) = default;
  auto operator=(request_sink const&) -> request_sink& = default;
  virtual ~request_sink() = default;
};

/// A stream after a 101, when octets go both ways as they are.
class tunnel_end {
 public:
  /// What comes is for `user` from now on.
  virtual void hand_over(upstream_user& user) noexcept = 0;
  /// Sends no more than what waits.
  virtual void end_sending() = 0;
  /// The user is gone: closes when what waits is sent. It must not be touched any more.
  virtual void leave_tunnel() = 0;

 protected:
  tunnel_end() = default;
  tunnel_end(tunnel_end const&) = default;
  auto operator=(tunnel_end const&) -> tunnel_end& = default;
  virtual ~tunnel_end() = default;
};

/// One request to a server of an upstream and its response, whichever protocol the server speaks.
/// Of the pool: it is over, and must not be touched any more, when its user was told so or has
/// called `abandon`.
class upstream_stream : public request_sink, public tunnel_end {
 public:
  /// Sends the request of `user`: `head` and perhaps the beginning of its body.
  virtual void start(upstream_user& user, wire::method method, std::string_view bytes) = 0;
  /// False until a new connection has come about.
  [[nodiscard]] virtual auto is_connected() const noexcept -> bool = 0;
  /// Counts the time until the head of the response from now on.
  virtual void await_answer() = 0;
  /// Goes on reading after the client has taken what there was.
  virtual void resume() = 0;
  /// The exchange wants no answer any more.
  virtual void abandon() = 0;

  [[nodiscard]] auto server() const noexcept -> server_slot const& { return *server_; }

 protected:
  explicit upstream_stream(server_slot& server) : server_(&server) {}
  ~upstream_stream() override = default;

  server_slot* server_;
};

}  // namespace tidegate::gateway
