// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::test_support {

/// A PostgreSQL of our own, in a temporary folder, on a free port of 127.0.0.1. It ends with the
/// object, and also when the test program crashes. Where we are root, it runs as the user
/// `postgres`, since it refuses to be root.
class postgres_server {
 public:
  /// Nothing when PostgreSQL is not installed; then tests are skipped with `missing`.
  [[nodiscard]] static auto is_installed() -> bool { return !programs().empty(); }
  static constexpr char const* missing =
      "PostgreSQL is not installed: there is no initdb in /usr/lib/postgresql/*/bin";

  /// The server of this test program, started when it is first asked for.
  [[nodiscard]] static auto shared() -> postgres_server& {
    static postgres_server server;
    return server;
  }

  postgres_server() {
    auto name = (place() / "tidegate_postgres_XXXXXX").string();
    folder_ = mkdtemp(name.data());
    if (auto const* const user = server_user()) {
      chown(folder_.c_str(), user->pw_uid, user->pw_gid);
    }
    run({programs() / "initdb", "-D", folder_ / "data", "-U", "tidegate", "-A", "trust", "-E",
         "UTF8", "--no-locale", "--no-sync", "--no-instructions"});
    start();
  }
  ~postgres_server() {
    stop(SIGQUIT);
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  postgres_server(postgres_server const&) = delete;
  auto operator=(postgres_server const&) -> postgres_server& = delete;

  /// Starts it again after a `stop`, on the same port, and waits until it takes statements.
  void start() {
    for (int attempt = 0; attempt < 100; ++attempt) {
      port_ = port_ != 0 ? port_ : free_port();
      pid_ = spawn({programs() / "postgres", "-D", folder_ / "data", "-p", std::to_string(port_),
                    "-h", "127.0.0.1", "-k", folder_, "-c", "shared_buffers=64MB", "-c",
                    "max_connections=200", "-c", "max_wal_size=1GB", "-c",
                    "recovery_init_sync_method=syncfs"});
      if (is_ready()) {
        return;
      }
      stop(SIGKILL);
      // Another process has the port, or those of the killed server before have not ended yet.
      port_ = is_known_ ? port_ : 0;
    }
  }
  /// SIGKILL: as a crash; SIGQUIT: at once; SIGINT: after the transactions under way were ended.
  void stop(int signal) {
    if (pid_ > 0) {
      kill(pid_, signal);
      waitpid(pid_, nullptr, 0);
      pid_ = -1;
    }
  }

  [[nodiscard]] auto port() const noexcept -> std::uint16_t { return port_; }
  [[nodiscard]] auto url(std::string const& database = "postgres") const -> std::string {
    return "postgres://tidegate@127.0.0.1:" + std::to_string(port_) + "/" + database;
  }
  /// The URL of a database that was not used before.
  [[nodiscard]] auto fresh_database() -> std::string {
    auto const name = "fresh" + std::to_string(++databases_);
    run_sql("CREATE DATABASE " + name);
    return url(name);
  }
  /// Runs statements as an administrator would; what they print, a row on each line.
  auto run_sql(std::string const& sql, std::string const& database = "postgres") const
      -> std::string {
    return run({programs() / "psql", "-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-c", sql,
                url(database)});
  }

 private:
  /// The folder of the newest version that is installed.
  [[nodiscard]] static auto programs() -> std::filesystem::path {
    std::vector<std::filesystem::path> found;
    std::error_code none;
    for (auto const& entry : std::filesystem::directory_iterator("/usr/lib/postgresql", none)) {
      if (std::filesystem::exists(entry.path() / "bin/initdb")) {
        found.push_back(entry.path() / "bin");
      }
    }
    return found.empty() ? std::filesystem::path() : *std::max_element(found.begin(), found.end());
  }

  /// In memory where there is room: it syncs as elsewhere, nothing is lost when it is killed, and a
  /// busy disk does not make tests slow.
  [[nodiscard]] static auto place() -> std::filesystem::path {
    std::filesystem::path const memory = "/dev/shm";
    std::error_code none;
    auto const space = std::filesystem::space(memory, none);
    bool const has_room = !none && space.available > (std::uintmax_t{2} << 30);
    return has_room && access(memory.c_str(), W_OK) == 0 ? memory
                                                         : std::filesystem::temp_directory_path();
  }

  [[nodiscard]] static auto server_user() -> passwd const* {
    return geteuid() == 0 ? getpwnam("postgres") : nullptr;
  }

  [[nodiscard]] static auto free_port() -> std::uint16_t {
    int const socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    bind(socket, reinterpret_cast<sockaddr*>(&address), size);
    getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
    close(socket);
    return ntohs(address.sin_port);
  }

  /// Starts a program that ends when we do. What it writes goes to `out`, or to a file in the
  /// folder.
  [[nodiscard]] auto spawn(std::vector<std::string> const& words, int out = -1) const -> pid_t {
    std::vector<char*> arguments;
    for (auto const& word : words) {
      arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    auto const* const user = server_user();
    auto const log = (folder_ / "log").string();
    auto const parent = getpid();
    pid_t const pid = fork();
    if (pid == 0) {
      if (user != nullptr &&
          (setgroups(0, nullptr) != 0 || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0)) {
        _exit(126);
      }
      prctl(PR_SET_PDEATHSIG, SIGQUIT);  // to the postmaster: at once
      if (getppid() != parent) {
        _exit(126);
      }
      int const file = open(log.c_str(), O_CREAT | O_APPEND | O_WRONLY, 0600);
      dup2(open("/dev/null", O_RDONLY), 0);
      dup2(out >= 0 ? out : file, 1);
      dup2(file, 2);
      // Signals that the test blocks or ignores are not the business of the server.
      sigset_t none;
      sigemptyset(&none);
      sigprocmask(SIG_SETMASK, &none, nullptr);
      closefrom(3);
      execv(arguments.front(), arguments.data());
      _exit(127);
    }
    return pid;
  }

  auto run(std::vector<std::string> const& words) const -> std::string {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      return {};
    }
    auto const pid = spawn(words, ends[1]);
    close(ends[1]);
    std::string text;
    char piece[4096];
    for (ssize_t size = 0; (size = read(ends[0], piece, sizeof piece)) > 0;) {
      text.append(piece, static_cast<std::size_t>(size));
    }
    close(ends[0]);
    waitpid(pid, nullptr, 0);
    while (!text.empty() && text.back() == '\n') {
      text.pop_back();
    }
    return text;
  }

  /// Waits until the server answers, or ends.
  [[nodiscard]] auto is_ready() -> bool {
    auto const deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < deadline) {
      if (waitpid(pid_, nullptr, WNOHANG) == pid_) {
        pid_ = -1;
        poll(nullptr, 0, 50);
        return false;
      }
      // The postmaster writes how far it has come into the last line of this file.
      std::ifstream state(folder_ / "data" / "postmaster.pid");
      std::string line;
      std::string first;
      for (std::string next; std::getline(state, next); line = next) {
        first = first.empty() ? next : first;
      }
      if (first == std::to_string(pid_) && line.starts_with("ready")) {
        is_known_ = true;
        return true;
      }
      poll(nullptr, 0, 5);
    }
    return false;
  }

  std::filesystem::path folder_;
  std::uint16_t port_ = 0;
  bool is_known_ = false;  // it has been ready on that port
  pid_t pid_ = -1;
  int databases_ = 0;
};

}  // namespace tidegate::test_support
