// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/ascii.hpp>
#include <tidegate/base/base64.hpp>
#include <tidegate/base/enum_set.hpp>
#include <tidegate/base/hex.hpp>
#include <tidegate/base/instant.hpp>
#include <tidegate/base/nearest.hpp>
#include <tidegate/base/number.hpp>
#include <tidegate/base/result.hpp>
#include <tidegate/base/sha256.hpp>
#include <tidegate/base/utf8.hpp>
#include <tidegate/version.hpp>
