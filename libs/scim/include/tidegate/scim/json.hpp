// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

/// JSON values as SCIM uses them: names of members are names of attributes, so case makes no difference in
/// them, and no object has one twice.
namespace tidegate::scim {

class json;
struct json_member;

using json_array = std::vector<json>;

/// The members of an object in the order in which they came.
class json_object {
 public:
  // Defined where json_member is complete: clang asks for that earlier than g++.
  json_object() noexcept;
  json_object(json_object const& other);
  json_object(json_object&& other) noexcept;
  auto operator=(json_object const& other) -> json_object&;
  auto operator=(json_object&& other) noexcept -> json_object&;
  ~json_object();
  json_object(std::initializer_list<json_member> members);

  /// The value of the member of that name in any case; nothing when there is none.
  [[nodiscard]] auto find(std::string_view name) const noexcept -> json const*;
  [[nodiscard]] auto find(std::string_view name) noexcept -> json*;

  /// Replaces the value of the member of that name, which keeps its place, or appends one.
  void set(std::string_view name, json value);

  /// Appends a member; the caller knows that there is none of that name.
  void append(std::string name, json value);

  /// Takes the member of that name out. False when there is none.
  auto erase(std::string_view name) -> bool;

  [[nodiscard]] auto members() const noexcept -> std::vector<json_member> const& {
    return members_;
  }
  [[nodiscard]] auto members() noexcept -> std::vector<json_member>& { return members_; }
  [[nodiscard]] auto empty() const noexcept -> bool { return members_.empty(); }

 private:
  std::vector<json_member> members_;
};

/// One JSON value, which owns all that is in it.
///
/// A number without fraction and exponent is an integer, every other one a decimal (RFC 7643, sections 2.3.3
/// and 2.3.4).
class json {
 public:
  json() = default;
  json(std::nullptr_t /*null*/) {}
  json(bool value) : value_(value) {}
  json(int value) : value_(std::int64_t{value}) {}
  json(std::int64_t value) : value_(value) {}
  json(double value) : value_(value) {}
  json(char const* value) : value_(std::string(value)) {}
  json(std::string_view value) : value_(std::string(value)) {}
  json(std::string value) : value_(std::move(value)) {}
  json(json_array value) : value_(std::move(value)) {}
  json(json_object value) : value_(std::move(value)) {}

  [[nodiscard]] auto is_null() const noexcept -> bool { return value_.index() == 0; }

  /// Makes it a value of that kind, made of `arguments`, and returns that.
  template <class Kind, class... Arguments>
  auto emplace(Arguments&&... arguments) -> Kind& {
    return value_.template emplace<Kind>(std::forward<Arguments>(arguments)...);
  }

  /// The value when it is of that kind, or else nothing.
  [[nodiscard]] auto if_bool() const noexcept -> bool const* { return std::get_if<bool>(&value_); }
  [[nodiscard]] auto if_integer() const noexcept -> std::int64_t const* {
    return std::get_if<std::int64_t>(&value_);
  }
  [[nodiscard]] auto if_decimal() const noexcept -> double const* {
    return std::get_if<double>(&value_);
  }
  [[nodiscard]] auto if_string() const noexcept -> std::string const* {
    return std::get_if<std::string>(&value_);
  }
  [[nodiscard]] auto if_array() const noexcept -> json_array const* {
    return std::get_if<json_array>(&value_);
  }
  [[nodiscard]] auto if_array() noexcept -> json_array* { return std::get_if<json_array>(&value_); }
  [[nodiscard]] auto if_object() const noexcept -> json_object const* {
    return std::get_if<json_object>(&value_);
  }
  [[nodiscard]] auto if_object() noexcept -> json_object* {
    return std::get_if<json_object>(&value_);
  }

  /// The member of an object, or nothing.
  [[nodiscard]] auto find(std::string_view name) const noexcept -> json const*;

  /// Whether both are the same value of the same kind. Members of objects may be in another order and their
  /// names in another case.
  friend auto operator==(json const& a, json const& b) -> bool;

 private:
  std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, json_array, json_object>
      value_;
};

struct json_member {
  std::string name;
  json value;
};

inline json_object::json_object() noexcept = default;
inline json_object::json_object(json_object const& other) = default;
inline json_object::json_object(json_object&& other) noexcept = default;
inline auto json_object::operator=(json_object const& other) -> json_object& = default;
inline auto json_object::operator=(json_object&& other) noexcept -> json_object& = default;
inline json_object::~json_object() = default;

/// What is wrong with a JSON text.
enum class json_fault : std::uint8_t {
  value_expected,
  comma_expected,  ///< or the end of the array or object
  colon_expected,
  name_expected,
  name_twice,  ///< `offset` is behind the object
  unterminated_string,
  invalid_escape,
  control_character,
  invalid_utf8,
  invalid_number,
  number_out_of_range,  ///< an integer beyond 64 bits, a decimal beyond a double
  too_deep,
  too_long,
  end_expected,
};

/// Why, and at which byte.
struct json_error {
  json_fault fault{};
  std::size_t offset{};
  auto operator==(json_error const&) const -> bool = default;
};

/// One line for people.
[[nodiscard]] auto to_string(json_error const& error) -> std::string;

/// How much of it is read.
struct json_limits {
  std::size_t octets_max = std::size_t{1} << 20;
  int depth_max = 32;
};

/// Reads a JSON text (RFC 8259). An object with two names that differ at most in case is refused, and so are
/// escaped surrogates without a partner. Memory is at most 40 times the text; the time is linear but for
/// sorting names.
[[nodiscard]] auto parse_json(std::string_view text, json_limits const& limits = {})
    -> result<json, json_error>;

/// A value at the beginning of a text, and how many octets it takes.
struct json_prefix {
  json value;
  std::size_t octets = 0;
};

/// Reads the string, number or word (`true`, `false`, `null`) at the beginning of `text` and stops behind it.
[[nodiscard]] auto parse_json_literal(std::string_view text) -> result<json_prefix, json_error>;

/// Appends the text of `value` without whitespace. A decimal keeps a fraction or an exponent, so that it is
/// read as one again.
void append_json(std::string& out, json const& value);
[[nodiscard]] auto to_string(json const& value) -> std::string;

}  // namespace tidegate::scim
