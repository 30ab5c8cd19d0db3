// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire/http2_stream.hpp>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace tidegate::TIDEGATE_ABI::wire::http2 {

/// The streams of a session, the queues they wait in, and what is remembered of those that are
/// closed.
struct stream_table {
  struct open_stream {
    std::int32_t id = 0;  // here as well, so that looking for it touches nothing else
    std::unique_ptr<http2_stream> stream;
  };
  /// Has its links in the streams.
  struct stream_queue {
    http2_stream* first = nullptr;
    http2_stream* last = nullptr;
  };

  /// Null when there is none, or it is over but for its output.
  [[nodiscard]] auto find(std::int32_t id) const -> http2_stream*;
  /// As that, but also one of which only output is left.
  [[nodiscard]] auto find_any(std::int32_t id) const -> http2_stream*;
  /// True when the client used a higher number before it used this one, as far as that is
  /// remembered.
  [[nodiscard]] auto is_skipped(std::int32_t id) const -> bool;
  void note_skipped(std::int32_t before);
  /// A stream that we have reset: what the client sent before it knew is ignored (section 5.1).
  void note_reset(std::int32_t id);
  /// True for the number of a stream that was never opened. Servers open none, so all of the even
  /// ones.
  [[nodiscard]] auto is_idle(std::int32_t id) const -> bool { return id > last_id || id % 2 == 0; }
  auto open(std::int32_t id, instant now, std::uint32_t window_octets) -> http2_stream&;
  /// Takes it out of the table; it is kept for reuse.
  void release(http2_stream& stream);
  /// Puts it into the queue it waits in, before `before` or at the end.
  void enter(http2_stream& stream, http2_stream::queue which, http2_stream* before = nullptr);
  /// Takes it out of that.
  void remove(http2_stream& stream);
  [[nodiscard]] auto queue_of(http2_stream::queue which) -> stream_queue& {
    return which == http2_stream::queue::ready ? ready : leaving;
  }

  std::vector<open_stream> streams;
  stream_queue ready;         // have something to send and a window for it, the most urgent first
  stream_queue leaving;       // are closed when their output is taken, in that order
  std::int32_t last_id = -1;  // the highest that the client used, whichever side that is
  std::int32_t last_accepted_id = 0;  // and that became a stream
  /// Numbers that the client passed over, the first and the last of each row.
  std::vector<std::pair<std::int32_t, std::int32_t>> skipped;
  std::vector<std::int32_t> was_reset;  // the last ones that we have reset, so many at most
  std::size_t was_reset_max = 128;      // as many as may be open at once by default
};

}  // namespace tidegate::TIDEGATE_ABI::wire::http2
