// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Judges an API by recorded exchanges, rule by rule, and says which requests to make for that. No
/// I/O and no clock: the caller sends the requests and says what time it is.

#include <tidegate/lint/exchange.hpp>
#include <tidegate/lint/judge.hpp>
#include <tidegate/lint/prober.hpp>
#include <tidegate/lint/report.hpp>
