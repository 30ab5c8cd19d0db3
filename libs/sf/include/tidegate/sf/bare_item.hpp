// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/sf/dialect.hpp>
#include <tidegate/sf/number.hpp>
#include <tidegate/sf/text.hpp>

#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

namespace tidegate::TIDEGATE_ABI::sf {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // g++ takes `bare_item_type::string` for the type

/// What a bare item is (RFC 9651, section 3.3).
enum class bare_item_type : std::uint8_t {
  integer,
  decimal,   ///< not in draft11
  floating,  ///< draft11 only
  string,
  token,
  byte_sequence,
  boolean,
  date,            ///< RFC 9651 only
  display_string,  ///< RFC 9651 only
  none,            ///< draft11 only: a parameter without a value; never in a `bare_item`
};

#pragma GCC diagnostic pop

/// A bare item that owns its text: one of the types that dialect `D` knows.
///
/// Made from checked values only, so that it can always be serialised. Each `as_` accessor is for
/// one type only: ask `type()` first, or use the `get_` accessors or `visit`. Texts of up to
/// sixteen octets live inside.
template <dialect D>
class basic_bare_item {
 public:
  /// Which types the dialect has besides those that all have.
  static constexpr bool has_decimal = D != dialect::draft11;
  static constexpr bool has_floating = D == dialect::draft11;
  static constexpr bool has_date = D == dialect::rfc9651;
  static constexpr bool has_display_string = D == dialect::rfc9651;

  /// The Integer 0.
  basic_bare_item() noexcept = default;
  basic_bare_item(integer value) noexcept  // NOLINT(google-explicit-constructor)
      : number_(value.value()) {}
  template <detail::small_integer T>
  basic_bare_item(T value) noexcept : basic_bare_item(integer(value)) {}  // NOLINT
  basic_bare_item(decimal value) noexcept                                 // NOLINT
      requires(has_decimal)
      : type_(bare_item_type::decimal), number_(value.thousandths()) {}
  basic_bare_item(floating value) noexcept  // NOLINT
      requires(has_floating)
      : type_(bare_item_type::floating), floating_(value.value()) {}
  basic_bare_item(std::same_as<bool> auto value) noexcept  // NOLINT
      : type_(bare_item_type::boolean), number_(value ? 1 : 0) {}
  basic_bare_item(date value) noexcept  // NOLINT
      requires(has_date)
      : type_(bare_item_type::date), number_(value.seconds().value()) {}
  basic_bare_item(string_view value)  // NOLINT
      : basic_bare_item(bare_item_type::string, value.text()) {}
  basic_bare_item(basic_token_view<D> value)  // NOLINT
      : basic_bare_item(bare_item_type::token, value.text()) {}
  basic_bare_item(byte_sequence_view value)  // NOLINT
      : basic_bare_item(bare_item_type::byte_sequence, value.octets) {}
  basic_bare_item(display_string_view value)  // NOLINT
      requires(has_display_string)
      : basic_bare_item(bare_item_type::display_string, value.text()) {}
  /// A `string`, `token` or `display_string` that owns its text.
  template <class Grammar>
    requires std::constructible_from<basic_bare_item, checked_text<Grammar, std::string_view>>
    basic_bare_item(checked_text<Grammar, std::string> const& value)  // NOLINT
        : basic_bare_item(checked_text<Grammar, std::string_view>(value)) {}

    ~basic_bare_item() {
      release();
    }
    basic_bare_item(basic_bare_item&& other) noexcept {
      take(other);
    }
    auto operator=(basic_bare_item&& other) noexcept -> basic_bare_item& {
      if (this != &other) {
        release();
        take(other);
      }
      return *this;
    }
    basic_bare_item(basic_bare_item const& other) {
      copy(other);
    }
    auto operator=(basic_bare_item const& other) -> basic_bare_item& {
      if (this != &other) {
        *this = basic_bare_item(other);
      }
      return *this;
    }

    /// Which of the types it is.
    [[nodiscard]] auto type() const noexcept -> bare_item_type {
      return type_;
    }
    [[nodiscard]] auto is(bare_item_type type) const noexcept -> bool {
      return type_ == type;
    }

