// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reader/scalars.hpp"

#include <chrono>
#include <string>

/// How the values are read that say who may ask.
namespace tidegate::gateway {

/// A time as RFC 3339 writes it: `2027-01-01T00:00:00Z`.
[[nodiscard]] auto read_expiry(option const&, scalar const& given)
    -> scalar_result<std::chrono::sys_seconds>;
/// `header:NAME`, `query:NAME` or `bearer`.
[[nodiscard]] auto read_key_place(option const&, scalar const& given) -> scalar_result<key_place>;
/// `plan` or `attribute:NAME`.
[[nodiscard]] auto read_quota_source(option const&, scalar const& given)
    -> scalar_result<ratelimit::partition_source>;

}  // namespace tidegate::gateway
