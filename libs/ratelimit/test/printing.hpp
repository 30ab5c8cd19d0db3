// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/ratelimit/fields.hpp>
#include <tidegate/ratelimit/legacy.hpp>

#include <optional>
#include <ostream>
#include <string>

/// How GoogleTest shows the types of the fields in its messages.
namespace tidegate::TIDEGATE_ABI::ratelimit {

inline auto number_or_none(std::optional<std::int64_t> const& number) -> std::string {
  return number ? std::to_string(*number) : "none";
}

// NOLINTBEGIN(readability-identifier-naming): GoogleTest asks for this name.
inline void PrintTo(field_error const& error, std::ostream* out) {
  *out << to_string(error);
}
inline void PrintTo(quota_policy const& policy, std::ostream* out) {
  *out << '"' << policy.name << "\": " << policy.quota << ' ' << policy.unit_name << " in "
       << number_or_none(policy.window) << ", key " << policy.partition_key.value_or("none")
       << ", comments " << policy.comments.size();
}
inline void PrintTo(service_limit const& limit, std::ostream* out) {
  *out << '"' << limit.name << "\": limit " << number_or_none(limit.limit) << ", remaining "
       << number_or_none(limit.remaining) << ", reset " << number_or_none(limit.reset) << ", key "
       << limit.partition_key.value_or("none") << ", comments " << limit.comments.size();
}
inline void PrintTo(legacy_reset const& reset, std::ostream* out) {
  *out << "form " << static_cast<int>(reset.form) << ", " << reset.seconds << " s";
}
// NOLINTEND(readability-identifier-naming)

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
