// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a gateway does, read from its admin address and shown as tables. No I/O and no clock.

#include <tidegate/top/snapshot.hpp>
#include <tidegate/top/view.hpp>
