// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/heavy_hitters.hpp>

namespace tidegate::gateway {

namespace {

/// Tells most texts apart before they are compared.
[[nodiscard]] auto tag_of(std::string_view text) -> std::uint64_t {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  if (text.size() >= sizeof first) {
    std::memcpy(&first, text.data(), sizeof first);
    std::memcpy(&last, text.data() + text.size() - sizeof last, sizeof last);
  } else if (!text.empty()) {
    std::memcpy(&first, text.data(), text.size());
  }
  return (first * 31 + last) * 31 + text.size();
}

}  // namespace

void heavy_hitters::sample(std::string_view text, ratelimit::verdict const& decided, instant now) {
  using namespace std::chrono_literals;
  // Who comes after a pause stands for itself only: those that were skipped before it may have been
  // others.
  auto const weight = now - sampled_ >= pause ? 1U : skipped_;
  skipped_ = 0;
  sampled_ = now;
  if (now - second_ >= 1s) {
    second_ = now;
    if (samples_ < samples_per_second / 4) {
      // At once as low as the last second asks for, not step by step: few may come from now on.
      stride_ = static_cast<std::uint32_t>(
          std::max<std::uint64_t>(std::uint64_t{stride_} * samples_ / (samples_per_second / 2), 1));
    }
    samples_ = 0;
  } else if (++samples_ >= samples_per_second && stride_ < (1U << 20U)) {
    stride_ *= 2;
    samples_ /= 2;
  }
  if (text.size() > text_octets_max) {
    return;
  }
  std::lock_guard const lock(mutex_);
  pass_time(now);
  auto& found = place_of(text);
  found.current += weight;
  found.refused += decided.admitted ? 0 : weight;
  found.remaining = decided.left.remaining;
  found.reset = now + decided.left.reset;
}

/// What was inherited is forgotten with the window: who is still there then has come by itself.
void heavy_hitters::pass_time(instant now) {
  if (now - begin_ < window) {
    return;
  }
  if (now - begin_ >= 2 * window) {
    slots_.clear();
    text_octets_ = 0;
  }
  begin_ = now;
  for (auto& each : slots_) {
    each.before = each.current - each.inherited;
    each.refused_before = each.refused;
    each.current = each.inherited = each.refused = 0;
  }
  std::erase_if(slots_, [this](slot const& each) {
    text_octets_ -= each.before == 0 ? each.text.size() : 0;
    return each.before == 0;
  });
}

auto heavy_hitters::place_of(std::string_view text) -> slot& {
  auto const tag = tag_of(text);
  auto const found = std::ranges::find_if(
      slots_, [&](slot const& each) { return each.tag == tag && each.text == text; });
  if (found != slots_.end()) {
    return *found;
  }
  std::uint64_t inherited = 0;
  while (slots_.size() == partitions_max || text_octets_ + text.size() > text_octets_max) {
    auto const least = std::ranges::min_element(
        slots_, {}, [](slot const& each) { return each.current + each.before; });
    inherited = least->current + least->before;
    text_octets_ -= least->text.size();
    std::swap(*least, slots_.back());
    slots_.pop_back();
  }
  text_octets_ += text.size();
  return slots_.emplace_back(
      slot{.text = std::string(text), .tag = tag, .current = inherited, .inherited = inherited});
}

void heavy_hitters::correct(std::string_view text, ratelimit::service const& left, instant now) {
  std::lock_guard const lock(mutex_);
  auto const found = std::ranges::find(slots_, text, &slot::text);
  if (found != slots_.end()) {
    found->remaining = left.remaining;
    found->reset = now + left.reset;
  }
}

auto heavy_hitters::look(instant now) const -> std::vector<partition> {
  std::vector<partition> seen;
  std::lock_guard const lock(mutex_);
  // A window counts by how much of it is less than a window ago.
  auto const windows = std::chrono::duration<double>(now - begin_) / window;
  auto const current = std::clamp(2.0 - windows, 0.0, 1.0);
  auto const before = std::clamp(1.0 - windows, 0.0, 1.0);
  for (auto const& each : slots_) {
    partition made{.text = each.text};
    made.requests = current * static_cast<double>(each.current - each.inherited) +
                    before * static_cast<double>(each.before);
    made.refused = current * static_cast<double>(each.refused) +
                   before * static_cast<double>(each.refused_before);
    made.remaining = each.remaining;
    made.reset = std::max(each.reset - now, std::chrono::nanoseconds(0));
    if (made.requests > 0) {
      seen.push_back(std::move(made));
    }
  }
  return seen;
}

}  // namespace tidegate::gateway
