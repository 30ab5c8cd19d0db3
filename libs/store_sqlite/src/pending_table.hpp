// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pending_entries.hpp"

#include <sqlite3.h>

#include <vector>

namespace tidegate::store_sqlite {

/// Makes `pending(index_id, key, rid)` a table of a connection: the rows that `*changes` adds, in their order. `changes`
/// outlives the connection. One statement that puts all of them into a table takes half as long as one for each.
void add_pending_table(sqlite3* connection, std::vector<pending_entries::change> const* changes);

}  // namespace tidegate::store_sqlite
