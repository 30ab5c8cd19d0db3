// SPDX-License-Identifier: Apache-2.0
//
// Walks the table of options along the tree of a file, so that an option that is new in the table
// is seen by itself.
#include <tidegate/config/effective.hpp>

#include <tidegate/base/ascii.hpp>
#include <tidegate/config/values.hpp>
#include "options/options.hpp"
#include "reader/wording.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace tidegate::gateway {

namespace {

constexpr std::size_t value_octets_max = 200;
constexpr std::string_view from_command_line = "command line";
constexpr std::string_view from_default = "default";

auto has_word(std::string_view words, std::string_view text) -> bool {
  auto const all = split_words(words);
  return std::ranges::find(all, text) != all.end();
}

auto find(yaml_node const* mapping, std::string_view key) -> yaml_node const* {
  if (mapping == nullptr || mapping->kind != yaml_kind::mapping) {
    return nullptr;
  }
  auto const found = std::ranges::find_if(
      mapping->members, [&](auto const& member) { return member.key->text == key; });
  return found == mapping->members.end() ? nullptr : found->value;
}

auto text_at(yaml_node const* mapping, std::string_view key) -> std::string_view {
  auto const* const node = find(mapping, key);
  return node == nullptr || node->kind != yaml_kind::scalar ? std::string_view() : node->text;
}

/// The same for people.
auto written_at(yaml_node const* mapping, std::string_view key) -> std::string_view {
  auto const* const node = find(mapping, key);
  return node == nullptr || node->kind != yaml_kind::scalar ? std::string_view()
                                                            : written_text(*node);
}

/// The values of a list where one of them came through a variable; else nothing.
auto text_behind(yaml_node const& list) -> std::string {
  std::string text;
  if (std::ranges::any_of(list.items, [](auto const* item) { return item->written != nullptr; })) {
    for (auto const* const item : list.items) {
      text += item->text + '\n';
    }
  }
  return text;
}

class option_lister {
 public:
  option_lister(config const& made, std::span<std::string const> files, hidden_values const& hidden)
      : made_(made), files_(files), hidden_(hidden) {}

  /// The options of the mapping at `path` of the table, which the file calls `shown`. Without a
  /// node all have their default.
  void list(std::string_view path, std::string const& shown, yaml_node const* node) {
    for (auto const* const rule : options_under(path)) {
      if (is_full()) {
        return;
      }
      auto const* const given = find(node, rule->key());
      auto const name = shown.empty() ? std::string(rule->key()) : shown + "." + key_of(*rule);
      if (given != nullptr) {
        add_given(*rule, name, *given);
      } else if (rule->available != availability::later && says_something(*rule, path, node)) {
        add_default(*rule, name, node);
      }
    }
  }

  [[nodiscard]] auto take() -> std::vector<effective_option> { return std::move(out_); }

 private:
  static auto key_of(option const& rule) -> std::string { return std::string(rule.key()); }

  static auto is_list(option const& rule) -> bool {
    return rule.form == option_form::list || rule.form == option_form::one_or_list;
  }

  [[nodiscard]] auto is_full() const -> bool { return out_.size() >= effective_options_max; }

  /// What an option of a mapping is, given or not.
  static auto value_in(std::string_view path, yaml_node const* node, std::string_view key)
      -> std::string_view {
    if (auto const* const given = find(node, key)) {
      return given->text;
    }
    return option_at(std::string(path) + "." + std::string(key)).initial;
  }

  /// Some options mean nothing unless another one of the same mapping has a value for it.
  [[nodiscard]] auto says_something(option const& rule, std::string_view path,
                                    yaml_node const* node) const -> bool {
    auto const has = [&](std::string_view key, std::string_view value) {
      return value_in(path, node, key) == value;
    };
    if (path == "routes.idempotency" && rule.key() != "mode") {
      return !has("mode", "off");
    }
    if (rule.path == "routes.respond") {
      return false;  // it has defaults, and a route without it has no response of its own
    }
    if (rule.path == "policies.algorithm") {
      return !has("unit", "concurrent-requests");
    }
    if (rule.routes == route_kind::all || route_ >= made_.routes.size()) {
      return true;
    }
    auto const& route = made_.routes[route_];
    return route.scim.has_value() || (rule.routes == route_kind::pages && route.bridge);
  }

  /// Whether what a route has for a header or a parameter of that name is a credential.
  static auto is_credential(option const& rule, std::string_view name) -> bool {
    if (rule.type != option_type::scalar) {
      return false;
    }
    using enum ratelimit::partition_source_kind;
    std::string lower;
    std::ranges::transform(name, std::back_inserter(lower), to_lower);
    return ratelimit::is_credential({rule.key() == "query" ? query : header, lower});
  }

  /// A value that stands for a mapping with one key: the one that has the same type.
  static auto short_form_of(option const& rule) -> option const* {
    auto const keys = options_under(rule.path);
    auto const found = std::ranges::find(keys, rule.type, &option::type);
    return found == keys.end() ? nullptr : *found;
  }

