// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sqlite3.h>

namespace tidegate::store_sqlite {

/// The name of a file layer of SQLite that is the default one, but for the log: what SQLite appends to it page
/// by page, with a few octets before each, goes to the system in large pieces. Whatever asks for more than
/// appending comes after all that was written, above all a sync: a transaction is as durable as it was, with a
/// few calls in the place of hundreds. For the connection that writes; those that read need nothing of it.
[[nodiscard]] auto log_vfs_name() -> char const*;

/// Whether a sync of the log of such a connection waits for the disk, as it does unless told otherwise, or only hands all
/// that was written to the system. In any case it waits for the beginning of a log that begins anew: without, parts of
/// the one before could be taken for parts of this one.
void set_log_syncs(sqlite3* connection, bool waits) noexcept;

/// Sees to it that all of the log is on the disk: a commit that changes nothing does not sync what those before it
/// wrote. False when it is not.
///
/// After a sync that failed nobody knows what of the log the disk has, and no later one would tell: from then on every sync
/// fails, until the file is opened again.
[[nodiscard]] auto sync_whole_log(sqlite3* connection) noexcept -> bool;
[[nodiscard]] auto has_failed_to_sync(sqlite3* connection) noexcept -> bool;

}  // namespace tidegate::store_sqlite
