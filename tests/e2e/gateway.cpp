// SPDX-License-Identifier: Apache-2.0
#include "gateway.hpp"

#include <tidegate/base/ascii.hpp>

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <fstream>
#include <stdexcept>

namespace tidegate::e2e {

namespace {

using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// True when `events` came in time.
auto wait_for(int socket, short events, std::chrono::milliseconds bound) -> bool {
  pollfd polled{socket, events, 0};
  return ::poll(&polled, 1, static_cast<int>(bound.count())) > 0;
}

void require(int socket, short events, char const* what) {
  if (!wait_for(socket, events, patience)) {
    throw std::runtime_error(std::string("waited in vain to ") + what);
  }
}

auto address_of(std::string const& ip, std::uint16_t port) -> sockaddr_in {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  ::inet_pton(AF_INET, ip.c_str(), &out.sin_addr);
  return out;
}

auto number(std::string_view text, int base = 10) -> std::size_t {
  std::size_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out, base);
  return out;
}

}  // namespace

auto connect_to(std::uint16_t port, std::string const& from) -> connection {
  descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto const local = address_of(from, 0);
  auto const remote = address_of("127.0.0.1", port);
  int const yes = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  // The port is found when it is known where to, so that those of old connections count as free.
  ::setsockopt(socket.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof yes);
  if (::bind(socket.get(), reinterpret_cast<sockaddr const*>(&local), sizeof local) != 0 ||
      ::connect(socket.get(), reinterpret_cast<sockaddr const*>(&remote), sizeof remote) != 0) {
    throw std::runtime_error("cannot connect to the gateway");
  }
  return connection(std::move(socket));
}

void descriptor::close() {
  if (number_ >= 0) {
    ::close(std::exchange(number_, -1));
  }
}

// ---- messages ----

auto message::status() const -> int {
  return start_line.size() < 12 ? 0 : static_cast<int>(number(start_line.substr(9, 3)));
}

auto message::count(std::string_view name) const -> std::size_t {
  return static_cast<std::size_t>(std::ranges::count_if(
      fields, [&](auto const& field) { return equal_ignoring_case(field.first, name); }));
}

auto message::field(std::string_view name) const -> std::string {
  std::optional<std::string> out;
  for (auto const& [each, value] : fields) {
    if (equal_ignoring_case(each, name)) {
      out = out ? *out + ", " + value : value;
    }
  }
  return out.value_or("(none)");
}

// ---- connections ----

void connection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    require(socket_.get(), POLLOUT, "send");
    auto const sent =
        ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN) {
      throw std::runtime_error("cannot send: the other end is gone");
    }
    bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
  }
}

auto connection::send_until_blocked(std::string_view bytes) -> std::size_t {
  std::size_t out = 0;
  while (out < bytes.size() && wait_for(socket_.get(), POLLOUT, 200ms)) {
    auto const sent =
        ::send(socket_.get(), bytes.data() + out, bytes.size() - out, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN) {
      break;  // the other end is gone
    }
    out += static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
  }
  return out;
}

auto connection::read_more() -> bool {
  std::array<char, 65536> bytes;
  require(socket_.get(), POLLIN, "read");
  auto const size = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
  if (size <= 0) {
    return false;
  }
  in_.append(bytes.data(), static_cast<std::size_t>(size));
  return true;
}

auto connection::read_line() -> std::string {
  std::size_t end = 0;
  while ((end = in_.find("\r\n")) == std::string::npos) {
    if (!read_more()) {
      throw std::runtime_error("the other end closed within a line: " + in_);
    }
  }
  auto out = in_.substr(0, end);
  in_.erase(0, end + 2);
  return out;
}

auto connection::read_head() -> message {
  message out;
  out.start_line = read_line();
  for (auto line = read_line(); !line.empty(); line = read_line()) {
    auto const colon = std::min(line.find(':'), line.size() - 1);
    out.fields.emplace_back(line.substr(0, colon),
                            trimmed(std::string_view(line).substr(colon + 1)));
  }
  return out;
}

void connection::read_body(message& of, bool until_close) {
  if (of.count("Transfer-Encoding") > 0) {
    for (;;) {
      auto const size = number(read_line(), 16);
      if (size == 0) {
        break;
      }
      of.body += read(size);
      (void)read_line();
    }
    for (auto line = read_line(); !line.empty(); line = read_line()) {
      of.trailers += line + "\r\n";
    }
  } else if (of.count("Content-Length") > 0) {
    of.body = read(number(of.field("Content-Length")));
  } else if (until_close) {
    of.body = read_to_end();
  }
}

