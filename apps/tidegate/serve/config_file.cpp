// SPDX-License-Identifier: Apache-2.0
#include "serve/config_file.hpp"

#include <tidegate/engine/socket.hpp>

#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace tidegate::app {

namespace {

auto cannot(int code) -> std::unexpected<std::string> {
  return failure(std::string(std::strerror(code)));  // NOLINT(concurrency-mt-unsafe)
}

auto matching(std::string const& pattern) -> result<std::vector<std::string>, std::string> {
  struct found_paths {
    glob_t paths{};
    found_paths() = default;
    found_paths(found_paths const&) = delete;
    auto operator=(found_paths const&) -> found_paths& = delete;
    ~found_paths() { ::globfree(&paths); }
  } found;
  // A folder that cannot be read is an error, not one without files.
  auto const outcome = ::glob(
      pattern.c_str(), 0,
      [](char const*, int code) {
        errno = code;
        return code == ENOENT || code == ENOTDIR ? 0 : 1;
      },
      &found.paths);
  if (outcome == GLOB_NOMATCH) {
    return std::vector<std::string>();
  }
  if (outcome != 0) {
    return cannot(outcome == GLOB_NOSPACE ? ENOMEM : errno);
  }
  auto const* const begin = found.paths.gl_pathv;
  return std::vector<std::string>(begin, begin + found.paths.gl_pathc);
}

}  // namespace

auto read_config_file(std::string const& name, config_reading how, std::size_t octets_max)
    -> result<std::string, std::string> {
  // To open a pipe without a writer would block.
  bool const is_first = how == config_reading::first;
  engine::descriptor const file(
      ::open(name.c_str(), O_RDONLY | O_CLOEXEC | (is_first ? 0 : O_NONBLOCK)));
  struct stat about {};
  if (!file.is_open() || ::fstat(file.get(), &about) != 0) {
    return cannot(errno);
  }
  if (S_ISDIR(about.st_mode)) {
    return cannot(EISDIR);
  }
  if (!is_first && !S_ISREG(about.st_mode)) {
    return failure(std::string("cannot read it again: not a regular file"));
  }
  std::string text;
  std::array<char, 16 * 1024> bytes;  // NOLINT: what is not read is not looked at
  while (text.size() <= octets_max) {
    auto const size = ::read(file.get(), bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) {
      continue;
    }
    if (size < 0) {
      return cannot(errno);
    }
    if (size == 0) {
      break;
    }
    text.append(bytes.data(), static_cast<std::size_t>(size));
  }
  return text;
}

auto sources_of_process(config_reading how) -> gateway::config_sources {
  return {.variable = [](std::string const& name) -> std::optional<std::string> {
            auto const* const value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe)
            return value == nullptr ? std::nullopt : std::optional<std::string>(value);
          },
          .file = [how](std::string const& path,
                        std::size_t octets_max) { return read_config_file(path, how, octets_max); },
          .matching = matching};
}

auto load_config_file(std::string const& name, config_reading how)
    -> result<gateway::config, std::vector<gateway::config_fault>> {
  auto const text = read_config_file(name, how);
  if (!text) {
    return failure(
        std::vector<gateway::config_fault>{{name, 1, 1, "cannot read the file: " + text.error()}});
  }
  return gateway::parse_config(*text, name, sources_of_process(how));
}

}  // namespace tidegate::app
