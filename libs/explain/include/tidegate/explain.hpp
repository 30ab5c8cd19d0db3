// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Says in words what RateLimit, RateLimit-Policy, Retry-After, X-RateLimit-* and Idempotency-Key
/// fields mean, and what is wrong with them. No I/O and no clock: the caller says what time it
/// is.

#include <tidegate/explain/fields.hpp>
#include <tidegate/explain/finding.hpp>
#include <tidegate/explain/header_text.hpp>
#include <tidegate/explain/rule.hpp>
