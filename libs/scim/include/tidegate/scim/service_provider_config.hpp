// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/scim/error.hpp>
#include <tidegate/scim/list_request.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// What a server says that it can do (RFC 7643, section 5; RFC 9865, section 4).
namespace tidegate::TIDEGATE_ABI::scim {

/// The schema of the configuration.
inline constexpr std::string_view service_provider_config_schema =
    "urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig";

/// What a server can do (RFC 7643, section 5).
struct service_provider_config {
  pagination_options pagination{};
  std::uint64_t bulk_max_operations = 1000;
  std::uint64_t bulk_max_payload_octets = std::uint64_t{1} << 20;
  bool bearer_tokens = true;        ///< clients need one
  std::string documentation_uri{};  ///< left out when empty
  std::string location{};           ///< `meta.location`
};

/// Appends the resource. All features are supported but for passwords, which are not kept, and
/// pagination methods that are off.
void append_service_provider_config(std::string& out, service_provider_config const& config);

/// Appends the value of `pagination` in both dialects: draft-02 says `maximumPageSize` where RFC
/// 9865 says `maxPageSize`.
void append_pagination(std::string& out, pagination_options const& options);

/// What a server tells of its pagination; what it does not tell may still have a limit (RFC 9865,
/// section 4).
struct pagination_support {
  bool cursor = false;
  bool index = true;
  std::optional<pagination_method> default_method{};
  std::optional<std::uint64_t> default_page_size{};
  std::optional<std::uint64_t> max_page_size{};
  std::optional<std::chrono::seconds> cursor_timeout{};
  auto operator==(pagination_support const&) const -> bool = default;
};

/// Reads it from the ServiceProviderConfig of any server, in either dialect. One without
/// `pagination` has pages by index only. A sub-attribute that is not what it should be counts as
/// one that is not there.
[[nodiscard]] auto parse_pagination_support(std::string_view body)
    -> result<pagination_support, error>;

}  // namespace tidegate::TIDEGATE_ABI::scim
