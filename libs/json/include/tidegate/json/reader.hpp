// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/json/error.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

/// The one reader of JSON texts (RFC 8259). What is made of a text is up to the class that derives
/// from it: values, the canonical form, or a tree that knows where each value stood.
namespace tidegate::TIDEGATE_ABI::json {

/// The tokens of a text. After a fault, `position()` is where reading stopped, which may be behind
/// the offset of the error: that of a number is where the number begins.
class scanner {
 public:
  /// How many octets were read.
  [[nodiscard]] auto position() const noexcept -> std::size_t { return position_; }

 protected:
  struct number_token {
    std::string_view text;
    bool is_integer;  ///< neither a fraction nor an exponent
  };

  explicit scanner(std::string_view text) noexcept : text_(text) {}

  /// Keeps the error and returns false.
  auto fail(fault what, std::size_t offset) noexcept -> bool {
    error_ = {what, offset};
    return false;
  }
  auto fail(fault what) noexcept -> bool { return fail(what, position_); }
  [[nodiscard]] auto error() const noexcept -> json::error const& { return error_; }

  [[nodiscard]] auto text() const noexcept -> std::string_view { return text_; }
  [[nodiscard]] auto at_end() const noexcept -> bool { return position_ == text_.size(); }
  [[nodiscard]] auto at(char c) const noexcept -> bool {
    return !at_end() && text_[position_] == c;
  }
  [[nodiscard]] auto at_digit() const noexcept -> bool {
    return !at_end() && text_[position_] >= '0' && text_[position_] <= '9';
  }
  auto take(char c) noexcept -> bool {
    bool const there = at(c);
    position_ += there ? 1 : 0;
    return there;
  }
  void skip_whitespace() noexcept {
    while (!at_end() && text_[position_] <= ' ' && (at(' ') || at('\t') || at('\n') || at('\r'))) {
      ++position_;
    }
  }

  /// The string that begins here, decoded; good until the next one is read. Nothing after an error.
  auto take_string() -> std::optional<std::string_view>;
  /// The number that begins here, as it was written.
  auto take_number() noexcept -> std::optional<number_token>;
  auto take_word(std::string_view word) noexcept -> bool;

 private:
  auto take_rest_of_string() -> bool;
  auto take_escape() -> bool;
  auto take_digits() noexcept -> bool;

  std::string_view text_;
  std::size_t position_ = 0;
  json::error error_;
  std::string unescaped_;
};

/// Reads a text and calls the functions of `Handler`, which derives from it:
///
/// - `on_null()`, `on_boolean(bool)`, `on_string(string_view)`, `on_name(string_view)` and
///   `on_number(number_token)` for what was read; views are good until the call returns;
/// - `begin_array()` and `begin_object()`, whose result `end_array` and `end_object` get back.
///
/// `on_name`, `on_number` and `end_object` may refuse by `return fail(…)`. `value_offset()` is
/// where the value, array or object that was read last begins.
template <class Handler>
class reader : public scanner {
 protected:
  reader(std::string_view text, int depth_max) noexcept : scanner(text), depth_max_(depth_max) {}

  /// One value and nothing behind it but whitespace.
  auto read_document() -> bool {
    if (!read_value(0)) {
      return false;
    }
    skip_whitespace();
    return at_end() || fail(fault::end_expected);
  }

  /// The string, number or word that begins here.
  auto read_literal() -> bool {
    return at('{') || at('[') ? fail(fault::value_expected) : read_value_here(0);
  }

  [[nodiscard]] auto value_offset() const noexcept -> std::size_t { return value_offset_; }

 private:
  auto self() noexcept -> Handler& { return static_cast<Handler&>(*this); }

  auto read_value(int depth) -> bool {
    skip_whitespace();
    return read_value_here(depth);
  }

  auto read_value_here(int depth) -> bool {
    if (at_end()) {
      return fail(fault::value_expected);
    }
    value_offset_ = position();
    switch (text()[position()]) {
      case '{': return depth < depth_max_ ? read_object(depth + 1) : fail(fault::too_deep);
      case '[': return depth < depth_max_ ? read_array(depth + 1) : fail(fault::too_deep);
      case '"': {
        auto const string = take_string();
        if (string) {
          self().on_string(*string);
        }
        return string.has_value();
      }
      case 't': return take_word("true") && (self().on_boolean(true), true);
      case 'f': return take_word("false") && (self().on_boolean(false), true);
      case 'n': return take_word("null") && (self().on_null(), true);
      default: {
        auto const number = take_number();
        return number && self().on_number(*number);
      }
    }
  }

  auto read_array(int depth) -> bool {
    take('[');
    auto const begun = self().begin_array();
    skip_whitespace();
    if (!at(']')) {
      do {
        if (!read_value(depth)) {
          return false;
        }
        skip_whitespace();
      } while (take(','));
    }
    if (!take(']')) {
      return fail(fault::comma_expected);
    }
    self().end_array(begun);
    return true;
  }

  auto read_object(int depth) -> bool {
    take('{');
    auto const begun = self().begin_object();
    skip_whitespace();
    if (!at('}')) {
      do {
        if (!read_member(depth)) {
          return false;
        }
        skip_whitespace();
      } while (take(','));
    }
    return take('}') ? self().end_object(begun) : fail(fault::comma_expected);
  }

  auto read_member(int depth) -> bool {
    skip_whitespace();
    if (!at('"')) {
      return fail(fault::name_expected);
    }
    auto const name = take_string();
    if (!name || !self().on_name(*name)) {
      return false;
    }
    skip_whitespace();
    return take(':') ? read_value(depth) : fail(fault::colon_expected);
  }

  int depth_max_;
  std::size_t value_offset_ = 0;
};

}  // namespace tidegate::TIDEGATE_ABI::json