  void add_given(option const& rule, std::string const& shown, yaml_node const& node) {
    bool const has_options = !options_under(rule.path).empty();
    if (rule.form == option_form::one_or_choice) {
      add_choice(rule, shown, node);
    } else if (rule.form == option_form::named || rule.form == option_form::named_or_file ||
               ((rule.form == option_form::patterns || rule.form == option_form::one_or_shares) &&
                node.kind == yaml_kind::mapping)) {
      for (auto const& [key, value] : node.members) {
        auto const name = shown + "." + key->text.substr(0, value_octets_max);
        if (is_credential(rule, key->text)) {
          add(rule, name, value->text, value, true);
        } else {
          add_one(rule, name, *value);
        }
      }
    } else if (is_list(rule) && has_options) {
      add_elements(rule, shown, node);
    } else if (node.kind == yaml_kind::sequence) {
      constexpr std::size_t list_octets_max = 64 * 1024;  // aliases may repeat a long text
      std::string text;
      for (auto const* const item : node.items) {
        text += (text.empty() ? "" : ", ") + shown_text(rule, written_text(*item));
        if (text.size() > list_octets_max) {
          break;
        }
      }
      add(rule, shown, "[" + text + "]", &node);
    } else if (is_list(rule)) {
      add(rule, shown, "[" + shown_text(rule, written_text(node)) + "]", &node);
    } else {
      add_one(rule, shown, node);
    }
  }

  /// A value, or names with values.
  void add_choice(option const& rule, std::string const& shown, yaml_node const& node) {
    if (node.kind != yaml_kind::mapping) {
      add(rule, shown, written_text(node), &node);
    }
    for (auto const& [key, value] : node.members) {
      add(rule, shown + "." + written_text(*key).substr(0, value_octets_max), written_text(*value),
          value);
    }
  }

  /// A list of mappings: what is in it and in which order, then each.
  void add_elements(option const& rule, std::string const& shown, yaml_node const& node) {
    std::vector<yaml_node const*> items = node.items;
    if (node.kind != yaml_kind::sequence) {
      items = {&node};
    }
    std::set<std::string> seen;
    std::vector<std::string> names;
    std::string text;
    for (std::size_t i = 0; i < items.size() && i < effective_options_max; ++i) {
      auto name = name_of(rule, *items[i], i);
      if (!seen.insert(name).second) {
        name += " #" + std::to_string(i + 1);
      }
      text += (text.empty() ? "" : ", ") + name;
      names.push_back(std::move(name));
    }
    add(rule, shown, "[" + text + "]", &node);
    for (std::size_t i = 0; i < names.size() && !is_full(); ++i) {
      route_ = rule.path == "routes" ? i : route_;
      add_one(rule, shown + "[" + names[i] + "]", *items[i]);
    }
  }

  [[nodiscard]] auto name_of(option const& rule, yaml_node const& item, std::size_t position) const
      -> std::string {
    if (rule.path == "routes") {
      auto const* const given = find(&item, "name");
      return (given == nullptr ? made_.routes[position].name : written_text(*given))
          .substr(0, value_octets_max);
    }
    auto const named = item.kind == yaml_kind::scalar   ? std::string_view(written_text(item))
                       : find(&item, "name") != nullptr ? written_at(&item, "name")
                       : find(&item, "url") != nullptr  ? written_at(&item, "url")
                                                        : written_at(&item, "address");
    return named.empty() ? std::to_string(position + 1)
                         : std::string(named.substr(0, value_octets_max));
  }

  void add_one(option const& rule, std::string const& shown, yaml_node const& node) {
    if (node.kind == yaml_kind::mapping) {
      list(rule.path, shown, &node);
      return;
    }
    if (has_word(rule.words, node.text) && rule.type != option_type::choice) {
      add(rule, shown, written_text(node), &node);
      return;
    }
    auto const text = shown_text(rule, written_text(node));
    if (rule.form == option_form::named_or_file) {  // a file has the names
      add(rule, shown, text, &node);
      return;
    }
    if (auto const* const meant = short_form_of(rule)) {
      add(*meant, shown + "." + key_of(*meant), is_list(*meant) ? "[" + text + "]" : text, &node);
      list(rule.path, shown, nullptr);
    } else {
      add(rule, shown, text, &node);
    }
  }

  void add_default(option const& rule, std::string const& shown, yaml_node const* parent) {
    if (auto const made = default_by_others(rule, parent)) {
      add(rule, shown, hidden_.hide(*made), nullptr);
    } else if (!rule.initial.empty()) {
      bool const is_mapping = is_list(rule) && !options_under(rule.path).empty();
      auto const text = std::string(rule.initial);
      add(rule, shown, is_list(rule) ? "[" + text + "]" : text, nullptr);
      if (is_mapping) {
        list(rule.path, shown + "[" + text + "]", nullptr);
      }
    } else if ((rule.words == "off" || rule.words == "none") && rule.path != "upstreams.outlier") {
      add(rule, shown, std::string(rule.words), nullptr);
    } else if (rule.type == option_type::section && rule.form == option_form::one &&
               !has_required(rule)) {
      list(rule.path, shown, nullptr);
    }
  }

