// SPDX-License-Identifier: Apache-2.0
#pragma once

/// RateLimit header fields for HTTP (draft-ietf-httpapi-ratelimit-headers-09 and -07), limiters,
/// and pacing.

#include <tidegate/ratelimit/abuse.hpp>
#include <tidegate/ratelimit/advertise.hpp>
#include <tidegate/ratelimit/calendar.hpp>
#include <tidegate/ratelimit/fields.hpp>
#include <tidegate/ratelimit/known_limit.hpp>
#include <tidegate/ratelimit/legacy.hpp>
#include <tidegate/ratelimit/limiter.hpp>
#include <tidegate/ratelimit/merge.hpp>
#include <tidegate/ratelimit/overload.hpp>
#include <tidegate/ratelimit/pacing.hpp>
#include <tidegate/ratelimit/partition.hpp>
#include <tidegate/ratelimit/policy.hpp>
#include <tidegate/ratelimit/problems.hpp>
#include <tidegate/ratelimit/read.hpp>
#include <tidegate/ratelimit/spent_log.hpp>
#include <tidegate/ratelimit/time_zone.hpp>
#include <tidegate/ratelimit/write.hpp>
