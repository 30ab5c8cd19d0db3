// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/sf/bare_item.hpp>
#include <tidegate/sf/dialect.hpp>
#include <tidegate/sf/number.hpp>
#include <tidegate/sf/text.hpp>

#include <cassert>
#include <concepts>
#include <cstddef>
#include <string>
#include <type_traits>

/// The streaming writers: a field built member by member at the end of a caller's buffer, without a
/// tree. They take values that were checked when made, so no value can fail; calling them in an
/// order that makes no field is an error of the program, which asserts. The caller sees to it that
/// no key comes twice, and that no value lies in the buffer itself. Nothing is allocated but by the
/// buffer when it has to grow.
namespace tidegate::TIDEGATE_ABI::sf {

namespace detail {

void append(std::string& out, integer value);
void append(std::string& out, decimal value);
void append(std::string& out, floating value);
void append(std::string& out, string_view value);
void append(std::string& out, display_string_view value);
void append_bytes(std::string& out, std::string_view octets, char delimiter);

/// Bare items that a dialect can write, each from its owned or its borrowed type.
template <dialect D>
struct bare_item_writer {
  static void write(std::string& out, integer value) { append(out, value); }
  static void write(std::string& out, decimal value) requires(D != dialect::draft11) {
    append(out, value);
  }
  static void write(std::string& out, floating value) requires(D == dialect::draft11) {
    append(out, value);
  }
  static void write(std::string& out, std::same_as<bool> auto value) {
    out.append(value ? "?1" : "?0", 2);
  }
  static void write(std::string& out, string_view value) { append(out, value); }
  static void write(std::string& out, basic_token_view<D> value) { out.append(value.text()); }
  static void write(std::string& out, byte_sequence_view value) {
    append_bytes(out, value.octets, D == dialect::draft11 ? '*' : ':');
  }
  static void write(std::string& out, date value) requires(D == dialect::rfc9651) {
    out.push_back('@');
    append(out, value.seconds());
  }
  static void write(std::string& out, display_string_view value) requires(D == dialect::rfc9651) {
    append(out, value);
  }
  static void write(std::string& out, std::same_as<basic_bare_item<D>> auto const& value) {
    value.visit([&out](auto alternative) { write(out, alternative); });
  }
};

template <class T>
[[nodiscard]] constexpr auto is_true(T const& value) noexcept -> bool {
  if constexpr (std::is_same_v<T, bool>) {
    return value;
  } else if constexpr (requires { value.as_boolean(); }) {
    return value.is(bare_item_type::boolean) && value.as_boolean();
  } else {
    return false;
  }
}

}  // namespace detail

/// What can be written as a bare item in dialect `D`: `integer` and what converts to it, `decimal`
/// or `floating`, `bool`, `string_view`, `token_view`, `byte_sequence_view`, `date`,
/// `display_string_view`, their owning forms, and `bare_item`. A number of 64 bits is made an
/// Integer first, by `integer::clamp` or `integer::make`.
template <class T, dialect D>
concept writable = !detail::large_integer<T> && requires(std::string & out, T const& value) {
  detail::bare_item_writer<D>::write(out, value);
};

/// Writes what Lists, Dictionaries and Items have in common.
template <dialect D>
class basic_writer {
 public:
  /// A parameter of what was written last: of the item, the inner item or the inner list.
  template <writable<D> T>
  void parameter(basic_key_view<D> name, T const& value) {
    assert(takes_parameters_);
    out_.push_back(';');
    out_.append(name.text());
    if constexpr (D != dialect::draft11) {
      if (detail::is_true(value)) {
        return;
      }
    }
    out_.push_back('=');
    detail::bare_item_writer<D>::write(out_, value);
  }

  /// A parameter without a value: true in the RFCs, null in draft11.
  void parameter(basic_key_view<D> name) {
    assert(takes_parameters_);
    out_.push_back(';');
    out_.append(name.text());
  }

