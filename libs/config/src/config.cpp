// SPDX-License-Identifier: Apache-2.0
#include <tidegate/config/config.hpp>

#include <tidegate/config/effective.hpp>
#include <tidegate/config/values.hpp>
#include "reader/former_places.hpp"
#include "reader/parts.hpp"
#include "sources/config_tree.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace tidegate::gateway {

namespace {

constexpr std::size_t faults_max = 100;

auto read_root(option_reader& in, yaml_node const& root) -> config {
  config made;
  auto const top = in.open_root(root);
  in.fill(top, made);
  read_listeners(in, top, made);
  read_admin(in, top, made);
  read_process(in, top, made);
  read_consumers(in, top, made);
  known_names known;
  known.upstreams = read_upstreams(in, top, made);
  known.policies = read_policies(in, top, made);
  read_routes(in, top, known, made);
  return made;
}

auto lengths_of_lines(std::string_view text) -> std::vector<std::size_t> {
  std::vector<std::size_t> lengths;
  for (std::size_t begin = 0; begin <= text.size();) {
    auto const end = std::min(text.find('\n', begin), text.size());
    lengths.push_back(end - begin);
    begin = end + 1;
  }
  return lengths;
}

/// Puts faults in the order of the files and of their text and inside of it, leaves out those that
/// come after many others, and takes out of messages what came through variables.
void arrange(std::vector<config_fault>& faults, config_tree const& tree) {
  // yaml-cpp says of what is missing at the end that it is behind it.
  std::map<std::string_view, std::vector<std::size_t>> lengths;
  for (auto& fault : faults) {
    auto [known, fresh] = lengths.try_emplace(fault.file);
    if (fresh) {
      auto const file = std::ranges::find(tree.names, fault.file) - tree.names.begin();
      known->second = lengths_of_lines(tree.texts[static_cast<std::size_t>(file)]);
    }
    fault.line = std::min(fault.line, known->second.size());
    fault.column = std::min(fault.column, known->second[fault.line - 1] + 1);
  }
  std::sort(faults.begin(), faults.end());
  // What an alias repeats is at fault at the same place.
  faults.erase(std::unique(faults.begin(), faults.end()), faults.end());
  if (faults.size() > faults_max) {
    faults.resize(faults_max);
  }
  for (auto& fault : faults) {
    fault.message = tree.hidden.hide(std::move(fault.message));
  }
}

}  // namespace

auto to_string(config_fault const& fault) -> std::string {
  if (fault.file.starts_with("--")) {
    return fault.file +
           (fault.column == 1 ? ": " : ", character " + std::to_string(fault.column) + ": ") +
           fault.message;
  }
  return fault.file + ":" + std::to_string(fault.line) + ":" + std::to_string(fault.column) + ": " +
         fault.message;
}

auto place_of(config const& settings, std::string_view path) -> config_fault {
  auto found = std::ranges::find(settings.effective, path, &effective_option::path);
  if (found == settings.effective.end()) {  // a name in it may have come through a variable
    found = std::ranges::find(settings.effective, settings.hidden.hide(std::string(path)),
                              &effective_option::path);
  }
  config_fault place;
  if (found == settings.effective.end()) {
    return place;
  }
  // FILE:LINE:COLUMN; the name of a file may have colons.
  std::string_view const origin = found->origin;
  auto const column = origin.rfind(':');
  auto const line = column == std::string_view::npos ? column : origin.rfind(':', column - 1);
  if (line != std::string_view::npos) {
    place.file = origin.substr(0, line);
    place.line = static_cast<std::size_t>(
        parse_count(origin.substr(line + 1, column - line - 1)).value_or(1));
    place.column = static_cast<std::size_t>(parse_count(origin.substr(column + 1)).value_or(1));
  }
  return place;
}

auto parse_config(std::string_view text, std::string_view file_name, config_sources const& sources)
    -> result<config, std::vector<config_fault>> {
  auto tree = read_tree(text, file_name, sources);
  option_reader reader(tree.names, tree.faults);
  for (auto const& found : tree.warnings) {
    reader.warn(found.place, found.message);
  }
  config made;
  if (tree.root != nullptr) {
    auto const& root = with_options_in_place(reader, tree.document, *tree.root);
    made = read_root(reader, root);
    if (reader.fault_count() == 0) {
      made.effective = effective_options(root, made, tree.names, tree.hidden);
      made.warnings = reader.take_warnings();
    }
  }
  auto faults = reader.take_faults();
  if (!faults.empty()) {
    arrange(faults, tree);
    return failure(std::move(faults));
  }
  arrange(made.warnings, tree);
  made.hidden = std::move(tree.hidden);
  return made;
}

auto parse_config(std::string_view text, std::string_view file_name)
    -> result<config, std::vector<config_fault>> {
  return parse_config(text, file_name, no_sources());
}

}  // namespace tidegate::gateway
