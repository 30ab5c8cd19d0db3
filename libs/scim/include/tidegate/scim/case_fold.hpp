// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

/// Case, as SCIM disregards it: in values of attributes that are not caseExact by the rules of Unicode, in
/// names of attributes and schemas by those of ASCII.
namespace tidegate::scim {

/// `c` in lower case when it is a letter of ASCII.
[[nodiscard]] constexpr auto fold_ascii(char c) noexcept -> char {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

namespace detail {
/// Of names that are equally long.
[[nodiscard]] auto is_equal(std::string_view a, std::string_view b) noexcept -> bool;
}  // namespace detail

/// Appends the one text that stands for all that differ from `text` in case or in how characters are composed.
/// It is decomposed, each character is replaced by its simple case folding, and it is composed again (NFC;
/// Unicode 14): `\u00c9`, `E\u0301` and `e\u0301` are all `\u00e9`. No letter becomes several: `\u00df` is not `ss`. What
/// is not UTF-8 stays as it is. The same of the result is the result. `text` must not be part of `out`.
void append_case_fold(std::string& out, std::string_view text);

/// The same as a string of its own.
[[nodiscard]] auto case_fold(std::string_view text) -> std::string;

/// Whether two names of attributes, schemas or operators are the same (RFC 7643, section 2.1).
[[nodiscard]] inline auto equal_names(std::string_view a, std::string_view b) noexcept -> bool {
  // Most names that are compared differ in size or in their first letter, and it is not worth a call to see it.
  return a.size() == b.size() &&
         (a.empty() || (fold_ascii(a.front()) == fold_ascii(b.front()) && detail::is_equal(a, b)));
}

/// The one spelling of a name by which it is compared.
[[nodiscard]] auto fold_name(std::string_view name) -> std::string;

}  // namespace tidegate::scim
