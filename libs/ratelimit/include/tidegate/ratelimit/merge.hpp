// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/ratelimit/fields.hpp>
#include <tidegate/ratelimit/write.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>

/// The intermediary's part (draft-09, section 7.2; draft-07, section 5.1): what the origin side
/// says and what we enforce ourselves in one field each. The result is never more permissive than
/// either, nothing of the origin's is taken away, and ours is added.
namespace tidegate::TIDEGATE_ABI::ratelimit {

/// The lines of both fields as they came from the origin side, of either draft; none where it sent
/// none.
struct origin_fields {
  std::span<std::string_view const> policy;
  std::span<std::string_view const> limit;
};

/// Which of the origin's fields were malformed and so left out, for a metric to count.
struct dropped_fields {
  std::optional<field_error> policy;
  std::optional<field_error> limit;
  auto operator==(dropped_fields const&) const -> bool = default;
};

/// The name under which an origin that speaks draft-07, which has no names, appears in draft-09.
inline constexpr sf::string_view origin_name = "upstream";

/// Appends both fields in the draft `version`: ours first, the origin's after them in the same
/// line. `limits[i]` is how `policies[i]` stands. A field without anything to say stays empty and
/// is left out.
///
/// In draft-09:
/// - An item of the origin keeps all its parameters in their order.
/// - An item of RateLimit with the name, unit and partition key of one of ours becomes one with it,
///   where ours stands: with the lower `r` and the later `t`, and the origin's comments after ours.
///   Its unit is that of the origin's policy with this name and key, else of those with this name,
///   else `requests`. With another unit or key the numbers cannot be compared: both items stay,
///   ours first.
/// - Policies with the name, unit and partition key of one of ours become one with it too: with the
///   lowest `q`, and with the `w` that makes it the slowest of their rates, rounded up. So a client
///   that keeps to it keeps to all. If a policy without a window has the lowest `q`, there is no
///   `w`.
/// - An origin of draft-07 appears as `"upstream"`: `limit` and `reset` as one item of RateLimit,
///   with `r` as `limit` where it does not say what remains, and its policies as items of that
///   name. Where it sent no policies, `limit` is the `q` of one without a window.
///
/// In draft-07:
/// - RateLimit is the one closest to exhaustion among ours and the origin's. What the origin says
///   in draft-09 takes part where it has a `t`, or else the policy of that name a `w`; its limit is
///   the `q` of that policy, else `r`.
/// - RateLimit-Policy has the origin's policies with a window after ours, less their names; of one
///   quota there is one item, with the longer window and the comments of both.
///
/// A malformed field is left out and reported. The other one is not touched by that.
[[nodiscard]] auto merge_fields(origin_fields const& origin,
                                std::span<quota_policy_view const> policies,
                                std::span<service_limit_view const> limits, draft version,
                                std::string& policy_out, std::string& limit_out) -> dropped_fields;

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