auto connection::read_request() -> message {
  auto out = read_head();
  read_body(out, false);
  return out;
}

auto connection::read_response(bool to_head) -> message {
  auto out = read_head();
  if (!to_head && out.status() >= 200 && out.status() != 204 && out.status() != 304) {
    read_body(out, true);
  }
  return out;
}

auto connection::read(std::size_t size) -> std::string {
  while (in_.size() < size) {
    if (!read_more()) {
      throw std::runtime_error("the other end closed too early, after " +
                               std::to_string(in_.size()) + " of " + std::to_string(size));
    }
  }
  auto out = in_.substr(0, size);
  in_.erase(0, size);
  return out;
}

auto connection::read_some() -> std::string {
  if (in_.empty()) {
    (void)read_more();
  }
  return std::exchange(in_, {});
}

auto connection::read_to_end() -> std::string {
  while (read_more()) {
  }
  return std::exchange(in_, {});
}

auto connection::is_silent() -> bool {
  return in_.empty() && !wait_for(socket_.get(), POLLIN, 0ms);
}

void connection::shut_down_sending() {
  ::shutdown(socket_.get(), SHUT_WR);
}

void connection::abort() {
  linger const at_once{1, 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  socket_.close();
}

// ---- origins ----

origin::origin(bool listens) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  auto address = address_of("127.0.0.1", 0);
  socklen_t size = sizeof address;
  if (::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      (listens && ::listen(socket_.get(), 1024) != 0) ||
      ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("cannot listen");
  }
  port_ = ntohs(address.sin_port);
}

auto origin::url() const -> std::string {
  return "http://" + authority();
}

auto origin::authority() const -> std::string {
  return "127.0.0.1:" + std::to_string(port_);
}

