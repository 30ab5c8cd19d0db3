// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/write.hpp>

#include <tidegate/sf/writer.hpp>

#include "parsed_field.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

namespace tidegate::TIDEGATE_ABI::ratelimit {

namespace {

using writer = sf::basic_list_writer<field_dialect>;

/// The nearest number that a non-negative Integer can carry.
[[nodiscard]] auto count(std::int64_t value) noexcept -> sf::integer {
  return sf::integer::clamp(std::max<std::int64_t>(value, 0));
}

/// Comments never give a second value to a parameter that the draft defines.
void write_comments(writer& out, comment_parameters const& comments,
                    std::span<std::string_view const> defined) {
  for (auto const& [key, value] : comments) {
    if (!detail::is_one_of(key.text(), defined)) {
      out.parameter(key, value);
    }
  }
}

/// An item of draft-09's RateLimit-Policy without its partition key, which comes last.
void write_policy(writer& out, quota_policy_view const& policy) {
  out.item(policy.name);
  out.parameter("q", count(policy.quota));
  if (policy.unit != "requests") {
    out.parameter("qu", policy.unit);
  }
  if (policy.window) {
    out.parameter("w", count(std::max<std::int64_t>(policy.window->count(), 1)));
  }
  if (policy.comments != nullptr) {
    write_comments(out, *policy.comments, detail::policy_parameters);
  }
}

/// An item of draft-07's.
void write_older_policy(writer& out, quota_policy_view const& policy) {
  out.item(count(policy.quota));
  out.parameter("w", count(std::max<std::int64_t>(policy.window->count(), 1)));
  if (policy.comments != nullptr) {
    write_comments(out, *policy.comments, detail::older_policy_parameters);
  }
}

/// Of the policies with one quota draft-07 shows the one with the longest window, the first of
/// those.
[[nodiscard]] auto is_shown_in_older(std::span<quota_policy_view const> policies,
                                     std::size_t i) noexcept -> bool {
  if (!policies[i].window) {
    return false;
  }
  for (std::size_t j = 0; j < policies.size(); ++j) {
    if (j != i && policies[j].window && count(policies[j].quota) == count(policies[i].quota) &&
        (*policies[j].window > *policies[i].window ||
         (*policies[j].window == *policies[i].window && j < i))) {
      return false;
    }
  }
  return true;
}

void append_partition_key(std::string& out, service_limit_view const& limit) {
  if (limit.partition_key) {
    out.append(";pk=", 4);
    sf::write_bare_item<field_dialect>(out, sf::byte_sequence_view{*limit.partition_key});
  }
}

constexpr auto two_digits = [] {
  std::array<char, 200> table{};
  for (std::size_t i = 0; i < 100; ++i) {
    table[2 * i] = static_cast<char>('0' + i / 10);
    table[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return table;
}();

/// Writes `value` so that it ends before `end`; returns where it begins.
[[nodiscard]] auto digits_before(char* end, sf::integer value) noexcept -> char* {
  auto rest = static_cast<std::uint64_t>(value.value());
  while (rest >= 10) {
    auto const before = rest / 100;
    end -= 2;
    std::memcpy(end, &two_digits[(rest - before * 100) * 2], 2);
    if (rest < 100) {
      return end;
    }
    rest = before;
  }
  *--end = static_cast<char>('0' + rest);
  return end;
}

/// Room for two numbers and what stands between them.
using number_buffer = std::array<char, 48>;

/// The number that remains, `between`, and the seconds until the reset: put together from the end
/// of the buffer, as each call of `append` costs more than the digits do.
template <std::size_t N>
[[nodiscard]] auto remaining_and_reset(
    number_buffer& buffer, std::int64_t remaining,
    char const (&between)[N],  // NOLINT(modernize-avoid-c-arrays)
    std::int64_t reset) noexcept -> std::string_view {
  auto* const end = buffer.data() + buffer.size();
  auto* begin = digits_before(end, count(reset)) - (N - 1);
  std::memcpy(begin, between, N - 1);
  begin = digits_before(begin, count(remaining));
  return {begin, static_cast<std::size_t>(end - begin)};
}

/// What follows `;r=` in an item of draft-09's RateLimit, but for the partition key.
[[nodiscard]] auto numbers_of(number_buffer& buffer, service_limit_view const& limit) noexcept
    -> std::string_view {
  if (limit.reset) {
    return remaining_and_reset(buffer, limit.remaining, ";t=", seconds_until(*limit.reset));
  }
  auto* const end = buffer.data() + buffer.size();
  auto* const begin = digits_before(end, count(limit.remaining));
  return {begin, static_cast<std::size_t>(end - begin)};
}

/// What follows `;r=`.
void append_rest_of_limit(std::string& out, service_limit_view const& limit) {
  number_buffer buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  out.append(numbers_of(buffer, limit));
  append_partition_key(out, limit);
}

constexpr std::string_view policies_name = "RateLimit-Policy: ";
constexpr std::string_view limits_name = "RateLimit: ";
constexpr std::string_view line_end = "\r\n";

[[nodiscard]] auto reset_of(service_limit_view const& limit, std::int64_t window) noexcept
    -> std::int64_t {
  return limit.reset ? seconds_until(*limit.reset) : window;
}

/// The index of the one with the least remaining, then the latest reset, among those with a window.
/// `window_of(i)` is in seconds.
template <class WindowOf>
[[nodiscard]] auto find_closest(std::span<service_limit_view const> limits,
                                WindowOf window_of) noexcept -> std::optional<std::size_t> {
  std::optional<std::size_t> closest;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    auto const window = window_of(i);
    if (!window) {
      continue;
    }
    if (!closest || limits[i].remaining < limits[*closest].remaining ||
        (limits[i].remaining == limits[*closest].remaining &&
         reset_of(limits[i], *window) > reset_of(limits[*closest], *window_of(*closest)))) {
      closest = i;
    }
  }
  return closest;
}

[[nodiscard]] auto window_of(quota_policy_view const& policy) noexcept
    -> std::optional<std::int64_t> {
  return policy.window ? std::optional(std::max<std::int64_t>(policy.window->count(), 1))
                       : std::nullopt;
}

}  // namespace

void append_policies(std::string& out, std::span<quota_policy_view const> policies,
                     std::span<service_limit_view const> limits, draft version) {
  assert(policies.size() == limits.size());
  writer writer(out);
  for (std::size_t i = 0; i < policies.size(); ++i) {
    if (rules_of(version).has_names) {
      write_policy(writer, policies[i]);
      append_partition_key(out, limits[i]);
    } else if (is_shown_in_older(policies, i)) {
      write_older_policy(writer, policies[i]);
    }
  }
}

void append_limits(std::string& out, std::span<quota_policy_view const> policies,
                   std::span<service_limit_view const> limits, draft version) {
  assert(policies.size() == limits.size());
  if (rules_of(version).has_names) {
    writer writer(out);
    for (std::size_t i = 0; i < policies.size(); ++i) {
      writer.item(policies[i].name);
      out.append(";r=", 3);
      append_rest_of_limit(out, limits[i]);
    }
  } else if (auto const expiring = find_expiring_limit(policies, limits)) {
    append_expiring_limit(out, *expiring);
  }
}

auto closest_to_exhaustion(std::span<quota_policy_view const> policies,
                           std::span<service_limit_view const> limits) noexcept
    -> std::optional<std::size_t> {
  assert(policies.size() == limits.size());
  return find_closest(limits, [&](std::size_t i) { return window_of(policies[i]); });
}

auto find_expiring_limit(std::span<quota_policy_view const> policies,
                         std::span<service_limit_view const> limits) noexcept
    -> std::optional<expiring_limit> {
  auto const closest = closest_to_exhaustion(policies, limits);
  if (!closest) {
    return std::nullopt;
  }
  auto const& limit = limits[*closest];
  return expiring_limit{count(policies[*closest].quota).value(), count(limit.remaining).value(),
                        count(reset_of(limit, *window_of(policies[*closest]))).value()};
}

void append_expiring_limit(std::string& out, expiring_limit const& limit) {
  sf::basic_dictionary_writer<field_dialect> writer(out);
  writer.member("limit", count(limit.limit));
  writer.member("remaining", count(limit.remaining));
  writer.member("reset", count(limit.reset));
}

void append_count(std::string& out, std::int64_t value) {
  sf::write_bare_item<field_dialect>(out, count(value));
}

void append_retry_after(std::string& out, std::chrono::nanoseconds wait) {
  append_count(out, seconds_until(wait));
}

prepared_fields::prepared_fields(std::span<quota_policy_view const> policies, draft version)
    : version_(version) {
  parts_.reserve(policies.size());
  writer writer(policy_text_);
  for (std::size_t i = 0; i < policies.size(); ++i) {
    part part;
    part.window = window_of(policies[i]);
    if (rules_of(version).has_names) {
      write_policy(writer, policies[i]);
      if (i != 0) {
        limit_text_.append(", ");
      }
      sf::write_bare_item<field_dialect>(limit_text_, policies[i].name);
      limit_text_.append(";r=");
    } else {
      if (is_shown_in_older(policies, i)) {
        write_older_policy(writer, policies[i]);
      }
      limit_text_.append("limit=");
      append_count(limit_text_, policies[i].quota);
      limit_text_.append(", remaining=");
    }
    part.policy_end = policy_text_.size();
    part.limit_end = limit_text_.size();
    parts_.push_back(part);
  }
  if (rules_of(version).has_names && !parts_.empty()) {
    lines_text_.append(policies_name).append(policy_text_).append(line_end);
    lines_text_.append(limits_name).append(limit_text_, 0, parts_[0].limit_end);
  }
}

void prepared_fields::append_policies(std::string& out,
                                      std::span<service_limit_view const> limits) const {
  assert(limits.size() == parts_.size());
  // The text is copied up to each place where a partition key goes in; without any in one piece.
  std::size_t copied = 0;
  if (rules_of(version_).has_names) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (limits[i].partition_key) {
        out.append(policy_text_.data() + copied, parts_[i].policy_end - copied);
        append_partition_key(out, limits[i]);
        copied = parts_[i].policy_end;
      }
    }
  }
  out.append(policy_text_.data() + copied, policy_text_.size() - copied);
}

