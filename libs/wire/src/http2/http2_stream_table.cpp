// SPDX-License-Identifier: Apache-2.0
#include "http2_stream_table.hpp"

#include <algorithm>

namespace tidegate::TIDEGATE_ABI::wire::http2 {

namespace {

constexpr std::size_t spare_streams_max = 256;
/// Streams with more room than this are not kept.
constexpr std::size_t spare_octets_max = 4096;
/// Clients count without gaps, so that a few rows are more than most have.
constexpr std::size_t skipped_rows_max = 16;

/// Of the thread.
auto spare_streams() -> std::vector<std::unique_ptr<http2_stream>>& {
  static thread_local std::vector<std::unique_ptr<http2_stream>> spare;
  return spare;
}

}  // namespace

auto stream_table::find_any(std::int32_t id) const -> http2_stream* {
  for (auto i = streams.size(); i-- > 0;) {
    if (streams[i].id == id) {
      return streams[i].stream.get();
    }
  }
  return nullptr;
}

auto stream_table::find(std::int32_t id) const -> http2_stream* {
  auto* const found = find_any(id);
  return found == nullptr || found->is_over() ? nullptr : found;
}

auto stream_table::is_skipped(std::int32_t id) const -> bool {
  return std::ranges::any_of(skipped,
                             [&](auto const& row) { return id >= row.first && id <= row.second; });
}

/// Those between the highest one until now and the one that comes.
void stream_table::note_skipped(std::int32_t before) {
  if (skipped.size() == skipped_rows_max) {
    skipped.erase(skipped.begin());
  }
  skipped.emplace_back(last_id + 2, before - 2);
}

void stream_table::note_reset(std::int32_t id) {
  if (was_reset.size() == was_reset_max) {
    was_reset.erase(was_reset.begin());
  }
  was_reset.push_back(id);
}

auto stream_table::open(std::int32_t id, instant now, std::uint32_t window_octets)
    -> http2_stream& {
  auto& spare = spare_streams();
  std::unique_ptr<http2_stream> made;
  if (spare.empty()) {
    made = std::make_unique<http2_stream>();
  } else {
    made = std::move(spare.back());
    spare.pop_back();
  }
  auto& stream = *made;
  stream.id_ = id;
  stream.opened_at_ = now;
  stream.send_window_ = static_cast<std::int32_t>(window_octets);
  stream.position_ = streams.size();
  streams.push_back({id, std::move(made)});
  return stream;
}

void stream_table::release(http2_stream& stream) {
  auto& place = streams[stream.position_];
  auto done = std::move(place.stream);
  if (auto& last = streams.back(); &last != &place) {
    last.stream->position_ = done->position_;
    place = std::move(last);
  }
  streams.pop_back();
  auto& spare = spare_streams();
  if (spare.size() >= spare_streams_max || done->out_.own.capacity() > spare_octets_max) {
    return;
  }
  auto text = std::move(done->out_.own);
  text.clear();
  // Made again in its place, which takes less than an assignment.
  std::destroy_at(done.get());
  std::construct_at(done.get());
  done->out_.own = std::move(text);
  spare.push_back(std::move(done));
}

void stream_table::enter(http2_stream& stream, http2_stream::queue which, http2_stream* before) {
  auto& [first, last] = queue_of(which);
  stream.queue_ = which;
  stream.next_ = before;
  stream.previous_ = before != nullptr ? before->previous_ : last;
  (stream.previous_ != nullptr ? stream.previous_->next_ : first) = &stream;
  (before != nullptr ? before->previous_ : last) = &stream;
}

void stream_table::remove(http2_stream& stream) {
  if (stream.queue_ == http2_stream::queue::none) {
    return;
  }
  auto& [first, last] = queue_of(stream.queue_);
  (stream.previous_ != nullptr ? stream.previous_->next_ : first) = stream.next_;
  (stream.next_ != nullptr ? stream.next_->previous_ : last) = stream.previous_;
  stream.queue_ = http2_stream::queue::none;
}

}  // namespace tidegate::TIDEGATE_ABI::wire::http2
