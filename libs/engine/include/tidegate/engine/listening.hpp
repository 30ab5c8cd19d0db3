// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/engine/activation.hpp>
#include <tidegate/engine/socket.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::engine {

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
