// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire/http2_stream.hpp>

namespace tidegate::TIDEGATE_ABI::wire {

/// A request as a client sends it.
struct http2_request {
  std::string_view method;
  std::string_view scheme;
  std::string_view authority;   ///< empty: it names none
  std::string_view path;        ///< with the query
  std::string_view protocol{};  ///< of an extended CONNECT (RFC 8441); else empty
  /// Complete lines of HTTP/1.1. What HTTP/2 does not have is left out: Connection,
  /// Transfer-Encoding, Upgrade and Host.
  std::string_view field_lines{};
};

/// A head of HTTP/1.1 as `append_request_head` writes it, taken apart. Borrows its texts.
struct request_text {
  http2_request request;
  std::size_t size = 0;  ///< of the head; 0: it is not whole
};
/// Takes such a head apart, where `text` begins with it.
[[nodiscard]] auto split_request_text(std::string_view text) noexcept -> request_text;

/// What a session tells. Nothing here may call `receive` or `take_output`, or destroy the session;
/// streams may be opened, sent on and reset.
class http2_client_events {
 public:
  /// A 1xx response. The heads live only as long as the calls.
  virtual void interim(http2_stream& on, response_head const& head) = 0;
  /// The head of the response. Its body has the framing under which it is sent on by HTTP/1.1:
  /// `until_close` when the server did not say how long it is.
  virtual void response(http2_stream& on, response_head const& head) = 0;
  /// A part of the response's content. False: it was taken, but the server is to send no more than
  /// its window until `let_send`.
  [[nodiscard]] virtual auto content(http2_stream& on, std::string_view bytes) -> bool = 0;
  /// The end of the response, in each case. `trailers` are the field lines that go on, as HTTP/1.1
  /// has them. Where the request is not whole yet, the server wants no more of it: see `reset`.
  virtual void end_of_response(http2_stream& on, std::string_view trailers) = 0;
  /// The stream is over and is destroyed after this call.
  virtual void closed(http2_stream& on, http2_stream_end how) = 0;

 protected:
  ~http2_client_events() = default;
};

/// The client's side of an HTTP/2 connection (RFC 9113) without I/O: bytes in, events out, bytes
/// out. It is as strict with a server as `http2_session` is with a client; responses are shown as
/// HTTP/1.1 would have them and are judged by the same reader.
///
/// A session stays on the thread that made it.
class http2_client_session {
 public:
  /// `head` is used while responses are read; see `message_head`. Both outlive the session.
  http2_client_session(http2_limits const& limits, http2_client_events& events,
                       response_head& head);
  http2_client_session(http2_client_session const&) = delete;
  auto operator=(http2_client_session const&) -> http2_client_session& = delete;
  ~http2_client_session();

  /// Takes what came. False when the server breaks the protocol beyond repair: what there is to say
  /// then is in the output, and the connection is to be closed.
  [[nodiscard]] auto receive(std::string_view bytes, instant now) -> bool;
  /// Appends what is to be sent, the preface first, until `out` has `octets_max` octets or a little
  /// more. False when the session is of no use any more.
  [[nodiscard]] auto take_output(std::string& out, std::size_t octets_max) -> bool;
  /// True when `take_output` would give something.
  [[nodiscard]] auto wants_output() const noexcept -> bool;
  /// How much waits for the server to take it: content of all streams, heads and the like.
  [[nodiscard]] auto waiting_octets() const noexcept -> std::size_t;
  /// How much of that is heads and the like, for which there is no window.
  [[nodiscard]] auto pending_octets() const noexcept -> std::size_t;
  [[nodiscard]] auto streams_count() const noexcept -> std::size_t;

  /// How many streams there may be at once: what the server says, within our own limit.
  [[nodiscard]] auto streams_max() const noexcept -> std::size_t;
  /// False when no more streams will be opened on this connection: the server has said GOAWAY, or
  /// the numbers of streams have run out.
  [[nodiscard]] auto takes_requests() const noexcept -> bool;
  /// True when the first SETTINGS of the server are there.
  [[nodiscard]] auto has_settings() const noexcept -> bool;
  /// True when the server lets requests be extended CONNECT (RFC 8441, section 3).
  [[nodiscard]] auto takes_extended_connect() const noexcept -> bool;

  /// A stream that was opened.
  struct opened {
    http2_stream& stream;
    /// How the lines of the request frame its body. Without one, the request is sent as a whole.
    body_framing body;
  };
  /// Sends the head of a request. Only while `takes_requests`, and fewer than `streams_max` are
  /// open. `asked` is its method. One with a `protocol` is open in both directions when a 2xx
  /// answers it; `send_end` ends ours.
  [[nodiscard]] auto open(http2_request const& request, method asked, instant now) -> opened;
  void send_content(http2_stream& on, std::string_view bytes);
  /// Ends the request, perhaps with trailers: complete lines of HTTP/1.1.
  void send_end(http2_stream& on, std::string_view trailers = {});
  /// Wants no answer any more, or has it before the request was whole.
  void reset(http2_stream& on, http2_error why);
  /// While a response begins: whether what came behind its head resets the stream before its end.
  /// `is_all`: nothing comes after that, so that a response without its end breaks off too.
  [[nodiscard]] auto breaks_off(http2_stream const& on, bool is_all) const noexcept -> bool;
  /// What was not taken of the response's content is gone by now.
  void let_send(http2_stream& on);
  /// Asks the server whether it is there: it has to answer, which is input.
  void send_ping();
  /// Ends the connection at once.
  void terminate(http2_error why);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace tidegate::TIDEGATE_ABI::wire
