// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Quotas of any number of partitions, counted in memory that is bounded.

#include <tidegate/store_quota/keyed_hash.hpp>
#include <tidegate/store_quota/quota_table.hpp>
