// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What several fields and answers of HTTP share, dates, Retry-After (RFC 9110) and problem details
/// (RFC 9457), and what a gateway reads of a request besides its framing: target, host, client,
/// parameters and cookies. No I/O and no clock: the caller says what time it is.

#include <tidegate/http/cookie.hpp>
#include <tidegate/http/date.hpp>
#include <tidegate/http/field.hpp>
#include <tidegate/http/forwarded.hpp>
#include <tidegate/http/ip_address.hpp>
#include <tidegate/http/problem.hpp>
#include <tidegate/http/proxy_protocol.hpp>
#include <tidegate/http/query.hpp>
#include <tidegate/http/retry_after.hpp>
#include <tidegate/http/target.hpp>
