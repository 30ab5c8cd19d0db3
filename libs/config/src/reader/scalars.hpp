// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/config.hpp>
#include "options/options.hpp"

#include <tidegate/base/result.hpp>
#include <tidegate/json/pointer.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

/// How one value of each type of option is read. An error says what is wrong; the caller adds the
/// key and what is expected.
namespace tidegate::gateway {

/// One value as it is written.
struct scalar {
  std::string_view text;
  bool in_quotes = false;
};

template <class T>
using scalar_result = result<T, std::string>;

[[nodiscard]] auto read_boolean(option const&, scalar const& given) -> scalar_result<bool>;
[[nodiscard]] auto read_integer(option const& rule, scalar const& given)
    -> scalar_result<std::int64_t>;
[[nodiscard]] auto read_duration(option const& rule, scalar const& given)
    -> scalar_result<std::chrono::nanoseconds>;
[[nodiscard]] auto read_size(option const& rule, scalar const& given)
    -> scalar_result<std::int64_t>;
[[nodiscard]] auto read_quota(option const& rule, scalar const& given)
    -> scalar_result<std::int64_t>;
[[nodiscard]] auto read_rate(option const&, scalar const& given) -> scalar_result<ratelimit::rate>;
[[nodiscard]] auto read_choice(option const& rule, scalar const& given)
    -> scalar_result<std::string_view>;
[[nodiscard]] auto read_file(option const&, scalar const& given) -> scalar_result<std::string>;
[[nodiscard]] auto read_address(option const&, scalar const& given) -> scalar_result<std::string>;
[[nodiscard]] auto read_url(option const&, scalar const& given) -> scalar_result<upstream_server>;
/// `least`, `round-robin` or `hash:SOURCE`.
struct balance_choice {
  balance::method by = balance::method::least;
  std::optional<ratelimit::partition_source> source{};
};
[[nodiscard]] auto read_balance(option const&, scalar const& given)
    -> scalar_result<balance_choice>;
[[nodiscard]] auto read_statuses(option const&, scalar const& given)
    -> scalar_result<std::vector<balance::status_range>>;
[[nodiscard]] auto read_percent(option const& rule, scalar const& given)
    -> scalar_result<std::int64_t>;
[[nodiscard]] auto read_request_path(option const&, scalar const& given)
    -> scalar_result<std::string>;
/// `ADDRESS` or `ADDRESS:PORT` of IPv4.
[[nodiscard]] auto read_dns_server(option const&, scalar const& given)
    -> scalar_result<std::string>;
[[nodiscard]] auto read_network(option const&, scalar const& given) -> scalar_result<http::cidr>;
[[nodiscard]] auto read_path(option const&, scalar const& given) -> scalar_result<std::string>;
[[nodiscard]] auto read_method(option const&, scalar const& given) -> scalar_result<std::string>;
[[nodiscard]] auto read_host(option const&, scalar const& given) -> scalar_result<std::string>;
[[nodiscard]] auto read_source(option const&, scalar const& given)
    -> scalar_result<ratelimit::partition_source>;
[[nodiscard]] auto read_pointer(option const&, scalar const& given) -> scalar_result<json::pointer>;
[[nodiscard]] auto read_reference(option const&, scalar const& given) -> scalar_result<std::string>;
[[nodiscard]] auto read_store(option const& rule, scalar const& given)
    -> scalar_result<store_location>;
[[nodiscard]] auto read_digest(option const&, scalar const& given) -> scalar_result<sha256_digest>;
[[nodiscard]] auto read_name(option const&, scalar const& given) -> scalar_result<std::string>;

/// Whether it is one of the words that the option allows besides its values.
[[nodiscard]] auto is_word(option const& rule, std::string_view text) -> bool;

}  // namespace tidegate::gateway
