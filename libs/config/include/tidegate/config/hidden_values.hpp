// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tidegate::gateway {

/// Values that came into a configuration through `${...}`. They may be secrets, so people see what
/// is written in the file in their place.
class hidden_values {
 public:
  /// `written` is what the file has, such as `${PASSWORD}`.
  void add(std::string value, std::string written);

  /// `message` with what is written in the place of each value in it, in any case of letters.
  /// Values that are too short to be secrets and words that options have stay.
  [[nodiscard]] auto hide(std::string message) const -> std::string;

  [[nodiscard]] auto is_empty() const -> bool { return values_.empty(); }

 private:
  struct hidden {
    std::string value;
    std::string written;
  };
  std::vector<hidden> values_;  // the longest first
};

/// `text` with `written` in the place of each `value`, and of its beginning where a message shows
/// only that.
[[nodiscard]] auto with_written(std::string text, std::string const& value,
                                std::string const& written) -> std::string;

}  // namespace tidegate::gateway
