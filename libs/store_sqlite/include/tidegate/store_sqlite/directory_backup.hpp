// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/store/directory.hpp>

#include <cstdint>
#include <functional>
#include <string>

namespace tidegate::store_sqlite {

/// Copies a directory as it is now into a new file, also while another process has it open and
/// writes. `progress` is called with the pages that were copied and those there are, and ends the
/// copy by false. `to` appears when all of it is on the disk; until then it is `to.partial`. The
/// number of octets.
[[nodiscard]] auto back_up_directory(
    std::string const& file, std::string const& to,
    std::function<bool(std::uint64_t done, std::uint64_t all)> const& progress)
    -> result<std::uint64_t, store::store_error>;

}  // namespace tidegate::store_sqlite
