// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/spent_log.hpp>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>

namespace tidegate::TIDEGATE_ABI::ratelimit {

namespace {

/// A number in groups of seven bits, the lowest first. Time that has passed is at most a window,
/// which fits into eight octets with the bit that says whether units follow.
constexpr std::uint32_t entry_octets_max = 20;
constexpr std::uint32_t entries_max = 10'000;

auto nanoseconds_of(instant at) noexcept -> std::int64_t {
  return at.time_since_epoch().count();
}

auto encode_number(std::uint8_t* to, std::uint64_t number) noexcept -> std::uint8_t* {
  for (; number >= 0x80; number >>= 7) {
    *to++ = static_cast<std::uint8_t>(number | 0x80);
  }
  *to++ = static_cast<std::uint8_t>(number);
  return to;
}

auto decode_number(std::uint8_t const*& from) noexcept -> std::uint64_t {
  std::uint64_t number = 0;
  unsigned shift = 0;
  while (*from >= 0x80) {
    number |= std::uint64_t{*from++ & 0x7fU} << shift;
    shift += 7;
  }
  return number | std::uint64_t{*from++} << shift;
}

}  // namespace

auto spent_log::after(entry const& e) const noexcept -> entry {
  auto const* from = octets_.get() + e.end;
  auto const passed = decode_number(from);
  auto const units = (passed & 1) == 0 ? 1 : decode_number(from);
  return {e.time + static_cast<std::int64_t>(passed >> 1), static_cast<std::int64_t>(units),
          static_cast<std::uint32_t>(from - octets_.get())};
}

auto spent_log::encode(std::uint32_t to, std::int64_t passed, std::int64_t units) noexcept
    -> std::uint32_t {
  auto* at = octets_.get() + to;
  at = encode_number(at, static_cast<std::uint64_t>(passed) << 1 | (units == 1 ? 0U : 1U));
  if (units != 1) {
    at = encode_number(at, static_cast<std::uint64_t>(units));
  }
  return static_cast<std::uint32_t>(at - octets_.get());
}

void spent_log::take_oldest(entry const& e) noexcept {
  oldest_ = e.time;
  oldest_units_ = e.units;
  begin_ = e.end;
  --size_;
}

void spent_log::merge_oldest() noexcept {
  auto next = after(oldest());
  next.units += oldest_units_;
  take_oldest(next);
}

/// The oldest that was spent later than `from`, and what is used from it on. There is one when
/// `used` is above 0.
auto spent_log::first_that_counts(std::int64_t from, std::int64_t& used) const noexcept -> entry {
  auto e = oldest();
  used = used_;
  while (used > 0 && e.time <= from) {
    used -= e.units;
    if (used > 0) {
      e = after(e);
    }
  }
  return e;
}

/// How long until `excess` units of those from `first` on no longer count. What is not in the log
/// yet was spent at `added_at`.
auto spent_log::wait(policy const& p, std::int64_t now, entry first, std::int64_t excess,
                     std::int64_t added_at) const noexcept -> std::int64_t {
  auto const window = std::chrono::nanoseconds(p.window()).count();
  excess -= first.units;
  while (excess > 0 && first.end != end_) {
    first = after(first);
    excess -= first.units;
  }
  return (excess > 0 ? added_at : first.time) + window - now;
}

/// With `more` units that are spent now, which come after all that is in the log.
auto spent_log::left(policy const& p, std::int64_t now, entry first, std::int64_t used,
                     std::int64_t more) const noexcept -> service {
  auto const window = std::chrono::nanoseconds(p.window()).count();
  auto const added_at = used == 0 ? now : std::max(now, newest_);
  if (used == 0) {
    first = {added_at, more, end_};
  }
  auto const all = used + more;
  auto const remaining = std::max<std::int64_t>(p.quota() - all, 0);
  auto reset = window;
  if (all > 0 && p.quota() > 0) {
    reset = wait(p, now, first, remaining > 0 ? 1 : all + 1 - p.quota(), added_at);
  }
  return {remaining, std::chrono::nanoseconds(std::min(reset, window))};
}

auto spent_log::decide(policy const& p, instant at, std::int64_t cost) noexcept -> verdict {
  auto const now = nanoseconds_of(at);
  auto const window = std::chrono::nanoseconds(p.window()).count();
  cost = std::max<std::int64_t>(cost, 0);
  while (used_ > 0 && oldest_ <= now - window) {
    used_ -= oldest_units_;
    if (used_ > 0) {
      take_oldest(after(oldest()));
    }
  }
  if (used_ == 0) {
    begin_ = end_ = size_ = 0;
  }
  auto const first = oldest();
  auto const room = p.quota() - used_;
  if (cost > room) {
    auto const retry =
        cost > p.quota() ? window : wait(p, now, first, cost - room, std::max(now, newest_));
    return {false, left(p, now, first, used_, 0), std::chrono::nanoseconds(retry)};
  }
  return {true, left(p, now, first, used_, cost), {}};
}

void spent_log::add(instant at, std::int64_t units) noexcept {
  if (units <= 0) {
    return;
  }
  auto const now = nanoseconds_of(at);
  if (used_ == 0) {
    oldest_ = newest_ = now;
    oldest_units_ = used_ = units;
    begin_ = end_ = size_ = 0;
    return;
  }
  units = std::min(units, std::numeric_limits<std::int64_t>::max() - used_);
  auto const passed = std::max<std::int64_t>(now - newest_, 0);
  newest_ += passed;
  used_ += units;
  if (end_ + entry_octets_max > capacity_ && begin_ > 0) {
    std::memmove(octets_.get(), octets_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  while (size_ > 0 && (end_ - begin_ + entry_octets_max > capacity_ || size_ >= entries_max)) {
    merge_oldest();
    if (end_ + entry_octets_max > capacity_) {
      std::memmove(octets_.get(), octets_.get() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
  }
  if (end_ - begin_ + entry_octets_max > capacity_) {
    oldest_ = newest_;
    oldest_units_ = used_;
    return;
  }
  end_ = encode(end_, passed, units);
  ++size_;
}

/// Fewer octets are written than were read before: of two times without what is between them, the
/// sum takes no more than both did.
void spent_log::take_from(std::int64_t admitted_at, std::int64_t units) noexcept {
  auto const give = [&units, this](std::int64_t& of) {
    auto const given = std::min(units, of);
    of -= given;
    units -= given;
    used_ -= given;
  };
  auto e = oldest();
  auto in = e.end;
  while (in != end_) {
    auto const next = after(e);
    if (next.time >= admitted_at) {
      break;
    }
    e = next;
    in = e.end;
  }
  if (oldest_ >= admitted_at) {
    give(oldest_units_);
  }
  auto out = in;
  auto last = e.time;  // of what is kept
  while (in != end_ && (units > 0 || last != e.time)) {
    e = after(e);
    in = e.end;
    give(e.units);
    if (e.units > 0) {
      out = encode(out, e.time - last, e.units);
      last = e.time;
    } else {
      --size_;
    }
  }
  if (in == end_) {
    newest_ = last;
  }
  if (in != out) {
    std::memmove(octets_.get() + out, octets_.get() + in, end_ - in);
    end_ -= in - out;
  }
  if (oldest_units_ == 0 && used_ > 0) {
    take_oldest(after(oldest()));
  }
}

void spent_log::release(policy const& p, instant admitted_at, instant now,
                        std::int64_t units) noexcept {
  auto const from = nanoseconds_of(admitted_at);
  auto const window = std::chrono::nanoseconds(p.window()).count();
  if (used_ > 0 && units > 0 && from > nanoseconds_of(now) - window) {
    take_from(from, units);
  }
}

auto spent_log::look(policy const& p, instant at) const noexcept -> service {
  auto const now = nanoseconds_of(at);
  std::int64_t used = 0;
  auto const first = first_that_counts(now - std::chrono::nanoseconds(p.window()).count(), used);
  return left(p, now, first, used, 0);
}

auto spent_log::expires(policy const& p) const noexcept -> instant {
  return is_empty()
             ? instant()
             : instant(std::chrono::nanoseconds(newest_) + std::chrono::nanoseconds(p.window()));
}

auto spent_log::wanted() const noexcept -> std::size_t {
  if (used_ == 0 || end_ - begin_ + entry_octets_max + capacity_ / 8 <= capacity_) {
    return capacity_;
  }
  return capacity_ + std::max<std::size_t>(capacity_ / 2, 2 * std::size_t{entry_octets_max});
}

auto spent_log::grow(std::size_t octets) noexcept -> bool {
  assert(octets >= capacity_);
  std::unique_ptr<std::uint8_t[]> larger(new (std::nothrow) std::uint8_t[octets]);
  if (larger == nullptr) {
    return false;
  }
  if (end_ > begin_) {
    std::memcpy(larger.get(), octets_.get() + begin_, end_ - begin_);
  }
  octets_ = std::move(larger);
  end_ -= begin_;
  begin_ = 0;
  capacity_ = static_cast<std::uint32_t>(octets);
  return true;
}

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
