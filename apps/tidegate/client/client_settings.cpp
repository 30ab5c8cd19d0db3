// SPDX-License-Identifier: Apache-2.0
#include "client/client_settings.hpp"

#include "command_line.hpp"

#include <tidegate/http/field.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>

namespace tidegate::app {

namespace {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

/// `N/s`, `N/m` or `N/h`, or with a number such as in `N/10s`, as the time between two requests.
[[nodiscard]] auto parse_rate(std::string_view text) -> std::optional<nanoseconds> {
  auto const slash = text.find('/');
  std::uint32_t number = 0;
  auto const [end, fault] =
      std::from_chars(text.data(), text.data() + std::min(slash, text.size()), number);
  if (slash == std::string_view::npos || fault != std::errc{} || end != text.data() + slash ||
      number == 0) {
    return std::nullopt;
  }
  std::string time(text.substr(slash + 1));
  if (!time.empty() && (time.front() < '0' || time.front() > '9')) {
    time.insert(0, "1");
  }
  auto const per = parse_duration(time);
  return per ? std::optional(*per / number) : std::nullopt;
}

}  // namespace

auto parse_duration(std::string_view text) -> std::optional<nanoseconds> {
  std::uint32_t number = 0;
  auto const [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  auto const unit = text.substr(static_cast<std::size_t>(end - text.data()));
  constexpr std::array<std::pair<std::string_view, nanoseconds>, 5> units = {
      {{"ms", 1ms}, {"s", 1s}, {"m", 1min}, {"h", 1h}, {"d", 24h}}};
  auto const* const found =
      std::ranges::find(units, unit, &std::pair<std::string_view, nanoseconds>::first);
  if (fault != std::errc{} || number == 0 || found == units.end() ||
      nanoseconds(longest) / found->second < number) {
    return std::nullopt;
  }
  return found->second * number;
}

auto with_scheme(std::string const& url) -> std::string {
  auto const end = url.find("://");
  if (end != std::string::npos && end <= url.find_first_of("/?#")) {
    auto const scheme = CLI::detail::to_lower(url.substr(0, end));
    if (scheme != "http" && scheme != "https") {
      throw CLI::ValidationError("URL", "\"" + url + "\" does not begin with http:// or https://");
    }
    return url;
  }
  auto const authority = url.substr(0, url.find_first_of("/?#"));
  if (authority.empty()) {
    throw CLI::ValidationError("URL", "\"" + url + "\" has no host");
  }
  auto const host = authority.starts_with('[') ? authority.substr(0, authority.find(']') + 1)
                                               : authority.substr(0, authority.find(':'));
  bool const is_here =
      host == "localhost" || host == "[::1]" ||
      (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos);
  return (is_here ? "http://" : "https://") + url;
}

void add_field_option(CLI::App& command, std::vector<std::string>& lines) {
  command.add_option("-H,--header", lines, "Such as 'Accept: text/plain'; may be given again")
      ->type_name("HEADER")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_ca_option(CLI::App& command, std::string& file) {
  command.add_option("--cacert", file, "Trust these certificates (PEM) instead of the system's")
      ->type_name("FILE");
}

void add_token_options(CLI::App& command, token_settings& settings) {
  command
      .add_option("--token", settings.token,
                  "Bearer token; others can see it in the list of processes")
      ->type_name("TOKEN");
  command.add_option("--token-file", settings.token_file, "The file that has the bearer token")
      ->type_name("FILE")
      ->excludes("--token");
}

void add_client_options(CLI::App& command, client_settings& settings) {
  add_field_option(command, settings.field_lines);
  command
      .add_option("--rate", settings.rate,
                  "At most such as 10/s, 100/m or 500/10m; auto: as the server says")
      ->type_name("RATE")
      ->capture_default_str();
  command.add_flag("--burst", settings.burst,
                   "Use quota as soon as it is there, instead of evenly");
  command.add_option("--retries", settings.retries, "Of one request, 0 to 1000")
      ->check(number_within(0, 1000))
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--timeout", settings.timeout, "Of one attempt, such as 500ms, 10s or 5m")
      ->type_name("TIME")
      ->capture_default_str();
  add_ca_option(command, settings.ca_file);
}

auto fields_of(std::vector<std::string> const& lines) -> std::vector<http::field> {
  std::vector<http::field> fields;
  for (auto const& line : lines) {
    auto const colon = line.find(':');
    if (colon == std::string::npos || colon == 0) {
      throw CLI::ValidationError("-H", "invalid header \"" + line + "\" (expected NAME: VALUE)");
    }
    auto const begin = std::min(line.find_first_not_of(" \t", colon + 1), line.size());
    fields.push_back({line.substr(0, colon), line.substr(begin)});
  }
  return fields;
}

auto token_of(token_settings const& settings, char const* variable) -> std::string {
  auto token = settings.token;
  if (!settings.token_file.empty()) {
    std::ifstream file(settings.token_file);
    if (!std::getline(file, token)) {
      throw CLI::ValidationError("--token-file", "cannot read " + settings.token_file);
    }
  } else if (auto const* const value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
             token.empty() && value != nullptr) {
    token = value;
  }
  return token;
}

auto read_content(std::string const& option, std::string const& data) -> std::string {
  if (!data.starts_with('@')) {
    return data;
  }
  auto const name = data.substr(1);
  std::ifstream file;
  if (name != "-") {
    file.open(name, std::ios::binary);
    if (!file) {
      throw CLI::ValidationError(option, "cannot read " + name);
    }
  }
  std::istream& from = name == "-" ? std::cin : file;
  return {std::istreambuf_iterator<char>(from), std::istreambuf_iterator<char>()};
}

auto session_options_of(client_settings const& settings, std::size_t in_flight_max)
    -> client::session_options {
  client::session_options options;
  options.pacing.in_flight_max = in_flight_max;
  options.in_flight_max = in_flight_max;
  options.pacing.strategy =
      settings.burst ? ratelimit::pacing_strategy::burst : ratelimit::pacing_strategy::spread;
  if (settings.rate != "auto") {
    auto const interval = parse_rate(settings.rate);
    if (!interval) {
      throw CLI::ValidationError(
          "--rate", "'" + settings.rate + "' is neither auto nor such as 10/s, 100/m or 500/10m");
    }
    options.pacing.interval_min = *interval;
  }
  auto const attempt = parse_duration(settings.timeout);
  if (!attempt) {
    throw CLI::ValidationError("--timeout", "invalid duration \"" + settings.timeout +
                                                "\" (expected e.g. 500ms, 10s, 5m)");
  }
  options.attempt_time_max = *attempt;
  options.retries.retries_max = settings.retries;
  options.ca_file = settings.ca_file;
  return options;
}

}  // namespace tidegate::app
