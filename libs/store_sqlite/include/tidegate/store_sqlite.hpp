// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/store_sqlite/directory.hpp>
#include <tidegate/store_sqlite/idempotency_store.hpp>
