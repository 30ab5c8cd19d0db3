// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/idempotency/change.hpp>
#include <tidegate/idempotency/decide.hpp>
#include <tidegate/idempotency/fingerprint.hpp>
#include <tidegate/idempotency/key.hpp>
#include <tidegate/idempotency/lookup.hpp>
#include <tidegate/idempotency/make_key.hpp>
#include <tidegate/idempotency/policy.hpp>
#include <tidegate/idempotency/problems.hpp>
#include <tidegate/idempotency/record.hpp>
#include <tidegate/idempotency/retry.hpp>
#include <tidegate/idempotency/wall_time.hpp>