  static auto has_required(option const& section) -> bool {
    return std::ranges::any_of(options_under(section.path), [](option const* rule) {
      return rule->available == availability::required;
    });
  }

  /// Defaults that other options make.
  [[nodiscard]] auto default_by_others(option const& rule, yaml_node const* parent) const
      -> std::optional<std::string> {
    if (rule.path == "data") {
      return made_.data;
    }
    if (rule.path == "secrets") {
      return made_.secrets;
    }
    if (rule.path == "stores.idempotency") {
      return "sqlite:" + made_.stores.idempotency.where;
    }
    if (rule.path == "stores.directory") {
      return "sqlite:" + made_.stores.directory.where;
    }
    if (rule.path == "policies.burst" && text_at(parent, "algorithm") == "gcra" &&
        !text_at(parent, "quota").empty()) {
      return std::string(written_at(parent, "quota"));
    }
    if (route_ >= made_.routes.size()) {
      return std::nullopt;
    }
    auto const& route = made_.routes[route_];
    if (rule.path == "routes.name") {
      return route.name;
    }
    if (rule.path == "routes.idempotency.methods") {
      return "[POST, PATCH]";
    }
    if (rule.path == "routes.idempotency.scope" && route.auth) {
      return "[principal]";
    }
    if (rule.path == "routes.scim.max-body" && route.max_body) {
      return format_size(*route.max_body);
    }
    if (rule.path == "routes.scim.default-method" && text_at(parent, "pagination") == "cursor") {
      return "cursor";
    }
    return std::nullopt;
  }

  static auto shown_text(option const& rule, std::string const& text) -> std::string {
    return rule.type == option_type::digest ? text : without_passwords(text);
  }

  /// Without a node it is a default.
  void add(option const& rule, std::string path, std::string value, yaml_node const* node,
           bool is_hidden = false) {
    if (is_full()) {
      return;
    }
    effective_option made{.path = std::move(path),
                          .value = {},
                          .origin = std::string(from_default),
                          .at_start = rule.at_start};
    bool const is_secret = is_hidden || rule.type == option_type::digest;
    bool const is_scalar = node != nullptr && node->kind == yaml_kind::scalar;
    auto const behind = node == nullptr ? std::string() : text_behind(*node);
    auto const whole = is_scalar        ? std::string_view(node->text)
                       : behind.empty() ? std::string_view(value)
                                        : std::string_view(behind);
    bool const is_replaced = !behind.empty() || (is_scalar && node->written != nullptr);
    if (is_secret || is_replaced || value.size() > value_octets_max || value.contains("***")) {
      made.fingerprint = sha256::of(whole);
    }
    if (is_secret) {
      value = "(hidden)";
    } else if (value.size() > value_octets_max) {
      auto end = value_octets_max;
      while (end > 0 && (static_cast<unsigned char>(value[end]) & 0xc0U) == 0x80U) {
        --end;  // not within a character
      }
      value.resize(end);
      value += "...";
    }
    made.value = std::move(value);
    if (node != nullptr) {
      made.origin = files_.front().empty() ? std::string(from_command_line)
                                           : place_shown(node->place, files_);
    }
    out_.push_back(std::move(made));
  }

  config const& made_;
  std::span<std::string const> files_;
  hidden_values const& hidden_;
  std::size_t route_ = 0;  // that is listed
  std::vector<effective_option> out_;
};

}  // namespace

auto effective_options(yaml_node const& root, config const& made,
                       std::span<std::string const> files, hidden_values const& hidden)
    -> std::vector<effective_option> {
  option_lister lister(made, files, hidden);
  lister.list("", "", &root);
  return lister.take();
}

auto differences(std::span<effective_option const> from, std::span<effective_option const> to)
    -> std::vector<option_difference> {
  std::map<std::string_view, effective_option const*> before;
  for (auto const& each : from) {
    before.emplace(each.path, &each);
  }
  std::vector<option_difference> found;
  for (auto const& each : to) {
    auto const was = before.find(each.path);
    if (was == before.end()) {
      found.push_back({nullptr, &each});
      continue;
    }
    if (was->second->value != each.value || was->second->fingerprint != each.fingerprint) {
      found.push_back({was->second, &each});
    }
    before.erase(was);
  }
  for (auto const& each : from) {
    if (auto const left = before.find(each.path); left != before.end() && left->second == &each) {
      found.push_back({&each, nullptr});
    }
  }
  return found;
}

}  // namespace tidegate::gateway
