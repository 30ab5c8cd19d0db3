// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tidegate::store_sqlite {

/// While there is one, `fdatasync` fails for SQLite and for everything else in the process.
class failing_syncs {
 public:
  failing_syncs() noexcept;
  ~failing_syncs();
  failing_syncs(failing_syncs const&) = delete;
  auto operator=(failing_syncs const&) -> failing_syncs& = delete;
};

}  // namespace tidegate::store_sqlite
