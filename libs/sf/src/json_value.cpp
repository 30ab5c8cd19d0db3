// SPDX-License-Identifier: Apache-2.0
#include "json_value.hpp"

#include <tidegate/sf/grammar.hpp>

#include <algorithm>

namespace tidegate::sf::detail {

auto json_value::member(std::string_view name) const noexcept -> json_value const* {
  auto const found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? nullptr
                              : &elements[static_cast<std::size_t>(found - names.begin())];
}

namespace {

void append_utf8(std::string& out, std::uint32_t code_point) {
  auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xc0 | code_point >> 6);
    put(0x80 | (code_point & 63));
  } else if (code_point < 0x10000) {
    put(0xe0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 63));
    put(0x80 | (code_point & 63));
  } else {
    put(0xf0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 63));
    put(0x80 | (code_point >> 6 & 63));
    put(0x80 | (code_point & 63));
  }
}

class json_parser {
 public:
  explicit json_parser(std::string_view text) : text_(text) {}

  auto parse() -> result<json_value, json_error> {
    json_value value;
    TIDEGATE_TRY_VOID(parse_value(value, 0));
    skip_whitespace();
    if (position_ != text_.size()) {
      return error("unexpected text after the JSON value");
    }
    return value;
  }

 private:
  using outcome = result<void, json_error>;
  static constexpr int depth_max = 64;

  [[nodiscard]] auto error(std::string what) const -> std::unexpected<json_error> {
    return failure(json_error{std::move(what), position_});
  }
  [[nodiscard]] auto at(char c) const noexcept -> bool {
    return position_ < text_.size() && text_[position_] == c;
  }
  [[nodiscard]] auto at_digit() const noexcept -> bool {
    return position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9';
  }
  void skip_whitespace() noexcept {
    while (at(' ') || at('\t') || at('\n') || at('\r')) {
      ++position_;
    }
  }

  auto parse_value(json_value& value, int depth) -> outcome {
    skip_whitespace();
    if (position_ == text_.size()) {
      return error("the JSON text ends too early");
    }
    if (depth == depth_max) {
      return error("the JSON text is nested too deeply");
    }
    value.offset = position_;
    switch (text_[position_]) {
      case '[': return parse_array(value, depth);
      case '{': return parse_object(value, depth);
      case '"': value.type = json_type::string; return parse_string(value.text);
      case 't': value.type = json_type::boolean; return parse_word(value, "true");
      case 'f': value.type = json_type::boolean; return parse_word(value, "false");
      case 'n': value.type = json_type::null; return parse_word(value, "null");
      default: value.type = json_type::number; return parse_number(value);
    }
  }

  auto parse_word(json_value& value, std::string_view word) -> outcome {
    if (text_.substr(position_, word.size()) != word) {
      return error("unexpected character in JSON");
    }
    value.text = word;
    position_ += word.size();
    return {};
  }

  auto parse_number(json_value& value) -> outcome {
    auto const begin = position_;
    if (at('-')) {
      ++position_;
    }
    if (at('0')) {
      ++position_;
    } else {
      TIDEGATE_TRY_VOID(parse_digits());
    }
    if (at('.')) {
      ++position_;
      TIDEGATE_TRY_VOID(parse_digits());
    }
    if (at('e') || at('E')) {
      ++position_;
      if (at('+') || at('-')) {
        ++position_;
      }
      TIDEGATE_TRY_VOID(parse_digits());
    }
    value.text = text_.substr(begin, position_ - begin);
    return {};
  }

  auto parse_digits() -> outcome {
    if (!at_digit()) {
      return error("unexpected character in JSON");
    }
    while (at_digit()) {
      ++position_;
    }
    return {};
  }

  auto parse_array(json_value& value, int depth) -> outcome {
    value.type = json_type::array;
    ++position_;
    skip_whitespace();
    if (at(']')) {
      ++position_;
      return {};
    }
    for (;;) {
      TIDEGATE_TRY_VOID(parse_value(value.elements.emplace_back(), depth + 1));
      skip_whitespace();
      if (at(']')) {
        ++position_;
        return {};
      }
      if (!at(',')) {
        return error("expected \",\" or \"]\" in JSON");
      }
      ++position_;
    }
  }

