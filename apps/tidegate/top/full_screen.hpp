// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <termios.h>

#include <cstddef>
#include <optional>
#include <string_view>

namespace tidegate::app {

/// The terminal of standard output while something is drawn over all of it: the other screen,
/// without a cursor, and keys as they are pressed. The destructor gives it back as it was.
class full_screen {
 public:
  full_screen() { enter(); }
  full_screen(full_screen const&) = delete;
  auto operator=(full_screen const&) -> full_screen& = delete;
  ~full_screen() { leave(); }

  /// Gives it back for a while, as before the program is stopped, and takes it again.
  void leave() noexcept;
  void enter() noexcept;

  /// Draws lines in place of those that are there.
  void draw(std::string_view text) const;

  struct extent {
    std::size_t columns = 80;
    std::size_t rows = 24;
  };
  [[nodiscard]] static auto size() noexcept -> extent;

 private:
  bool is_entered_ = false;
  std::optional<termios> keys_before_;  // while they are not as they were
};

}  // namespace tidegate::app
