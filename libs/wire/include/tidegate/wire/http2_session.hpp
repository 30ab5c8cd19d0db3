// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>
#include <tidegate/wire/http1_head.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::wire {

/// Why a stream or a connection ends (RFC 9113, section 7), as far as we say so ourselves.
enum class http2_error : std::uint32_t {
  no_error = 0x0,
  protocol_error = 0x1,
  internal_error = 0x2,
  flow_control_error = 0x3,
  stream_closed = 0x5,
  frame_size_error = 0x6,
  refused_stream = 0x7,
  cancel = 0x8,
  compression_error = 0x9,
  enhance_your_calm = 0xb,
};

/// So many at once, and so many more each second.
struct http2_rate {
  std::uint32_t burst = 0;
  std::uint32_t per_second = 0;
};

/// What a client may ask for.
struct http2_limits {
  std::uint32_t concurrent_streams_max = 128;
  /// As for HTTP/1.1: the head of a request is judged in the form in which it is sent on.
  head_limits head{};
  /// What a client may send of a body before we have passed it on.
  std::uint32_t stream_window_octets = 128 * 1024;
  std::uint32_t connection_window_octets = 1024 * 1024;
  /// Streams that the client resets, or makes us reset: each has cost us a request.
  http2_rate resets{256, 32};
  /// SETTINGS and PING, which want an answer, and DATA without content.
  http2_rate control_frames{1024, 128};
};

class http2_session;

/// One request and its response. Belongs to the session, which says when it is over.
class http2_stream {
 public:
  /// The number of the stream.
  [[nodiscard]] auto id() const noexcept -> std::int32_t { return id_; }
  /// When its head began to come.
  [[nodiscard]] auto opened_at() const noexcept -> instant { return opened_at_; }
  /// True when all of the request has come.
  [[nodiscard]] auto request_is_complete() const noexcept -> bool { return request_complete_; }
  /// True when nothing more is received or sent: at most its output waits to be taken.
  [[nodiscard]] auto is_over() const noexcept -> bool { return queue_ >= queue::leaving; }
  /// How much of the response's content waits for the client to take it.
  [[nodiscard]] auto waiting_octets() const noexcept -> std::size_t {
    return out_.own.size() - out_.sent + out_.shared.size();
  }

  /// For the handler of events.
  void* user = nullptr;

 private:
  friend class http2_session;

  /// Where it waits. A stream that is `leaving` is over, and is closed when the last of its output
  /// is taken; one that is `closed` waits nowhere any more.
  enum class queue : std::uint8_t { none, ready, leaving, closed };

  /// Content of the response that waits for its turn or for a window.
  struct outgoing_content {
    std::string own;
    std::size_t sent = 0;               // of `own`
    std::string_view shared;            // content behind `own`, which others may send as well
    std::shared_ptr<void const> owner;  // of `shared`
  };

  std::int32_t id_ = 0;
  std::int32_t send_window_ = 0;  // less than nothing after some changes of settings
  instant opened_at_{};
  std::size_t position_ = 0;  // among the streams of the session
  http2_stream* next_ = nullptr;
  http2_stream* previous_ = nullptr;
  std::uint64_t leaves_at_ = 0;  // which octet of the output comes after its last one
  queue queue_ = queue::none;
  std::uint8_t urgency_ = 3;
  bool incremental_ = false;
  bool request_complete_ = false;
  bool response_complete_ = false;    // all of it is known here
  bool response_sent_ = false;        // and is in the output
  bool length_is_known_ = false;      // by Content-Length
  std::uint64_t missing_octets_ = 0;  // of that length
  std::size_t taken_octets_ = 0;      // of the client's window
  std::size_t held_octets_ = 0;       // of these: content that was not passed on
  std::size_t discarded_octets_ = 0;  // content after the end of the response
  outgoing_content out_;
};

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
  /// The end of a request that was not complete with its head.
  virtual void end_of_request(http2_stream& on) = 0;
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
/// (section 8.2.3). Trailers of requests are checked and dropped.
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
  void send_end(http2_stream& on);
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
  struct stream_table;
  struct sender;
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace tidegate::TIDEGATE_ABI::wire
