// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <string>
#include <string_view>

/// Case, as SCIM disregards it: in values of attributes that are not caseExact by the rules of
/// Unicode, in names of attributes and schemas by those of ASCII.
namespace tidegate::TIDEGATE_ABI::scim {

/// Appends the one text that stands for all that differ from `text` in case or in how characters
/// are composed. It is decomposed, each character is replaced by its simple case folding, and it is
/// composed again (NFC; Unicode 14): `\u00c9`, `E\u0301` and `e\u0301` are all `\u00e9`. No letter
/// becomes several: `\u00df` is not `ss`. What is not UTF-8 stays as it is. The same of the result
/// is the result. `text` must not be part of `out`.
void append_case_fold(std::string& out, std::string_view text);

/// The same as a string of its own.
[[nodiscard]] auto case_fold(std::string_view text) -> std::string;

}  // namespace tidegate::TIDEGATE_ABI::scim
