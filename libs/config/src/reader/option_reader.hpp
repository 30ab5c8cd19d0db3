// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/config.hpp>
#include <tidegate/config/yaml.hpp>
#include "options/options.hpp"
#include "reader/scalars.hpp"
#include "reader/wording.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tidegate::gateway {

/// One mapping of the file and where in the table its options are. Without a node all have their
/// default.
struct section {
  std::string path;
  yaml_node const* node = nullptr;
  yaml_place place{};

  [[nodiscard]] auto find(std::string_view key) const -> yaml_node::member const*;
  [[nodiscard]] auto has(std::string_view key) const -> bool { return find(key) != nullptr; }
  [[nodiscard]] auto has_mapping(std::string_view key) const -> bool;
  [[nodiscard]] auto has_empty_list(std::string_view key) const -> bool;

  [[nodiscard]] auto path_of(std::string_view key) const -> std::string;
  /// The mapping at `key`, with its keys as they are.
  [[nodiscard]] auto under(std::string_view key) const -> section;
  [[nodiscard]] auto rule(std::string_view key) const -> option const& {
    return option_at(path_of(key));
  }
  /// Of the value, or of the section when it has none.
  [[nodiscard]] auto place_of(std::string_view key) const -> yaml_place;
};

/// The keys that a section may have.
[[nodiscard]] auto keys_of(std::string_view path) -> std::string;

/// Whether a choice is the word for a value that is missing.
template <class Value>
[[nodiscard]] auto is_none(Value const& value) -> bool {
  if constexpr (std::is_same_v<Value, std::string_view>) {
    return value == "none";
  }
  return false;
}

/// Reads sections and values by the table of options. Faults are collected and reading goes on with
/// the default, so that an operator sees all of them at once.
class option_reader {
 public:
  /// `files` are the names of those that places have by number, the main one first. Where faults
  /// were found before the options are read, nothing else is said.
  option_reader(std::span<std::string const> files, std::span<yaml_fault const> found_before);

  void fault(yaml_place place, std::string message);
  void warn(yaml_place place, std::string message);
  /// `line 5` for a message about `here`.
  [[nodiscard]] auto line_of(yaml_place place, yaml_place here) const -> std::string {
    return line_shown(place, here, files_);
  }
  [[nodiscard]] auto fault_count() const -> std::size_t { return faults_.size(); }
  [[nodiscard]] auto take_faults() -> std::vector<config_fault> { return std::move(faults_); }
  [[nodiscard]] auto take_warnings() -> std::vector<config_fault> { return std::move(warnings_); }

  // ---- sections ----

  /// The file itself.
  [[nodiscard]] auto open_root(yaml_node const& root) -> section;
  /// Checks the keys of a mapping.
  [[nodiscard]] auto open(yaml_node const& node, std::string path) -> section;
  /// The mapping at `key`; when there is none, one where all options have their default.
  [[nodiscard]] auto open_at(section const& parent, std::string_view key) -> section;
  /// The members of a mapping from names to values.
  [[nodiscard]] auto named_at(section const& from, std::string_view key)
      -> std::vector<yaml_node::member>;
  /// The values of a list, or the one value that stands for a list of one.
  [[nodiscard]] auto items_at(section const& from, std::string_view key)
      -> std::vector<yaml_node const*>;
  /// `kind` is what its keys are called.
  void check_repetitions(yaml_node const& mapping, std::string_view kind);
  [[nodiscard]] auto has_no_value(yaml_node::member const& member) -> bool;
  /// A path of the file, which is relative to its folder.
  [[nodiscard]] auto beside_file(std::string_view path) const -> std::string;

  // ---- values: `Read` is one of scalars.hpp ----

  template <class Read>
  using type_read = typename std::invoke_result_t<Read, option const&, scalar const&>::value_type;

  /// Reads one value by its rule. Nothing for a word, such as `none`, and after a fault.
  template <class Read>
  [[nodiscard]] auto take_node(option const& rule, yaml_node const& node, Read read)
      -> std::optional<type_read<Read>> {
    if (!is_value_to_read(rule, node)) {
      return std::nullopt;
    }
    // Between { and } a variable has to be in quotes, also where it stands for a number.
    auto value = read(rule, {node.text, node.quoted && node.written == nullptr});
    if (!value) {
      // What is wrong may show a value that is a secret.
      fault(node.place, std::string(rule.key()) + ": " +
                            (node.written == nullptr ? value.error()
                                                     : "invalid value of " + shown(*node.written)) +
                            expected(allowed_values(rule)));
      return std::nullopt;
    }
    return in_place(rule, *std::move(value));
  }

