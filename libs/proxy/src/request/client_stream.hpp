// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/local_reply.hpp"

#include <tidegate/wire/http1_head.hpp>

#include <memory>

namespace tidegate::gateway {

/// Content that is as long as this is sent from where it is; what is shorter is gathered with its
/// head.
inline constexpr std::size_t large_octets_min = 16 * 1024;

/// Fields of a response that are not sent on.
struct dropped_fields {
  wire::field_set known{};
  std::span<std::string const> names{};  ///< of those without an entry, in lower case
};

/// How a response ends.
struct response_end {
  bool is_cut = false;  ///< the client is to see that it is not whole
  /// Complete lines of HTTP/1.1. Left out where the client's framing has no place for them.
  std::string_view trailers{};
};

/// Takes the response of one exchange.
class response_sink {
 public:
  /// Sends a 1xx response without `drop`.
  virtual void send_interim(wire::response_head const& head, dropped_fields const& drop) = 0;
  /// Sends the head of an upstream's response, with `field_lines` besides its own fields less
  /// `drop`.
  virtual void send_head(wire::response_head const& head, dropped_fields const& drop,
                         std::string_view field_lines) = 0;
  /// Sends the head of a response that `send_body` and `send_end` follow; `field_lines` say all but
  /// the framing. `length` is that of the content, where it is known.
  virtual void send_own_head(int status, std::string_view field_lines,
                             std::optional<std::uint64_t> length) = 0;
  /// Sends bytes of the body: with their framing when `client_stream::wants_framing`, else content.
  virtual void send_body(std::string_view bytes) = 0;
  virtual void send_end(response_end const& how) = 0;
  /// Sends all of a response; `field_lines` are all of its head but status, Content-Type and
  /// framing. The exchange may serve another request when it returns.
  virtual void send_whole(local_reply const& reply, std::string_view field_lines) = 0;

 protected:
  ~response_sink() = default;
};

/// How a client takes what it is sent, and gives its request.
class client_flow {
 public:
  /// There is no memory for the exchange: abandons it and tells the client nothing.
  virtual void give_up() = 0;
  /// Sends what was gathered.
  virtual void flush() = 0;
  /// True when so much waits for the client that nothing more is to be made for it. When it has
  /// taken some of it, `exchange::client_resumed` is called.
  [[nodiscard]] virtual auto is_above_high_watermark() const -> bool = 0;
  /// False when a store is not to be asked for an answer yet, because the client has not taken
  /// others. When it has, `exchange::client_resumed` is called.
  [[nodiscard]] virtual auto takes_answers() -> bool { return true; }
  /// As that, where an answer takes the directory some time: each client may wait for a few at
  /// once.
  [[nodiscard]] virtual auto may_ask_directory() -> bool { return true; }
  /// The upstream takes more of the request's body.
  virtual void resume() = 0;

 protected:
  ~client_flow() = default;
};

class tunnel;

/// How an exchange goes on as a tunnel, in which the client sends and takes plain octets.
class tunnel_client {
 public:
  /// Sends the 101 of an upstream, with `field_lines` besides its own fields less `drop`. What the
  /// client sends from now on is for `made`, which takes the place of the exchange.
  virtual void begin_tunnel(std::unique_ptr<tunnel> made, wire::response_head const& head,
                            dropped_fields const& drop, std::string_view field_lines) = 0;
  /// The upstream sends no more; the client may. `response_sink::send_end` ends both directions,
  /// and destroys the tunnel.
  virtual void end_sending() = 0;

 protected:
  ~tunnel_client() = default;
};

/// The client's side of one exchange.
class client_stream : public response_sink, public client_flow, public tunnel_client {
 public:
  /// Whether bodies go to the client framed as HTTP/1.1 does it.
  [[nodiscard]] virtual auto wants_framing() const -> bool = 0;
  /// As logs call it: `HTTP/1.1`.
  [[nodiscard]] virtual auto protocol() const -> std::string_view = 0;

 protected:
  ~client_stream() = default;
};

/// What is counted and logged when the client has closed before it had its response.
inline constexpr int status_client_closed = 499;

}  // namespace tidegate::gateway
