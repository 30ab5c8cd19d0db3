// SPDX-License-Identifier: Apache-2.0
#include "reader/time_zones.hpp"

#include <tidegate/base/ascii.hpp>
#include "reader/wording.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

namespace tidegate::gateway {

namespace {

constexpr std::string_view folder = "/usr/share/zoneinfo/";
constexpr std::size_t octets_max = std::size_t{64} * 1024;

/// Words with slashes between, so that no name leads out of the folder.
auto is_zone_name(std::string_view name) -> bool {
  auto const is_of_a_word = [](char c) {
    return is_letter_or_digit(c) || c == '_' || c == '+' || c == '-';
  };
  bool is_after_word = false;
  for (char const c : name) {
    if (c == '/' ? !is_after_word : !is_of_a_word(c)) {
      return false;
    }
    is_after_word = c != '/';
  }
  return is_after_word && name.size() <= 100;
}

}  // namespace

auto load_time_zone(std::string_view name)
    -> result<std::shared_ptr<ratelimit::time_zone const>, std::string> {
  if (name == "UTC") {
    return std::make_shared<ratelimit::time_zone const>();
  }
  auto const path = std::string(folder) + std::string(name);
  std::error_code ignored;
  if (!is_zone_name(name) || !std::filesystem::is_regular_file(path, ignored)) {
    return failure("unknown time zone " + shown(name) +
                   (std::filesystem::is_directory(folder, ignored)
                        ? " (expected a name such as Europe/Berlin)"
                        : "; this system has none besides UTC (install tzdata)"));
  }
  std::ifstream file(path, std::ios::binary);
  std::vector<char> octets(octets_max + 1);
  file.read(octets.data(), static_cast<std::streamsize>(octets.size()));
  octets.resize(static_cast<std::size_t>(file.gcount()));
  if (file.bad() || octets.empty()) {
    return failure("cannot read " + path);
  }
  auto zone = ratelimit::time_zone::parse(std::as_bytes(std::span(octets)));
  if (!zone) {
    return failure(shown(name) + ": " + path + ": " + std::string(message(zone.error())));
  }
  return std::make_shared<ratelimit::time_zone const>(*std::move(zone));
}

}  // namespace tidegate::gateway
