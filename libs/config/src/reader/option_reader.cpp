// SPDX-License-Identifier: Apache-2.0
#include "reader/option_reader.hpp"

#include <tidegate/config/values.hpp>

#include <filesystem>
#include <unordered_map>

namespace tidegate::gateway {

namespace {

/// `quota:10` and `match {path: /}` are keys to YAML; what is missing is not seen easily.
auto missing_in(std::string_view text, std::vector<std::string_view> const& known) -> std::string {
  auto const begins_with_key = [&](char mark) {
    auto const end = text.find(mark);
    return end != std::string_view::npos &&
           std::find(known.begin(), known.end(), text.substr(0, end)) != known.end();
  };
  return begins_with_key(':')   ? "; a space is missing behind its colon"
         : begins_with_key(' ') ? "; a colon is missing behind its first word"
                                : "";
}

constexpr std::string_view not_available = " is not available in this version";

auto key_of(std::string_view path) -> std::string_view {
  return path.substr(path.rfind('.') + 1);
}

}  // namespace

auto section::find(std::string_view key) const -> yaml_node::member const* {
  if (node == nullptr) {
    return nullptr;
  }
  auto const found =
      std::find_if(node->members.begin(), node->members.end(),
                   [&](yaml_node::member const& member) { return member.key->text == key; });
  return found == node->members.end() ? nullptr : &*found;
}

auto section::has_mapping(std::string_view key) const -> bool {
  auto const* const member = find(key);
  return member != nullptr && member->value->kind == yaml_kind::mapping;
}

auto section::has_empty_list(std::string_view key) const -> bool {
  auto const* const member = find(key);
  return member != nullptr && member->value->kind == yaml_kind::sequence &&
         member->value->items.empty();
}

auto section::path_of(std::string_view key) const -> std::string {
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

auto section::under(std::string_view key) const -> section {
  auto const* const member = find(key);
  bool const is_mapping = member != nullptr && member->value->kind == yaml_kind::mapping;
  return {path_of(key), is_mapping ? member->value : nullptr, place_of(key)};
}

auto section::place_of(std::string_view key) const -> yaml_place {
  auto const* const member = find(key);
  return member == nullptr ? place : member->value->place;
}

auto keys_of(std::string_view path) -> std::string {
  std::vector<std::string_view> keys;
  for (auto const* const rule : options_under(path)) {
    if (rule->available != availability::later) {
      keys.push_back(rule->key());
    }
  }
  return joined(keys, ", ");
}

option_reader::option_reader(std::span<std::string const> files,
                             std::span<yaml_fault const> found_before)
    : files_(files) {
  for (auto const& [place, message] : found_before) {
    faults_.push_back({files_[place.file], place.line, place.column, message});
    refused_.insert(place);
  }
}

void option_reader::fault(yaml_place place, std::string message) {
  if (!refused_.contains(place)) {
    faults_.push_back({files_[place.file], place.line, place.column, std::move(message)});
  }
}

void option_reader::warn(yaml_place place, std::string message) {
  warnings_.push_back({files_[place.file], place.line, place.column, std::move(message)});
}

auto option_reader::open_root(yaml_node const& root) -> section {
  if (root.kind != yaml_kind::null) {
    return open(root, "");
  }
  section opened{};
  check_required(opened, options_under(""));
  return opened;
}

auto option_reader::open(yaml_node const& node, std::string path) -> section {
  section opened{std::move(path), nullptr, node.place};
  if (node.kind != yaml_kind::mapping) {
    fault(node.place, "expected a mapping" +
                          (opened.path.empty() ? "" : " for " + shown(key_of(opened.path))) +
                          " (keys: " + keys_of(opened.path) + ")");
    return opened;
  }
  opened.node = &node;
  auto const rules = options_under(opened.path);
  check_repetitions(node, "key");
  for (auto const& [key, value] : node.members) {
    check_key(*key, opened.path, rules);
  }
  check_required(opened, rules);
  return opened;
}

auto option_reader::open_at(section const& parent, std::string_view key) -> section {
  auto const* const member = parent.find(key);
  if (member == nullptr || has_no_value(*member)) {
    return {parent.path_of(key), nullptr, parent.place};
  }
  return open(*member->value, parent.path_of(key));
}

void option_reader::check_key(yaml_node const& key, std::string_view parent,
                              std::span<option const* const> rules) {
  auto const found = std::find_if(rules.begin(), rules.end(),
                                  [&](option const* rule) { return rule->key() == key.text; });
  if (found != rules.end() ? (*found)->available == availability::later
                           : is_known_elsewhere(parent, key.text)) {
    fault(key.place, shown(key.text) + std::string(not_available) + expected(keys_of(parent)));
  } else if (found == rules.end()) {
    std::vector<std::string_view> known;
    for (auto const* const rule : rules) {
      if (rule->available != availability::later) {
        known.push_back(rule->key());
      }
    }
    auto const instead = find_instead(parent, key.text);
    auto const missing = missing_in(key.text, known);
    fault(key.place, "unknown key " + shown(key.text) +
                         (!instead.empty()  ? "; did you mean " + shown(instead) + "?"
                          : missing.empty() ? did_you_mean(key.text, known)
                                            : missing) +
                         expected(keys_of(parent)));
  }
}

void option_reader::check_repetitions(yaml_node const& mapping, std::string_view kind) {
  std::unordered_map<std::string_view, yaml_place> seen;
  for (auto const& [key, value] : mapping.members) {
    auto const [at, first] = seen.try_emplace(key->text, key->place);
    if (!first) {
      fault(key->place, "duplicate " + std::string(kind) + " " + shown(key->text) +
                            "; it is already in " + line_of(at->second, key->place));
    }
  }
}

void option_reader::check_required(section const& opened, std::span<option const* const> rules) {
  for (auto const* const rule : rules) {
    if (rule->available == availability::required && !opened.has(rule->key())) {
      fault(opened.place, shown(rule->key()) + " is missing" +
                              expected((rule->form == option_form::list ? "a list of " : "") +
                                       allowed_values(*rule)));
    }
  }
}

auto option_reader::has_no_value(yaml_node::member const& member) -> bool {
  if (member.value->kind != yaml_kind::null) {
    return false;
  }
  fault(member.key->place, shown(member.key->text) + " has no value");
  return true;
}

auto option_reader::named_at(section const& from, std::string_view key)
    -> std::vector<yaml_node::member> {
  auto const* const member = from.find(key);
  if (member == nullptr || has_no_value(*member)) {
    return {};
  }
  if (member->value->kind != yaml_kind::mapping) {
    fault(member->value->place, std::string(key) + ": expected a mapping from names");
    return {};
  }
  check_repetitions(*member->value, "name");
  for (auto const& [name, value] : member->value->members) {
    if (!is_printable_name(name->text)) {
      fault(name->place, "invalid name " + shown(name->text) +
                             expected("printable ASCII characters, without spaces at the ends"));
    }
  }
  return member->value->members;
}

auto option_reader::items_at(section const& from, std::string_view key)
    -> std::vector<yaml_node const*> {
  auto const* const member = from.find(key);
  if (member == nullptr || has_no_value(*member)) {
    return {};
  }
  if (member->value->kind == yaml_kind::sequence) {
    return member->value->items;
  }
  if (from.rule(key).form == option_form::one_or_list) {
    return {member->value};
  }
  fault(member->value->place, std::string(key) + ": expected a list");
  return {};
}

auto option_reader::is_value_to_read(option const& rule, yaml_node const& node) -> bool {
  auto const refuse = [&](std::string const& reason) {
    fault(node.place, std::string(rule.key()) + ": " + reason + expected(allowed_values(rule)));
    return false;
  };
  if (node.kind != yaml_kind::scalar) {
    return refuse("must be a single value");
  }
  for (auto const later : split_words(rule.later)) {
    if (node.text.starts_with(later)) {
      return refuse(shown(written_text(node)) + std::string(not_available));
    }
  }
  return rule.type == option_type::choice || !is_word(rule, node.text);
}

auto option_reader::beside_file(std::string_view path) const -> std::string {
  return (std::filesystem::path(files_.front()).parent_path() / path).lexically_normal().string();
}

}  // namespace tidegate::gateway
