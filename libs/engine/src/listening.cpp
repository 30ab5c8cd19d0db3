// SPDX-License-Identifier: Apache-2.0
#include <tidegate/engine/listening.hpp>

#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace tidegate::engine {

auto address_of(descriptor const& socket) -> std::string {
  return local_address(socket).value_or(socket_address()).to_string();
}

auto sockets_for(std::string_view text, std::size_t count, bool others_may,
                 std::vector<passed_socket>& passed) -> result<listening_sockets, std::string> {
  TIDEGATE_TRY(auto address, socket_address::parse(text));
  listening_sockets out;
  auto const found = std::ranges::find_if(passed, [&](passed_socket const& candidate) {
    return address_of(candidate.socket) == address.to_string();
  });
  // The kernel spreads connections over many sockets of a port; of a path there is only one.
  out.is_one = found != passed.end() || address.family() == AF_UNIX;
  if (found != passed.end()) {
    out.each.push_back(std::move(found->socket));
    passed.erase(found);
  }
  while (out.each.size() < count) {
    auto socket =
        out.is_one && !out.each.empty() ? share(out.each.front()) : listen_on(address, others_may);
    if (!socket) {
      return failure("cannot listen on " + address.to_string() + ": " + to_string(socket.error()));
    }
    out.each.push_back(*std::move(socket));
    // All threads listen on the port that the first one got.
    address = local_address(out.each.front()).value_or(address);
  }
  return out;
}

}  // namespace tidegate::engine
