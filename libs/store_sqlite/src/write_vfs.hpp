// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sqlite3.h>

namespace tidegate::store_sqlite {

/// The name of a file layer of SQLite for the connection that writes. It is the default one, but for three things. Two change
/// nothing of what is durable when:
///
/// What SQLite appends to its log page by page, with a few octets before each, goes to the system in large pieces.
/// Whatever asks for more than writing comes after all that was written, above all a sync. The file itself is written page by page:
/// SQLite relies on hearing of each of those writes whether it was made.
///
/// The disk begins with what was written before it is asked to: a sync of hundreds of megabytes then finds most of them
/// there, while nobody would do anything but wait for it otherwise.
///
/// And it refuses a commit that would be lost. SQLite before 3.50.2 forgets the checksums of some pages when a savepoint is rolled back
/// behind which a transaction had begun to write to the log: all goes well until somebody reads the log from its beginning, after a
/// crash, who then takes it to end before those pages. Such a transaction has to be rolled back and made anew.
[[nodiscard]] auto write_vfs_name() -> char const*;

/// Whether a sync of the log of such a connection waits for the disk, as it does unless told otherwise, or only hands all
/// that was written to the system. In any case it waits for the beginning of a log that begins anew: without, parts of
/// the one before could be taken for parts of this one.
void set_log_syncs(sqlite3* connection, bool waits) noexcept;

/// Sees to it that all of the log is on the disk: a commit that changes nothing does not sync what those before it
/// wrote. False when it is not.
///
/// After a sync of the log or of the file that failed nobody knows what the disk has, and no later one would tell: from then on
/// every sync of it fails, until it is opened again.
[[nodiscard]] auto sync_whole_log(sqlite3* connection) noexcept -> bool;
[[nodiscard]] auto has_failed_to_sync(sqlite3* connection) noexcept -> bool;

/// After a rollback. When a piece of the log could not be written, or has no checksums, nothing is read from the log or written to it until then:
/// the error may have reached SQLite where only one statement fails by it, and the piece is of all of the transaction.
void forget_lost_log(sqlite3* connection) noexcept;

}  // namespace tidegate::store_sqlite
