// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/config.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// How single values of the configuration are written. Nothing is guessed: `0x10`, `1_000`, `+1`
/// and `1.5s` are not values.
namespace tidegate::gateway {

/// Decimal digits without sign and leading zeros, up to what fits.
[[nodiscard]] auto parse_count(std::string_view text) -> std::optional<std::int64_t>;

/// `500ms`, `10s`, `5m`, `24h`, `7d`.
[[nodiscard]] auto parse_duration(std::string_view text) -> std::optional<std::chrono::nanoseconds>;
/// With the largest unit that leaves no rest.
[[nodiscard]] auto format_duration(std::chrono::nanoseconds duration) -> std::string;

/// `512`, `64KiB`, `10MiB`, `1GiB`, `1TiB`.
[[nodiscard]] auto parse_size(std::string_view text) -> std::optional<std::int64_t>;
[[nodiscard]] auto format_size(std::int64_t octets) -> std::string;

/// `10/s`, `100/m`, `5/10s`.
[[nodiscard]] auto parse_rate(std::string_view text) -> std::optional<ratelimit::rate>;

/// `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`, `:8080` or `unix:/path`, in the form that
/// `listener_config::address` has; an error says what is wrong.
[[nodiscard]] auto parse_listen_address(std::string_view text) -> result<std::string, std::string>;

/// Whether only this machine reaches an address that `parse_listen_address` gave: one of the
/// loopback interface, or a path.
[[nodiscard]] auto is_local_address(std::string_view address) -> bool;

/// The same text without passwords of URLs: what stands before an `@`, and parameters whose name
/// has `pass` in it.
[[nodiscard]] auto without_passwords(std::string_view text) -> std::string;

/// `http://HOST[:PORT]` or `https://HOST[:PORT]`; an error says what is wrong.
[[nodiscard]] auto parse_server_url(std::string_view text) -> result<upstream_server, std::string>;

/// Not empty, and without spaces at its ends: what may stand in a field and in a label.
[[nodiscard]] auto is_printable_name(std::string_view text) -> bool;

}  // namespace tidegate::gateway
