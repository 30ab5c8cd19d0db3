// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

/// JSON values. The names of members are compared without the case of ASCII letters, as SCIM
/// compares the names of attributes, and no object has one twice.
namespace tidegate::TIDEGATE_ABI::json {

class value;
struct member;

/// Values in their order.
using array = std::vector<value>;

/// The members of an object in the order in which they came.
class object {
 public:
  // Defined where `member` is complete: clang asks for that earlier than g++.
  object() noexcept;
  object(object const& other);
  object(object&& other) noexcept;
  auto operator=(object const& other) -> object&;
  auto operator=(object&& other) noexcept -> object&;
  ~object();
  object(std::initializer_list<member> members);

  /// The value of the member of that name in any case; nothing when there is none.
  [[nodiscard]] auto find(std::string_view name) const noexcept -> value const*;
  [[nodiscard]] auto find(std::string_view name) noexcept -> value*;
  /// The same when it is of that kind: `find<std::string>("id")`.
  template <class Kind>
  [[nodiscard]] auto find(std::string_view name) const noexcept -> Kind const*;

  /// Replaces the value of the member of that name, which keeps its place, or appends one.
  void set(std::string_view name, json::value value);

  /// Appends a member; the caller knows that there is none of that name.
  void append(std::string name, json::value value);

  /// Takes the member of that name out. False when there is none.
  auto erase(std::string_view name) -> bool;

  /// The members in the order in which they came.
  [[nodiscard]] auto members() const noexcept -> std::vector<member> const& { return members_; }
  [[nodiscard]] auto members() noexcept -> std::vector<member>& { return members_; }
  [[nodiscard]] auto empty() const noexcept -> bool { return members_.empty(); }

 private:
  std::vector<member> members_;
};

/// One JSON value, which owns all that is in it.
///
/// A number without fraction and exponent is an integer, every other one a decimal (RFC 7643,
/// sections 2.3.3 and 2.3.4).
class value {
 public:
  value() = default;
  value(std::nullptr_t /*null*/) {}
  value(bool from) : value_(from) {}
  value(int from) : value_(std::int64_t{from}) {}
  value(std::int64_t from) : value_(from) {}
  value(double from) : value_(from) {}
  value(char const* from) : value_(std::string(from)) {}
  value(std::string_view from) : value_(std::string(from)) {}
  value(std::string from) : value_(std::move(from)) {}
  value(array from) : value_(std::move(from)) {}
  value(object from) : value_(std::move(from)) {}

  /// Whether it is null; the functions below ask for the other types.
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
  [[nodiscard]] auto if_array() const noexcept -> array const* {
    return std::get_if<array>(&value_);
  }
  [[nodiscard]] auto if_array() noexcept -> array* { return std::get_if<array>(&value_); }
  [[nodiscard]] auto if_object() const noexcept -> object const* {
    return std::get_if<object>(&value_);
  }
  [[nodiscard]] auto if_object() noexcept -> object* { return std::get_if<object>(&value_); }

  /// The member of an object, or nothing.
  [[nodiscard]] auto find(std::string_view name) const noexcept -> value const*;
  /// The same when it is of that kind.
  template <class Kind>
  [[nodiscard]] auto find(std::string_view name) const noexcept -> Kind const* {
    auto const* const member = find(name);
    return member == nullptr ? nullptr : std::get_if<Kind>(&member->value_);
  }

  /// Whether both are the same value of the same kind. Members of objects may be in another order
  /// and their names in another case.
  friend auto operator==(value const& a, value const& b) -> bool;

 private:
  friend class object;
  std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, array, object> value_;
};

/// A name and its value.
struct member {
  std::string name;
  json::value value;
};

inline object::object() noexcept = default;
inline object::object(object const& other) = default;
inline object::object(object&& other) noexcept = default;
inline auto object::operator=(object const& other) -> object& = default;
inline auto object::operator=(object&& other) noexcept -> object& = default;
inline object::~object() = default;

template <class Kind>
auto object::find(std::string_view name) const noexcept -> Kind const* {
  auto const* const member = find(name);
  return member == nullptr ? nullptr : std::get_if<Kind>(&member->value_);
}

/// A member of an object that is a text; empty when there is none.
[[nodiscard]] auto text_of(value const& from, std::string_view name) noexcept -> std::string_view;
/// A member of an object that is an integer from 0 on.
[[nodiscard]] auto number_of(value const& from, std::string_view name) noexcept
    -> std::optional<std::uint64_t>;

/// Whether a member of an object is true.
[[nodiscard]] auto is_true(value const& from, std::string_view name) noexcept -> bool;

/// Appends the text of `from` without whitespace. A decimal keeps a fraction or an exponent, so
/// that it is read as one again.
void append(std::string& out, value const& from);
[[nodiscard]] auto to_string(value const& from) -> std::string;

}  // namespace tidegate::TIDEGATE_ABI::json
