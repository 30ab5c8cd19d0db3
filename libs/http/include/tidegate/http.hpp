// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What several fields and answers of HTTP share: dates, Retry-After (RFC 9110) and problem details
/// (RFC 9457). No I/O and no clock: whoever calls says what time it is.

#include <tidegate/http/date.hpp>
#include <tidegate/http/json_string.hpp>
#include <tidegate/http/problem.hpp>
#include <tidegate/http/retry_after.hpp>
