// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/ascii.hpp>
#include <tidegate/base/base64.hpp>
#include <tidegate/base/hex.hpp>
#include <tidegate/sf/grammar.hpp>
#include <tidegate/sf/reader.hpp>

#include "scan.hpp"

#include <cstddef>
#include <cstdint>

/// The grammar that readers go by; dialects/ has one object for each dialect, so that a program
/// gets those that it uses. Section numbers are those of RFC 9651, and of draft11 where it goes its
/// own way.
namespace tidegate::TIDEGATE_ABI::sf {

namespace detail {

/// The value of a digit; above nine for anything else.
[[nodiscard]] constexpr auto digit_value(char c) noexcept -> unsigned {
  return static_cast<unsigned char>(c) - unsigned{'0'};
}

}  // namespace detail

/// One call of `next()`: the reader's cursor in a register, and the grammar as small functions that
/// all become part of the call. It ends in a jump to the bare item, if one comes next; what is rare
/// or long is reached by a jump as well, so that nothing on the way needs a stack frame.
template <dialect D>
struct detail::grammar_machine {
  using state = typename basic_reader<D>::state;
  static constexpr bool is_draft11 = D == dialect::draft11;

  basic_reader<D>& reader;
  char const* p;
  char const* const end;

  [[gnu::always_inline]] auto run() -> event {
    switch (reader.state_) {
      case state::start: return read_start();
      case state::member_done: return read_after_member();
      case state::inner_list: return read_inner_list();
      case state::inner_item_done: return read_after_inner_item();
      case state::done: return event::end;
      case state::failed: break;
    }
    return event::failure;
  }

  /// Section 4.2, steps 1 to 4.
  [[gnu::always_inline]] auto read_start() -> event {
    skip_outer_whitespace();
    if (reader.type_ == field_type::item) {
      return with_value(event::item, state::member_done);
    }
    return p == end ? without_value(event::end, state::done) : read_member();
  }

  /// Sections 4.2.1 step 2.1, 4.2.1.1 and 4.2.2 steps 2.1 to 2.5.
  [[gnu::always_inline]] auto read_member() -> event {
    if (reader.type_ == field_type::dictionary) {
      if (!read_key()) {
        return event::failure;
      }
      if (!at('=')) {
        if constexpr (is_draft11) {
          return fault(parse_fault::value_expected);
        }
        set_implied_value();
        return without_value(event::item, state::member_done);
      }
      ++p;
    } else if constexpr (is_draft11) {
      reader.keys_.clear();
    }
    if (at('(')) {
      ++p;
      return without_value(event::inner_list, state::inner_list);
    }
    return with_value(event::item, state::member_done);
  }

  /// After an item or an Inner List: its parameters, then the comma and the next member, or the
  /// end.
  [[gnu::always_inline]] auto read_after_member() -> event {
    // In draft11 only members of Lists have parameters, with whitespace before the semicolon.
    if (!is_draft11 || reader.type_ == field_type::list) {
      if constexpr (is_draft11) {
        skip_whitespace();
      }
      if (at(';')) {
        return read_parameter();
      }
    }
    if (reader.type_ == field_type::item) {
      skip_outer_whitespace();
      return p == end ? without_value(event::end, state::done)
                      : fault(parse_fault::unexpected_character);
    }
    skip_whitespace();
    if (p == end) {
      return without_value(event::end, state::done);
    }
    if (*p != ',') {
      return fault(parse_fault::unexpected_character);
    }
    ++p;
    skip_whitespace();
    return p == end ? fault(parse_fault::trailing_comma) : read_member();
  }

  /// Section 4.2.1.2, step 3.
  [[gnu::always_inline]] auto read_inner_list() -> event {
    skip_outer_whitespace();
    if (p == end) {
      return fault(parse_fault::unexpected_end);
    }
    if (*p == ')') {
      ++p;
      return without_value(event::inner_list_end, state::member_done);
    }
    return with_value(event::inner_item, state::inner_item_done);
  }

  /// The parameters of an inner item, then section 4.2.1.2, step 3.5.
  [[gnu::always_inline]] auto read_after_inner_item() -> event {
    if (p == end) {
      return fault(parse_fault::unexpected_end);
    }
    if (!is_draft11 && *p == ';') {
      return read_parameter();
    }
    if (*p != ' ' && *p != ')') {
      return fault(parse_fault::unexpected_character);
    }
    return read_inner_list();
  }

