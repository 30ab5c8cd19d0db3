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

/// What the peer may do.
struct http2_limits {
  /// Of a client: those that it may open. Of a server: those that we open at most.
  std::uint32_t concurrent_streams_max = 128;
  /// As for HTTP/1.1: the head of a message is judged in the form in which it is sent on.
  head_limits head{};
  /// What may come of a body before we have passed it on.
  std::uint32_t stream_window_octets = 128 * 1024;
  std::uint32_t connection_window_octets = 1024 * 1024;
  /// Streams that the peer resets, or makes us reset: each has cost us a request.
  http2_rate resets{256, 32};
  /// SETTINGS and PING, which want an answer, and DATA without content.
  http2_rate control_frames{1024, 128};
  /// A client is told that it may use extended CONNECT (RFC 8441, section 3).
  bool extended_connect = false;
};

class http2_session;
class http2_client_session;
namespace http2 {
struct stream_table;
struct sender;
struct receiver;
}  // namespace http2

/// How a stream that we have opened came to its end.
enum class http2_stream_end : std::uint8_t {
  complete,   ///< all of the response has come
  refused,    ///< the server has done nothing with the request: it can be sent again
  reset,      ///< by the server
  malformed,  ///< by us: the response is not one that HTTP/2 allows
  cancelled,  ///< by us
};

/// One request and its response. Belongs to its session, which says when it is over.
class http2_stream {
 public:
  /// The number of the stream (RFC 9113, section 5.1.1).
  [[nodiscard]] auto id() const noexcept -> std::int32_t { return id_; }
  /// When its head began to come.
  [[nodiscard]] auto opened_at() const noexcept -> instant { return opened_at_; }
  /// True when all has come that the peer sends: the request, or the response.
  [[nodiscard]] auto is_received() const noexcept -> bool { return received_; }
  /// True when nothing more is received or sent: at most its output waits to be taken.
  [[nodiscard]] auto is_over() const noexcept -> bool { return queue_ >= queue::leaving; }
  /// How much content waits for the peer to take it.
  [[nodiscard]] auto waiting_octets() const noexcept -> std::size_t {
    return out_.own.size() - out_.sent + out_.shared.size();
  }

  /// For the handler of events.
  void* user = nullptr;

 private:
  friend class http2_session;
  friend class http2_client_session;
  friend struct http2::stream_table;
  friend struct http2::sender;
  friend struct http2::receiver;

  /// Where it waits. A stream that is `leaving` is over, and is closed when the last of its output
  /// is taken; one that is `closed` waits nowhere any more.
  enum class queue : std::uint8_t { none, ready, leaving, closed };

  /// Whether the request is an extended CONNECT (RFC 8441); `open`: a 2xx has answered it, so that
  /// each direction ends by itself.
  enum class connect : std::uint8_t { none, asked, open };

  /// Content that waits for its turn or for a window, and what comes behind it.
  struct outgoing_content {
    std::string own;
    std::size_t sent = 0;               // of `own`
    std::string_view shared;            // content behind `own`, which others may send as well
    std::shared_ptr<void const> owner;  // of `shared`
    std::string trailers;               // field lines behind all of it
  };

  std::int32_t id_ = 0;
  std::int32_t send_window_ = 0;  // less than nothing after some changes of settings
  instant opened_at_{};
  std::size_t position_ = 0;  // among the streams of the session
  http2_stream* next_ = nullptr;
  http2_stream* previous_ = nullptr;
  std::uint64_t leaves_at_ = 0;  // which octet of the output comes after its last one
  queue queue_ = queue::none;
  struct {
    std::uint8_t urgency = 3;
    bool incremental = false;
  } priority_;
  bool received_ = false;
  bool all_is_known_ = false;  // what we send of it is here as a whole
  bool all_is_sent_ = false;   // and is in the output
  connect connect_ = connect::none;
  struct {
    bool head_came = false;
    std::uint8_t interims = 0;
    http2_stream_end end = http2_stream_end::complete;
    method asked = method::other;
  } response_;  // of the client's side only
  struct {
    bool is_known = false;  // by Content-Length
    std::uint64_t missing_octets = 0;
  } length_;                          // of what comes
  std::size_t taken_octets_ = 0;      // of the peer's window
  std::size_t held_octets_ = 0;       // of these: content that was not passed on
  std::size_t discarded_octets_ = 0;  // content after the end of what we send
  outgoing_content out_;
};

}  // namespace tidegate::TIDEGATE_ABI::wire