    /// The value, where the type is known to be this one. Views borrow from this item.
    [[nodiscard]] auto as_integer() const noexcept -> integer {
      assert(is(bare_item_type::integer));
      return {integer::unchecked{}, number_};
    }
    [[nodiscard]] auto as_decimal() const noexcept -> decimal requires(has_decimal) {
      assert(is(bare_item_type::decimal));
      return {decimal::unchecked{}, number_};
    }
    [[nodiscard]] auto as_floating() const noexcept -> floating requires(has_floating) {
      assert(is(bare_item_type::floating));
      return {floating::unchecked{}, floating_};
    }
    [[nodiscard]] auto as_boolean() const noexcept -> bool {
      assert(is(bare_item_type::boolean));
      return number_ != 0;
    }
    [[nodiscard]] auto as_date() const noexcept -> date requires(has_date) {
      assert(is(bare_item_type::date));
      return date(integer(integer::unchecked{}, number_));
    }
    [[nodiscard]] auto as_string() const noexcept -> string_view {
      assert(is(bare_item_type::string));
      return {string_view::unchecked{}, text()};
    }
    [[nodiscard]] auto as_token() const noexcept -> basic_token_view<D> {
      assert(is(bare_item_type::token));
      return {typename basic_token_view<D>::unchecked{}, text()};
    }
    [[nodiscard]] auto as_byte_sequence() const noexcept -> byte_sequence_view {
      assert(is(bare_item_type::byte_sequence));
      return {text()};
    }
    [[nodiscard]] auto as_display_string() const noexcept -> display_string_view
        requires(has_display_string) {
      assert(is(bare_item_type::display_string));
      return {display_string_view::unchecked{}, text()};
    }

    /// The same for those who do not know the type: nothing when it is another.
    [[nodiscard]] auto get_integer() const noexcept -> std::optional<integer> {
      return is(bare_item_type::integer) ? std::optional(as_integer()) : std::nullopt;
    }
    [[nodiscard]] auto get_decimal() const noexcept -> std::optional<decimal>
      requires(has_decimal)
    { return is(bare_item_type::decimal) ? std::optional(as_decimal()) : std::nullopt; }
    [[nodiscard]] auto get_floating() const noexcept -> std::optional<floating>
      requires(has_floating)
    { return is(bare_item_type::floating) ? std::optional(as_floating()) : std::nullopt; }
    [[nodiscard]] auto get_boolean() const noexcept -> std::optional<bool> {
      return is(bare_item_type::boolean) ? std::optional(as_boolean()) : std::nullopt;
    }
    [[nodiscard]] auto get_date() const noexcept -> std::optional<date>
      requires(has_date)
    { return is(bare_item_type::date) ? std::optional(as_date()) : std::nullopt; }
    [[nodiscard]] auto get_string() const noexcept -> std::optional<string_view> {
      return is(bare_item_type::string) ? std::optional(as_string()) : std::nullopt;
    }
    [[nodiscard]] auto get_token() const noexcept -> std::optional<basic_token_view<D>> {
      return is(bare_item_type::token) ? std::optional(as_token()) : std::nullopt;
    }
    [[nodiscard]] auto get_byte_sequence() const noexcept -> std::optional<byte_sequence_view> {
      return is(bare_item_type::byte_sequence) ? std::optional(as_byte_sequence()) : std::nullopt;
    }
    [[nodiscard]] auto get_display_string() const noexcept -> std::optional<display_string_view>
      requires(has_display_string)
    {
      return is(bare_item_type::display_string) ? std::optional(as_display_string()) : std::nullopt;
    }

