// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::TIDEGATE_ABI::json {

/// Why a text is not a JSON pointer.
enum class pointer_fault : std::uint8_t {
  slash_expected,  ///< a pointer is empty or begins with "/"
  invalid_escape,  ///< "~" without 0 or 1 behind it
  invalid_utf8,
  too_long,  ///< `offset` is the length that is allowed
};

/// Why, and at which byte.
struct pointer_error {
  pointer_fault fault{};
  std::size_t offset{};
  auto operator==(pointer_error const&) const -> bool = default;
};

/// One line for people.
[[nodiscard]] auto to_string(pointer_error const& error) -> std::string;

/// A JSON pointer (RFC 6901): names one value in a JSON text.
class pointer {
 public:
  /// How long the text of a pointer may be.
  static constexpr std::size_t octets_max = 256;

  /// Reads `/a/b/0`; the error says what is wrong with it.
  [[nodiscard]] static auto parse(std::string_view text) -> result<pointer, pointer_error>;

  /// As it was written.
  [[nodiscard]] auto text() const noexcept -> std::string const& { return text_; }

  /// The value in a text that `append_canonical` made, which is in canonical form itself; nothing
  /// when there is none.
  [[nodiscard]] auto find(std::string_view canonical) const noexcept
      -> std::optional<std::string_view>;

  auto operator==(pointer const& other) const noexcept -> bool { return text_ == other.text_; }

 private:
  struct step {
    std::string name;                  // as a string of canonical JSON, with its quotes
    std::optional<std::size_t> index;  // when it can be one of an array
  };
  std::string text_;
  std::vector<step> steps_;
};

}  // namespace tidegate::TIDEGATE_ABI::json
