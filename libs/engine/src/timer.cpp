// SPDX-License-Identifier: Apache-2.0
#include <tidegate/engine/timer.hpp>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace tidegate::engine {

void timer::unlink() noexcept {
  if (before_ != nullptr) {
    *before_ = next_;
    if (next_ != nullptr) {
      next_->before_ = before_;
    }
    before_ = nullptr;
    next_ = nullptr;
    moved_on_from_ = instant::max();
  }
}

void timer::cancel() noexcept {
  unlink();
  deadline_ = instant::max();
}

void timer::move(timer_wheel& wheel) noexcept {
  unlink();
  wheel.insert(*this);
}

void timer_wheel::insert(timer& t) noexcept {
  // In the tick after the one of its deadline it is surely due. What is too far away is put as far
  // as the wheel goes.
  auto const wanted = std::max(tick_of(t.deadline_) + 1, current_);
  auto const at = std::min(wanted, current_ + slots - 1);
  t.moved_on_from_ = instant(tick * static_cast<std::int64_t>(at - std::min<std::uint64_t>(at, 1)));
  auto& first = slots_[at % slots];
  t.next_ = first;
  t.before_ = &first;
  if (first != nullptr) {
    first->before_ = &t.next_;
  }
  first = &t;
  occupied_[at % slots / 64] |= std::uint64_t{1} << at % 64;
}

timer_wheel::~timer_wheel() {
  for (auto& first : slots_) {
    while (first != nullptr) {
      first->cancel();
    }
  }
}

auto timer_wheel::advance(instant now) -> bool {
  bool has_memory = true;
  auto const end = tick_of(now) + 1;
  // After a long sleep every slot is looked at once.
  current_ = std::max(current_, end - std::min<std::uint64_t>(end, slots));
  while (current_ < end) {
    // The slot is taken over as it stands, so that what is set while calling waits for its own
    // turn.
    timer* due = std::exchange(slots_[current_ % slots], nullptr);
    if (due != nullptr) {
      due->before_ = &due;
    }
    occupied_[current_ % slots / 64] &= ~(std::uint64_t{1} << current_ % 64);
    ++current_;
    while (due != nullptr) {
      auto& t = *due;
      t.unlink();
      if (t.deadline_ > now) {
        insert(t);
      } else {
        t.deadline_ = instant::max();
        try {
          t.expired();
        } catch (std::bad_alloc const&) {
          has_memory = false;
        }
      }
    }
  }
  return has_memory;
}

auto timer_wheel::next_in(instant now) const noexcept -> std::chrono::nanoseconds {
  auto const begin = current_ % slots;
  for (std::size_t i = 0; i <= occupied_.size(); ++i) {
    auto const word = (begin / 64 + i) % occupied_.size();
    auto bits = occupied_[word];
    if (i == 0) {
      bits &= ~std::uint64_t{0} << begin % 64;  // those before are at the other end of the wheel
    }
    if (bits != 0) {
      auto const slot = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
      auto const at = instant(tick * static_cast<std::int64_t>(current_ + (slot - begin) % slots));
      return std::max(at - now, instant::duration(0));
    }
  }
  return none;
}

}  // namespace tidegate::engine
