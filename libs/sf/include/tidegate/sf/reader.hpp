// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/sf/bare_item.hpp>
#include <tidegate/sf/dialect.hpp>
#include <tidegate/sf/error.hpp>
#include <tidegate/sf/number.hpp>

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// The pull reader: members and parameters straight out of the input, without a tree.
namespace tidegate::TIDEGATE_ABI::sf {

namespace detail {
template <dialect D>
struct grammar_machine;
}  // namespace detail

/// A bare item as it stands in the input. It borrows the field value it was read from.
///
/// Its syntax is checked, down to base64 and UTF-8, but nothing is decoded before it is asked for.
/// Each `as_` accessor is for one type only: ask `type()` first, or use the `get_` accessors.
class bare_item_view {
 public:
  constexpr bare_item_view() noexcept = default;

  /// Which of the types it is.
  [[nodiscard]] constexpr auto type() const noexcept -> bare_item_type { return type_; }
  [[nodiscard]] constexpr auto is(bare_item_type type) const noexcept -> bool {
    return type_ == type;
  }

  /// The value, where the type is known to be this one.
  [[nodiscard]] constexpr auto as_integer() const noexcept -> integer {
    assert(is(bare_item_type::integer));
    return {integer::unchecked{}, number_};
  }
  [[nodiscard]] constexpr auto as_decimal() const noexcept -> decimal {
    assert(is(bare_item_type::decimal));
    return {decimal::unchecked{}, number_};
  }
  [[nodiscard]] auto as_floating() const noexcept -> floating;
  [[nodiscard]] constexpr auto as_boolean() const noexcept -> bool {
    assert(is(bare_item_type::boolean));
    return number_ != 0;
  }
  [[nodiscard]] constexpr auto as_date() const noexcept -> date {
    assert(is(bare_item_type::date));
    return date(integer(integer::unchecked{}, number_));
  }
  [[nodiscard]] constexpr auto as_token() const noexcept -> std::string_view {
    assert(is(bare_item_type::token));
    return raw();
  }

  /// The same for those who do not know the type: nothing when it is another.
  [[nodiscard]] constexpr auto get_integer() const noexcept -> std::optional<integer> {
    return is(bare_item_type::integer) ? std::optional(as_integer()) : std::nullopt;
  }
  [[nodiscard]] constexpr auto get_decimal() const noexcept -> std::optional<decimal> {
    return is(bare_item_type::decimal) ? std::optional(as_decimal()) : std::nullopt;
  }
  [[nodiscard]] constexpr auto get_boolean() const noexcept -> std::optional<bool> {
    return is(bare_item_type::boolean) ? std::optional(as_boolean()) : std::nullopt;
  }
  [[nodiscard]] constexpr auto get_date() const noexcept -> std::optional<date> {
    return is(bare_item_type::date) ? std::optional(as_date()) : std::nullopt;
  }
  [[nodiscard]] constexpr auto get_token() const noexcept -> std::optional<std::string_view> {
    return is(bare_item_type::token) ? std::optional(as_token()) : std::nullopt;
  }

  /// The characters of a String, Token, Byte Sequence or Display String as they stand in the input,
  /// without the delimiters around them; nothing for other types.
  [[nodiscard]] constexpr auto raw() const noexcept -> std::string_view { return {data_, size_}; }
  /// False when `raw()` is the decoded text already: a Token, or a String without escapes.
  [[nodiscard]] constexpr auto is_encoded() const noexcept -> bool { return encoded_; }

  /// How many octets `decode` writes at most.
  [[nodiscard]] constexpr auto decoded_size_max() const noexcept -> std::size_t {
    return type_ == bare_item_type::byte_sequence ? size_ / 4 * 3 + 3 : size_;
  }
  /// Writes the text or octets of a String, Token, Byte Sequence or Display String to `out`;
  /// returns how many were written. The program ends when `out` has no room for
  /// `decoded_size_max()`.
  auto decode(std::span<char> out) const noexcept -> std::size_t;
  /// The decoded text: `raw()` itself where nothing is encoded, else decoded into `scratch`.
  [[nodiscard]] auto text(std::string& scratch) const -> std::string_view;

