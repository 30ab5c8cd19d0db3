// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/field_edits.hpp>

#include <tidegate/base/ascii.hpp>
#include <tidegate/wire/http1_write.hpp>

#include <algorithm>

namespace tidegate::gateway {

namespace {

constexpr std::string_view line_end = "\r\n";

/// Moves the lines from `from` on together, without those whose name is not wanted.
template <class IsDropped>
void erase_lines(std::string& lines, std::size_t from, IsDropped is_dropped) {
  auto to = from;
  for (auto at = from; at < lines.size();) {
    auto const end =
        std::min(lines.find(line_end, at), lines.size() - line_end.size()) + line_end.size();
    auto const line = std::string_view(lines).substr(at, end - at);
    if (!is_dropped(line.substr(0, line.find(':')))) {
      if (to != at) {
        std::copy(line.begin(), line.end(), lines.begin() + static_cast<std::ptrdiff_t>(to));
      }
      to += line.size();
    }
    at = end;
  }
  lines.resize(to);
}

}  // namespace

field_edits::field_edits(field_rules const& rules) {
  for (auto const& name : rules.remove) {
    add_dropped(name);
  }
  for (auto const& rule : rules.set) {
    if (wire::find_known_field(rule.name) == wire::known_field::host) {
      host_ = rule.value;
      continue;
    }
    add_dropped(rule.name);
    add_line(rule);
  }
  for (auto const& rule : rules.add) {
    add_line(rule);
  }
}

void field_edits::add_line(field_rule const& rule) {
  wire::append_field(lines_, rule.name, std::string_view(rule.value));
  if (auto const known = wire::find_known_field(rule.name); known != wire::known_field::other) {
    in_lines_.insert(known);
  }
}

void field_edits::add_dropped(std::string_view name) {
  if (auto const known = wire::find_known_field(name); known != wire::known_field::other) {
    dropped_.insert(known);
  } else {
    names_.push_back(lower_case(name));
  }
}

auto field_edits::drops(std::string_view name) const noexcept -> bool {
  auto const known = wire::find_known_field(name);
  return known != wire::known_field::other
             ? dropped_.contains(known)
             : std::ranges::any_of(names_, [name](std::string_view each) {
                 return equal_ignoring_case(name, each);
               });
}

void field_edits::apply(std::string& lines, wire::field_set const& except) const {
  if (!dropped_.empty() || !names_.empty()) {
    erase_lines(lines, 0, [this](std::string_view name) { return drops(name); });
  }
  auto const before = lines.size();
  lines.append(lines_);
  if (in_lines_.has_any_of(except)) [[unlikely]] {
    erase_lines(lines, before, [&except](std::string_view name) {
      auto const known = wire::find_known_field(name);
      return known != wire::known_field::other && except.contains(known);
    });
  }
}

}  // namespace tidegate::gateway