  /// Section 4.2.3.2, steps 2.2 to 2.6; draft11, section 4.2.1.1, steps 4.3 to 4.8.
  [[gnu::always_inline]] auto read_parameter() -> event {
    ++p;
    skip_outer_whitespace();
    if (!read_key()) {
      return event::failure;
    }
    if (at('=')) {
      ++p;
      return with_value(event::parameter, reader.state_);
    }
    set_implied_value();
    return without_value(event::parameter, reader.state_);
  }

  /// What a key without "=" stands for: true, and in draft11 nothing.
  [[gnu::always_inline]] void set_implied_value() noexcept {
    set_number(is_draft11 ? bare_item_type::none : bare_item_type::boolean);
    reader.value_.number_ = 1;
  }

  /// Section 4.2.3.3; draft11, section 4.2.3, where no key may come twice.
  [[gnu::always_inline]] auto read_key() -> bool {
    auto const* const key = p;
    if (p == end || !grammar::is(*p, grammar::key<is_draft11>::start)) {
      fault(p == end ? parse_fault::unexpected_end : parse_fault::key_expected);
      return false;
    }
    do {
      ++p;
    } while (p != end && grammar::is(*p, grammar::key<is_draft11>::rest));
    reader.key_ = {key, static_cast<std::size_t>(p - key)};
    if constexpr (is_draft11) {
      if (!reader.keys_.insert(reader.key_)) {
        fault(reader, parse_fault::repeated_key, key);
        return false;
      }
    }
    return true;
  }

  /// The sign and up to fifteen digits of a number, at least one.
  [[gnu::always_inline]] auto read_whole() noexcept -> bool {
    constexpr std::ptrdiff_t digits_max = 15;
    bool const negative = at('-');
    if (negative) {
      ++p;
    }
    std::uint64_t whole = p == end ? 10 : digit_value(*p);
    if (whole > 9) {
      fault(p == end ? parse_fault::unexpected_end : parse_fault::digit_expected);
      return false;
    }
    auto const* const limit = end - p > digits_max ? p + digits_max : end;
    while (++p != limit) {
      std::uint64_t const digit = digit_value(*p);
      if (digit > 9) {
        break;
      }
      whole = whole * 10 + digit;
    }
    if (p == limit && p != end && is_digit(*p)) {
      fault(parse_fault::too_many_digits);
      return false;
    }
    auto const number = static_cast<std::int64_t>(whole);
    reader.value_.number_ = negative ? -number : number;
    return true;
  }

  /// Section 4.2.4; draft11, section 4.2.5.
  [[gnu::always_inline]] auto read_number(event reached) noexcept -> event {
    auto const* const number = p;
    if (!read_whole()) {
      return event::failure;
    }
    if (at('.')) {
      return read_fraction(reader, number, p, end, reached);
    }
    set_number(bare_item_type::integer);
    return success(reached);
  }

  /// Section 4.2.9.
  [[gnu::always_inline]] auto read_date(event reached) noexcept -> event {
    ++p;
    if (!read_whole()) {
      return event::failure;
    }
    if (at('.')) {
      return fault(parse_fault::date_with_fraction);
    }
    set_number(bare_item_type::date);
    return success(reached);
  }

  /// Section 4.2.5; draft11, section 4.2.6.
  [[gnu::always_inline]] auto read_string(event reached) noexcept -> event {
    auto const* const text = p + 1;
    auto const* const quote = find_special(reader.begin_, text, end);
    if (quote == end || *quote != '"') {
      return read_escaped_string(reader, text, quote, end, reached);
    }
    return success(reader, bare_item_type::string, text, quote, false, quote + 1, reached);
  }

  /// Section 4.2.6; draft11, section 4.2.7. The first character was looked at by the caller.
  [[gnu::always_inline]] auto read_token(event reached) noexcept -> event {
    auto const* const token = p++;
    while (p != end && grammar::is(*p, grammar::token<is_draft11>::rest)) {
      ++p;
    }
    return success(reader, bare_item_type::token, token, p, false, p, reached);
  }

  /// Section 4.2.8; draft11, section 4.2.9.
  [[gnu::always_inline]] auto read_boolean(event reached) noexcept -> event {
    ++p;
    if (p == end || (*p != '0' && *p != '1')) {
      return fault(p == end ? parse_fault::unexpected_end : parse_fault::invalid_boolean);
    }
    set_number(bare_item_type::boolean);
    reader.value_.number_ = *p++ - '0';
    return success(reached);
  }

