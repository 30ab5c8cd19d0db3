// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/store/keyed_hash.hpp>
#include <tidegate/store/quota_table.hpp>
