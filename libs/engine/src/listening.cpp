// SPDX-License-Identifier: Apache-2.0
#include <tidegate/engine/listening.hpp>

#include <tidegate/base/number.hpp>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

namespace tidegate::engine {

namespace {

/// The first that is passed: behind standard input, output and error.
constexpr int first_passed = 3;
constexpr int passed_max = 1024;

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
  if (!process || !count_text || parse_number<int>(*process) != ::getpid()) {
    return {};
  }
  auto const count = parse_number<int>(*count_text);
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

auto address_of(descriptor const& socket) -> std::string {
  return local_address(socket).value_or(socket_address()).to_string();
}

auto sockets_for(std::string_view text, std::size_t count, bool others_may,
                 std::vector<passed_socket>& passed) -> result<listening_sockets, std::string> {
  TIDEGATE_TRY(auto address, socket_address::parse(text));
  listening_sockets out;
  auto const found = std::ranges::find_if(passed, [&](passed_socket const& candidate) {
    return address_of(candidate.socket) == address.to_string();
  });
  // The kernel spreads connections over many sockets of a port; of a path there is only one.
  out.is_one = found != passed.end() || address.family() == AF_UNIX;
  if (found != passed.end()) {
    out.each.push_back(std::move(found->socket));
    passed.erase(found);
  }
  while (out.each.size() < count) {
    auto socket =
        out.is_one && !out.each.empty() ? share(out.each.front()) : listen_on(address, others_may);
    if (!socket) {
      return failure("cannot listen on " + address.to_string() + ": " + to_string(socket.error()));
    }
    out.each.push_back(*std::move(socket));
    // All threads listen on the port that the first one got.
    address = local_address(out.each.front()).value_or(address);
  }
  return out;
}

}  // namespace tidegate::engine
