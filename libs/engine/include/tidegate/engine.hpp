// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/engine/listening.hpp>
#include <tidegate/engine/loop.hpp>
#include <tidegate/engine/socket.hpp>
#include <tidegate/engine/timer.hpp>
