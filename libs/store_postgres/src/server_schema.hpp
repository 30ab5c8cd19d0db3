// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "connection.hpp"

namespace tidegate::store_postgres {

/// Makes the schema `tidegate`, or what is missing in an older one. Gateways that start at the same
/// time wait for each other. A schema of a newer version is refused: who made it may mean other
/// things by what we write.
[[nodiscard]] auto prepare_schema(server_settings const& settings) -> outcome<void>;

/// Keys of advisory locks, which are one namespace for all of a database: eight octets of a digest
/// of what they stand for.
[[nodiscard]] auto lock_key(std::string_view what) -> std::int64_t;

}  // namespace tidegate::store_postgres
