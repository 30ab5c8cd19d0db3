// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tidegate::store_sqlite {

/// The name of a file layer of SQLite that is the default one, but for the log: what SQLite appends to it page
/// by page, with a few octets before each, goes to the system in large pieces. Whatever asks for more than
/// appending comes after all that was written, above all a sync: a transaction is as durable as it was, with a
/// few calls in the place of hundreds. For the connection that writes; those that read need nothing of it.
[[nodiscard]] auto log_vfs_name() -> char const*;

}  // namespace tidegate::store_sqlite
