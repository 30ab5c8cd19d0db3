// SPDX-License-Identifier: Apache-2.0
#include "sources/config_tree.hpp"

#include <tidegate/config/config.hpp>
#include <tidegate/config/values.hpp>
#include "reader/wording.hpp"
#include "sources/merger.hpp"
#include "sources/variables.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

namespace tidegate::gateway {

namespace {

constexpr std::string_view include_key = "include";
constexpr std::string_view wildcards = "*?[";

auto normal(std::filesystem::path const& path) -> std::string {
  return path.lexically_normal().string();
}

/// A folder in front of a pattern, where nothing in it is a wildcard.
auto literal(std::string const& folder) -> std::string {
  std::string out;
  for (char const c : folder) {
    if (c == '\\' || wildcards.contains(c)) {
      out += '\\';
    }
    out += c;
  }
  return out;
}

/// Reads files and what they include, the including file first.
class tree_reader {
 public:
  tree_reader(config_tree& tree, std::string_view file_name, config_sources const& sources)
      : tree_(tree),
        folder_(std::filesystem::path(file_name).parent_path().string()),
        sources_(sources),
        variables_(sources, folder_) {}

  void read_main(std::string_view text, std::string_view file_name) {
    seen_.emplace(normal(file_name), yaml_place{});
    open_.push_back(normal(file_name));
    add_file(text, std::string(file_name), yaml_place{});
    tree_.hidden = std::move(variables_.taken());
    tree_.root = is_complete_ ? root_ : nullptr;
  }

 private:
  void fault(yaml_place place, std::string message) {
    tree_.faults.push_back({place, std::move(message)});
  }

  /// Without a file, what others say may be wrong only for that reason.
  void refuse(yaml_place place, std::string message) {
    is_complete_ = false;
    fault(place, std::move(message));
  }

  /// `from` is where the file is included.
  void add_file(std::string_view text, std::string name, yaml_place from) {
    octets_ += text.size();
    auto const number = static_cast<std::uint32_t>(tree_.names.size());
    bool const is_main = number == 0;
    if (octets_ > config_octets_max) {
      auto const most = format_size(static_cast<std::int64_t>(config_octets_max));
      refuse(from, is_main ? "the file is larger than " + most
                           : "include: all files together are larger than " + most);
      if (!is_main) {
        return;
      }
    }
    tree_.names.push_back(std::move(name));
    tree_.texts.push_back(text);
    if (octets_ > config_octets_max) {
      return;
    }
    auto const first = tree_.document.nodes.size();
    auto const read = read_yaml(text, tree_.document, number);
    if (!read) {
      refuse(read.error().place, read.error().message);
      return;
    }
    variables_.replace(tree_.document, first, tree_.faults);
    auto& root = **read;
    if (is_main) {
      root_ = &root;
    } else if (root.kind != yaml_kind::null && root.kind != yaml_kind::mapping) {
      fault(root.place, "expected a mapping with the keys of a configuration");
    } else {
      merge(root);
    }
    follow(root);
  }

  void merge(yaml_node const& from) {
    if (root_->kind == yaml_kind::null) {
      root_->kind = yaml_kind::mapping;  // a file with nothing but comments
    }
    if (root_->kind == yaml_kind::mapping) {
      merger_.merge(*root_, from);
    }
  }

  /// What a file includes.
  void follow(yaml_node const& root) {
    auto const found = std::ranges::find(
        root.members, include_key, [](auto const& member) -> auto& { return member.key->text; });
    if (found == root.members.end()) {
      return;
    }
    auto const& given = *found->value;
    if (given.kind == yaml_kind::scalar) {
      include(given);
    } else if (given.kind == yaml_kind::sequence) {
      for (auto const* const item : given.items) {
        include(*item);
      }
    } else {
      fault(given.kind == yaml_kind::null ? found->key->place : given.place, expected_paths());
    }
  }

  static auto expected_paths() -> std::string {
    return "include: invalid value" + expected("a path, e.g. routes.d/*.yaml, or a list of them");
  }

  void include(yaml_node const& given) {
    if (given.kind != yaml_kind::scalar || given.text.empty()) {
      fault(given.place, expected_paths());
      return;
    }
    if (given.text.find_first_of(wildcards) == std::string::npos) {
      include_file(normal(std::filesystem::path(folder_) / given.text), given);
      return;
    }
    bool const is_absolute = given.text.starts_with('/');
    auto const before = is_absolute || folder_.empty() ? "" : literal(folder_) + "/";
    auto files = sources_.matching(before + given.text);
    if (!files) {
      refuse(given.place,
             "include: cannot look for " + shown(written_text(given)) + ": " + files.error());
      return;
    }
    if (files->empty()) {
      tree_.warnings.push_back(
          {given.place, "include: no file matches " + shown(written_text(given))});
    }
    std::ranges::sort(*files);
    for (auto const& file : *files) {
      include_file(normal(file), given);
    }
  }

  void include_file(std::string const& name, yaml_node const& given) {
    auto const place = given.place;
    if (std::ranges::find(open_, name) != open_.end()) {
      refuse(place, "include: " + shown(name) + " includes itself" +
                        (open_.back() == name ? "" : ", by way of " + shown(open_.back())));
      return;
    }
    if (auto const [first, fresh] = seen_.try_emplace(name, place); !fresh) {
      refuse(place, "include: " + shown(name) + " is included twice; first in " +
                        place_shown(first->second, tree_.names));
      return;
    }
    if (open_.size() > include_depth_max) {
      refuse(place, "include: nested too deeply" +
                        expected("at most " + std::to_string(include_depth_max) + " levels"));
      return;
    }
    if (seen_.size() > include_files_max) {
      refuse(place,
             "include: too many files" + expected("at most " + std::to_string(include_files_max)));
      return;
    }
    auto text = sources_.file(name, config_octets_max - std::min(octets_, config_octets_max));
    if (!text) {
      refuse(place, "include: cannot read " + shown(name) + ": " + text.error());
      return;
    }
    auto const& kept = tree_.included.emplace_back(*std::move(text));
    open_.push_back(name);
    add_file(kept, name, place);
    open_.pop_back();
  }

  config_tree& tree_;
  std::string folder_;
  config_sources const& sources_;
  variables variables_;
  merger merger_{tree_};
  yaml_node* root_ = nullptr;
  std::map<std::string, yaml_place> seen_;
  std::vector<std::string> open_;  // files that include each other, down to the one that is read
  std::size_t octets_ = 0;
  bool is_complete_ = true;
};

}  // namespace

auto read_tree(std::string_view text, std::string_view file_name, config_sources const& sources)
    -> config_tree {
  config_tree tree;
  tree_reader(tree, file_name, sources).read_main(text, file_name);
  return tree;
}

}  // namespace tidegate::gateway
