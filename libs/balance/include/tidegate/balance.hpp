// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Which server of an upstream gets a request, which one gets none for a while, and what is sent
/// again. No I/O: time and randomness are arguments.

#include <tidegate/balance/health.hpp>
#include <tidegate/balance/name_record.hpp>
#include <tidegate/balance/outlier.hpp>
#include <tidegate/balance/picker.hpp>
#include <tidegate/balance/retry.hpp>
