// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "directory/session.hpp"

namespace tidegate::store_sqlite {

/// Carries over what a version before this one left in `FILE.journal` when it was killed. Those
/// versions answered writes when they were there, and put them into the file later; version 2 of
/// the file has a table that says how much of it is in the file. May be killed at any time and run
/// again. Does nothing where there is no such table.
[[nodiscard]] auto carry_over_old_journal(directory_session& into, scim::model const& model)
    -> outcome<void>;

}  // namespace tidegate::store_sqlite
