// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// One spelling for JSON texts that mean the same, in the way of RFC 8785, and JSON pointers into it.
/// Its only use is to be digested and compared.
namespace tidegate::idempotency {

/// How deep a JSON text may be nested to have a canonical form.
inline constexpr int canonical_json_depth_max = 64;

/// Appends the canonical form of the JSON text `text` (RFC 8259). False when it has none; then `out` is
/// as it was.
///
/// - No whitespace; members in the order of the octets of their names; each string in one spelling, with
///   as few escapes as can be, and not normalised as Unicode.
/// - Numbers by their exact decimal value: `1`, `1.0` and `10e-1` are one, `0` and `-0` too. RFC 8785
///   would round them to a double, and then 9007199254740992 and 9007199254740993 would be one amount.
///
/// No canonical form have: what is not JSON or not UTF-8 (a byte order mark counts as that), an object with
/// a name twice, escaped surrogates without a partner, more than `canonical_json_depth_max` levels, and
/// exponents of more than nine digits. The time is linear in the size of the text but for sorting, and at
/// worst the members of each level are copied once.
[[nodiscard]] auto append_canonical_json(std::string& out, std::string_view text) -> bool;

/// Why a text is no JSON pointer.
enum class json_pointer_fault : std::uint8_t {
  slash_expected,  ///< a pointer is empty or begins with "/"
  invalid_escape,  ///< "~" without 0 or 1 behind it
  invalid_utf8,
  too_long,  ///< `offset` is the length that is allowed
};

/// Why, and at which byte.
struct json_pointer_error {
  json_pointer_fault fault{};
  std::size_t offset{};
  auto operator==(json_pointer_error const&) const -> bool = default;
};

/// One line for people.
[[nodiscard]] auto to_string(json_pointer_error const& error) -> std::string;

/// A JSON pointer (RFC 6901): names one value in a JSON text.
class json_pointer {
 public:
  static constexpr std::size_t octets_max = 256;

  [[nodiscard]] static auto parse(std::string_view text)
      -> result<json_pointer, json_pointer_error>;

  /// As it was written.
  [[nodiscard]] auto text() const noexcept -> std::string const& { return text_; }

  /// The value in a text that `append_canonical_json` made, which is in canonical form itself; nothing
  /// when there is none.
  [[nodiscard]] auto find(std::string_view canonical) const noexcept
      -> std::optional<std::string_view>;

  auto operator==(json_pointer const& other) const noexcept -> bool { return text_ == other.text_; }

 private:
  struct step {
    std::string name;                  // as a string of canonical JSON, with its quotes
    std::optional<std::size_t> index;  // when it can be one of an array
  };
  std::string text_;
  std::vector<step> steps_;
};

}  // namespace tidegate::idempotency
