// SPDX-License-Identifier: Apache-2.0
#include "process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <csignal>
#include <stdexcept>

namespace tidegate::e2e {

namespace {

struct pipe_ends {
  int read = -1;
  int write = -1;
  pipe_ends() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw std::runtime_error("pipe2 failed");
    }
    read = ends[0];
    write = ends[1];
  }
};

void close_end(int& end) {
  close(end);
  end = -1;
}

}  // namespace

auto run(std::vector<std::string> const& arguments, std::string const& input) -> outcome {
  std::signal(SIGPIPE, SIG_IGN);
  pipe_ends in;
  pipe_ends out;
  pipe_ends err;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.write, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write, STDERR_FILENO);
  std::vector<char*> argv;
  for (auto const& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  pid_t child = -1;
  auto const error = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close_end(in.read);
  close_end(out.write);
  close_end(err.write);
  if (error != 0) {
    throw std::runtime_error("cannot start " + arguments[0]);
  }

  outcome result;
  std::size_t written = 0;
  std::array<char, 65536> buffer{};
  auto take = [&buffer](int& end, std::string& to) {
    auto const size = read(end, buffer.data(), buffer.size());
    if (size > 0) {
      to.append(buffer.data(), static_cast<std::size_t>(size));
    } else {
      close_end(end);
    }
  };
  while (out.read >= 0 || err.read >= 0) {
    if (in.write >= 0 && written == input.size()) {
      close_end(in.write);
    }
    std::array<pollfd, 3> polled{
        {{in.write, POLLOUT, 0}, {out.read, POLLIN, 0}, {err.read, POLLIN, 0}}};
    poll(polled.data(), polled.size(), -1);
    if (in.write >= 0 && polled[0].revents != 0) {
      auto const size = write(in.write, input.data() + written,
                              std::min(input.size() - written, std::size_t{4096}));
      if (size > 0) {
        written += static_cast<std::size_t>(size);
      } else {
        close_end(in.write);
      }
    }
    if (out.read >= 0 && polled[1].revents != 0) {
      take(out.read, result.out);
    }
    if (err.read >= 0 && polled[2].revents != 0) {
      take(err.read, result.err);
    }
  }
  if (in.write >= 0) {
    close_end(in.write);
  }
  int status = 0;
  waitpid(child, &status, 0);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace tidegate::e2e
