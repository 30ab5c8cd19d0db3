// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/store/directory.hpp>
#include <tidegate/store/idempotency_store.hpp>
#include <tidegate/store/memory_idempotency_store.hpp>
#include <tidegate/store/quota_overrides.hpp>
#include <tidegate/store/record_table.hpp>
#include <tidegate/store_quota.hpp>
