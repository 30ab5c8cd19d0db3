// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_postgres/server_url.hpp>

#include "connection.hpp"

namespace tidegate::store_postgres {

auto check_url(std::string const& url) -> result<void, std::string> {
  if (auto const read = read_url(url); !read) {
    return failure(read.error().text);
  }
  return {};
}

}  // namespace tidegate::store_postgres
