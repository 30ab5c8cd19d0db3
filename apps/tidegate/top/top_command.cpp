// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "client/client_settings.hpp"
#include "terminal.hpp"
#include "top/snapshot.hpp"
#include "top/view.hpp"

#include <tidegate/client/session.hpp>
#include <tidegate/http/field.hpp>

#include <CLI/CLI.hpp>

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <future>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::app {

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

struct top_settings : token_settings {
  std::string admin = "http://127.0.0.1:9901";
  std::string interval = "2s";
  std::string ca_file;
  bool once = false;
  bool json = false;
};

/// What a key or a signal asks for.
enum class key_command : std::uint8_t { none, redraw, quit, interrupt, pause, help };

/// Signals and keys, taken one after the other. Made before any other thread is, which would get
/// the signals.
class command_source {
 public:
  explicit command_source(bool is_live) : takes_keys_(is_live && ::isatty(STDIN_FILENO) == 1) {
    sigemptyset(&taken_);
    for (int const number : {SIGINT, SIGTERM, SIGHUP}) {
      sigaddset(&taken_, number);
    }
    if (is_live) {
      sigaddset(&taken_, SIGWINCH);
      sigaddset(&taken_, SIGTSTP);
    }
    pthread_sigmask(SIG_BLOCK, &taken_, nullptr);
    signals_ = ::signalfd(-1, &taken_, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  command_source(command_source const&) = delete;
  auto operator=(command_source const&) -> command_source& = delete;
  ~command_source() { ::close(signals_); }

  [[nodiscard]] auto wait(std::chrono::milliseconds most) -> key_command {
    std::array<pollfd, 2> polled{
        {{signals_, POLLIN, 0}, {takes_keys_ ? STDIN_FILENO : -1, POLLIN, 0}}};
    ::poll(polled.data(), polled.size(), static_cast<int>(std::max(most, 0ms).count()));
    signalfd_siginfo came{};
    if (::read(signals_, &came, sizeof came) == static_cast<ssize_t>(sizeof came)) {
      switch (came.ssi_signo) {
        case SIGWINCH: return key_command::redraw;
        case SIGTSTP: return key_command::pause;
        default: return key_command::interrupt;
      }
    }
    if (polled[1].revents != 0) {
      char key = 0;
      auto const size = ::read(STDIN_FILENO, &key, 1);
      takes_keys_ = size == 1;  // at the end of input there will be no more
      if (size == 1 && (key == '?' || key == 'h')) {
        return key_command::help;
      }
      return size == 1 && (key == 'q' || key == 'Q') ? key_command::quit : key_command::redraw;
    }
    return key_command::none;
  }

 private:
  sigset_t taken_{};
  int signals_ = -1;
  bool takes_keys_;
};

/// Asks the admin address.
class admin_reader {
 public:
  /// `token` is empty where the address needs none.
  admin_reader(std::unique_ptr<client::session> session, std::string base, std::string const& token)
      : session_(std::move(session)), base_(std::move(base)) {
    if (!token.empty()) {
      fields_.push_back({"Authorization", "Bearer " + token});
    }
    while (base_.ends_with('/')) {
      base_.pop_back();
    }
  }

  /// A snapshot, or one line on why there is none. `is_wanted` is asked now and then; without a
  /// snapshot when it says no.
  template <class F>
  [[nodiscard]] auto read(F is_wanted) -> result<top::snapshot, std::string> {
    std::array<std::string_view, 3> const paths = {"/metrics", "/api/v1/policies",
                                                   "/api/v1/partitions"};
    std::array<std::future<result<client::response, client::client_error>>, 3> answers;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      answers[i] = session_->send({.url = base_ + std::string(paths[i]), .fields = fields_});
    }
    std::array<std::string, 3> texts;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      while (answers[i].wait_for(50ms) != std::future_status::ready) {
        if (!is_wanted()) {
          return failure(std::string("interrupted"));
        }
      }
      auto answer = answers[i].get();
      auto const where = base_ + std::string(paths[i]) + ": ";
      if (!answer) {
        return failure(where + to_string(answer.error()));
      }
      if (answer->status == 401) {
        return failure(where + (fields_.empty()
                                    ? "the address needs a token: --token-file FILE, or the "
                                      "variable TIDEGATE_ADMIN_TOKEN"
                                    : "invalid token (expected one that the address accepts)"));
      }
      if (answer->status != 200) {
        return failure(where + "the answer is " + std::to_string(answer->status));
      }
      texts[i] = std::move(answer->body);
    }
    return top::read_snapshot({texts[0], texts[1], texts[2]},
                              instant(clock::now().time_since_epoch()));
  }

 private:
  std::unique_ptr<client::session> session_;
  std::string base_;
  std::vector<http::field> fields_;
};

[[nodiscard]] auto checked_token(top_settings const& settings) -> std::string {
  auto token = token_of(settings, "TIDEGATE_ADMIN_TOKEN");
  if (token.ends_with('\r')) {
    token.pop_back();
  }
  if (!std::ranges::all_of(token, [](char c) { return c > ' ' && c <= '~'; })) {
    throw CLI::ValidationError("--token",
                               "a token is printable ASCII without spaces, and this one is not");
  }
  return token;
}

[[nodiscard]] auto wall_clock() -> std::chrono::sys_seconds {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

/// The address has no quotas and should answer at once.
[[nodiscard]] auto session_options_of(top_settings const& settings) -> client::session_options {
  client::session_options options;
  options.pacing.strategy = ratelimit::pacing_strategy::burst;
  options.retries.retries_max = 0;
  options.attempt_time_max = 5s;
  options.time_max = 5s;
  options.ca_file = settings.ca_file;
  return options;
}

void write_all(std::string_view text) noexcept {
  while (!text.empty()) {
    auto const written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return;  // the terminal is gone
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// The terminal of standard output while something is drawn over all of it: the other screen,
/// without a cursor, and keys as they are pressed. The destructor gives it back as it was.
class full_screen {
 public:
  full_screen() { enter(); }
  full_screen(full_screen const&) = delete;
  auto operator=(full_screen const&) -> full_screen& = delete;
  ~full_screen() { leave(); }

  /// Gives it back for a while, as before the program is stopped, and takes it again.
  void leave() noexcept {
    if (!is_entered_) {
      return;
    }
    is_entered_ = false;
    write_all("\x1b[?25h\x1b[?1049l");
    if (keys_before_) {
      ::tcsetattr(STDIN_FILENO, TCSADRAIN, &*keys_before_);
      keys_before_.reset();
    }
  }

  void enter() noexcept {
    if (is_entered_) {
      return;
    }
    is_entered_ = true;
    termios keys{};
    if (::tcgetattr(STDIN_FILENO, &keys) == 0) {
      keys_before_ = keys;
      keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      ::tcsetattr(STDIN_FILENO, TCSADRAIN, &keys);
    }
    write_all("\x1b[?1049h\x1b[?25l");
  }

  /// Draws lines in place of those that are there.
  void draw(std::string_view text) const {
    std::string out = "\x1b[H";
    for (bool is_first = true; !text.empty(); is_first = false) {
      auto const end = std::min(text.find('\n'), text.size());
      // A line feed behind the last line would move all of them up.
      out.append(is_first ? "" : "\r\n").append(text.substr(0, end)).append("\x1b[K");
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    write_all(out.append("\x1b[J"));
  }

  struct extent {
    std::size_t columns = 80;
    std::size_t rows = 24;
  };
  [[nodiscard]] static auto size() noexcept -> extent {
    winsize window{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 ||
        window.ws_row == 0) {
      return {};
    }
    return {window.ws_col, window.ws_row};
  }

 private:
  bool is_entered_ = false;
  std::optional<termios> keys_before_;  // while they are not as they were
};

/// Draws a snapshot each interval until a key or a signal ends it.
class viewer {
 public:
  viewer(top_settings settings, std::chrono::milliseconds interval, admin_reader reader,
         bool is_live, command_source& from)
      : settings_(std::move(settings)),
        interval_(interval),
        reader_(std::move(reader)),
        is_live_(is_live),
        commands_(from) {}

  auto run() -> int {
    auto first = look();
    if (!first) {
      return report(first.error());
    }
    now_ = *std::move(first);
    if (settings_.json) {
      return print_lines();
    }
    if (!is_live_) {
      std::cout << top::to_text(*now_, nullptr, view_of(plain_columns, 0, explain::colours::off));
      return exit_success;
    }
    return draw_screens();
  }

 private:
  static constexpr std::size_t plain_columns = 120;

  [[nodiscard]] auto look() -> result<top::snapshot, std::string> {
    return reader_.read([this] {
      auto const what = commands_.wait(0ms);
      if (what == key_command::quit || what == key_command::interrupt ||
          what == key_command::pause) {
        pending_ = what;
      }
      shows_help_ = shows_help_ != (what == key_command::help);
      return pending_ == key_command::none || pending_ == key_command::pause;
    });
  }

  auto report(std::string const& error) const -> int {
    if (pending_ == key_command::interrupt) {
      return exit_interrupted;
    }
    std::cerr << "error: " << error << '\n';
    return exit_failure;
  }

  [[nodiscard]] auto view_of(std::size_t columns, std::size_t rows, explain::colours colour) const
      -> top::view_options {
    return {.address = settings_.admin, .columns = columns, .rows = rows, .colour = colour};
  }

  /// The next command, or none at `until`.
  [[nodiscard]] auto wait(clock::time_point until) -> key_command {
    if (pending_ != key_command::none) {
      return std::exchange(pending_, key_command::none);
    }
    return commands_.wait(std::chrono::ceil<std::chrono::milliseconds>(until - clock::now()));
  }

  /// One line of JSON each interval.
  auto print_lines() -> int {
    for (;;) {
      std::cout << top::to_json(*now_, before_ ? &*before_ : nullptr, wall_clock()) << std::flush;
      if (settings_.once || !std::cout) {
        return exit_success;  // standard output may be closed
      }
      auto const until = clock::now() + interval_;
      while (clock::now() < until) {
        if (wait(until) == key_command::interrupt) {
          return exit_interrupted;
        }
      }
      auto next = look();
      if (!next) {
        return report(next.error());
      }
      before_ = std::exchange(now_, *std::move(next));
    }
  }

  auto draw_screens() -> int {
    full_screen screen;
    auto const colour = wanted_colours();
    std::string error_text;
    for (;;) {
      auto const until = clock::now() + interval_;
      do {
        draw(screen, colour, error_text);
        switch (wait(until)) {
          case key_command::quit: return exit_success;
          case key_command::interrupt: return exit_interrupted;
          case key_command::pause:
            screen.leave();
            ::raise(SIGSTOP);
            screen.enter();
            break;
          case key_command::help: shows_help_ = !shows_help_; break;
          case key_command::redraw:
          case key_command::none: break;
        }
      } while (clock::now() < until);
      if (auto next = look()) {
        before_ = std::exchange(now_, *std::move(next));
        error_text.clear();
      } else {
        // The gateway may be restarting: what was there stays on the screen.
        error_text = next.error();
      }
    }
  }

  void draw(full_screen const& screen, explain::colours colour,
            std::string const& error_text) const {
    auto const [columns, rows] = full_screen::size();
    auto text = top::to_text(*now_, before_ ? &*before_ : nullptr, view_of(columns, rows, colour));
    if (!error_text.empty()) {
      auto const line_end = std::min(text.find('\n'), text.size());
      text.replace(0, line_end, explain::printable("no answer: " + error_text).substr(0, columns));
    }
    if (shows_help_) {
      text =
          "q or Ctrl-C: end; Ctrl-Z: pause; ?: back\n\n"
          "Rates are those since the look before; --interval says how often.\n"
          "429/s      refused by a quota\n"
          "replay/s   answered from a stored answer to the same Idempotency-Key\n"
          "p99 ms     99 of 100 requests took at most this\n"
          "blocked/s  refused because of abuse\n"
          "left of    what remains of the quota, and the quota\n";
    }
    screen.draw(text);
  }

  top_settings settings_;
  std::chrono::milliseconds interval_;
  admin_reader reader_;
  bool is_live_;
  command_source& commands_;
  bool shows_help_ = false;
  key_command pending_ = key_command::none;  // what came while the admin address was asked
  std::optional<top::snapshot> now_;
  std::optional<top::snapshot> before_;
};

auto watch(top_settings const& settings) -> int {
  auto const interval = parse_duration(settings.interval);
  if (!interval || *interval < 100ms || *interval > 1h) {
    throw CLI::ValidationError(
        "--interval", "invalid duration \"" + settings.interval + "\" (expected 100ms to 1h)");
  }
  auto const token = checked_token(settings);
  bool const is_live = !settings.once && !settings.json && ::isatty(STDOUT_FILENO) == 1;
  command_source from(is_live);
  auto session = client::session::open(session_options_of(settings));
  if (!session) {
    std::cerr << "error: " << to_string(session.error()) << '\n';
    return exit_failure;
  }
  return viewer(settings, std::chrono::ceil<std::chrono::milliseconds>(*interval),
                admin_reader(*std::move(session), settings.admin, token), is_live, from)
      .run();
}

}  // namespace

void add_top_command(CLI::App& app, int& status) {
  auto* const command = app.add_subcommand(
      "top", "Show live what a gateway does: routes, policies, hottest partitions");
  auto const settings = std::make_shared<top_settings>();
  command
      ->add_option("--admin", settings->admin,
                   "The admin address of the gateway; without a scheme: http on this machine")
      ->type_name("URL")
      ->capture_default_str();
  command->add_option("--interval", settings->interval, "Between two looks, such as 500ms or 2s")
      ->type_name("TIME")
      ->capture_default_str();
  command->add_flag("--once", settings->once, "Print one snapshot and end");
  command->add_flag("--json", settings->json, "One JSON object a line, one for each interval");
  add_ca_option(*command, settings->ca_file);
  add_token_options(*command, *settings);
  command->footer(
      R"(On a terminal it is drawn again each interval; q or Ctrl-C ends it, ? shows
help. Elsewhere it prints one snapshot.

The token, where the address needs one: --token, --token-file, or the variable
TIDEGATE_ADMIN_TOKEN.

Examples:
  tidegate top
  tidegate top --admin 127.0.0.1:9901 --interval 500ms
  tidegate top --json --once | jq '.routes[].requests'

Exit status: 0 it was shown; 1 the admin address gives no response; 2 the
command line is wrong; 130 interrupted.)");
  command->callback([settings, &status] {
    settings->admin = with_scheme(settings->admin);
    status = watch(*settings);
  });
}

}  // namespace tidegate::app