  [[gnu::always_inline]] auto at(char c) const noexcept -> bool { return p != end && *p == c; }
  [[gnu::always_inline]] void skip_spaces() noexcept {
    while (at(' ')) {
      ++p;
    }
  }
  /// OWS: spaces and tabs.
  [[gnu::always_inline]] void skip_whitespace() noexcept {
    while (p != end && (*p == ' ' || *p == '\t')) {
      ++p;
    }
  }
  /// Around the value, after a semicolon and between inner items: draft11 allows tabs there too.
  [[gnu::always_inline]] void skip_outer_whitespace() noexcept {
    if constexpr (is_draft11) {
      skip_whitespace();
    } else {
      skip_spaces();
    }
  }

  /// A value without text: nothing of an earlier one's is left.
  [[gnu::always_inline]] void set_number(bare_item_type type) noexcept { set_number(reader, type); }
  [[gnu::always_inline]] static void set_number(basic_reader<D>& reader,
                                                bare_item_type type) noexcept {
    reader.value_.type_ = type;
    reader.value_.encoded_ = false;
    reader.value_.size_ = 0;
  }
  [[gnu::always_inline]] auto with_value(event reached, state then) noexcept -> event {
    reader.state_ = then;
    return read_bare_item(reader, p, end, reached);
  }
  [[gnu::always_inline]] auto without_value(event reached, state then) noexcept -> event {
    reader.state_ = then;
    return success(reached);
  }
  [[gnu::always_inline]] auto fault(parse_fault what) noexcept -> event {
    return fault(reader, what, p);
  }
  [[gnu::always_inline]] auto success(event reached) noexcept -> event {
    reader.cursor_ = p;
    return reached;
  }
  [[gnu::always_inline]] static auto success(basic_reader<D>& reader, bare_item_type type,
                                             char const* first, char const* last, bool encoded,
                                             char const* cursor, event reached) noexcept -> event {
    reader.value_.type_ = type;
    reader.value_.data_ = first;
    reader.value_.size_ = static_cast<std::size_t>(last - first);
    reader.value_.encoded_ = encoded;
    reader.cursor_ = cursor;
    return reached;
  }

  // ---- out of line ----

  /// Section 4.2.3.1; draft11, section 4.2.4.
  [[gnu::noinline]] static auto read_bare_item(basic_reader<D>& reader, char const* p,
                                               char const* end, event reached) noexcept -> event {
    return grammar_machine{reader, p, end}.read_bare_item(reached);
  }
  [[gnu::always_inline]] auto read_bare_item(event reached) noexcept -> event {
    if (p == end) {
      return fault(parse_fault::unexpected_end);
    }
    switch (*p) {
      case '-':
      case '0':
      case '1':
      case '2':
      case '3':
      case '4':
      case '5':
      case '6':
      case '7':
      case '8':
      case '9': return read_number(reached);
      case '"': return read_string(reached);
      case '?': return read_boolean(reached);
      case '*':
        if constexpr (is_draft11) {
          return read_byte_sequence(reader, p, end, reached);
        }
        return read_token(reached);
      case ':':
        if constexpr (!is_draft11) {
          return read_byte_sequence(reader, p, end, reached);
        }
        break;
      case '@':
        if constexpr (D == dialect::rfc9651) {
          return read_date(reached);
        }
        break;
      case '%':
        if constexpr (D == dialect::rfc9651) {
          return read_display_string(reader, p, end, reached);
        }
        break;
      default:
        if (grammar::is(*p, grammar::token<is_draft11>::start)) {
          return read_token(reached);
        }
        break;
    }
    return fault(parse_fault::unknown_item_type);
  }

  [[gnu::noinline, gnu::cold]] static auto fault(basic_reader<D>& reader, parse_fault what,
                                                 char const* where) noexcept -> event {
    reader.error_ = {what, static_cast<std::size_t>(where - reader.begin_)};
    reader.state_ = state::failed;
    reader.key_ = {};
    reader.value_ = {};
    return event::failure;
  }

  /// Goes on with a String from `p`, the first thing in it that does not stand for itself.
  [[gnu::noinline]] static auto read_escaped_string(basic_reader<D>& reader, char const* text,
                                                    char const* p, char const* end,
                                                    event reached) noexcept -> event {
    while (p != end && *p == '\\') {
      ++p;
      if (p != end && *p != '"' && *p != '\\') {
        return fault(reader, parse_fault::invalid_escape, p);
      }
      if (p != end) {
        p = find_special(reader.begin_, p + 1, end);
      }
    }
    if (p == end) {
      return fault(reader, parse_fault::unexpected_end, p);
    }
    if (*p != '"') {
      return fault(reader, parse_fault::invalid_character, p);
    }
    return success(reader, bare_item_type::string, text, p, true, p + 1, reached);
  }

