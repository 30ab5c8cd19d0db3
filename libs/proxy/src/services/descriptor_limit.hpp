// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/config.hpp>

namespace tidegate::gateway {

/// How many descriptors there are for connections of clients and to upstreams. Some of those that
/// are not open yet are kept for stores, files and the admin address.
[[nodiscard]] auto descriptors_possible() -> std::int64_t;

/// How many of `descriptors` connections of clients may take: half is kept for upstreams, but not
/// more than these ever need.
[[nodiscard]] auto clients_possible(std::int64_t descriptors) -> std::int64_t;

/// Whether an operator is to be told that `possible` is less than the configuration asks for. With
/// the default, half of it is enough.
[[nodiscard]] auto is_below_wanted(config const& settings, std::int64_t possible) -> bool;

}  // namespace tidegate::gateway
