// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tidegate::store_sqlite {

/// The name of a file layer of SQLite that is the default one, but that it has the memory of a mapped page come near when
/// SQLite begins to look at it. Of a large file hardly anything is in the caches of the processor, and SQLite finds its way
/// through a page from one place to the next: without this, it waits for each of them. For connections that read.
[[nodiscard]] auto read_vfs_name() -> char const*;

}  // namespace tidegate::store_sqlite
