// SPDX-License-Identifier: Apache-2.0
#include <tidegate/client.hpp>

#include <cstdio>
#include <string>

// Sends what cannot be sent, so that no server is needed, and all of the library is linked.
auto main() -> int {
  auto const session = tidegate::client::session::open();
  if (!session.has_value()) {
    return 1;
  }
  auto const answer = (*session)->send({.url = "nowhere"}).get();
  std::puts(answer ? "an answer" : std::string(name_of(answer.error().fault)).c_str());
}
