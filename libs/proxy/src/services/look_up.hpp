// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/balance/name_record.hpp>
#include <tidegate/base/result.hpp>

#include <string>
#include <string_view>

namespace tidegate::gateway {

/// The addresses that a hosts file has for a name.
[[nodiscard]] auto addresses_in_hosts(std::string_view text, std::string_view name)
    -> std::vector<http::ip_address>;

/// Reads the addresses and the shortest time to live out of a DNS response.
[[nodiscard]] auto read_dns_response(std::string_view bytes, balance::name_answer& into) -> bool;

/// Asks for all addresses of a name: the hosts file, then DNS for both families, then what else the
/// system knows. `dns_server` is `ADDRESS:PORT`, or missing for those of the system. Waits; an
/// error is a few words for people.
[[nodiscard]] auto look_up(std::string const& name, std::optional<std::string> const& dns_server)
    -> result<balance::name_answer, std::string>;

}  // namespace tidegate::gateway
