// SPDX-License-Identifier: Apache-2.0
#include "top/full_screen.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace tidegate::app {

namespace {

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

}  // namespace

void full_screen::enter() noexcept {
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

void full_screen::leave() noexcept {
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

void full_screen::draw(std::string_view text) const {
  std::string out = "\x1b[H";
  for (bool is_first = true; !text.empty(); is_first = false) {
    auto const end = std::min(text.find('\n'), text.size());
    // A line feed behind the last line would move all of them up.
    out.append(is_first ? "" : "\r\n").append(text.substr(0, end)).append("\x1b[K");
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  write_all(out.append("\x1b[J"));
}

auto full_screen::size() noexcept -> extent {
  winsize window{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 ||
      window.ws_row == 0) {
    return {};
  }
  return {window.ws_col, window.ws_row};
}

}  // namespace tidegate::app
