// SPDX-License-Identifier: Apache-2.0
#include "protocol/command_queue.hpp"

#include <utility>

namespace tidegate::store_redis {

void command_queue::push(command const& request, answer_function answer) {
  auto& made = entries_.emplace_back();
  made.answer = std::move(answer);
  made.begin = begin_ + octets_.size();
  made.replies_left = request.count();
  made.is_array = request.count() > 1;
  made.value.kind = made.is_array ? resp_kind::array : resp_kind::null;
  request.append_to(octets_);
}

void command_queue::note_sent(std::size_t size) {
  sent_ += size;
  if (sent_ == octets_.size() || sent_ > octets_.size() / 2) {
    begin_ += sent_;
    octets_.erase(0, sent_);
    sent_ = 0;
  }
}

auto command_queue::take_reply(resp_value value) -> std::optional<entry> {
  auto& front = entries_.front();
  if (front.is_array) {
    front.value.items.push_back(std::move(value));
  } else {
    front.value = std::move(value);
  }
  if (--front.replies_left > 0) {
    return std::nullopt;
  }
  auto done = std::move(front);
  entries_.pop_front();
  return done;
}

auto command_queue::set_deadlines(instant at) noexcept -> bool {
  bool any = false;
  for (auto each = entries_.rbegin(); each != entries_.rend() && each->deadline == instant::max();
       ++each) {
    each->deadline = at;
    any = true;
  }
  return any;
}

template <class Condition>
auto command_queue::take_while(Condition condition) -> entries {
  entries taken;
  while (!entries_.empty() && condition(entries_.front())) {
    taken.push_back(std::move(entries_.front()));
    entries_.pop_front();
  }
  auto const keep_from = entries_.empty() ? begin_ + octets_.size() : entries_.front().begin;
  octets_.erase(0, static_cast<std::size_t>(keep_from - begin_));
  begin_ = keep_from;
  sent_ = 0;
  return taken;
}

auto command_queue::take_sent() -> entries {
  return take_while([sent = sent_end()](entry const& each) { return each.begin < sent; });
}

auto command_queue::take_expired(instant now) -> entries {
  return take_while([now](entry const& each) { return now >= each.deadline; });
}

auto command_queue::take_all() -> entries {
  return take_while([](entry const&) { return true; });
}

}  // namespace tidegate::store_redis