    /// Calls `f` with the value as its own type: `integer`, `string_view`, `bool` and so on.
    template <class F>
    auto visit(F&& f) const -> decltype(auto) {
      switch (type_) {
        case bare_item_type::decimal:
          if constexpr (has_decimal) {
            return std::forward<F>(f)(as_decimal());
          }
          break;
        case bare_item_type::floating:
          if constexpr (has_floating) {
            return std::forward<F>(f)(as_floating());
          }
          break;
        case bare_item_type::string: return std::forward<F>(f)(as_string());
        case bare_item_type::token: return std::forward<F>(f)(as_token());
        case bare_item_type::byte_sequence: return std::forward<F>(f)(as_byte_sequence());
        case bare_item_type::boolean: return std::forward<F>(f)(as_boolean());
        case bare_item_type::date:
          if constexpr (has_date) {
            return std::forward<F>(f)(as_date());
          }
          break;
        case bare_item_type::display_string:
          if constexpr (has_display_string) {
            return std::forward<F>(f)(as_display_string());
          }
          break;
        case bare_item_type::integer:
        case bare_item_type::none: break;
      }
      return std::forward<F>(f)(as_integer());
    }

    friend auto operator==(basic_bare_item const& a, basic_bare_item const& b) noexcept -> bool {
      if (a.type_ != b.type_) {
        return false;
      }
      if (a.is_text()) {
        return a.text() == b.text();
      }
      return a.type_ == bare_item_type::floating ? a.floating_ == b.floating_
                                                 : a.number_ == b.number_;
    }

    /// For code of this library that has checked the text already.
    struct unchecked {
      explicit unchecked() = default;
    };
    basic_bare_item(unchecked, bare_item_type type, std::string_view text)
        : basic_bare_item(type, text) {}
    /// The same with room for `size` octets, which `fill` writes to the memory it gets; it returns
    /// how many they became.
    template <class Fill>
    [[nodiscard]] static auto make_text(bare_item_type type, std::size_t size, Fill fill)
        -> basic_bare_item {
      basic_bare_item item;
      item.type_ = type;
      char* const memory = item.reserve(size);
      auto const used = fill(memory);
      assert(used <= size);
      if (used <= inside_max && size > inside_max) {  // short texts are always inside
        std::memcpy(item.inside_, memory, used);
        ::operator delete(memory);
      }
      item.size_ = used;
      return item;
    }

   private:
    static constexpr std::size_t inside_max = 16;

    basic_bare_item(bare_item_type type, std::string_view text) : type_(type) {
      char* const memory = reserve(text.size());
      if (!text.empty()) {
        std::memcpy(memory, text.data(), text.size());
      }
      size_ = text.size();
    }

    [[nodiscard]] auto is_text() const noexcept -> bool {
      return type_ == bare_item_type::string || type_ == bare_item_type::token ||
             type_ == bare_item_type::byte_sequence || type_ == bare_item_type::display_string;
    }
    [[nodiscard]] auto text() const noexcept -> std::string_view {
      return {size_ > inside_max ? outside_ : inside_, size_};
    }
    auto reserve(std::size_t size) -> char* {
      if (size <= inside_max) {
        return inside_;
      }
      outside_ = static_cast<char*>(::operator new(size));
      return outside_;
    }
    void release() noexcept {
      if (size_ > inside_max) {
        ::operator delete(outside_);
      }
    }
    void take(basic_bare_item& other) noexcept {
      std::memcpy(inside_, other.inside_, inside_max);
      size_ = std::exchange(other.size_, 0);
      type_ = std::exchange(other.type_, bare_item_type::boolean);
    }
    void copy(basic_bare_item const& other) {
      std::memcpy(inside_, other.inside_, inside_max);
      type_ = other.type_;
      if (other.size_ > inside_max) {
        std::memcpy(reserve(other.size_), other.outside_, other.size_);
      }
      size_ = other.size_;
    }

    bare_item_type type_ = bare_item_type::integer;
    std::size_t size_ = 0;  // of a text; 0 for everything else
    union {
      std::int64_t number_ = 0;  // Integer, thousandths, Boolean, seconds
      double floating_;
      char inside_[inside_max];  // NOLINT(modernize-avoid-c-arrays)
      char* outside_;
    };
};

/// A bare item of RFC 9651.
using bare_item = basic_bare_item<dialect::rfc9651>;

}  // namespace tidegate::TIDEGATE_ABI::sf
