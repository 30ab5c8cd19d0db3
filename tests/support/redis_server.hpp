// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

/// Real servers of Redis for tests: on a free port of 127.0.0.1, with a folder of their own, gone
/// with the object and with the process that made it, however that ends.
///
///     if (!redis_server::is_installed()) { GTEST_SKIP() << redis_server::missing; }
///     redis_server redis({"--appendonly", "yes"});
///     redis.cli("SET a 1");
namespace tidegate::test {

/// Looks every millisecond whether `holds`; false when it did not within `time`.
template <class Condition>
[[nodiscard]] auto eventually(Condition holds,
                              std::chrono::milliseconds time = std::chrono::seconds(20)) -> bool {
  auto const end = std::chrono::steady_clock::now() + time;
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// A port of 127.0.0.1 that was free a moment ago.
[[nodiscard]] inline auto free_port() -> std::uint16_t {
  int const socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  bool const good = ::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                    ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(socket);
  if (!good) {
    throw std::runtime_error("no free port");
  }
  return ntohs(address.sin_port);
}

/// What a command of the shell prints.
[[nodiscard]] inline auto output_of(std::string const& shell_command) -> std::string {
  std::string out;
  auto* const pipe = ::popen((shell_command + " 2>&1").c_str(), "re");
  if (pipe == nullptr) {
    throw std::runtime_error("popen failed");
  }
  std::array<char, 4096> piece{};
  for (std::size_t got = 0; (got = ::fread(piece.data(), 1, piece.size(), pipe)) > 0;) {
    out.append(piece.data(), got);
  }
  ::pclose(pipe);
  return out;
}

class redis_server {
 public:
  static constexpr auto missing = "redis-server is not installed";
  [[nodiscard]] static auto is_installed() -> bool {
    return !output_of("command -v redis-server").empty();
  }

  /// Starts it; `options` are as on its command line. With `--sentinel` first it is a sentinel.
  explicit redis_server(std::vector<std::string> options = {}) : options_(std::move(options)) {
    std::string name = (std::filesystem::temp_directory_path() / "tidegate_redis_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw std::runtime_error("mkdtemp failed");
    }
    folder_ = name;
    // Another process may have taken the port meanwhile.
    for (int attempt = 0; attempt < 10; ++attempt) {
      port_ = free_port();
      if (start()) {
        return;
      }
    }
    auto const said = log();
    std::filesystem::remove_all(folder_);
    throw std::runtime_error("redis-server does not start:\n" + said);
  }
  ~redis_server() {
    kill();
    std::filesystem::remove_all(folder_);
  }
  redis_server(redis_server const&) = delete;
  auto operator=(redis_server const&) -> redis_server& = delete;

  [[nodiscard]] auto port() const -> std::uint16_t { return port_; }
  [[nodiscard]] auto address() const -> std::string { return "127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] auto folder() const -> std::filesystem::path const& { return folder_; }
  [[nodiscard]] auto log() const -> std::string {
    std::ifstream in(folder_ / "log", std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  /// What redis-cli prints for a command, as a line of the shell, without the last end of a line.
  /// `cli_options` come before it, such as `-a password`.
  auto cli(std::string const& command, std::string const& cli_options = "") const -> std::string {
    auto out = output_of("timeout 30 redis-cli -p " + std::to_string(port_) + " " + cli_options +
                         " " + command);
    while (out.ends_with('\n')) {
      out.pop_back();
    }
    return out;
  }

  /// Does nothing any more, and has all its connections open.
  void freeze() const { ::kill(process_, SIGSTOP); }
  void thaw() const { ::kill(process_, SIGCONT); }

  /// Ends it at once, as a crash would.
  void kill() {
    if (process_ > 0) {
      ::kill(process_, SIGKILL);
      ::waitpid(process_, nullptr, 0);
      process_ = -1;
    }
  }
  /// Starts it again on the same port and with the same files.
  void restart() {
    kill();
    if (!eventually([this] { return start(); })) {
      throw std::runtime_error("redis-server does not start again:\n" + log());
    }
  }

 private:
  [[nodiscard]] auto start() -> bool {
    std::vector<std::string> words{"redis-server"};
    bool const is_sentinel = !options_.empty() && options_.front() == "--sentinel";
    if (is_sentinel) {  // which keeps what it learns in its file
      auto const file = folder_ / "sentinel.conf";
      std::ofstream(file, std::ios::app) << "";
      words.push_back(file.string());
    }
    std::vector<std::string> const own{"--port",      std::to_string(port_),
                                       "--bind",      "127.0.0.1",
                                       "--dir",       folder_.string(),
                                       "--logfile",   (folder_ / "log").string(),
                                       "--daemonize", "no"};
    words.insert(words.end(), own.begin(), own.end());
    if (!is_sentinel) {
      // Replicas get what there is at once, instead of waiting five seconds for others that might
      // want it.
      words.insert(words.end(), {"--save", "", "--repl-diskless-sync-delay", "0"});
    }
    words.insert(words.end(), options_.begin(), options_.end());
    std::vector<char*> arguments;
    for (auto& word : words) {
      arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    process_ = ::fork();
    if (process_ < 0) {
      throw std::runtime_error("fork failed");
    }
    if (process_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      int const nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
      for (int fd = 0; fd < 3; ++fd) {
        ::dup2(nowhere, fd);
      }
      ::execvp(arguments[0], arguments.data());
      ::_exit(127);
    }
    bool ended = false;
    bool const accepts = eventually([&] {
      ended = ::waitpid(process_, nullptr, WNOHANG) == process_;
      return ended || is_listening();
    });
    if (ended) {
      process_ = -1;
    } else if (!accepts) {
      kill();
    }
    return accepts && !ended;
  }

  [[nodiscard]] auto is_listening() const -> bool {
    int const socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port_);
    bool const good = ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    ::close(socket);
    return good;
  }

  std::vector<std::string> options_;
  std::filesystem::path folder_;
  std::uint16_t port_ = 0;
  pid_t process_ = -1;
};

/// A Redis Cluster: masters that share the slots in their order, and perhaps a replica of the first
/// one.
class redis_cluster {
 public:
  explicit redis_cluster(std::size_t masters = 3, bool has_replica = false) {
    for (std::size_t i = 0; i < masters + (has_replica ? 1 : 0); ++i) {
      // By itself Redis adds 10000 to the port, which may be too much.
      bus_ports_.push_back(std::to_string(free_port()));
      nodes_.push_back(std::make_unique<redis_server>(
          std::vector<std::string>{"--cluster-enabled", "yes", "--cluster-port", bus_ports_.back(),
                                   "--cluster-node-timeout", "1000", "--appendonly", "yes"}));
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i]->cli("CLUSTER SET-CONFIG-EPOCH " + std::to_string(i + 1));
      if (i < masters) {
        auto const first = 16'384 * i / masters;
        auto const last = 16'384 * (i + 1) / masters - 1;
        nodes_[i]->cli("CLUSTER ADDSLOTSRANGE " + std::to_string(first) + " " +
                       std::to_string(last));
      }
      if (i > 0) {
        nodes_[i]->cli("CLUSTER MEET 127.0.0.1 " + std::to_string(nodes_[0]->port()) + " " +
                       bus_ports_[0]);
      }
    }
    wait_until_well();
    if (has_replica) {
      nodes_.back()->cli("CLUSTER REPLICATE " + nodes_[0]->cli("CLUSTER MYID"));
      if (!eventually([&] {
            return nodes_.back()->cli("INFO replication").find("master_link_status:up") !=
                       std::string::npos &&
                   nodes_[1]->cli("CLUSTER NODES").find(" slave ") != std::string::npos;
          })) {
        throw std::runtime_error("the replica of the cluster does not follow");
      }
    }
  }

  [[nodiscard]] auto node(std::size_t at) const -> redis_server& { return *nodes_.at(at); }
  [[nodiscard]] auto url() const -> std::string {
    std::string out = "redis+cluster://";
    for (auto const& each : nodes_) {
      out += (each == nodes_.front() ? "" : ",") + each->address();
    }
    return out;
  }
  /// Waits until every node that runs says so.
  void wait_until_well() const {
    auto const known = "cluster_known_nodes:" + std::to_string(nodes_.size());
    for (auto const& each : nodes_) {
      if (!eventually([&] {
            auto const info = each->cli("CLUSTER INFO");
            return info.find("cluster_state:ok") != std::string::npos &&
                   info.find(known) != std::string::npos;
          })) {
        throw std::runtime_error("the cluster does not come together:\n" + each->log());
      }
    }
  }

 private:
  std::vector<std::string> bus_ports_;
  std::vector<std::unique_ptr<redis_server>> nodes_;
};

}  // namespace tidegate::test
