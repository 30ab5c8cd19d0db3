// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/fields.hpp>

namespace tidegate::TIDEGATE_ABI::ratelimit {

namespace {

[[nodiscard]] auto message(field_error const& error) noexcept -> std::string_view {
  bool const older = !rules_of(error.version).has_names;
  switch (error.rule) {
    case field_rule::syntax: return sf::message(error.syntax.fault);
    case field_rule::no_items: return "the List must not be empty";
    case field_rule::inner_list: return "an Item must stand here, not an Inner List";
    case field_rule::name_type: return "the item must be a String";
    case field_rule::quota_missing: return "q is required";
    case field_rule::quota_value:
      return older ? "the quota must be a non-negative Integer"
                   : "q must be a non-negative Integer";
    case field_rule::quota_repeated: return "an item before has the same quota";
    case field_rule::unit_type: return "qu must be a String";
    case field_rule::window_missing: return "w is required";
    case field_rule::window_value:
      return older ? "w must be a non-negative Integer" : "w must be an Integer above 0";
    case field_rule::partition_key_type: return "pk must be a Byte Sequence";
    case field_rule::limit_missing: return "limit is required";
    case field_rule::limit_value: return "limit must be a non-negative Integer";
    case field_rule::remaining_missing: return "r is required";
    case field_rule::remaining_value:
      return older ? "remaining must be a non-negative Integer"
                   : "r must be a non-negative Integer";
    case field_rule::reset_missing: return "reset is required";
    case field_rule::reset_value:
      return older ? "reset must be a non-negative Integer" : "t must be a non-negative Integer";
  }
  return "unknown rule";
}

}  // namespace

auto name_of(draft version) noexcept -> std::string_view {
  return rules_of(version).name;
}

auto name_of(field_kind kind) noexcept -> std::string_view {
  return kind == field_kind::limit ? "RateLimit" : "RateLimit-Policy";
}

auto name_of(quota_unit unit) noexcept -> std::string_view {
  switch (unit) {
    case quota_unit::requests: return "requests";
    case quota_unit::content_bytes: return "content-bytes";
    case quota_unit::concurrent_requests: return "concurrent-requests";
    case quota_unit::other: break;
  }
  return {};
}

auto quota_unit_named(std::string_view name) noexcept -> quota_unit {
  if (name == "request") {
    return quota_unit::requests;
  }
  for (auto unit :
       {quota_unit::requests, quota_unit::content_bytes, quota_unit::concurrent_requests}) {
    if (name == name_of(unit)) {
      return unit;
    }
  }
  return quota_unit::other;
}

auto section_of(field_error const& error) noexcept -> std::string_view {
  bool const older = !rules_of(error.version).has_names;
  bool const policy = error.field == field_kind::policy;
  switch (error.rule) {
    case field_rule::syntax: return "4.2";
    case field_rule::no_items: return older ? "3.5" : "3";
    case field_rule::inner_list:
      if (older) {
        return policy ? "3.5" : "3.1";
      }
      return policy ? "3" : "4";
    case field_rule::name_type: return policy ? "3" : "4.1";
    case field_rule::quota_missing: return "3.1";
    case field_rule::quota_value: return older ? "2.2" : "3.1.1";
    case field_rule::quota_repeated: return "3.5";
    case field_rule::unit_type: return "3.1.2";
    case field_rule::window_missing: return "2.1";
    case field_rule::window_value: return older ? "2.3" : "3.1.3";
    case field_rule::partition_key_type: return policy ? "3.1.4" : "4.1.3";
    case field_rule::limit_missing: return "3.1";
    case field_rule::limit_value: return "3.2";
    case field_rule::remaining_missing: return "4.1";
    case field_rule::remaining_value: return older ? "3.3" : "4.1.1";
    case field_rule::reset_missing: return "3.1";
    case field_rule::reset_value: return older ? "3.4" : "4.1.2";
  }
  return {};
}

auto to_string(field_error const& error) -> std::string {
  std::string text(name_of(error.field));
  bool const dictionary = error.field == field_kind::limit && !rules_of(error.version).has_names;
  if (error.rule == field_rule::syntax) {
    text.append(": ").append(sf::to_string(error.syntax)).append(" (RFC 8941");
  } else {
    if (!dictionary && error.rule != field_rule::no_items) {
      text.append(", item ").append(std::to_string(error.item + 1));
    }
    text.append(": ").append(message(error)).append(" (").append(name_of(error.version));
  }
  return text.append(", section ").append(section_of(error)).append(")");
}

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
