// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>
#include <tidegate/base/result.hpp>
#include <tidegate/base/sha256.hpp>
#include <tidegate/base/utf8.hpp>
