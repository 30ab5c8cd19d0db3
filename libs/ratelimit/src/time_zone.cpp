// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/time_zone.hpp>

#include "posix_zone.hpp"

#include <algorithm>
#include <optional>

namespace tidegate::TIDEGATE_ABI::ratelimit {

namespace {

constexpr std::size_t octets_max = std::size_t{64} * 1024;
constexpr std::uint32_t changes_max = 4'000;
constexpr std::int32_t offset_max = 26 * 3600;

/// Takes numbers from the front, the highest octet first.
class octet_reader {
 public:
  explicit octet_reader(std::span<std::byte const> octets) : left_(octets) {}

  [[nodiscard]] auto has(std::size_t count) const noexcept -> bool { return left_.size() >= count; }
  auto take(std::size_t count) noexcept -> std::span<std::byte const> {
    auto const taken = left_.first(count);
    left_ = left_.subspan(count);
    return taken;
  }
  /// Of `size` octets, with a sign.
  auto number(std::size_t size) noexcept -> std::int64_t {
    std::uint64_t value = 0;
    for (auto const octet : take(size)) {
      value = value << 8 | std::to_integer<std::uint64_t>(octet);
    }
    auto const unused = static_cast<unsigned>(64 - 8 * size);
    return static_cast<std::int64_t>(value << unused) >> unused;
  }
  auto rest() noexcept -> std::span<std::byte const> { return take(left_.size()); }
  auto octet() noexcept -> std::uint8_t { return std::to_integer<std::uint8_t>(take(1)[0]); }

 private:
  std::span<std::byte const> left_;
};

/// Section 3.1 of RFC 9636.
struct header {
  std::uint8_t version = 0;  // as a character, but 0 for the first
  std::uint32_t ut_indicators = 0;
  std::uint32_t standard_indicators = 0;
  std::uint32_t leap_seconds = 0;
  std::uint32_t changes = 0;
  std::uint32_t kinds = 0;
  std::uint32_t name_octets = 0;

