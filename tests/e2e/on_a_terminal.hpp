// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gateway.hpp"

#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::e2e {

/// A program on a terminal of its own, which the test sees and types into.
class on_a_terminal {
 public:
  on_a_terminal(std::vector<std::string> arguments, unsigned short columns, unsigned short rows) {
    winsize size{};
    size.ws_col = columns;
    size.ws_row = rows;
    int slave = -1;
    int master = -1;
    if (::openpty(&master, &slave, nullptr, nullptr, &size) != 0) {
      throw std::runtime_error("no terminal");
    }
    master_ = descriptor(master);
    slave_ = descriptor(slave);
    std::vector<char*> argv;
    for (auto& each : arguments) {
      argv.push_back(each.data());
    }
    argv.push_back(nullptr);
    std::string terminal = "TERM=xterm";
    std::array<char*, 2> const environment = {terminal.data(), nullptr};
    child_ = ::fork();
    if (child_ == 0) {
      ::login_tty(slave);
      ::execve(argv[0], argv.data(), environment.data());
      ::_exit(127);
    }
  }
  on_a_terminal(on_a_terminal const&) = delete;
  auto operator=(on_a_terminal const&) -> on_a_terminal& = delete;
  ~on_a_terminal() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
  }

  /// Reads until `text` is there, from where the last one ended; throws when it does not come.
  void see(std::string_view text) {
    for (;;) {
      auto const found = shown_.find(text, seen_);
      if (found != std::string::npos) {
        seen_ = found + text.size();
        return;
      }
      read_more();
    }
  }
  void type(std::string_view keys) { (void)!::write(master_.get(), keys.data(), keys.size()); }
  void resize(unsigned short columns, unsigned short rows) {
    winsize size{};
    size.ws_col = columns;
    size.ws_row = rows;
    ::ioctl(master_.get(), TIOCSWINSZ, &size);
  }
  /// Whether keys are shown and taken line by line, as at a prompt.
  [[nodiscard]] auto has_plain_keys() const -> bool {
    termios keys{};
    ::tcgetattr(slave_.get(), &keys);
    return (keys.c_lflag & ICANON) != 0 && (keys.c_lflag & ECHO) != 0;
  }
  /// Waits for its end and returns what it exited with; 128 and more when a signal ended it.
  [[nodiscard]] auto wait() -> int {
    int status = 0;
    while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
    }
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  /// Waits until it is stopped.
  void wait_for_stop() {
    int status = 0;
    while (::waitpid(child_, &status, WUNTRACED) < 0 && errno == EINTR) {
    }
    if (!WIFSTOPPED(status)) {
      child_ = -1;
      throw std::runtime_error("it was not stopped but ended");
    }
  }
  void resume() const { ::kill(child_, SIGCONT); }
  [[nodiscard]] auto process() const -> pid_t { return child_; }
  [[nodiscard]] auto shown() const -> std::string const& { return shown_; }

 private:
  void read_more() {
    pollfd polled{master_.get(), POLLIN, 0};
    std::array<char, 4096> bytes{};
    if (::poll(&polled, 1, static_cast<int>(patience.count())) != 1) {
      throw std::runtime_error("nothing more is shown after: " + shown_);
    }
    auto const size = ::read(master_.get(), bytes.data(), bytes.size());
    if (size <= 0) {
      throw std::runtime_error("the terminal was closed after: " + shown_);
    }
    shown_.append(bytes.data(), static_cast<std::size_t>(size));
  }

  descriptor master_;
  descriptor slave_;  // kept open, so that what was shown can be read when the program has ended
  pid_t child_ = -1;
  std::string shown_;
  std::size_t seen_ = 0;
};

}  // namespace tidegate::e2e
