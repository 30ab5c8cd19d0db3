// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/sf/serialize.hpp>

#include <tidegate/sf/writer.hpp>

/// The templates of serialize.hpp; dialects/ has one object for each dialect.
namespace tidegate::TIDEGATE_ABI::sf {

namespace detail {

/// RFC 9651, section 4.1.1.2.
template <dialect D, class Writer>
void write_parameters(Writer& writer, basic_parameters<D> const& parameters) {
  for (auto const& [key, value] : parameters) {
    if constexpr (D == dialect::draft11) {
      if (value.has_value()) {
        writer.parameter(key, *value);
      } else {
        writer.parameter(key);
      }
    } else {
      writer.parameter(key, value);
    }
  }
}

template <dialect D, class Writer>
void write_parameters(Writer&, no_parameters<D> const&) {}

/// The items and the parameters of an Inner List that was begun (section 4.1.1.1).
template <dialect D, class Writer, class InnerList>
void write_inner_list(Writer& writer, InnerList const& inner) {
  for (auto const& item : inner.items) {
    writer.inner_item(item.value);
    write_parameters<D>(writer, item.parameters);
  }
  writer.end_inner_list();
  write_parameters<D>(writer, inner.parameters);
}

}  // namespace detail

template <dialect D>
void serialize(basic_list<D> const& list, std::string& out) {
  basic_list_writer<D> writer(out);
  for (auto const& member : list) {
    if (auto const* item = std::get_if<0>(&member)) {
      writer.item(item->value);
      detail::write_parameters<D>(writer, item->parameters);
    } else {
      writer.begin_inner_list();
      detail::write_inner_list<D>(writer, std::get<1>(member));
    }
  }
}

template <dialect D>
void serialize(basic_dictionary<D> const& dictionary, std::string& out) {
  basic_dictionary_writer<D> writer(out);
  for (auto const& [key, member] : dictionary) {
    if (auto const* item = std::get_if<0>(&member)) {
      writer.member(key, item->value);
      detail::write_parameters<D>(writer, item->parameters);
    } else {
      writer.begin_inner_list(key);
      detail::write_inner_list<D>(writer, std::get<1>(member));
    }
  }
}

template <dialect D>
void serialize(basic_item<D> const& item, std::string& out) {
  basic_list_writer<D> writer(out);  // an Item is written as the only member of a List would be
  writer.item(item.value);
  detail::write_parameters<D>(writer, item.parameters);
}

}  // namespace tidegate::TIDEGATE_ABI::sf
