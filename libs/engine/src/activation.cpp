// SPDX-License-Identifier: Apache-2.0
#include <tidegate/engine/activation.hpp>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

namespace tidegate::engine {

namespace {

/// The first that is passed: behind standard input, output and error.
constexpr int first_passed = 3;
constexpr int passed_max = 1024;

auto number_in(std::string_view text) -> std::optional<int> {
  int number = 0;
  auto const [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  bool const is_number = fault == std::errc{} && end == text.data() + text.size();
  return is_number ? std::optional(number) : std::nullopt;
}

/// The value of a variable, which is there no more afterwards.
auto take_variable(char const* name) -> std::optional<std::string> {
  auto const* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
  if (value == nullptr) {
    return std::nullopt;
  }
  std::string out = value;
  ::unsetenv(name);  // NOLINT(concurrency-mt-unsafe)
  return out;
}

auto option_of(int socket, int option) -> int {
  int value = 0;
  socklen_t size = sizeof value;
  return ::getsockopt(socket, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

}  // namespace

auto take_passed_sockets() -> result<std::vector<passed_socket>, std::string> {
  auto const process = take_variable("LISTEN_PID");
  auto const count_text = take_variable("LISTEN_FDS");
  auto const names = take_variable("LISTEN_FDNAMES").value_or("");
  if (!process || !count_text || number_in(*process) != ::getpid()) {
    return {};
  }
  auto const count = number_in(*count_text);
  if (!count || *count < 0 || *count > passed_max) {
    return failure("invalid LISTEN_FDS \"" + *count_text + "\" (expected 0 to " +
                   std::to_string(passed_max) + ")");
  }
  std::vector<passed_socket> passed;
  std::string_view rest = names;
  for (int fd = first_passed; fd < first_passed + *count; ++fd) {
    auto const name = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    passed_socket each{descriptor(fd), std::string(name)};
    if (option_of(fd, SO_ACCEPTCONN) != 1 || option_of(fd, SO_TYPE) != SOCK_STREAM) {
      return failure("descriptor " + std::to_string(fd) +
                     (name.empty() ? "" : " (" + each.name + ")") +
                     " of LISTEN_FDS is not a listening stream socket");
    }
    int const on = 1;
    (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // not for a path
    if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 ||
        ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK) != 0) {
      return failure("descriptor " + std::to_string(fd) + " was passed and cannot be set up");
    }
    passed.push_back(std::move(each));
  }
  return passed;
}

}  // namespace tidegate::engine
