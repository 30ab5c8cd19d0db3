// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/engine/socket.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::engine {

/// A listening socket that the service manager has bound already.
struct passed_socket {
  descriptor socket;
  std::string name;  ///< for people; empty when it has none
};

/// Takes the sockets that a service manager passed by LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES
/// (see sd_listen_fds(3)); none when nothing was passed to this process. They do not block and are
/// not inherited. An error is one line for people: something was passed that does not accept
/// connections.
///
/// To be called once and while there is one thread: it removes the variables from the environment.
[[nodiscard]] auto take_passed_sockets() -> result<std::vector<passed_socket>, std::string>;

/// The sockets of one address, one for each thread.
struct listening_sockets {
  std::vector<descriptor> each;
  bool is_one = false;  ///< with many descriptors
};

/// Takes the socket out of `passed` that is bound to the address, or binds; `others_may` listen
/// there too. An error is one line for people.
[[nodiscard]] auto sockets_for(std::string_view text, std::size_t count, bool others_may,
                               std::vector<passed_socket>& passed)
    -> result<listening_sockets, std::string>;

/// The address that a socket is bound to, as text.
[[nodiscard]] auto address_of(descriptor const& socket) -> std::string;

}  // namespace tidegate::engine
