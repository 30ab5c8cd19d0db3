// SPDX-License-Identifier: Apache-2.0
//
// Any octets as the URL of servers:
//
// - never a crash; an error has a text, and what is read has a server with a name and a port;
// - what is shown of a URL has no password, and is read as the same servers, database and TLS.
#include "check.hpp"

#include <tidegate/store_redis/server_url.hpp>

#include <string>
#include <string_view>

using namespace tidegate::store_redis;
using tidegate::fuzz::check;

extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) -> int {
  auto const text = std::string_view(reinterpret_cast<char const*>(data), size);
  auto const read = parse_server_url(text);
  if (!read) {
    check(!read.error().empty());
    return 0;
  }
  check(!read->servers.empty() && read->servers.size() <= url_servers_max);
  for (auto const& server : read->servers) {
    check(!server.host.empty() && server.port != 0);
  }
  auto const shown = to_string(*read);
  check(shown.find('@') == std::string::npos || read->master_name.find('@') != std::string::npos);
  if (read->master_name.find_first_of("%/?@") == std::string::npos) {
    auto const again = parse_server_url(shown);
    check(again.has_value());
    check(again->kind == read->kind && again->tls == read->tls && again->servers == read->servers &&
          again->database == read->database && again->master_name == read->master_name);
  }
  return 0;
}
