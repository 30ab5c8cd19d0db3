// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/client/session.hpp>
#include <tidegate/http/field.hpp>

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

struct token_settings {
  std::string token;
  std::string token_file;
};

/// The time limit of requests where the command line sets none: a month.
inline constexpr std::chrono::nanoseconds longest = std::chrono::hours(24 * 31);

/// Adds `-H`, `--rate`, `--burst`, `--retries`, `--timeout` and `--cacert`.
void add_client_options(CLI::App& command, client_settings& settings);

/// Adds `-H`.
void add_field_option(CLI::App& command, std::vector<std::string>& lines);
/// Adds `--cacert`.
void add_ca_option(CLI::App& command, std::string& file);
/// Adds `--token` and `--token-file`.
void add_token_options(CLI::App& command, token_settings& settings);

/// What was said with `-H`. Throws CLI::ValidationError, as the others do.
[[nodiscard]] auto fields_of(std::vector<std::string> const& lines) -> std::vector<http::field>;
/// The token by the command line or the environment; empty where there is none.
[[nodiscard]] auto token_of(token_settings const& settings, char const* variable) -> std::string;
/// Content by the option of that name: `@FILE` reads a file, `@-` standard input.
[[nodiscard]] auto read_content(std::string const& option, std::string const& data) -> std::string;
/// Of a session with so many requests under way at most.
[[nodiscard]] auto session_options_of(client_settings const& settings, std::size_t in_flight_max)
    -> client::session_options;

/// `url` with a scheme: where it has none, http for this machine and https for others. Throws
/// CLI::ValidationError for another scheme.
[[nodiscard]] auto with_scheme(std::string const& url) -> std::string;

/// A duration such as `500ms`, `10s` or `5m`, above 0.
[[nodiscard]] auto parse_duration(std::string_view text) -> std::optional<std::chrono::nanoseconds>;

}  // namespace tidegate::app
