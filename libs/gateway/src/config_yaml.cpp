// SPDX-License-Identifier: Apache-2.0
#include "config_yaml.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>

namespace tidegate::gateway {

namespace {

auto place_of(YAML::Mark const& mark) -> yaml_place {
  return {static_cast<std::size_t>(std::max(mark.line, 0)) + 1,
          static_cast<std::size_t>(std::max(mark.column, 0)) + 1};
}

/// Thrown through yaml-cpp, which has no other way to stop, and caught in `read_yaml`.
struct stop {
  yaml_fault fault;
};

[[noreturn]] void refuse(yaml_place place, std::string message) {
  throw stop{{place, std::move(message)}};
}

class tree_builder final : public YAML::EventHandler {
 public:
  explicit tree_builder(yaml_document& document) : document_(document) {}

  void OnDocumentStart(YAML::Mark const& mark) override {
    if (document_.root != nullptr) {
      refuse(place_of(mark), "a configuration is one document; remove what follows ---");
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(YAML::Mark const& mark, YAML::anchor_t anchor) override {
    add(make(yaml_node::kind::null, mark, anchor));
  }

  void OnScalar(YAML::Mark const& mark, std::string const& tag, YAML::anchor_t anchor,
                std::string const& value) override {
    // yaml-cpp gives plain text the tag "?" and text in quotes "!".
    if (tag != "?") {
      refuse_tag(mark, tag);
    }
    auto& node = make(yaml_node::kind::scalar, mark, anchor);
    node.quoted = tag == "!";
    node.text = value;
    add(node);
  }

  void OnAlias(YAML::Mark const& mark, YAML::anchor_t anchor) override {
    auto const found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      refuse(place_of(mark), "an alias cannot stand inside of what it names");
    }
    count(found->second.size, place_of(mark));
    add(*found->second.node);
  }

  void OnSequenceStart(YAML::Mark const& mark, std::string const& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_tag(mark, tag);
    open(make(yaml_node::kind::sequence, mark, 0), anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(YAML::Mark const& mark, std::string const& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_tag(mark, tag);
    open(make(yaml_node::kind::mapping, mark, 0), anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct anchored {
    yaml_node const* node;
    std::size_t size;  // how many nodes, with all that aliases repeat
  };
  struct opened {
    yaml_node* node;
    YAML::anchor_t anchor;
    std::size_t count_before;
    yaml_node const* key = nullptr;
  };

  static void refuse_tag(YAML::Mark const& mark, std::string const& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") {
      refuse(place_of(mark), "tags such as !!str are not taken");
    }
  }

  void count(std::size_t nodes, yaml_place place) {
    count_ += nodes;
    if (count_ > yaml_nodes_max) {
      refuse(place, "too much: at most " + std::to_string(yaml_nodes_max) +
                        " values, with all that aliases repeat");
    }
  }

  auto make(yaml_node::kind kind, YAML::Mark const& mark, YAML::anchor_t anchor) -> yaml_node& {
    count(1, place_of(mark));
    auto& node = document_.nodes.emplace_back();
    node.is = kind;
    node.place = place_of(mark);
    if (anchor != 0) {
      anchors_[anchor] = {&node, 1};
    }
    return node;
  }

  void open(yaml_node& node, YAML::anchor_t anchor) {
    if (open_.size() == yaml_depth_max) {
      refuse(node.place,
             "nested too deeply: at most " + std::to_string(yaml_depth_max) + " levels");
    }
    open_.push_back({&node, anchor, count_ - 1});
  }

  void close() {
    auto const done = open_.back();
    open_.pop_back();
    if (done.anchor != 0) {
      anchors_[done.anchor] = {done.node, count_ - done.count_before};
    }
    add(*done.node);
  }

  void add(yaml_node const& node) {
    if (open_.empty()) {
      document_.root = &node;
      return;
    }
    auto& parent = open_.back();
    if (parent.node->is == yaml_node::kind::sequence) {
      parent.node->items.push_back(&node);
    } else if (parent.key == nullptr) {
      if (node.is != yaml_node::kind::scalar) {
        refuse(node.place, "a key must be text");
      }
      if (node.text == "<<" && !node.quoted) {
        refuse(node.place, "merge keys are not taken; an alias may stand for a whole value");
      }
      parent.key = &node;
    } else {
      parent.node->members.push_back({parent.key, &node});
      parent.key = nullptr;
    }
  }

  yaml_document& document_;
  std::map<YAML::anchor_t, anchored> anchors_;
  std::vector<opened> open_;
  std::size_t count_ = 0;
};

/// yaml-cpp guesses UTF-16 and UTF-32 and lets broken UTF-8 pass, so what cannot be UTF-8 text is refused
/// before it looks.
auto first_strange_byte(std::string_view text) -> std::size_t {
  auto const at = std::find_if(text.begin(), text.end(), [](char c) {
    auto const byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7f || byte == 0xc0 ||
           byte == 0xc1 || byte > 0xf4;
  });
  return static_cast<std::size_t>(at - text.begin());
}

auto place_at(std::string_view text, std::size_t offset) -> yaml_place {
  auto const before = text.substr(0, offset);
  auto const lines = std::count(before.begin(), before.end(), '\n');
  auto const newline = before.rfind('\n');
  return {static_cast<std::size_t>(lines) + 1,
          offset - (newline == std::string_view::npos ? 0 : newline + 1) + 1};
}

/// The line of a fault, or the last one before it that is not empty.
auto line_at(std::string_view text, std::size_t number) -> std::string_view {
  std::string_view last;
  for (std::size_t i = 1; i <= number && !text.empty(); ++i) {
    auto const end = std::min(text.find('\n'), text.size());
    if (auto const line = text.substr(0, end);
        i == number || line.find_first_not_of(" \t\r") != std::string_view::npos) {
      last = line;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (last.ends_with('\r')) {
    last.remove_suffix(1);
  }
  return last;
}

/// What is wrong, in the words of people who do not know how YAML is read.
auto in_plain_words(std::string_view fault, std::string_view line, std::size_t column)
    -> std::string {
  using namespace YAML::ErrorMsg;
  auto const indent = line.substr(0, std::min(line.find_first_not_of(" \t"), line.size()));
  if (indent.contains('\t') || fault == TAB_IN_INDENTATION) {
    return "tabs cannot indent; use spaces";
  }
  if (fault == ALIAS_NOT_FOUND || fault == CHAR_IN_ALIAS || fault == UNKNOWN_ANCHOR) {
    return "a value that begins with * must be in quotes: else it stands for an alias, and there "
           "is no anchor of that name";
  }
  if (fault == ANCHOR_NOT_FOUND || fault == CHAR_IN_ANCHOR) {
    return "a value that begins with & must be in quotes: else it is an anchor";
  }
  if (fault == UNKNOWN_TOKEN) {
    auto const first = column <= line.size() ? line.substr(column - 1, 1) : std::string_view();
    return "a value that begins with " + std::string(first) + " must be in quotes";
  }
  if (fault == MAP_VALUE || fault == MAP_KEY) {
    return "a colon is not expected here: a value with \": \" in it must be in quotes, keys of one "
           "mapping begin in the same column, and the line before may lack its colon";
  }
  if (fault == END_OF_MAP || fault == END_OF_SEQ || fault == BLOCK_ENTRY) {
    return "the indentation does not fit the lines above: what belongs together begins in the same "
           "column";
  }
  if (fault == END_OF_MAP_FLOW) {
    return "a } or a comma is missing";
  }
  if (fault == END_OF_SEQ_FLOW) {
    return "a ] or a comma is missing";
  }
  if (fault == FLOW_END) {
    return "a ] or } that closes nothing, or the wrong one of the two";
  }
  if (fault.starts_with(INVALID_ESCAPE)) {
    return "a backslash in double quotes must be written twice, or the value put in single quotes";
  }
  return std::string(fault);
}

}  // namespace

auto read_yaml(std::string_view text) -> result<yaml_document, yaml_fault> {
  if (auto const strange = first_strange_byte(text); strange != text.size()) {
    return failure(yaml_fault{place_at(text, strange),
                              "a control character, or no UTF-8; allowed: text in UTF-8"});
  }
  yaml_document document;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    tree_builder builder(document);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (stop const& stopped) {
    return failure(stopped.fault);
  } catch (YAML::Exception const& error) {
    constexpr std::size_t shown_max = 80;
    auto const place = place_of(error.mark);
    auto const line = line_at(text, place.line);
    auto const shown = line.substr(0, shown_max);
    return failure(
        yaml_fault{place, "this is not YAML: " + in_plain_words(error.msg, line, place.column) +
                              "; the line: \"" + std::string(shown) +
                              (shown.size() < line.size() ? "..." : "") + "\""});
  }
  if (document.root == nullptr) {
    document.root = &document.nodes.emplace_back();
  }
  return document;
}

}  // namespace tidegate::gateway
