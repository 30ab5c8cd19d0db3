// SPDX-License-Identifier: Apache-2.0
#include "gateway.hpp"
#include "process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace tidegate::e2e {
namespace {

using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::string_view other_screen = "\x1b[?1049h";
constexpr std::string_view screen_given_back = "\x1b[?25h\x1b[?1049l";

auto top(std::vector<std::string> arguments) -> outcome {
  arguments.insert(arguments.begin(), {TIDEGATE_BINARY, "top"});
  return run(arguments);
}

/// A gateway with two policies, one of which has refused a client.
auto config() -> std::string {
  return R"(policies:
  burst: {quota: 2, window: 1m, partition: [header:x-api-key]}
  per-address: {quota: 100, window: 1h, partition: [client-ip]}
routes: [{match: {path: /v1/**}, service: echo, limits: [burst, per-address]}]
)";
}

void use(gateway const& running) {
  for (int i = 0; i < 3; ++i) {
    (void)running.get("/v1/a", "X-Api-Key: swordfish\r\n");
  }
}

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

TEST(top_command, prints_one_snapshot_where_there_is_no_terminal) {
  gateway const running(config());
  use(running);
  auto const shown = top({"--admin", running.admin_url()});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, StartsWith("tidegate " + running.admin_url()));
  EXPECT_THAT(shown.out, ContainsRegex("/v1/\\*\\* +- .* 3\n"));
  EXPECT_THAT(shown.out, ContainsRegex("burst +2/1m +- +- +- +2 +1\n"));
  EXPECT_THAT(shown.out,
              ContainsRegex("header:x-api-key=#[0-9a-f]{8} +burst +0.[0-3] +0.[01] +0 +2 "));
  EXPECT_THAT(shown.out, ContainsRegex("client-ip=127.0.0.1 +per-address "));
  EXPECT_THAT(shown.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(shown.out, Not(HasSubstr("swordfish")));
}

TEST(top_command, prints_json_for_programs) {
  gateway const running(config());
  use(running);
  auto const shown = top({"--json", "--once", "--admin", running.admin_url() + "/"});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, StartsWith("{\"time\":\""));
  EXPECT_THAT(shown.out, HasSubstr(R"({"name":"/v1/**","requests":3,"1xx":0,"2xx":2,)"));
  EXPECT_THAT(shown.out, HasSubstr(R"("throttled":1)"));
  EXPECT_THAT(shown.out, EndsWith("]}\n"));
}

TEST(top_command, prints_a_line_of_json_each_interval) {
  gateway const running(config());
  on_a_terminal seen(
      {TIDEGATE_BINARY, "top", "--json", "--interval", "100ms", "--admin", running.admin_url()}, 80,
      24);
  seen.see(R"("seconds":null)");
  seen.see(R"("seconds":0.)");
  use(running);
  seen.see(R"("throttled":1)");
  seen.type("\x03");
  EXPECT_EQ(seen.wait(), 130);
}

TEST(top_command, is_redrawn_until_ctrl_c_and_restores_the_terminal) {
  gateway const running(config());
  on_a_terminal seen(
      {TIDEGATE_BINARY, "top", "--interval", "100ms", "--admin", running.admin_url()}, 100, 30);
  seen.see(other_screen);
  seen.see("\x1b[7mROUTE");
  EXPECT_FALSE(seen.has_plain_keys());
  use(running);
  seen.see("header:x-api-key=#");
  seen.type("\x03");
  seen.see(screen_given_back);
  EXPECT_EQ(seen.wait(), 130);
  EXPECT_TRUE(seen.has_plain_keys());
  EXPECT_THAT(seen.shown(), EndsWith(screen_given_back));
}

TEST(top_command, ends_with_q) {
  gateway const running(config());
  on_a_terminal seen({TIDEGATE_BINARY, "top", "--admin", running.admin_url()}, 100, 30);
  seen.see("HOTTEST PARTITIONS");
  seen.type("q");
  seen.see(screen_given_back);
  EXPECT_EQ(seen.wait(), 0);
  EXPECT_TRUE(seen.has_plain_keys());
}

TEST(top_command, follows_the_size_of_the_terminal) {
  gateway const running(config());
  on_a_terminal seen({TIDEGATE_BINARY, "top", "--interval", "1h", "--admin", running.admin_url()},
                     60, 30);
  seen.see("req/s");
  EXPECT_THAT(seen.shown(), Not(HasSubstr("p99 ms")));
  seen.resize(150, 30);
  seen.see("p99 ms");
  seen.type("q");
  EXPECT_EQ(seen.wait(), 0);
}

TEST(top_command, gives_the_terminal_back_while_it_is_stopped) {
  gateway const running(config());
  on_a_terminal seen(
      {TIDEGATE_BINARY, "top", "--interval", "100ms", "--admin", running.admin_url()}, 100, 30);
  seen.see("ROUTE");
  ::kill(seen.process(), SIGTSTP);
  seen.see(screen_given_back);
  seen.wait_for_stop();
  EXPECT_TRUE(seen.has_plain_keys());
  seen.resume();
  seen.see(other_screen);
  seen.see("ROUTE");
  seen.type("q");
  seen.see(screen_given_back);
  EXPECT_EQ(seen.wait(), 0);
}

TEST(top_command, continues_when_the_gateway_is_away) {
  auto running = std::make_unique<gateway>(config());
  on_a_terminal seen(
      {TIDEGATE_BINARY, "top", "--interval", "100ms", "--admin", running->admin_url()}, 100, 30);
  seen.see("ROUTE");
  running.reset();
  seen.see("no answer: ");
  seen.type("q");
  seen.see(screen_given_back);
  EXPECT_EQ(seen.wait(), 0);
}

TEST(top_command, says_when_there_is_no_gateway) {
  auto const closed = origin::refusing();
  auto const shown = top({"--admin", closed.url()});
  EXPECT_EQ(shown.status, 1);
  EXPECT_EQ(shown.out, "");
  EXPECT_THAT(shown.err, StartsWith("error: " + closed.url() + "/metrics: "));
  serving_origin const other(response("200 OK", "{}"));
  EXPECT_EQ(top({"--admin", other.url()}).status, 1);
}

TEST(top_command, exits_with_2_when_it_is_called_wrongly) {
  EXPECT_EQ(top({"--interval", "0s"}).status, 2);
  EXPECT_EQ(top({"--interval", "soon"}).status, 2);
  EXPECT_EQ(top({"--nonsense"}).status, 2);
}

}  // namespace
}  // namespace tidegate::e2e
