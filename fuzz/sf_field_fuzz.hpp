// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check.hpp"

#include <tidegate/sf.hpp>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What holds for every field value in every dialect, whatever the bytes:
///
/// - the pull reader and the tree agree on success, and on the fault and its offset;
/// - the tree is what an obvious model makes of the reader's events;
/// - serialising the tree gives what the streaming writers give for that model, it parses again to
///   an equal tree, and serialising that changes nothing;
/// - the JSON form reads back equal;
/// - nothing looks behind the last byte (the sanitizers check that).
namespace tidegate::TIDEGATE_ABI::sf::fuzz {

using tidegate::fuzz::check;

/// An obvious model of a field: keys, values, and a search from the front.
template <dialect D>
struct model {
  struct parameter {
    std::string key;
    std::vector<basic_bare_item<D>> value;  // none or one
  };
  struct node {
    std::string key;
    bool is_inner_list = false;
    std::vector<basic_bare_item<D>> value;  // none or one
    std::vector<parameter> parameters;
    std::vector<node> items;
  };

  std::vector<node> members;

  template <class Entries, class Entry>
  static void set(Entries& entries, Entry entry) {
    auto const same = std::find_if(entries.begin(), entries.end(),
                                   [&](auto const& other) { return other.key == entry.key; });
    if (same == entries.end()) {
      entries.push_back(std::move(entry));
    } else {
      *same = std::move(entry);
    }
  }
};

/// Reads to the end into a model; false on failure.
template <dialect D>
auto read(basic_reader<D>& reader, field_type type, model<D>& out) -> bool {
  using node = typename model<D>::node;
  std::vector<node> members;  // with repeated keys, to be merged in the end
  auto* current = static_cast<node*>(nullptr);
  for (;;) {
    auto const e = reader.next();
    switch (e) {
      case event::item:
      case event::inner_list: {
        node member;
        if (type == field_type::dictionary) {
          member.key = reader.key();
          check(basic_key<D>::make(member.key).has_value());
        }
        member.is_inner_list = e == event::inner_list;
        if (!member.is_inner_list) {
          member.value.push_back(to_value<D>(reader.value()));
        }
        members.push_back(std::move(member));
        current = &members.back();
        break;
      }
      case event::inner_item: {
        auto& items = members.back().items;
        items.push_back({});
        items.back().value.push_back(to_value<D>(reader.value()));
        current = &items.back();
        break;
      }
      case event::inner_list_end: current = &members.back(); break;
      case event::parameter: {
        typename model<D>::parameter added{std::string(reader.key()), {}};
        if (!reader.value().is(bare_item_type::none)) {
          added.value.push_back(to_value<D>(reader.value()));
        }
        model<D>::set(current->parameters, std::move(added));
        break;
      }
      case event::end:
        for (auto& member : members) {
          if (type == field_type::dictionary) {
            model<D>::set(out.members, std::move(member));
          } else {
            out.members.push_back(std::move(member));
          }
        }
        return true;
      case event::failure:
        check(reader.next() == event::failure);
        check(reader.key().empty());
        return false;
    }
  }
}

template <dialect D, class Writer, class Parameters>
void write_parameters(Writer& writer, Parameters const& parameters) {
  for (auto const& parameter : parameters) {
    auto const key = *basic_key<D>::make(parameter.key);
    if constexpr (requires { writer.parameter(key, parameter.value.front()); }) {
      if (parameter.value.empty()) {
        writer.parameter(key);
      } else {
        writer.parameter(key, parameter.value.front());
      }
    } else {
      std::abort();  // draft11 has no parameters there
    }
  }
}

template <dialect D>
auto write(model<D> const& model, field_type type) -> std::string {
  std::string out;
  auto write_members = [&](auto writer, auto begin_inner_list, auto write_item) {
    for (auto const& member : model.members) {
      if (member.is_inner_list) {
        begin_inner_list(writer, member);
        for (auto const& item : member.items) {
          writer.inner_item(item.value.front());
          write_parameters<D>(writer, item.parameters);
        }
        writer.end_inner_list();
      } else {
        write_item(writer, member);
      }
      write_parameters<D>(writer, member.parameters);
    }
  };
  if (type == field_type::dictionary) {
    write_members(
        basic_dictionary_writer<D>(out),
        [](auto& writer, auto const& member) {
          writer.begin_inner_list(*basic_key<D>::make(member.key));
        },
        [](auto& writer, auto const& member) {
          writer.member(*basic_key<D>::make(member.key), member.value.front());
        });
  } else {
    write_members(
        basic_list_writer<D>(out), [](auto& writer, auto const&) { writer.begin_inner_list(); },
        [](auto& writer, auto const& member) { writer.item(member.value.front()); });
  }
  return out;
}

template <dialect D, field_type T>
auto parse(std::string_view text) {
  if constexpr (T == field_type::item) {
    return parse_item<D>(text);
  } else if constexpr (T == field_type::list) {
    return parse_list<D>(text);
  } else {
    return parse_dictionary<D>(text);
  }
}

template <dialect D, field_type T, class Value>
auto through_json(Value const& value) {
  if constexpr (T == field_type::item) {
    return item_from_json<D>(item_to_json<D>(value));
  } else if constexpr (T == field_type::list) {
    return list_from_json<D>(list_to_json<D>(value));
  } else {
    return dictionary_from_json<D>(dictionary_to_json<D>(value));
  }
}

template <dialect D, field_type T>
void check_field(std::string_view input) {
  // Exactly as many bytes as there are, so that a look behind them is seen.
  std::vector<char> const exact(input.begin(), input.end());
  auto const text = std::string_view(exact.data(), exact.size());

  basic_reader<D> reader(T, text);
  model<D> model;
  bool const valid = read<D>(reader, T, model);
  auto const tree = parse<D, T>(text);
  check(valid == tree.has_value());
  if (!valid) {
    check(tree.error() == reader.error());
    check(tree.error().offset <= text.size());
    return;
  }
  auto const written = serialized(*tree);
  check(written == write<D>(model, T));
  auto const again = parse<D, T>(written);
  check(again.has_value());
  check(*again == *tree);
  check(serialized(*again) == written);
  auto const copy = *tree;
  check(copy == *tree);
  auto const json = through_json<D, T>(*tree);
  check(json.has_value());
  check(*json == *tree);
}

}  // namespace tidegate::TIDEGATE_ABI::sf::fuzz

/// The fuzz target of one dialect and one type of field.
#define TIDEGATE_SF_FUZZ(DIALECT, TYPE)                                                      \
  extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size)->int { \
    ::tidegate::sf::fuzz::check_field<::tidegate::sf::dialect::DIALECT,                      \
                                      ::tidegate::sf::field_type::TYPE>(                     \
        {reinterpret_cast<char const*>(data), size});                                        \
    return 0;                                                                                \
  }
