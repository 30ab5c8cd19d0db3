// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>

#include <array>
#include <cstddef>
#include <string>

namespace tidegate::app {

/// What keys, seals and cursors are derived from.
using master_secret = std::array<std::byte, 32>;

/// Makes the folder with mode 0700 unless it is there. An error is one line for people.
[[nodiscard]] auto make_data_folder(std::string const& folder) -> result<void, std::string>;

/// Reads the file; makes it, with mode 0600 and new random octets, when it is not there. A file
/// that more than its owner and group may read is an error, and so is one of another length.
[[nodiscard]] auto read_secret(std::string const& file) -> result<master_secret, std::string>;

}  // namespace tidegate::app