auto origin::accept() -> connection {
  require(socket_.get(), POLLIN, "accept");
  return connection(descriptor(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
}

auto origin::begin_to_connect() const -> descriptor {
  descriptor out(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  auto const address = address_of("127.0.0.1", port_);
  (void)::connect(out.get(), reinterpret_cast<sockaddr const*>(&address), sizeof address);
  return out;
}

auto origin::is_untouched() const -> bool {
  return !wait_for(socket_.get(), POLLIN, 0ms);
}

serving_origin::serving_origin(std::string answer)
    : serving_origin([answer = std::move(answer)](message const&) { return answer; }) {}

serving_origin::serving_origin(std::function<std::string(message const&)> answer)
    : answer_(std::move(answer)), thread_([this] { serve(); }) {}

serving_origin::~serving_origin() {
  stopping_ = true;
  // Wakes the thread.
  auto const self = connect_to(listening_.port(), "127.0.0.1");
  thread_.join();
}

void serving_origin::serve() {
  std::vector<connection> connections;
  while (!stopping_) {
    std::vector<pollfd> polled{{listening_.socket(), POLLIN, 0}};
    for (auto const& each : connections) {
      polled.push_back({each.socket(), POLLIN, 0});
    }
    ::poll(polled.data(), polled.size(), -1);
    std::vector<connection> kept;
    for (std::size_t i = 0; i < connections.size(); ++i) {
      bool keeps = true;
      if (polled[i + 1].revents != 0) {
        try {
          auto const request = connections[i].read_request();
          ++requests_;
          connections[i].send(answer_(request));
        } catch (std::runtime_error const&) {
          keeps = false;  // the gateway closed it
        }
      }
      if (keeps) {
        kept.push_back(std::move(connections[i]));
      }
    }
    if (polled[0].revents != 0) {
      kept.push_back(listening_.accept());
    }
    connections = std::move(kept);
  }
}

// ---- the gateway ----

gateway::gateway(std::string const& config, gateway_options options)
    : options_(std::move(options)) {
  auto name = (std::filesystem::temp_directory_path() / "tidegate_XXXXXX").string();
  descriptor const made(::mkstemp(name.data()));
  file_ = name;
  write_config(config);
  start({TIDEGATE_BINARY, "serve", "-c", file_.string()}, true);
}

gateway::gateway(std::vector<std::string> const& flags) {
  std::vector<std::string> arguments{TIDEGATE_BINARY, "serve"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  start(arguments, false);
}

gateway::~gateway() {
  if (process_ > 0) {
    signal(SIGTERM);
    EXPECT_EQ(wait(), 0) << "the gateway did not end in good order: " << errors();
  }
  if (!file_.empty()) {
    std::filesystem::remove(file_);
  }
}

void gateway::write_config(std::string const& config) const {
  std::ofstream(file_) << "listen: " << options_.listen << "\nadmin: " << options_.admin
                       << "\nworkers: " << options_.workers << "\n"
                       << config;
}

void gateway::start(std::vector<std::string> arguments, bool has_admin) {
  std::array<int, 2> out{};
  std::array<int, 2> err{};
  if (::pipe2(out.data(), O_CLOEXEC) != 0 || ::pipe2(err.data(), O_CLOEXEC) != 0) {
    throw std::runtime_error("pipe2 failed");
  }
  out_ = descriptor(out[0]);
  err_ = descriptor(err[0]);
  descriptor out_of_program(out[1]);
  descriptor err_of_program(err[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
  std::vector<descriptor> passed;
  for (auto const socket : options_.passed) {
    // Out of the way of the numbers that they get.
    passed.emplace_back(::fcntl(socket, F_DUPFD_CLOEXEC, 100));
    posix_spawn_file_actions_adddup2(&actions, passed.back().get(),
                                     STDERR_FILENO + static_cast<int>(passed.size()));
  }
  if (!passed.empty()) {
    // The shell knows the number of the process that it is and the gateway will be.
    arguments.insert(arguments.begin(),
                     {"/bin/sh", "-c",
                      "LISTEN_PID=$$ LISTEN_FDS=" + std::to_string(passed.size()) +
                          " LISTEN_FDNAMES=first:second exec \"$0\" \"$@\""});
  }
  if (!options_.shell.empty()) {
    arguments.insert(arguments.begin(),
                     {"/bin/sh", "-c", options_.shell + " && exec \"$0\" \"$@\""});
  }
  std::vector<char*> argv;
  for (auto const& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  std::vector<char*> environment;
  for (auto const& variable : options_.environment) {
    environment.push_back(const_cast<char*>(variable.c_str()));
  }
  for (auto* const* variable = environ; *variable != nullptr; ++variable) {
    environment.push_back(*variable);
  }
  environment.push_back(nullptr);
  auto const error =
      ::posix_spawn(&process_, argv[0], &actions, nullptr, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw std::runtime_error("cannot start " + arguments[0]);
  }
  // So that their end shows that of the program.
  out_of_program.close();
  err_of_program.close();
  auto const port_behind = [&](std::string_view words) {
    auto line = read_line(out_, out_pending_);
    while (port_ != 0 && line.starts_with("listening on ")) {  // of several addresses the first
      line = read_line(out_, out_pending_);
    }
    if (!line.starts_with(words)) {
      throw std::runtime_error("the gateway does not start: " + line + errors());
    }
    return static_cast<std::uint16_t>(number(std::string_view(line).substr(line.rfind(':') + 1)));
  };
  try {
    port_ = port_behind("listening on ");
    if (has_admin) {
      admin_port_ = port_behind("admin on ");
    }
  } catch (std::runtime_error const&) {
    ::kill(process_, SIGKILL);  // the destructor does not run
    ::waitpid(process_, nullptr, 0);
    std::filesystem::remove(file_);
    throw;
  }
}

auto gateway::read_line(descriptor const& from, std::string& pending) -> std::string {
  std::size_t end = 0;
  while ((end = pending.find('\n')) == std::string::npos) {
    std::array<char, 4096> bytes;
    require(from.get(), POLLIN, "read a line of the gateway");
    auto const size = ::read(from.get(), bytes.data(), bytes.size());
    if (size <= 0) {
      return std::exchange(pending, {});
    }
    pending.append(bytes.data(), static_cast<std::size_t>(size));
  }
  auto out = pending.substr(0, end);
  pending.erase(0, end + 1);
  return out;
}

auto gateway::errors() -> std::string {
  std::string out;
  while (!err_pending_.empty() || wait_for(err_.get(), POLLIN, 0ms)) {
    auto const line = read_line(err_, err_pending_);
    if (line.empty() && err_pending_.empty()) {
      break;
    }
    out += line + "\n";
  }
  return out;
}

auto gateway::errors_until(std::string_view end) -> std::string {
  std::string out;
  std::string line;
  do {
    line = read_line(err_, err_pending_);
    if (line.empty() && err_pending_.empty()) {
      throw std::runtime_error("the gateway ended and did not say: " + std::string(end));
    }
    out += line + "\n";
  } while (!line.contains(end));
  return out;
}

auto gateway::connect(std::string const& from) const -> connection {
  return connect_to(port_, from);
}

auto gateway::accepts() const -> bool {
  try {
    (void)connect();
    return true;
  } catch (std::runtime_error const&) {
    return false;
  }
}

auto gateway::ask(std::string_view request) const -> message {
  auto client = connect();
  client.send(request);
  return client.read_response();
}

auto gateway::get(std::string_view target, std::string_view field_lines) const -> message {
  return ask("GET " + std::string(target) + " HTTP/1.1\r\nHost: a.example\r\n" +
             std::string(field_lines) + "\r\n");
}

auto gateway::admin(std::string_view path) const -> message {
  auto client = connect_admin();
  client.send("GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  return client.read_response();
}

auto gateway::connect_admin() const -> connection {
  return connect_to(admin_port_, "127.0.0.1");
}

auto gateway::metric(std::string_view name_and_labels) const -> double {
  auto const text = "\n" + admin("/metrics").body;
  auto const line = "\n" + std::string(name_and_labels) + " ";
  auto const found = text.find(line);
  return found == std::string::npos ? 0 : std::strtod(text.c_str() + found + line.size(), nullptr);
}

auto gateway::authority() const -> std::string {
  return "127.0.0.1:" + std::to_string(port_);
}

auto gateway::reload(std::string const& config) -> std::string {
  write_config(config);
  signal(SIGHUP);
  // Faults are said before it.
  std::string line;
  do {
    line = read_line(err_, err_pending_);
  } while (!line.empty() && !line.contains("the configuration was "));
  return line.substr(line.find("the configuration was "));
}

void gateway::signal(int number) const {
  ::kill(process_, number);
}

auto gateway::wait() -> int {
  auto const until = clock::now() + patience;
  int status = 0;
  while (::waitpid(process_, &status, WNOHANG) == 0) {
    if (clock::now() > until) {
      ADD_FAILURE() << "the gateway did not end";
      ::kill(process_, SIGKILL);
      ::waitpid(process_, &status, 0);
      break;
    }
    // Its end closes the pipe.
    (void)wait_for(out_.get(), POLLIN, 10ms);
  }
  process_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

auto gateway::memory() const -> std::size_t {
  std::ifstream file("/proc/" + std::to_string(process_) + "/statm");
  std::size_t size = 0;
  std::size_t resident = 0;
  file >> size >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

auto gateway::address_space() const -> std::size_t {
  std::ifstream file("/proc/" + std::to_string(process_) + "/statm");
  std::size_t size = 0;
  file >> size;
  return size * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

auto gateway::own_memory() const -> std::size_t {
  std::ifstream file("/proc/" + std::to_string(process_) + "/smaps_rollup");
  for (std::string line; std::getline(file, line);) {
    if (std::string_view const name = "Private_Dirty:"; line.starts_with(name)) {
      return number(trimmed(std::string_view(line).substr(name.size()))) * 1024;
    }
  }
  throw std::runtime_error("the system does not tell how much memory the gateway uses");
}

// ---- what tests say ----

void expect_eventually(std::function<bool()> const& is_so, std::string_view what) {
  auto const until = clock::now() + patience;
  while (!is_so()) {
    if (clock::now() > until) {
      ADD_FAILURE() << "waited in vain until " << what;
      return;
    }
  }
}

auto proxy_config(std::string const& url, std::string const& more) -> std::string {
  return "upstreams: {api: \"" + url +
         "\"}\nroutes: [{name: all, match: {path: /**}, upstream: api}]\n" + more;
}

auto response(std::string_view status, std::string_view body, std::string_view field_lines)
    -> std::string {
  return "HTTP/1.1 " + std::string(status) + "\r\n" + std::string(field_lines) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

}  // namespace tidegate::e2e
