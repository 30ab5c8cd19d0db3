// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "admin_idempotency.hpp"
#include "metrics.hpp"
#include "runtime.hpp"

#include <tidegate/base/instant.hpp>

#include <memory>
#include <span>
#include <string_view>

namespace tidegate::gateway {

/// True for the paths that `answer_quotas` knows.
[[nodiscard]] auto is_quota_path(std::string_view path) -> bool;

/// The admin API for quotas:
///
///     GET /api/v1/policies                            what they are, and what they said
///     GET /api/v1/partitions?policy=P&limit=N         the hottest partitions, of one policy or of all
///
/// Values of fields, cookies and parameters are not shown, unless clients see them in `pk` as well.
[[nodiscard]] auto answer_quotas(runtime const& settings,
                                 std::span<std::shared_ptr<worker_metrics> const> workers,
                                 admin_request const& request, instant now) -> admin_answer;

}  // namespace tidegate::gateway
