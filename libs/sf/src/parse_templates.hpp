// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/sf/parse.hpp>

#include <cassert>
#include <new>
#include <utility>

/// The templates of parse.hpp. dialects/ has one object for each dialect, and another for its
/// Dictionaries, so that a program gets those that it uses.
namespace tidegate::TIDEGATE_ABI::sf {

namespace detail {

/// Gives a new item its value where it stands. Nothing has to be given up first: a new item
/// holds 0.
template <dialect D>
void put_value(basic_bare_item<D>& item, bare_item_view const& view) {
  new (&item) basic_bare_item<D>(to_value<D>(view));
}

/// Reads the parameters that follow and returns the first event that is none.
template <dialect D>
auto read_parameters(basic_reader<D>& reader, basic_parameters<D>& parameters) -> event {
  auto e = reader.next();
  if (e != event::parameter) {
    return e;
  }
  using entry = typename basic_parameters<D>::entry;
  std::vector<entry> entries;
  entries.reserve(2);
  do {
    auto& added = entries.emplace_back(
        basic_key<D>(typename basic_key<D>::unchecked{}, reader.key()), basic_parameter_value<D>());
    if (D != dialect::draft11 || !reader.value().is(bare_item_type::none)) {
      added.value = to_value<D>(reader.value());
    }
    e = reader.next();
  } while (e == event::parameter);
  parameters = basic_parameters<D>::from_entries(std::move(entries));
  return e;
}

template <dialect D>
auto read_parameters(basic_reader<D>& reader, no_parameters<D>&) -> event {
  return reader.next();
}

/// Reads what follows the event `inner_list`, parameters included.
template <dialect D, class InnerList>
auto read_inner_list(basic_reader<D>& reader, InnerList& inner) -> event {
  auto e = reader.next();
  while (e == event::inner_item) {
    auto& item = inner.items.emplace_back(basic_item<D>{to_value<D>(reader.value()), {}});
    e = read_parameters(reader, item.parameters);
  }
  return e == event::inner_list_end ? read_parameters(reader, inner.parameters) : e;
}

/// Reads a member that begins with `e`, an `item` or an `inner_list`.
template <dialect D, class Item, class InnerList>
auto read_member(basic_reader<D>& reader, event e, std::variant<Item, InnerList>& member) -> event {
  if (e == event::inner_list) {
    return read_inner_list(reader, member.template emplace<InnerList>());
  }
  auto& item = std::get<Item>(member);
  put_value<D>(item.value, reader.value());
  return read_parameters(reader, item.parameters);
}

}  // namespace detail

template <dialect D>
auto to_value(bare_item_view const& view) -> basic_bare_item<D> {
  switch (view.type()) {
    case bare_item_type::integer: return view.as_integer();
    case bare_item_type::boolean: return view.as_boolean();
    case bare_item_type::string:
    case bare_item_type::token:
    case bare_item_type::byte_sequence:
    case bare_item_type::display_string:
      assert(D == dialect::rfc9651 || !view.is(bare_item_type::display_string));
      if (!view.is_encoded()) {
        return {typename basic_bare_item<D>::unchecked{}, view.type(), view.raw()};
      }
      return basic_bare_item<D>::make_text(view.type(), view.decoded_size_max(),
                                           [&view](char* out) {
                                             return view.decode({out, view.decoded_size_max()});
                                           });
    case bare_item_type::decimal:
      if constexpr (D != dialect::draft11) {
        return view.as_decimal();
      }
      break;
    case bare_item_type::floating:
      if constexpr (D == dialect::draft11) {
        return view.as_floating();
      }
      break;
    case bare_item_type::date:
      if constexpr (D == dialect::rfc9651) {
        return view.as_date();
      }
      break;
    case bare_item_type::none: break;
  }
  assert(false && "a view of another dialect");
  return {};
}

template <dialect D>
auto parse_item(std::string_view field_value) -> result<basic_item<D>, parse_error> {
  basic_reader<D> reader(field_type::item, field_value);
  result<basic_item<D>, parse_error> item;
  auto e = reader.next();
  if (e == event::item) {
    detail::put_value<D>(item->value, reader.value());
    e = detail::read_parameters(reader, item->parameters);
  }
  if (e != event::end) {
    item = failure(reader.error());
  }
  return item;
}

template <dialect D>
auto parse_list(std::string_view field_value) -> result<basic_list<D>, parse_error> {
  basic_reader<D> reader(field_type::list, field_value);
  result<basic_list<D>, parse_error> list;
  auto e = reader.next();
  while (e == event::item || e == event::inner_list) {
    e = detail::read_member(reader, e, list->emplace_back());
  }
  if (e != event::end) {
    list = failure(reader.error());
  }
  return list;
}

template <dialect D>
auto parse_dictionary(std::string_view field_value) -> result<basic_dictionary<D>, parse_error> {
  basic_reader<D> reader(field_type::dictionary, field_value);
  std::vector<typename basic_dictionary<D>::entry> entries;
  auto e = reader.next();
  while (e == event::item || e == event::inner_list) {
    auto& added =
        entries.emplace_back(basic_key<D>(typename basic_key<D>::unchecked{}, reader.key()),
                             basic_dictionary_member<D>());
    e = detail::read_member(reader, e, added.value);
  }
  if (e != event::end) {
    return failure(reader.error());
  }
  return basic_dictionary<D>::from_entries(std::move(entries));
}

}  // namespace tidegate::TIDEGATE_ABI::sf
