// SPDX-License-Identifier: Apache-2.0
#include <tidegate/json/value.hpp>

#include <tidegate/base/ascii.hpp>
#include <tidegate/json/string.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace tidegate::TIDEGATE_ABI::json {

object::object(std::initializer_list<member> members) : members_(members) {}

auto object::find(std::string_view name) const noexcept -> value const* {
  for (auto const& m : members_) {
    if (equal_ignoring_case(m.name, name)) {
      return &m.value;
    }
  }
  return nullptr;
}

auto object::find(std::string_view name) noexcept -> value* {
  return const_cast<value*>(std::as_const(*this).find(name));
}

void object::set(std::string_view name, json::value value) {
  if (auto* const there = find(name)) {
    *there = std::move(value);
  } else {
    append(std::string(name), std::move(value));
  }
}

void object::append(std::string name, json::value value) {
  members_.push_back({std::move(name), std::move(value)});
}

auto object::erase(std::string_view name) -> bool {
  return std::erase_if(members_,
                       [&](member const& m) { return equal_ignoring_case(m.name, name); }) != 0;
}

auto text_of(value const& from, std::string_view name) noexcept -> std::string_view {
  auto const* const text = from.find<std::string>(name);
  return text == nullptr ? std::string_view() : *text;
}

auto number_of(value const& from, std::string_view name) noexcept -> std::optional<std::uint64_t> {
  auto const* const number = from.find<std::int64_t>(name);
  return number == nullptr || *number < 0 ? std::nullopt
                                          : std::optional(static_cast<std::uint64_t>(*number));
}

auto is_true(value const& from, std::string_view name) noexcept -> bool {
  auto const* const flag = from.find<bool>(name);
  return flag != nullptr && *flag;
}

auto value::find(std::string_view name) const noexcept -> value const* {
  auto const* const object = if_object();
  return object == nullptr ? nullptr : object->find(name);
}

auto operator==(value const& a, value const& b) -> bool {
  auto const* const left = a.if_object();
  auto const* const right = b.if_object();
  if (left == nullptr || right == nullptr) {
    if (left != nullptr || right != nullptr || a.value_.index() != b.value_.index()) {
      return false;
    }
    if (auto const* const array = a.if_array()) {
      return *array == *b.if_array();
    }
    return (a.if_bool() != nullptr && *a.if_bool() == *b.if_bool()) ||
           (a.if_integer() != nullptr && *a.if_integer() == *b.if_integer()) ||
           (a.if_decimal() != nullptr && *a.if_decimal() == *b.if_decimal()) ||
           (a.if_string() != nullptr && *a.if_string() == *b.if_string()) || a.is_null();
  }
  return left->members().size() == right->members().size() &&
         std::ranges::all_of(left->members(), [&](member const& m) {
           auto const* const other = right->find(m.name);
           return other != nullptr && m.value == *other;
         });
}

void append(std::string& out, value const& value) {
  if (auto const* const text = value.if_string()) {
    append_string(out, *text);
  } else if (auto const* const boolean = value.if_bool()) {
    out += *boolean ? "true" : "false";
  } else if (auto const* const integer = value.if_integer()) {
    out += std::to_string(*integer);
  } else if (auto const* const decimal = value.if_decimal()) {
    std::array<char, 32> buffer{};
    auto const end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), *decimal).ptr;
    auto const digits = std::string_view(buffer.data(), end);
    out += digits;
    if (digits.find_first_of(".e") == std::string_view::npos) {
      out += ".0";
    }
  } else if (auto const* const array = value.if_array()) {
    out += '[';
    for (auto const& item : *array) {
      append(out, item);
      out += ',';
    }
    out.resize(out.size() - (array->empty() ? 0 : 1));
    out += ']';
  } else if (auto const* const object = value.if_object()) {
    out += '{';
    for (auto const& m : object->members()) {
      append_string(out, m.name);
      out += ':';
      append(out, m.value);
      out += ',';
    }
    out.resize(out.size() - (object->empty() ? 0 : 1));
    out += '}';
  } else {
    out += "null";
  }
}

auto to_string(value const& value) -> std::string {
  std::string out;
  append(out, value);
  return out;
}

}  // namespace tidegate::TIDEGATE_ABI::json
