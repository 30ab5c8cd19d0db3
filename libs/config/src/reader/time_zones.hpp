// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/ratelimit/time_zone.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace tidegate::gateway {

/// Reads a time zone of the system, such as `Europe/Berlin`, from /usr/share/zoneinfo; `UTC` needs
/// no file. The error is for people.
[[nodiscard]] auto load_time_zone(std::string_view name)
    -> result<std::shared_ptr<ratelimit::time_zone const>, std::string>;

}  // namespace tidegate::gateway