void prepared_fields::append_limits(std::string& out,
                                    std::span<service_limit_view const> limits) const {
  assert(limits.size() == parts_.size());
  auto append_before_remaining = [&](std::size_t i) {
    auto const begin = i == 0 ? 0 : parts_[i - 1].limit_end;
    out.append(limit_text_.data() + begin, parts_[i].limit_end - begin);
  };
  if (rules_of(version_).has_names) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      append_before_remaining(i);
      append_rest_of_limit(out, limits[i]);
    }
  } else if (auto const closest =
                 find_closest(limits, [&](std::size_t i) { return parts_[i].window; })) {
    append_before_remaining(*closest);
    number_buffer buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    out.append(remaining_and_reset(buffer, limits[*closest].remaining, ", reset=",
                                   reset_of(limits[*closest], *parts_[*closest].window)));
  }
}

void prepared_fields::append_lines(std::string& out,
                                   std::span<service_limit_view const> limits) const {
  assert(limits.size() == parts_.size());
  bool const tells_keys = std::ranges::any_of(
      limits, [](service_limit_view const& limit) { return limit.partition_key.has_value(); });
  if (!lines_text_.empty() && !tells_keys) {
    append_usual_lines(out, limits);
    return;
  }
  auto const append_line = [&](std::string_view name, auto append_value) {
    auto const before = out.size();
    out.append(name);
    auto const value = out.size();
    append_value();
    if (out.size() == value) {
      out.resize(before);
    } else {
      out.append(line_end);
    }
  };
  append_line(policies_name, [&] { append_policies(out, limits); });
  append_line(limits_name, [&] { append_limits(out, limits); });
}

/// What most responses have: draft-09, without partition keys. Room is made once for all of it.
void prepared_fields::append_usual_lines(std::string& out,
                                         std::span<service_limit_view const> limits) const {
  auto const before = out.size();
  auto const size_max = before + lines_text_.size() + limit_text_.size() +
                        limits.size() * sizeof(number_buffer) + line_end.size();
  out.resize_and_overwrite(size_max, [&](char* data, std::size_t) {
    auto* p = data + before;
    auto const put = [&p](std::string_view text) {
      std::memcpy(p, text.data(), text.size());
      p += text.size();
    };
    put(lines_text_);
    for (std::size_t i = 0; i < limits.size(); ++i) {
      if (i != 0) {
        auto const begin = parts_[i - 1].limit_end;
        put({limit_text_.data() + begin, parts_[i].limit_end - begin});
      }
      number_buffer buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
      put(numbers_of(buffer, limits[i]));
    }
    put(line_end);
    return static_cast<std::size_t>(p - data);
  });
}

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