  /// The point and the digits after it, at least one. The whole part is in the value already.
  [[gnu::noinline]] static auto read_fraction(basic_reader<D>& reader, char const* number_at,
                                              char const* point, char const* end,
                                              event reached) noexcept -> event {
    bool const negative = *number_at == '-';
    auto const whole_digits = point - number_at - (negative ? 1 : 0);
    if (whole_digits > (is_draft11 ? 14 : 12)) {
      return fault(reader, parse_fault::too_many_digits, point);
    }
    auto const digits_max = is_draft11 ? 15 - whole_digits : 3;
    auto const* const fraction = point + 1;
    auto const* p = fraction;
    if (p == end || !is_digit(*p)) {
      return fault(reader, p == end ? parse_fault::unexpected_end : parse_fault::digit_expected, p);
    }
    auto number = negative ? -reader.value_.number_ : reader.value_.number_;
    for (; p != end && is_digit(*p); ++p) {
      if (p - fraction == digits_max) {
        return fault(reader, parse_fault::too_many_digits, p);
      }
      number = number * 10 + digit_value(*p);
    }
    auto digits = p - fraction;
    if constexpr (is_draft11) {
      set_number(reader, bare_item_type::floating);
      reader.value_.fraction_digits_ = static_cast<std::uint8_t>(digits);
    } else {
      for (; digits < 3; ++digits) {
        number *= 10;
      }
      set_number(reader, bare_item_type::decimal);
    }
    reader.value_.number_ = negative ? -number : number;
    reader.cursor_ = p;
    return reached;
  }

  /// Section 4.2.7; draft11, section 4.2.8. Padding may be missing in whole or in part and pad bits
  /// may be set; a length or padding that no octets encode to is refused in every dialect.
  [[gnu::noinline]] static auto read_byte_sequence(basic_reader<D>& reader, char const* p,
                                                   char const* end, event reached) noexcept
      -> event {
    char const delimiter = *p++;
    auto const* const text = p;
    while (p != end && base64::standard.value(*p) != base64::no_digit) {
      ++p;
    }
    auto const rest = (p - text) % 4;
    if (rest >= 2) {
      for (auto padding = 4 - rest; padding != 0 && p != end && *p == '='; --padding) {
        ++p;
      }
    }
    if (p == end) {
      return fault(reader, parse_fault::unexpected_end, p);
    }
    if (*p != delimiter || rest == 1) {
      return fault(reader, parse_fault::invalid_base64, p);
    }
    return success(reader, bare_item_type::byte_sequence, text, p, true, p + 1, reached);
  }

  /// Section 4.2.10.
  [[gnu::noinline]] static auto read_display_string(basic_reader<D>& reader, char const* p,
                                                    char const* end, event reached) noexcept
      -> event {
    ++p;
    if (p == end || *p != '"') {
      return fault(reader,
                   p == end ? parse_fault::unexpected_end : parse_fault::unexpected_character, p);
    }
    auto const* const text = ++p;
    grammar::utf8_checker utf8;
    for (; p != end && *p != '"'; ++p) {
      if (*p < 0x20 || *p == 0x7f) {  // bytes from 0x80 are negative
        return fault(reader, parse_fault::invalid_character, p);
      }
      auto const* const octet_at = p;
      auto octet = static_cast<std::uint8_t>(*p);
      if (*p == '%') {
        octet = 0;
        for (int digit = 0; digit < 2; ++digit) {
          ++p;
          auto const value = p == end || is_upper(*p) ? -1 : hex_value(*p);
          if (value < 0) {
            return fault(reader, p == end ? parse_fault::unexpected_end : parse_fault::invalid_hex,
                         p);
          }
          octet = static_cast<std::uint8_t>(octet << 4 | value);
        }
      }
      if (!utf8.feed(octet)) {
        return fault(reader, parse_fault::invalid_utf8, octet_at);
      }
    }
    if (p == end || !utf8.complete()) {
      return fault(reader, p == end ? parse_fault::unexpected_end : parse_fault::invalid_utf8, p);
    }
    return success(reader, bare_item_type::display_string, text, p, true, p + 1, reached);
  }
};

template <dialect D>
auto basic_reader<D>::next() noexcept(D != dialect::draft11) -> event {
  return detail::grammar_machine<D>{*this, cursor_, end_}.run();
}

}  // namespace tidegate::TIDEGATE_ABI::sf
