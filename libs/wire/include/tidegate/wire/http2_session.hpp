// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire/http2_stream.hpp>

namespace tidegate::TIDEGATE_ABI::wire {

/// All of the content of a response.
struct http2_content {
  std::string_view begin = {};  ///< is copied
  std::string_view rest = {};   ///< is copied as far as it has to wait, unless it has an owner
  /// Keeps `rest` until it was sent, so that many streams can send one text.
  std::shared_ptr<void const> owner = {};
};

/// What a session tells. Nothing here may call `receive` or `take_output`, or destroy the session.
class http2_events {
 public:
  /// A request. The head lives only as long as the call. Its body has the framing under which it is
  /// sent on by HTTP/1.1: `chunked` when the client did not say how long it is.
  virtual void request(http2_stream& on, request_head const& head) = 0;
  /// A request that is to be answered by `status_of(fault)`.
  virtual void refused_request(http2_stream& on, head_fault fault) = 0;
  /// A part of the request's content. False: it was taken, but the client is to send no more than
  /// its window until `let_send`.
  [[nodiscard]] virtual auto content(http2_stream& on, std::string_view bytes) -> bool = 0;
  /// The end of a request that was not complete with its head. `trailers` are the field lines that
  /// go on, as HTTP/1.1 has them.
  virtual void end_of_request(http2_stream& on, std::string_view trailers) = 0;
  /// The stream is over, by its end or by a reset, and is destroyed after this call.
  virtual void closed(http2_stream& on) = 0;

 protected:
  ~http2_events() = default;
};

/// The server's side of an HTTP/2 connection (RFC 9113) without I/O: bytes in, events out, bytes
/// out.
///
/// A request is shown as HTTP/1.1 would have it, so that one judge is enough for both: the fields
/// that begin with a colon become the request line and Host, the crumbs of Cookie become one field
/// (section 8.2.3). An extended CONNECT (RFC 8441) becomes a GET with `Connection: upgrade` and
/// `Upgrade`; once its head is sent with a 2xx, content is what the protocol says, each direction
/// ends by itself, and fields do not come any more.
///
/// A session stays on the thread that made it, and may be destroyed on another one.
class http2_session {
 public:
  /// `head` is used while requests are read; see `message_head`. Both outlive the session.
  http2_session(http2_limits const& limits, http2_events& events, request_head& head);
  http2_session(http2_session const&) = delete;
  auto operator=(http2_session const&) -> http2_session& = delete;
  ~http2_session();

  /// Takes what came, from the preface on. False when the client breaks the protocol beyond repair:
  /// what there is to say then is in the output, and the connection is to be closed.
  [[nodiscard]] auto receive(std::string_view bytes, instant now) -> bool;
  /// Appends what is to be sent, until `out` has `octets_max` octets or a little more. False when
  /// the session is of no use any more.
  [[nodiscard]] auto take_output(std::string& out, std::size_t octets_max) -> bool;
  /// True when `take_output` would give something.
  [[nodiscard]] auto wants_output() const noexcept -> bool;
  /// True when nothing more is to be received or sent.
  [[nodiscard]] auto is_over() const noexcept -> bool;
  /// How much waits for the client to take it: content of all streams, heads and the like.
  [[nodiscard]] auto waiting_octets() const noexcept -> std::size_t;
  /// Of that, what is in memory of this session and has no other owner.
  [[nodiscard]] auto own_waiting_octets() const noexcept -> std::size_t;
  /// Of that, what is not content.
  [[nodiscard]] auto pending_octets() const noexcept -> std::size_t;
  /// How much content had to wait for its turn or for a window, and was given to `take_output`
  /// then.
  [[nodiscard]] auto content_octets_sent() const noexcept -> std::uint64_t;
  [[nodiscard]] auto streams_count() const noexcept -> std::size_t;
  /// The first `streams_count()` numbers stand for the streams that are open, in no order.
  [[nodiscard]] auto stream_at(std::size_t position) noexcept -> http2_stream&;
  [[nodiscard]] auto stream_at(std::size_t position) const noexcept -> http2_stream const&;

  /// Sends the head of an interim response. `field_lines` as below.
  void send_interim(http2_stream& on, int status, std::string_view field_lines);
  /// Sends the head of the response. `field_lines` are complete lines of HTTP/1.1, none of which
  /// belongs to the connection; `last`: there is no content.
  void send_head(http2_stream& on, int status, std::string_view field_lines, bool last);
  /// Sends a response of which all is there.
  void send_whole(http2_stream& on, int status, std::string_view field_lines,
                  http2_content const& content);
  void send_whole(http2_stream& on, int status, std::string_view field_lines,
                  std::string_view content) {
    send_whole(on, status, field_lines, http2_content{.rest = content});
  }
  void send_content(http2_stream& on, std::string_view bytes);
  /// Ends the response, perhaps with trailers: complete lines of HTTP/1.1.
  void send_end(http2_stream& on, std::string_view trailers = {});
  void reset(http2_stream& on, http2_error why);
  /// What was not taken of the request's content is gone by now.
  void let_send(http2_stream& on);

  /// Gives back what is not needed until the next stream. Only while there are none.
  void rest();
  /// Takes no more requests; those under way are finished.
  void drain();
  /// Ends the connection at once.
  void terminate(http2_error why);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace tidegate::TIDEGATE_ABI::wire