 private:
  template <dialect D>
  friend struct detail::grammar_machine;

  char const* data_ = nullptr;
  std::size_t size_ = 0;
  std::int64_t number_ = 0;
  bare_item_type type_ = bare_item_type::none;
  bool encoded_ = false;
  std::uint8_t fraction_digits_ = 0;
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // g++ takes `event::item` for the type

/// What the reader came to.
enum class event : std::uint8_t {
  item,        ///< the Item, or a member that is an Item: `value()`, in a Dictionary also `key()`
  inner_list,  ///< a member that is an Inner List begins; in a Dictionary `key()`
  inner_item,  ///< an item of the Inner List: `value()`
  inner_list_end,  ///< it ends; its own parameters follow
  parameter,       ///< of what came last: `key()`, `value()`
  end,             ///< the whole value was read and is valid
  failure,         ///< it is not valid: `error()`; whatever came before is to be ignored
};

/// True when nothing comes after this event: at `end` and at `failure` the reader stays.
[[nodiscard]] constexpr auto is_final(event e) noexcept -> bool {
  return e >= event::end;
}

namespace detail {

/// The keys seen so far. Few are compared one by one; many are searched for, and take memory.
class key_set {
 public:
  void clear() noexcept;
  /// False when the key is there already.
  auto insert(std::string_view key) -> bool;

 private:
  auto insert_into_many(std::string_view key) -> bool;

  static constexpr std::size_t few_max = 16;
  std::array<std::string_view, few_max> few_{};
  std::size_t few_size_ = 0;
  std::vector<std::string_view> many_;
};

struct no_key_set {};

}  // namespace detail

/// Reads one field value from front to back; borrows it and never allocates, but for draft11 fields
/// with more than sixteen keys in one scope, which it has to remember: there a repeated key is an
/// error. In the RFC dialects a repeated key is reported each time it comes; the last one counts.
///
///     sf::reader reader(sf::field_type::list, "\"default\";r=50;t=30");
///     auto e = reader.next();
///     for (; !sf::is_final(e); e = reader.next()) { … }
///     if (e == sf::event::failure) { … reader.error() … }
///
/// A field is valid only when the reader came to `event::end`: do not act on anything before.
template <dialect D>
class basic_reader {
 public:
  basic_reader(field_type type, std::string_view field_value) noexcept
      : begin_(field_value.data()),
        cursor_(field_value.data()),
        end_(field_value.data() + field_value.size()),
        type_(type) {}

  /// Goes on to the next thing in the input. At the end, and after a failure, it stays there.
  [[nodiscard]] auto next() noexcept(D != dialect::draft11) -> event;

  /// The key of the member or parameter that was read last.
  [[nodiscard]] auto key() const noexcept -> std::string_view { return key_; }
  [[nodiscard]] auto value() const noexcept -> bare_item_view const& { return value_; }
  [[nodiscard]] auto error() const noexcept -> parse_error { return error_; }
  /// How many bytes were consumed so far.
  [[nodiscard]] auto offset() const noexcept -> std::size_t {
    return static_cast<std::size_t>(cursor_ - begin_);
  }

 private:
  friend struct detail::grammar_machine<D>;
  enum class state : std::uint8_t { start, member_done, inner_list, inner_item_done, done, failed };

  char const* begin_;
  char const* cursor_;
  char const* end_;
  std::string_view key_;
  bare_item_view value_;
  parse_error error_;
  field_type type_;
  state state_ = state::start;
  [[no_unique_address]] std::conditional_t<D == dialect::draft11, detail::key_set,
                                           detail::no_key_set>
      keys_;
};

#pragma GCC diagnostic pop

/// A reader of RFC 9651.
using reader = basic_reader<dialect::rfc9651>;

extern template class basic_reader<dialect::rfc9651>;
extern template class basic_reader<dialect::rfc8941>;
extern template class basic_reader<dialect::draft11>;

}  // namespace tidegate::TIDEGATE_ABI::sf
