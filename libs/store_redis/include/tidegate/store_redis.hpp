// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/store_redis/idempotency_store.hpp>
#include <tidegate/store_redis/quota_store.hpp>
#include <tidegate/store_redis/resp.hpp>
#include <tidegate/store_redis/server_url.hpp>
