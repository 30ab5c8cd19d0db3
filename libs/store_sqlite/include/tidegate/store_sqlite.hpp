// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/store_sqlite/idempotency_store.hpp>
