// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/sha256.hpp>
#include <tidegate/ratelimit/partition.hpp>
#include <tidegate/ratelimit/policy.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Who may ask, how they show it, and what they have ordered.
namespace tidegate::gateway {

/// One of `consumers.NAME.keys`.
struct consumer_key {
  std::string name;                                   ///< unique among those of its consumer
  sha256_digest digest{};                             ///< of the key's bytes
  std::optional<std::chrono::sys_seconds> expires{};  ///< from then on it is a wrong one
  auto operator==(consumer_key const&) const -> bool = default;
};

/// One of `consumers.NAME.attributes`.
struct consumer_attribute {
  std::string name;   ///< a token of RFC 9110
  std::string value;  ///< may stand in a header as it is
  auto operator==(consumer_attribute const&) const -> bool = default;
};

/// `consumers.NAME`
struct consumer_config {
  std::string name;    ///< the principal; printable ASCII
  std::string plan{};  ///< empty: none
  std::vector<consumer_key> keys{};
  std::vector<consumer_attribute> attributes{};
  auto operator==(consumer_config const&) const -> bool = default;
};

/// `consumers`: where they are listed.
struct consumers_config {
  bool given = false;
  std::string file{};  ///< followed when it changes; empty: they are in `listed`
  std::vector<consumer_config> listed{};
  auto operator==(consumers_config const&) const -> bool = default;
};

/// Where in a request an API key may stand.
struct key_place {
  enum class place_kind : std::uint8_t { header, query, bearer };
  place_kind kind = place_kind::header;
  std::string name{};  ///< of the header, in lower case, or of the parameter
  auto operator==(key_place const&) const -> bool = default;
};

/// `header:x-api-key`, `query:api_key`, `bearer`
[[nodiscard]] auto to_string(key_place const& place) -> std::string;

/// One of `routes[].auth.pass`: what of the principal goes to the upstream, in which header.
struct passed_field {
  ratelimit::partition_source source;  ///< `principal`, `plan` or an attribute
  std::string field;
  auto operator==(passed_field const&) const -> bool = default;
};

/// The plan of a request without credentials, on a route with `optional`.
inline constexpr std::string_view anonymous_plan = "anonymous";

/// `quota: {by: …}` of a policy: which quota a caller has. The default is that of the policy.
struct quota_choice {
  struct named {
    std::string plan;
    std::int64_t quota = 0;
    auto operator==(named const&) const -> bool = default;
  };

  ratelimit::partition_source by{ratelimit::partition_source_kind::plan, ""};
  std::vector<named> plans{};           ///< for `plan`
  std::int64_t max = 0;                 ///< of what an attribute may say
  std::optional<std::int64_t> burst{};  ///< of every quota but 0, where the operator gave one

  /// What a caller has whose plan, or whose attribute, is `value`.
  [[nodiscard]] auto quota_for(std::string_view value, std::int64_t otherwise) const
      -> std::int64_t;
  /// `base` with another quota.
  [[nodiscard]] auto policy_with(ratelimit::policy const& base, std::int64_t quota) const
      -> ratelimit::policy;
  /// The largest that any caller can have.
  [[nodiscard]] auto largest(std::int64_t otherwise) const -> std::int64_t;
  /// The smallest above 0 that is known; 0 when there is none.
  [[nodiscard]] auto smallest(std::int64_t otherwise) const -> std::int64_t;
  auto operator==(quota_choice const&) const -> bool = default;
};

}  // namespace tidegate::gateway
