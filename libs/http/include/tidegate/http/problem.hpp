// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/ascii.hpp>
#include <tidegate/base/result.hpp>
#include <tidegate/json/string.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::http {

/// The media type of a problem details object in JSON (RFC 9457, section 6.1).
inline constexpr std::string_view problem_json = "application/problem+json";

/// The members of a problem details object that RFC 9457 defines (section 3.1). Borrows its text.
///
/// A member that is empty is left out, and so is a status of 0; a problem without a type is
/// "about:blank".
struct problem {
  // g++ warns of a designated initializer that leaves out a member without one of its own.
  // NOLINTBEGIN(readability-redundant-member-init)
  std::string_view type{};  ///< a URI reference that identifies the kind of problem
  std::string_view title{};
  int status = 0;  ///< the status code of the response: 100 to 599
  std::string_view detail{};
  std::string_view instance{};
  // NOLINTEND(readability-redundant-member-init)
};

/// Why a text cannot be the name of an extension member.
enum class extension_name_fault : std::uint8_t {
  too_short,          ///< fewer than three characters
  invalid_character,  ///< does not begin with a letter, or goes on with what is not allowed
  standard_name,      ///< one of the five that RFC 9457 gives a meaning
};

/// Why, and at which byte.
struct extension_name_error {
  extension_name_fault fault{};
  std::size_t offset{};
  auto operator==(extension_name_error const&) const -> bool = default;
};

namespace detail {
/// Has no definition that a constant expression may call: a wrong literal does not compile.
void extension_name_is_not_valid_here();
}  // namespace detail

/// The name of an extension member (RFC 9457, section 3.2): a letter, then letters, digits and "_",
/// three characters or more. "-" is taken too, as `violated-policies` has it. Borrows its text.
class extension_name {
 public:
  /// Checks `text`; the error says why it cannot be the name of an extension.
  [[nodiscard]] static constexpr auto make(std::string_view text)
      -> result<extension_name, extension_name_error> {
    if (auto const fault = find_fault(text)) {
      return failure(*fault);
    }
    return extension_name(unchecked{}, text);
  }

  /// A literal, checked while compiling.
  template <std::size_t N>
  consteval extension_name(char const (&literal)[N])  // NOLINT(google-explicit-constructor)
      : text_(literal, N - 1) {
    if (find_fault(text_).has_value()) {
      detail::extension_name_is_not_valid_here();
    }
  }

  /// The name itself.
  [[nodiscard]] constexpr auto text() const noexcept -> std::string_view { return text_; }

 private:
  struct unchecked {};
  constexpr extension_name(unchecked, std::string_view text) noexcept : text_(text) {}

  [[nodiscard]] static constexpr auto find_fault(std::string_view text) noexcept
      -> std::optional<extension_name_error> {
    for (std::size_t i = 0; i < text.size(); ++i) {
      char const c = text[i];
      bool const allowed_later = is_digit(c) || c == '_' || c == '-';
      if (!is_letter(c) && (i == 0 || !allowed_later)) {
        return extension_name_error{extension_name_fault::invalid_character, i};
      }
    }
    if (text.size() < 3) {
      return extension_name_error{extension_name_fault::too_short, text.size()};
    }
    constexpr std::array<std::string_view, 5> standard = {"type", "title", "status", "detail",
                                                          "instance"};
    if (std::find(standard.begin(), standard.end(), text) != standard.end()) {
      return extension_name_error{extension_name_fault::standard_name, 0};
    }
    return std::nullopt;
  }

  std::string_view text_;
};

/// An integer that is a number, neither a truth value nor a character.
template <class T>
concept json_integer = std::integral<T> && sizeof(T) <= sizeof(std::int64_t) &&
                       !std::same_as<T, bool> && !std::same_as<T, char> &&
                       !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
                       !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

/// Several texts, such as `std::vector<std::string>` or a span of views.
template <class T>
concept text_range =
    std::ranges::input_range<T const> && !std::convertible_to<T const&, std::string_view> &&
    std::convertible_to<std::ranges::range_reference_t<T const>, std::string_view>;

/// Writes a problem details object (RFC 9457) at the end of `out`, which must outlive the writer:
///
///     http::problem_writer(out, {.type = kind, .title = "Quota exceeded", .status = 429})
///         .extension("violated-policies", {"burst", "daily"});
///
/// The object is complete after the constructor and after every call, so there is nothing to close.
/// Nothing else may append to `out` before the last call. Members are written in the order of the
/// struct, then in that of the calls; the caller sees to it that no name comes twice. Every text
/// goes through `json::append_string`: the result is valid JSON whatever the texts hold. Nothing is
/// allocated but by `out` when it has to grow.
class problem_writer {
 public:
  explicit problem_writer(std::string& out, problem const& standard = {});

  /// A string; left out when it is empty.
  auto extension(extension_name name, std::string_view text) -> problem_writer&;

  auto extension(extension_name name, std::same_as<bool> auto value) -> problem_writer& {
    begin_member(name.text());
    return end_member(value ? std::string_view("true") : std::string_view("false"));
  }

  template <json_integer T>
  auto extension(extension_name name, T value) -> problem_writer& {
    begin_member(name.text());
    if constexpr (std::signed_integral<T>) {
      return end_member(static_cast<std::int64_t>(value));
    } else {
      return end_member(static_cast<std::uint64_t>(value));
    }
  }

  /// An array of strings, which may be empty themselves; left out when it has none.
  template <text_range Texts>
  auto extension(extension_name name, Texts const& texts) -> problem_writer& {
    char before = '[';
    for (auto const& text : texts) {
      if (before == '[') {
        begin_member(name.text());
      }
      out_.push_back(before);
      json::append_string(out_, text);
      before = ',';
    }
    return before == '[' ? *this : end_member(std::string_view("]"));
  }
  auto extension(extension_name name, std::initializer_list<std::string_view> texts)
      -> problem_writer& {
    return extension<std::initializer_list<std::string_view>>(name, texts);
  }

 private:
  void begin_member(std::string_view name);
  auto end_member(std::string_view rest) -> problem_writer&;
  auto end_member(std::int64_t value) -> problem_writer&;
  auto end_member(std::uint64_t value) -> problem_writer&;
  void text_member(std::string_view name, std::string_view text);

  std::string& out_;
};

}  // namespace tidegate::TIDEGATE_ABI::http
