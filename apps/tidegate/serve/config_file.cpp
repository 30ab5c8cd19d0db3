// SPDX-License-Identifier: Apache-2.0
#include "serve/config_file.hpp"

#include <tidegate/config/config.hpp>
#include <tidegate/engine/socket.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace tidegate::app {

namespace {

auto cannot(int code) -> std::unexpected<std::string> {
  return failure(std::string(std::strerror(code)));  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace

auto read_config_file(std::string const& name, config_reading how)
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
  while (text.size() <= gateway::config_octets_max) {
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

}  // namespace tidegate::app
