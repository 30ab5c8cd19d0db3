// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/client/session.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace tidegate::app {

/// What every command that sends requests takes about how it does.
struct client_settings {
  std::vector<std::string> field_lines;
  std::string rate = "auto";
  std::string timeout = "30s";
  std::string ca_file;
  std::uint32_t retries = 4;
  bool burst = false;
};

/// The time limit of requests where the command line sets none: a month.
inline constexpr std::chrono::nanoseconds longest = std::chrono::hours(24 * 31);

/// Adds `-H`, `--rate`, `--burst`, `--retries`, `--timeout` and `--cacert`.
void add_client_options(CLI::App& command, client_settings& settings);

/// What was said with `-H`. Throws CLI::ValidationError, as the next one does.
[[nodiscard]] auto fields_of(client_settings const& settings) -> std::vector<client::field>;
/// Of a session with so many requests under way at most.
[[nodiscard]] auto session_options_of(client_settings const& settings, std::size_t in_flight_max)
    -> client::session_options;

/// `url` with a scheme: where it has none, http for this machine and https for others. Throws
/// CLI::ValidationError for another scheme.
[[nodiscard]] auto with_scheme(std::string const& url) -> std::string;

/// A duration such as `500ms`, `10s` or `5m`, above 0.
[[nodiscard]] auto parse_duration(std::string_view text) -> std::optional<std::chrono::nanoseconds>;

}  // namespace tidegate::app