  auto parse_object(json_value& value, int depth) -> outcome {
    value.type = json_type::object;
    ++position_;
    skip_whitespace();
    if (at('}')) {
      ++position_;
      return {};
    }
    for (;;) {
      skip_whitespace();
      if (!at('"')) {
        return error("expected a name in JSON");
      }
      std::string name;
      TIDEGATE_TRY_VOID(parse_string(name));
      if (value.names.size() == 64) {
        return error("too many names in one JSON object");
      }
      if (value.member(name) != nullptr) {
        return error("a name comes twice in a JSON object");
      }
      skip_whitespace();
      if (!at(':')) {
        return error("expected \":\" in JSON");
      }
      ++position_;
      value.names.push_back(std::move(name));
      TIDEGATE_TRY_VOID(parse_value(value.elements.emplace_back(), depth + 1));
      skip_whitespace();
      if (at('}')) {
        ++position_;
        return {};
      }
      if (!at(',')) {
        return error("expected \",\" or \"}\" in JSON");
      }
      ++position_;
    }
  }

  auto parse_string(std::string& out) -> outcome {
    ++position_;
    grammar::utf8_checker utf8;
    for (;;) {
      if (position_ == text_.size()) {
        return error("a JSON string has no end");
      }
      char const c = text_[position_];
      if (!utf8.feed(static_cast<std::uint8_t>(c))) {
        return error("a JSON string is not UTF-8");
      }
      if (c == '"') {
        ++position_;
        return {};
      }
      if (static_cast<unsigned char>(c) < 0x20) {
        return error("a control character in a JSON string");
      }
      ++position_;
      if (c == '\\') {
        TIDEGATE_TRY_VOID(parse_escape(out));
      } else {
        out.push_back(c);
      }
    }
  }

  auto parse_escape(std::string& out) -> outcome {
    constexpr std::string_view names = "\"\\/bfnrt";
    constexpr std::string_view values = "\"\\/\b\f\n\r\t";
    if (position_ == text_.size()) {
      return error("a JSON string has no end");
    }
    if (auto const simple = names.find(text_[position_]); simple != std::string_view::npos) {
      out.push_back(values[simple]);
      ++position_;
      return {};
    }
    if (!at('u')) {
      return error("unknown escape in a JSON string");
    }
    TIDEGATE_TRY(auto unit, parse_code_unit());
    if (unit >= 0xdc00 && unit < 0xe000) {
      return error("a surrogate without its partner in a JSON string");
    }
    if (unit >= 0xd800 && unit < 0xdc00) {
      if (!at('\\')) {
        return error("a surrogate without its partner in a JSON string");
      }
      ++position_;
      TIDEGATE_TRY(auto low, parse_code_unit());
      if (low < 0xdc00 || low >= 0xe000) {
        return error("a surrogate without its partner in a JSON string");
      }
      unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
    }
    append_utf8(out, unit);
    return {};
  }

  /// `u` and four hexadecimal digits.
  auto parse_code_unit() -> result<std::uint32_t, json_error> {
    if (!at('u')) {
      return error("a surrogate without its partner in a JSON string");
    }
    ++position_;
    std::uint32_t unit = 0;
    for (int i = 0; i < 4; ++i, ++position_) {
      constexpr std::string_view hex = "0123456789abcdef";
      char c = position_ < text_.size() ? text_[position_] : '\0';
      if (c >= 'A' && c <= 'F') {
        c = static_cast<char>(c - 'A' + 'a');
      }
      auto const digit = hex.find(c);
      if (digit == std::string_view::npos) {
        return error("expected four hexadecimal digits in a JSON string");
      }
      unit = unit << 4 | static_cast<std::uint32_t>(digit);
    }
    return unit;
  }

  std::string_view text_;
  std::size_t position_ = 0;
};

}  // namespace

auto parse_json(std::string_view text) -> result<json_value, json_error> {
  return json_parser(text).parse();
}

}  // namespace tidegate::sf::detail