  [[nodiscard]] auto octets(std::size_t time_size) const noexcept -> std::size_t {
    return std::size_t{changes} * (time_size + 1) + std::size_t{kinds} * 6 + name_octets +
           std::size_t{leap_seconds} * (time_size + 4) + standard_indicators + ut_indicators;
  }
};

auto read_header(octet_reader& in) -> result<header, time_zone_fault> {
  if (!in.has(44)) {
    return failure(time_zone_fault::cut_off);
  }
  constexpr std::string_view magic = "TZif";
  auto const begin = in.take(4);
  if (!std::ranges::equal(begin, std::as_bytes(std::span(magic)))) {
    return failure(time_zone_fault::not_tzif);
  }
  header made;
  made.version = in.octet();
  in.take(15);
  for (auto* const count : {&made.ut_indicators, &made.standard_indicators, &made.leap_seconds,
                            &made.changes, &made.kinds, &made.name_octets}) {
    *count = static_cast<std::uint32_t>(in.number(4));
    if (*count > octets_max) {
      return failure(time_zone_fault::too_large);
    }
  }
  if (made.version != 0 && made.version < '2') {
    return failure(time_zone_fault::not_tzif);
  }
  if (made.kinds == 0 || made.kinds > 256) {
    return failure(time_zone_fault::bad_change);
  }
  return made;
}

/// Section 3.2: times, which kind each begins, and what the kinds are.
auto read_changes(octet_reader& in, header const& from, std::size_t time_size)
    -> result<std::vector<time_zone::change>, time_zone_fault> {
  if (!in.has(from.octets(time_size))) {
    return failure(time_zone_fault::cut_off);
  }
  if (from.leap_seconds > 0) {
    return failure(time_zone_fault::has_leap_seconds);
  }
  if (from.changes > changes_max) {
    return failure(time_zone_fault::too_large);
  }
  std::vector<time_zone::change> made(from.changes + 1);
  for (std::size_t i = 1; i < made.size(); ++i) {
    made[i].since = in.number(time_size);
    if (i > 1 && made[i].since <= made[i - 1].since) {
      return failure(time_zone_fault::bad_change);
    }
  }
  auto const kinds_of = in.take(from.changes);
  std::vector<std::int32_t> offsets(from.kinds);
  for (auto& offset : offsets) {
    offset = static_cast<std::int32_t>(in.number(4));
    in.take(2);
    if (offset < -offset_max || offset > offset_max) {
      return failure(time_zone_fault::bad_offset);
    }
  }
  in.take(std::size_t{from.name_octets} + from.standard_indicators + from.ut_indicators);
  // Before the first change the first kind is in force.
  made[0].offset = offsets[0];
  for (std::size_t i = 1; i < made.size(); ++i) {
    auto const kind = std::to_integer<std::size_t>(kinds_of[i - 1]);
    if (kind >= offsets.size()) {
      return failure(time_zone_fault::bad_change);
    }
    made[i].offset = offsets[kind];
  }
  return made;
}

/// Section 3.3: the rule between two line ends; nothing when it says nothing.
auto read_rule(octet_reader& in) -> result<std::optional<posix_zone>, time_zone_fault> {
  auto const footer = in.rest();
  std::string_view text(reinterpret_cast<char const*>(footer.data()), footer.size());  // NOLINT
  if (text.size() < 2 || text.front() != '\n') {
    return failure(time_zone_fault::cut_off);
  }
  auto const end = text.find('\n', 1);
  if (end == std::string_view::npos) {
    return failure(time_zone_fault::cut_off);
  }
  text = text.substr(1, end - 1);
  if (text.empty()) {
    return std::nullopt;
  }
  auto rule = parse_posix_zone(text);
  if (!rule) {
    return failure(time_zone_fault::bad_rule);
  }
  return rule;
}

/// The last of those at one time is in force; one that changes nothing is none.
void make_plain(std::vector<time_zone::change>& changes) {
  std::vector<time_zone::change> plain;
  for (auto const& each : changes) {
    while (!plain.empty() && plain.back().since >= each.since) {
      plain.pop_back();
    }
    if (plain.empty() || plain.back().offset != each.offset) {
      plain.push_back(each);
    }
  }
  changes = std::move(plain);
}

}  // namespace

auto message(time_zone_fault fault) noexcept -> std::string_view {
  switch (fault) {
    case time_zone_fault::not_tzif: return "it is not of the format TZif";
    case time_zone_fault::cut_off: return "it ends too early";
    case time_zone_fault::too_large: return "it is too large";
    case time_zone_fault::bad_change: return "its changes are not in order or of unknown kinds";
    case time_zone_fault::bad_offset: return "an offset is more than 26 hours";
    case time_zone_fault::has_leap_seconds: return "it counts leap seconds";
    case time_zone_fault::bad_rule: return "its rule for later times is invalid";
  }
  return "unknown fault";
}

auto time_zone::parse(std::span<std::byte const> octets) -> result<time_zone, time_zone_fault> {
  if (octets.size() > octets_max) {
    return failure(time_zone_fault::too_large);
  }
  octet_reader in(octets);
  TIDEGATE_TRY(auto head, read_header(in));
  std::size_t time_size = 4;
  if (head.version != 0) {  // the same once more, with more octets for each time
    auto const first = head.octets(time_size);
    if (!in.has(first)) {
      return failure(time_zone_fault::cut_off);
    }
    in.take(first);
    TIDEGATE_TRY(auto second, read_header(in));
    head = second;
    time_size = 8;
  }
  TIDEGATE_TRY(auto changes, read_changes(in, head, time_size));
  // RFC 9636 has times from -2^59 on.
  changes[0].since = first_second;
  for (auto& each : changes) {
    each.since = std::clamp(each.since, first_second, -first_second);
  }
  if (head.version != 0) {
    TIDEGATE_TRY(auto rule, read_rule(in));
    if (rule) {
      append_changes(*rule, changes);
    }
  }
  make_plain(changes);
  time_zone made;
  made.changes_ = std::move(changes);
  return made;
}

auto time_zone::at(std::int64_t second) const noexcept -> std::size_t {
  auto const after = std::ranges::upper_bound(changes_, second, {}, &change::since);
  return after == changes_.begin() ? 0 : static_cast<std::size_t>(after - changes_.begin()) - 1;
}

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
