// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>

#include <string>

namespace tidegate::store_postgres {

/// Whether libpq can read a URL; no server is asked. The error is one line for people, and says
/// nothing of a password.
[[nodiscard]] auto check_url(std::string const& url) -> result<void, std::string>;

}  // namespace tidegate::store_postgres
