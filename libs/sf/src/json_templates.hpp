// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/sf/json.hpp>

#include <tidegate/json/string.hpp>
#include <tidegate/sf/writer.hpp>

#include "base32.hpp"
#include "json_value.hpp"

#include <charconv>

/// The templates of json.hpp; dialects/ has one object for each dialect.
namespace tidegate::TIDEGATE_ABI::sf {

namespace detail {

// ---- writing ----

inline void append_typed(std::string& out, std::string_view type, std::string_view text) {
  out.append(R"({"__type":")").append(type).append(R"(","value":)");
  json::append_string(out, text);
  out.push_back('}');
}

struct bare_item_to_json {
  std::string& out;

  void operator()(integer value) const { detail::append(out, value); }
  void operator()(decimal value) const { detail::append(out, value); }
  void operator()(floating value) const { detail::append(out, value); }
  void operator()(bool value) const { out.append(value ? "true" : "false"); }
  void operator()(string_view value) const { json::append_string(out, value.text()); }
  void operator()(byte_sequence_view value) const {
    append_typed(out, "binary", detail::base32_encode(value.octets));
  }
  void operator()(display_string_view value) const {
    append_typed(out, "displaystring", value.text());
  }
  template <bool IsDraft11>
  void operator()(checked_text<grammar::token<IsDraft11>, std::string_view> value) const {
    append_typed(out, "token", value.text());
  }
  void operator()(date value) const {
    out.append(R"({"__type":"date","value":)");
    detail::append(out, value.seconds());
    out.push_back('}');
  }
};

/// Writes `[`, each element by `each` with commas between them, and `]`.
template <class Range, class Each>
void append_array(std::string& out, Range const& range, Each each) {
  char separator = '[';
  for (auto const& element : range) {
    out.push_back(separator);
    each(element);
    separator = ',';
  }
  if (separator == '[') {
    out.push_back('[');
  }
  out.push_back(']');
}

template <dialect D>
void append_bare(std::string& out, basic_bare_item<D> const& value) {
  value.visit(bare_item_to_json{out});
}
template <dialect D>
void append_bare(std::string& out, std::optional<basic_bare_item<D>> const& value) {
  if (value.has_value()) {
    append_bare(out, *value);
  } else {
    out.append("null");
  }
}

template <class Parameters>
void append_parameters(std::string& out, Parameters const& parameters) {
  append_array(out, parameters, [&out](auto const& parameter) {
    out.push_back('[');
    json::append_string(out, parameter.key.text());
    out.push_back(',');
    append_bare(out, parameter.value);
    out.push_back(']');
  });
}

template <dialect D, class Parameters>
void append_json(std::string& out, item_with<D, Parameters> const& item) {
  out.push_back('[');
  append_bare(out, item.value);
  out.push_back(',');
  append_parameters(out, item.parameters);
  out.push_back(']');
}

template <dialect D, class Parameters>
void append_json(std::string& out, inner_list_with<D, Parameters> const& inner) {
  out.push_back('[');
  append_array(out, inner.items, [&out](auto const& item) { append_json(out, item); });
  out.push_back(',');
  append_parameters(out, inner.parameters);
  out.push_back(']');
}

// ---- reading ----

[[nodiscard]] inline auto wrong(json_value const& json, std::string what) {
  return failure(json_error{std::move(what), json.offset});
}
[[nodiscard]] inline auto wrong(json_value const& json, std::string_view type,
                                make_error const& error) {
  return wrong(json, std::string(type) + " " + std::string(message(error.fault)));
}

/// Makes a value by `make`; what the type refuses becomes an error with its name.
template <class T, class Make>
auto made(json_value const& json, std::string_view type, Make make) -> result<T, json_error> {
  auto value = make();
  if (!value.has_value()) {
    return wrong(json, type, value.error());
  }
  return *std::move(value);
}

inline auto integer_from(json_value const& json, std::string_view type)
    -> result<integer, json_error> {
  if (json.type != json_type::number || json.text.find_first_of(".eE") != std::string::npos) {
    return wrong(json, std::string(type) + " must be a number without a point");
  }
  std::int64_t value = 0;
  auto const [end, error] =
      std::from_chars(json.text.data(), json.text.data() + json.text.size(), value);
  if (error != std::errc()) {
    return wrong(json, type, make_error{make_fault::out_of_range, 0});
  }
  return made<integer>(json, type, [value] { return integer::make(value); });
}

template <dialect D>
auto typed_from(json_value const& json) -> result<basic_bare_item<D>, json_error> {
  auto const* const type = json.member("__type");
  auto const* const value = json.member("value");
  if (type == nullptr || value == nullptr || json.names.size() != 2 ||
      type->type != json_type::string) {
    return wrong(json, "an object must have \"__type\" and \"value\"");
  }
  if (type->text == "date") {
    if constexpr (D == dialect::rfc9651) {
      TIDEGATE_TRY(auto seconds, integer_from(*value, "a Date"));
      return date(seconds);
    }
    return wrong(json, "there is no Date in this dialect");
  }
  if (value->type != json_type::string) {
    return wrong(*value, "\"value\" must be a string");
  }
  if (type->text == "token") {
    return made<basic_token_view<D>>(*value, "a Token",
                                     [&] { return basic_token_view<D>::make(value->text); });
  }
  if (type->text == "binary") {
    auto octets = detail::base32_decode(value->text);
    if (!octets.has_value()) {
      return wrong(*value, "a Byte Sequence must be in padded base32");
    }
    return byte_sequence_view{*octets};
  }
  if (type->text == "displaystring") {
    if constexpr (D == dialect::rfc9651) {
      return made<display_string_view>(*value, "a Display String",
                                       [&] { return display_string_view::make(value->text); });
    }
    return wrong(json, "there is no Display String in this dialect");
  }
  return wrong(*type, "unknown \"__type\": token, binary, date or displaystring");
}

template <dialect D>
auto bare_from(json_value const& json) -> result<basic_bare_item<D>, json_error> {
  switch (json.type) {
    case json_type::boolean: return json.text == "true";
    case json_type::string:
      return made<string_view>(json, "a String", [&] { return string_view::make(json.text); });
    case json_type::object: return typed_from<D>(json);
    case json_type::number:
      if (json.text.find_first_of(".eE") == std::string::npos) {
        return integer_from(json, "an Integer");
      }
      if constexpr (D == dialect::draft11) {
        return made<floating>(json, "a Float", [&] { return floating::from_text(json.text); });
      } else {
        return made<decimal>(json, "a Decimal", [&] { return decimal::from_text(json.text); });
      }
    case json_type::null:
    case json_type::array: break;
  }
  return wrong(json, "expected a bare item");
}

/// The elements of an array of `size`, or an error that says what was expected.
inline auto array_of(json_value const& json, std::size_t size, std::string_view what)
    -> result<void, json_error> {
  if (json.type != json_type::array || json.elements.size() != size) {
    return wrong(json, std::string("expected ").append(what));
  }
  return {};
}

template <dialect D>
auto key_from(json_value const& json) -> result<basic_key<D>, json_error> {
  if (json.type != json_type::string) {
    return wrong(json, "a key must be a string");
  }
  return made<basic_key<D>>(json, "a key", [&] { return basic_key<D>::make(json.text); });
}

template <dialect D>
auto parameters_from(json_value const& json, basic_parameters<D>& parameters)
    -> result<void, json_error> {
  if (json.type != json_type::array) {
    return wrong(json, "expected parameters: [[key, bare item]...]");
  }
  std::vector<typename basic_parameters<D>::entry> entries;
  for (auto const& pair : json.elements) {
    TIDEGATE_TRY_VOID(array_of(pair, 2, "a parameter: [key, bare item]"));
    TIDEGATE_TRY(auto key, key_from<D>(pair.elements[0]));
    basic_parameter_value<D> value{};
    if (D != dialect::draft11 || pair.elements[1].type != json_type::null) {
      TIDEGATE_TRY(value, bare_from<D>(pair.elements[1]));
    }
    entries.push_back({std::move(key), std::move(value)});
  }
  auto const given = entries.size();
  parameters = basic_parameters<D>::from_entries(std::move(entries));
  if (parameters.size() != given) {
    return wrong(json, "a parameter comes twice");
  }
  return {};
}

template <dialect D>
auto parameters_from(json_value const& json, no_parameters<D>&) -> result<void, json_error> {
  if (json.type != json_type::array || !json.elements.empty()) {
    return wrong(json, "there are no parameters here in this dialect");
  }
  return {};
}

template <dialect D, class Parameters>
auto item_from(json_value const& json) -> result<item_with<D, Parameters>, json_error> {
  TIDEGATE_TRY_VOID(array_of(json, 2, "an item: [bare item, parameters]"));
  item_with<D, Parameters> item;
  TIDEGATE_TRY(item.value, bare_from<D>(json.elements[0]));
  TIDEGATE_TRY_VOID(parameters_from<D>(json.elements[1], item.parameters));
  return item;
}

template <dialect D, class Item, class InnerList>
auto member_from(json_value const& json, std::variant<Item, InnerList>& member)
    -> result<void, json_error> {
  TIDEGATE_TRY_VOID(array_of(json, 2, "a member: [bare item or items, parameters]"));
  if (json.elements[0].type != json_type::array) {
    TIDEGATE_TRY(member, (item_from<D, decltype(Item::parameters)>(json)));
    return {};
  }
  auto& inner = member.template emplace<InnerList>();
  for (auto const& element : json.elements[0].elements) {
    TIDEGATE_TRY(auto item, (item_from<D, basic_item_parameters<D>>(element)));
    inner.items.push_back(std::move(item));
  }
  return parameters_from<D>(json.elements[1], inner.parameters);
}

}  // namespace detail

template <dialect D>
auto item_to_json(basic_item<D> const& value) -> std::string {
  std::string out;
  detail::append_json(out, value);
  return out;
}

template <dialect D>
auto list_to_json(basic_list<D> const& value) -> std::string {
  std::string out;
  detail::append_array(out, value, [&out](auto const& member) {
    std::visit([&out](auto const& alternative) { detail::append_json(out, alternative); }, member);
  });
  return out;
}

template <dialect D>
auto dictionary_to_json(basic_dictionary<D> const& value) -> std::string {
  std::string out;
  detail::append_array(out, value, [&out](auto const& entry) {
    out.push_back('[');
    json::append_string(out, entry.key.text());
    out.push_back(',');
    std::visit([&out](auto const& alternative) { detail::append_json(out, alternative); },
               entry.value);
    out.push_back(']');
  });
  return out;
}

namespace detail {

template <dialect D>
auto item_from_json(json_value const& json) -> result<basic_item<D>, json_error> {
  return item_from<D, basic_item_parameters<D>>(json);
}

template <dialect D>
auto list_from_json(json_value const& json) -> result<basic_list<D>, json_error> {
  if (json.type != json_type::array) {
    return wrong(json, "expected a list: [member...]");
  }
  basic_list<D> list;
  for (auto const& element : json.elements) {
    TIDEGATE_TRY_VOID(member_from<D>(element, list.emplace_back()));
  }
  return list;
}

template <dialect D>
auto dictionary_from_json(json_value const& json) -> result<basic_dictionary<D>, json_error> {
  if (json.type != json_type::array) {
    return wrong(json, "expected a dictionary: [[key, member]...]");
  }
  std::vector<typename basic_dictionary<D>::entry> entries;
  for (auto const& pair : json.elements) {
    TIDEGATE_TRY_VOID(array_of(pair, 2, "a dictionary member: [key, member]"));
    TIDEGATE_TRY(auto key, key_from<D>(pair.elements[0]));
    auto& entry = entries.emplace_back(typename basic_dictionary<D>::entry{std::move(key), {}});
    TIDEGATE_TRY_VOID(member_from<D>(pair.elements[1], entry.value));
  }
  auto const given = entries.size();
  auto dictionary = basic_dictionary<D>::from_entries(std::move(entries));
  if (dictionary.size() != given) {
    return wrong(json, "a key comes twice");
  }
  return dictionary;
}

}  // namespace detail

template <dialect D>
auto item_from_json(std::string_view json) -> result<basic_item<D>, json_error> {
  TIDEGATE_TRY(auto parsed, detail::parse_json(json));
  return detail::item_from_json<D>(parsed);
}

template <dialect D>
auto list_from_json(std::string_view json) -> result<basic_list<D>, json_error> {
  TIDEGATE_TRY(auto parsed, detail::parse_json(json));
  return detail::list_from_json<D>(parsed);
}

template <dialect D>
auto dictionary_from_json(std::string_view json) -> result<basic_dictionary<D>, json_error> {
  TIDEGATE_TRY(auto parsed, detail::parse_json(json));
  return detail::dictionary_from_json<D>(parsed);
}

}  // namespace tidegate::TIDEGATE_ABI::sf
