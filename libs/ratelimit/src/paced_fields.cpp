// SPDX-License-Identifier: Apache-2.0
#include "paced_fields.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/http/date.hpp>
#include <tidegate/http/retry_after.hpp>
#include <tidegate/ratelimit/read.hpp>
#include <tidegate/sf/reader.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace tidegate::TIDEGATE_ABI::ratelimit {

namespace {

/// Reads one line of draft-09 without a tree, since every response has one. False when there is
/// anything unusual about it: then `read_limits` says what it means.
[[nodiscard]] auto read_usual_limits(std::string_view line, limit_field& out) -> bool {
  sf::basic_reader<field_dialect> reader(sf::field_type::list, line);
  std::string scratch;
  for (;;) {
    switch (reader.next()) {
      case sf::event::item:
        if (!reader.value().is(sf::bare_item_type::string)) {
          return false;
        }
        out.limits.emplace_back().name = reader.value().text(scratch);
        break;
      case sf::event::parameter: {
        auto& limit = out.limits.back();
        auto const number = reader.value().get_integer();
        if (reader.key() == "r" || reader.key() == "t") {
          if (!number || number->value() < 0) {
            return false;
          }
          (reader.key() == "r" ? limit.remaining : limit.reset) = number->value();
        } else if (reader.key() == "pk") {
          if (!reader.value().is(sf::bare_item_type::byte_sequence)) {
            return false;
          }
          limit.partition_key = reader.value().text(scratch);
        }
        break;
      }
      case sf::event::end:
        return std::ranges::all_of(out.limits,
                                   [](auto const& each) { return each.remaining.has_value(); });
      default: return false;
    }
  }
}

}  // namespace

paced_fields::paced_fields(std::span<http::field_view const> fields) {
  bool has_age = false;
  few_views beta_limits;  // of a server that tries the fields out; they count where the others lack
  few_views beta_policies;
  for (auto const& [name, value] : fields) {
    if (equal_ignoring_case(name, "ratelimit")) {
      limits.push_back(value);
    } else if (equal_ignoring_case(name, "ratelimit-policy")) {
      policies.push_back(value);
    } else if (equal_ignoring_case(name, "beta-ratelimit")) {
      beta_limits.push_back(value);
    } else if (equal_ignoring_case(name, "beta-ratelimit-policy")) {
      beta_policies.push_back(value);
    } else if (equal_ignoring_case(name, "retry-after")) {
      retry_after.push_back(value);
    } else if (equal_ignoring_case(name, "date")) {
      dates.push_back(value);
    } else if (equal_ignoring_case(name, "age") && !has_age && !value.empty() &&
               value.find_first_not_of("0123456789") == std::string_view::npos) {
      // A response out of a cache has a positive age (RFC 9111, section 5.1). What is not a number
      // is ignored.
      has_age = true;
      from_cache = value.find_first_not_of('0') != std::string_view::npos;
    }
  }
  if (limits.get().empty() && policies.get().empty()) {
    limits = std::move(beta_limits);
    policies = std::move(beta_policies);
  }
}

auto paced_fields::made_at(std::chrono::sys_seconds wall_clock) const -> std::chrono::sys_seconds {
  auto out = wall_clock;
  for (auto const date : dates.get()) {
    out = http::parse_http_date(date, wall_clock).value_or(out);
  }
  return out;
}

auto paced_fields::wait(std::chrono::sys_seconds wall_clock) const
    -> std::optional<std::chrono::seconds> {
  std::optional<std::chrono::seconds> out;
  for (auto const value : retry_after.get()) {
    out = std::max(out, http::parse_retry_after(value, made_at(wall_clock)));
  }
  return out;
}

auto read_paced_limits(std::span<std::string_view const> lines) -> limit_field {
  limit_field said;
  if (lines.size() != 1 || !lines.front().starts_with('"') ||
      !read_usual_limits(lines.front(), said)) {
    said = read_limits(lines).value_or(limit_field{});
  }
  return said;
}

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
