// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/proxy/control.hpp>
#include "api/partition_key_cache.hpp"
#include "http.hpp"

#include <tidegate/base/instant.hpp>
#include <tidegate/json/writer.hpp>

#include <string_view>

namespace tidegate::gateway {

/// Whether a partition may be one of these sources: a reload may have given the policy others.
[[nodiscard]] auto is_partition_of(ratelimit::partition_rule const& rule,
                                   std::string_view partition) -> bool;

/// Appends `"partition":[…],"key":"…"`: the sources with their values, and the key. Values that may
/// be secrets are left out, and so are all of a partition that is of other sources.
void append_partition(json::writer& out, ratelimit::partition_rule const& rule,
                      std::string_view text);

/// The admin API for quotas:
///
///     GET /api/v1/policies                       what they are, and what they decided
///     GET /api/v1/partitions?policy=P&limit=N    the hottest partitions, of one policy or of all
///
/// Values of fields, cookies and parameters are not shown, unless clients see them in `pk` as well.
/// What is shown is remembered, so that an operator can name it by its key.
[[nodiscard]] auto answer_quotas(control const& control, partition_key_cache& shown,
                                 admin_request const& request, instant now) -> admin_answer;

}  // namespace tidegate::gateway
