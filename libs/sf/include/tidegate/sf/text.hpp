// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/sf/dialect.hpp>
#include <tidegate/sf/grammar.hpp>

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace tidegate::TIDEGATE_ABI::sf {

namespace detail {
/// Has no definition that a constant expression may call: a wrong literal does not compile.
void literal_is_not_valid_here();
}  // namespace detail

/// Text that was checked against `Grammar` when it was made and so can always be serialised.
///
/// With `std::string` as `Storage` it owns its text; with `std::string_view` it borrows it and the
/// text must outlive it.
template <class Grammar, class Storage>
class checked_text {
 public:
  /// The same text, borrowed.
  using view = checked_text<Grammar, std::string_view>;

  /// Checks `text`; the error says which byte is not allowed.
  [[nodiscard]] static constexpr auto make(Storage text) -> result<checked_text, make_error> {
    if (auto fault = Grammar::fault(text)) {
      return failure(*fault);
    }
    return checked_text(unchecked{}, std::move(text));
  }

  /// A literal, checked while compiling. It ends with its first NUL.
  template <std::size_t N>
  consteval checked_text(char const (&literal)[N])  // NOLINT(google-explicit-constructor)
      requires std::same_as<Storage, std::string_view> : text_(literal, N - 1) {
    if (Grammar::fault(text_).has_value()) {
      detail::literal_is_not_valid_here();
    }
  }

  /// An owning text lends itself; a borrowed one is copied only when that is asked for.
  template <class Other>
    requires(!std::same_as<Other, Storage>)
  constexpr explicit(std::same_as<Storage, std::string>)
      checked_text(checked_text<Grammar, Other> const& other)  // NOLINT
      : text_(other.text()) {}

  /// The text; of an object that is given up, the text itself.
  [[nodiscard]] constexpr auto text() const& noexcept -> std::string_view { return text_; }
  [[nodiscard]] constexpr auto text() && -> Storage { return std::move(text_); }

  friend constexpr auto operator==(checked_text const& a, checked_text const& b) noexcept -> bool {
    return a.text_ == b.text_;
  }
  template <std::convertible_to<std::string_view> Text>
  friend constexpr auto operator==(checked_text const& a, Text const& b) noexcept -> bool {
    return a.text_ == std::string_view(b);
  }

  /// For code of this library that has checked the text already, such as the parser.
  struct unchecked {
    explicit unchecked() = default;
  };
  template <class Text>
  constexpr checked_text(unchecked, Text&& text) : text_(std::forward<Text>(text)) {}

 private:
  Storage text_;
};

/// Keys and Tokens of a dialect (RFC 9651, sections 3.1.2 and 3.3.4), owned or borrowed.
template <dialect D>
using basic_key = checked_text<grammar::key<D == dialect::draft11>, std::string>;
template <dialect D>
using basic_key_view = checked_text<grammar::key<D == dialect::draft11>, std::string_view>;
template <dialect D>
using basic_token = checked_text<grammar::token<D == dialect::draft11>, std::string>;
template <dialect D>
using basic_token_view = checked_text<grammar::token<D == dialect::draft11>, std::string_view>;

/// Strings (section 3.3.3) and Display Strings (section 3.3.8), owned or borrowed.
using string = checked_text<grammar::string, std::string>;
using string_view = checked_text<grammar::string, std::string_view>;
using display_string = checked_text<grammar::display_string, std::string>;
using display_string_view = checked_text<grammar::display_string, std::string_view>;

/// Keys and Tokens of RFC 9651.
using key = basic_key<dialect::rfc9651>;
using key_view = basic_key_view<dialect::rfc9651>;
using token = basic_token<dialect::rfc9651>;
using token_view = basic_token_view<dialect::rfc9651>;

/// Octets of any kind, borrowed; written in base64.
struct byte_sequence_view {
  std::string_view octets;
  auto operator==(byte_sequence_view const&) const -> bool = default;
};

}  // namespace tidegate::TIDEGATE_ABI::sf