  /// The value at `key`, or its default.
  template <class Read>
  auto take(section const& from, std::string_view key, Read read)
      -> std::optional<type_read<Read>> {
    auto const& rule = from.rule(key);
    if (auto const* const member = from.find(key)) {
      return has_no_value(*member) ? std::nullopt : take_node(rule, *member->value, read);
    }
    if (rule.initial.empty() || (rule.type != option_type::choice && is_word(rule, rule.initial))) {
      return std::nullopt;
    }
    return in_place(rule, *read(rule, {rule.initial}));
  }

  /// The same for an option that has a default: after a fault any value will do.
  template <class Read>
  [[nodiscard]] auto take_or_default(section const& from, std::string_view key, Read read)
      -> type_read<Read> {
    return take(from, key, read).value_or(type_read<Read>{});
  }

  template <class Read>
  [[nodiscard]] auto take_list(section const& from, std::string_view key, Read read)
      -> std::vector<type_read<Read>> {
    std::vector<type_read<Read>> values;
    for (auto const* const item : items_at(from, key)) {
      if (auto value = take_node(from.rule(key), *item, read)) {
        values.push_back(*std::move(value));
      }
    }
    return values;
  }

  // ---- members, by the rows that name them ----

  /// Reads the options of a section that are members of `Owner`.
  template <class Owner>
  void fill(section const& from, Owner& made) {
    for (auto const* const rule : options_under(from.path)) {
      if (rule->owner == &type_tag<Owner>) {
        rule->read(*this, from, *rule, &made);
      }
    }
  }

  /// Reads one option into a member: a list, what may be missing, or a value.
  template <auto Read, class Value>
  void read_into(section const& from, option const& rule, std::vector<Value>& member) {
    member = take_list(from, rule.key(), Read);
  }
  template <auto Read, class Value>
  void read_into(section const& from, option const& rule, std::optional<Value>& member) {
    auto const value = take(from, rule.key(), Read);
    member.reset();
    if (value && !is_none(*value)) {
      member = converted<Value>(from, rule, *value);
    }
  }
  template <auto Read, class Member>
  void read_into(section const& from, option const& rule, Member& member) {
    member = converted<Member>(from, rule, take_or_default(from, rule.key(), Read));
  }

  template <class Member>
  void read_mapping(section const& from, option const& rule, Member& member) {
    fill(open_at(from, rule.key()), member);
  }
  /// Missing too where there is a word such as `off`.
  template <class Member>
  void read_mapping(section const& from, option const& rule, std::optional<Member>& member) {
    auto const* const given = from.find(rule.key());
    if (given != nullptr && !is_word(rule, given->value->text)) {
      fill(open_at(from, rule.key()), member.emplace());
    }
  }

 private:
  /// The value as the member has it. Words are those of an enumeration in its order, or of false
  /// and true.
  template <class Member, class Value>
  [[nodiscard]] auto converted(section const& from, option const& rule, Value const& value)
      -> Member {
    if constexpr (std::is_same_v<Value, std::string_view>) {
      auto words = split_words(rule.words);
      if (rule.reversed) {
        std::ranges::reverse(words);
      }
      auto const found = std::ranges::find(words, value);  // none after a fault
      return found == words.end() ? Member{} : static_cast<Member>(found - words.begin());
    } else if constexpr (std::is_same_v<Member, std::chrono::seconds>) {
      if (value % std::chrono::seconds(1) != std::chrono::nanoseconds(0)) {
        fault(from.place_of(rule.key()),
              std::string(rule.key()) + ": must be whole seconds" + expected("e.g. 10s"));
      }
      return std::chrono::duration_cast<std::chrono::seconds>(value);
    } else if constexpr (std::is_same_v<Value, std::chrono::nanoseconds>) {
      return std::chrono::duration_cast<Member>(value);
    } else if constexpr (std::is_integral_v<Value>) {
      return static_cast<Member>(value);
    } else {
      return value;
    }
  }

  /// Paths in the file are relative to its folder.
  template <class Value>
  [[nodiscard]] auto in_place(option const& rule, Value value) const -> Value {
    if constexpr (std::is_same_v<Value, std::string>) {
      return rule.type == option_type::file ? beside_file(value) : value;
    } else if constexpr (std::is_same_v<Value, store_location>) {
      if (value.kind == store_kind::sqlite) {
        value.where = beside_file(value.where);
      }
    }
    return value;
  }

  void check_key(yaml_node const& key, std::string_view parent,
                 std::span<option const* const> rules);
  void check_required(section const& opened, std::span<option const* const> rules);
  [[nodiscard]] auto is_value_to_read(option const& rule, yaml_node const& node) -> bool;

  std::span<std::string const> files_;
  std::vector<config_fault> faults_;
  std::vector<config_fault> warnings_;
  std::set<yaml_place> refused_;  // nothing else is said of these
};

}  // namespace tidegate::gateway