  /// An item of the inner list that was begun.
  template <writable<D> T>
  void inner_item(T const& value) {
    assert(in_inner_list_);
    if (D != dialect::draft11 && inner_items_++ != 0) {
      out_.push_back(' ');
    }
    detail::bare_item_writer<D>::write(out_, value);
    if constexpr (D == dialect::draft11) {
      out_.push_back(' ');  // section 4.1.1.1, step 2.3: after every item
    }
    takes_parameters_ = D != dialect::draft11;
  }

  /// Ends the inner list; its own parameters may follow.
  void end_inner_list() {
    assert(in_inner_list_);
    in_inner_list_ = false;
    takes_parameters_ = true;
    out_.push_back(')');
  }

 protected:
  explicit basic_writer(std::string& out) noexcept : out_(out) {}
  ~basic_writer() { assert(!in_inner_list_); }
  basic_writer(basic_writer&&) = delete;
  auto operator=(basic_writer&&) -> basic_writer& = delete;

  void begin_member() {
    assert(!in_inner_list_);
    if (started_) {
      out_.append(", ", 2);
    }
    started_ = true;
    takes_parameters_ = true;
  }
  void open_inner_list() {
    in_inner_list_ = true;
    takes_parameters_ = false;
    inner_items_ = 0;
    out_.push_back('(');
  }

  std::string& out_;               // NOLINT
  bool started_ = false;           // NOLINT
  bool in_inner_list_ = false;     // NOLINT
  bool takes_parameters_ = false;  // NOLINT
  std::size_t inner_items_ = 0;    // NOLINT
};

/// Writes a List at the end of `out`, which must outlive the writer.
///
///     sf::list_writer writer(out);
///     writer.item(sf::string_view("default"));
///     writer.parameter("r", 50);
template <dialect D>
class basic_list_writer : public basic_writer<D> {
 public:
  explicit basic_list_writer(std::string& out) noexcept : basic_writer<D>(out) {}

  /// A member that is an item.
  template <writable<D> T>
  void item(T const& value) {
    this->begin_member();
    detail::bare_item_writer<D>::write(this->out_, value);
  }
  /// A member that is an inner list: its items follow.
  void begin_inner_list() {
    this->begin_member();
    this->open_inner_list();
  }
};

/// Writes a Dictionary at the end of `out`. The caller sees to it that no key comes twice.
template <dialect D>
class basic_dictionary_writer : public basic_writer<D> {
 public:
  explicit basic_dictionary_writer(std::string& out) noexcept : basic_writer<D>(out) {}

  /// A member that is an item.
  template <writable<D> T>
  void member(basic_key_view<D> name, T const& value) {
    this->begin_member();
    this->out_.append(name.text());
    if constexpr (D != dialect::draft11) {
      if (detail::is_true(value)) {
        return;
      }
    }
    this->out_.push_back('=');
    detail::bare_item_writer<D>::write(this->out_, value);
  }
  /// A member that is an inner list: its items follow.
  void begin_inner_list(basic_key_view<D> name) {
    this->begin_member();
    this->out_.append(name.text());
    this->out_.push_back('=');
    this->open_inner_list();
  }

  /// draft11 has parameters in Lists only.
  template <class... Arguments>
    requires(D != dialect::draft11)
  void parameter(basic_key_view<D> name, Arguments const&... value) {
    basic_writer<D>::parameter(name, value...);
  }
};

/// Writers of RFC 9651.
using list_writer = basic_list_writer<dialect::rfc9651>;
using dictionary_writer = basic_dictionary_writer<dialect::rfc9651>;

/// Appends a bare item: an Item field without parameters.
template <dialect D = dialect::rfc9651, writable<D> T>
void write_bare_item(std::string& out, T const& value) {
  detail::bare_item_writer<D>::write(out, value);
}

}  // namespace tidegate::TIDEGATE_ABI::sf
