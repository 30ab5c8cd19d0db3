// SPDX-License-Identifier: Apache-2.0
#include "services/descriptor_limit.hpp"

#include <tidegate/config/effective.hpp>

#include <sys/resource.h>

#include <filesystem>
#include <iterator>
#include <system_error>

namespace tidegate::gateway {

auto descriptors_possible() -> std::int64_t {
  constexpr std::int64_t kept_max = 64;
  rlimit limit{};
  std::error_code failed;
  std::filesystem::directory_iterator const first("/proc/self/fd", failed);
  if (failed || ::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return std::numeric_limits<std::int64_t>::max();
  }
  auto const open = std::distance(first, std::filesystem::directory_iterator());
  auto const left = static_cast<std::int64_t>(limit.rlim_cur) - open;
  return std::max<std::int64_t>(left - std::min(left / 8, kept_max), 2);
}

auto clients_possible(std::int64_t descriptors) -> std::int64_t {
  constexpr std::int64_t kept_max = 4096;
  return descriptors - std::min(descriptors / 2, kept_max);
}

auto is_below_wanted(config const& settings, std::int64_t possible) -> bool {
  auto const wanted = settings.http.max_connections;
  auto const found =
      std::ranges::find(settings.effective, "http.max-connections", &effective_option::path);
  bool const is_default = found == settings.effective.end() || found->origin == "default";
  return possible < (is_default ? wanted / 2 : wanted);
}

}  // namespace tidegate::gateway
