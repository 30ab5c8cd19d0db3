// SPDX-License-Identifier: Apache-2.0
#include "api/api_about.hpp"

#include <tidegate/http/date.hpp>
#include <tidegate/json/writer.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace tidegate::gateway {

namespace {

[[nodiscard]] auto machine_name() -> std::string {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

[[nodiscard]] auto has_tls(config const& settings, std::string_view address) -> bool {
  return std::ranges::any_of(settings.listen, [&](listener_config const& each) {
    return each.address == address && each.tls.has_value();
  });
}

}  // namespace

auto config_file_of(config const& settings) -> std::optional<std::string> {
  for (auto const& each : settings.effective) {
    auto const column = each.origin.rfind(':');
    auto const line = column == std::string::npos || column == 0
                          ? std::string::npos
                          : each.origin.rfind(':', column - 1);
    if (line != std::string::npos) {
      return each.origin.substr(0, line);
    }
  }
  return std::nullopt;
}

auto about_json(control const& seen, program_facts const& about) -> std::string {
  auto const& settings = seen.active->config;
  std::string started;
  http::append_rfc3339(started, std::chrono::floor<std::chrono::seconds>(about.started));
  std::string text;
  json::writer out(text);
  out.begin_object().member("version", about.version).member("commit", about.commit);
  out.member("instance", machine_name()).member("started", started);
  out.member("file", config_file_of(settings)).begin_array("listeners");
  for (auto const& each : seen.listeners()) {
    auto const address = each.address.to_string();
    out.value(address.starts_with("unix:")
                  ? address
                  : (has_tls(settings, each.configured) ? "https://" : "http://") + address);
  }
  out.end_array().end_object();
  return text;
}

}  // namespace tidegate::gateway
