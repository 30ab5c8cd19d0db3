// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/config.hpp>
#include <tidegate/config/yaml.hpp>
#include "options/options.hpp"
#include "reader/scalars.hpp"
#include "reader/wording.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
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
  [[nodiscard]] auto rule(std::string_view key) const -> option const& {
    return option_at(path_of(key));
  }
  /// Of the value, or of the section when it has none.
  [[nodiscard]] auto place_of(std::string_view key) const -> yaml_place;
};

/// The keys that a section may have. Of a route those of SCIM only `with_scim`: they are many.
[[nodiscard]] auto keys_of(std::string_view path, bool with_scim) -> std::string;

/// Reads sections and values by the table of options. Faults are collected and reading goes on with
/// the default, so that an operator sees all of them at once.
class option_reader {
 public:
  explicit option_reader(std::string_view file_name) : file_name_(file_name) {}

  void fault(yaml_place place, std::string message);
  void warn(yaml_place place, std::string message);
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
    auto value = read(rule, {node.text, node.quoted});
    if (!value) {
      fault(node.place,
            std::string(rule.key()) + ": " + value.error() + expected(allowed_values(rule)));
      return std::nullopt;
    }
    return *std::move(value);
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
    return *read(rule, {rule.initial});
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

  /// A duration that has to be in whole seconds.
  [[nodiscard]] auto take_seconds(section const& from, std::string_view key)
      -> std::chrono::seconds;

  /// Paths in the file are relative to its folder.
  [[nodiscard]] auto beside_file(std::string_view path) const -> std::string;

 private:
  void refuse_variables(yaml_node const& node);
  void check_key(yaml_node const& key, std::string_view parent,
                 std::vector<option const*> const& rules, bool with_scim);
  void check_required(section const& opened, std::vector<option const*> const& rules);
  [[nodiscard]] auto is_value_to_read(option const& rule, yaml_node const& node) -> bool;

  std::string file_name_;
  std::vector<config_fault> faults_;
  std::vector<config_fault> warnings_;
  std::set<yaml_place> with_variables_;  // nothing else is said of these
};

}  // namespace tidegate::gateway
