// SPDX-License-Identifier: Apache-2.0
#include <tidegate/config/yaml.hpp>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>

namespace tidegate::gateway {

namespace {

auto place_of(YAML::Mark const& mark, std::uint32_t file) -> yaml_place {
  return {static_cast<std::uint32_t>(std::max(mark.line, 0)) + 1,
          static_cast<std::uint32_t>(std::max(mark.column, 0)) + 1, file};
}

/// Thrown through yaml-cpp, which has no other way to stop, and caught in `read_yaml`.
struct stop {
  yaml_fault fault;
};

struct quote_not_closed {
  yaml_place place;
};

[[noreturn]] void refuse(yaml_place place, std::string message) {
  throw stop{{place, std::move(message)}};
}

constexpr auto npos = std::string_view::npos;

/// The length of the text in quotes that `text` begins with; nothing when they are not closed.
auto size_of_quoted(std::string_view text) -> std::size_t {
  for (std::size_t i = 1; i < text.size(); ++i) {
    bool const is_doubled = text[0] == '\'' && text.substr(i, 2) == "''";
    if (is_doubled || (text[0] == '"' && text[i] == '\\')) {
      ++i;
    } else if (text[i] == text[0]) {
      return i + 1;
    }
  }
  return npos;
}

/// Text in quotes that goes on over lines: rare in a configuration, and if something is wrong
/// behind it, a quote is likely to be missing.
struct long_quote {
  yaml_place begin;
  std::uint32_t end_line = 0;
};

class tree_builder final : public YAML::EventHandler {
 public:
  tree_builder(yaml_document& document, std::string_view text, std::uint32_t file)
      : document_(document), text_(text), file_(file) {}

  [[nodiscard]] auto root() const -> yaml_node* { return root_; }

  [[nodiscard]] auto last_long_quote() const -> long_quote const& { return last_long_quote_; }

  void OnDocumentStart(YAML::Mark const& mark) override {
    if (root_ != nullptr) {
      refuse(place_at(mark), "a configuration is one document; remove what follows ---");
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(YAML::Mark const& mark, YAML::anchor_t anchor) override {
    add(make(yaml_kind::null, mark, anchor));
  }

  void OnScalar(YAML::Mark const& mark, std::string const& tag, YAML::anchor_t anchor,
                std::string const& value) override {
    // yaml-cpp gives plain text the tag "?" and text in quotes "!".
    if (tag != "?") {
      refuse_tag(mark, tag);
    }
    auto& node = make(yaml_kind::scalar, mark, anchor);
    node.quoted = tag == "!";
    if (node.quoted) {
      look_at_quotes(mark);
    }
    node.text = value;
    add(node);
  }

  void OnAlias(YAML::Mark const& mark, YAML::anchor_t anchor) override {
    auto const found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      refuse(place_at(mark), "an alias cannot stand inside of what it names");
    }
    count(found->second.size, place_at(mark));
    add(*found->second.node);
  }

  void OnSequenceStart(YAML::Mark const& mark, std::string const& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_tag(mark, tag);
    open(make(yaml_kind::sequence, mark, 0), anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(YAML::Mark const& mark, std::string const& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_tag(mark, tag);
    open(make(yaml_kind::mapping, mark, 0), anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct anchored {
    yaml_node* node;
    std::size_t size;  // how many nodes, with all that aliases repeat
  };
  struct opened {
    yaml_node* node;
    YAML::anchor_t anchor;
    std::size_t count_before;
    yaml_node const* key = nullptr;
  };

  [[nodiscard]] auto place_at(YAML::Mark const& mark) const -> yaml_place {
    return place_of(mark, file_);
  }

  void refuse_tag(YAML::Mark const& mark, std::string const& tag) const {
    if (!tag.empty() && tag != "?" && tag != "!") {
      refuse(place_at(mark), "tags such as !!str are not taken");
    }
  }

  /// yaml-cpp takes the end of the file for the end of all text in quotes.
  void look_at_quotes(YAML::Mark const& mark) {
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    auto const skipped = text_.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
    auto const rest = text_.substr(
        std::min(static_cast<std::size_t>(std::max(mark.pos, 0)) + skipped, text_.size()));
    if (!rest.starts_with('"') && !rest.starts_with('\'')) {
      return;  // a block, which has the same tag
    }
    auto const size = size_of_quoted(rest);
    if (size == npos) {
      throw quote_not_closed{place_at(mark)};
    }
    auto const lines = std::ranges::count(rest.substr(0, size), '\n');
    if (lines > 0) {
      last_long_quote_ = {place_at(mark), place_at(mark).line + static_cast<std::uint32_t>(lines)};
    }
  }

  void count(std::size_t nodes, yaml_place place) {
    document_.visited += nodes;
    if (document_.visited > yaml_nodes_max) {
      refuse(place, "too much: at most " + std::to_string(yaml_nodes_max) +
                        " values, with all that aliases repeat");
    }
  }

  auto make(yaml_kind kind, YAML::Mark const& mark, YAML::anchor_t anchor) -> yaml_node& {
    count(1, place_at(mark));
    auto& node = document_.nodes.emplace_back();
    node.kind = kind;
    node.place = place_at(mark);
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
    open_.push_back({&node, anchor, document_.visited - 1});
  }

  void close() {
    auto const done = open_.back();
    open_.pop_back();
    if (done.anchor != 0) {
      anchors_[done.anchor] = {done.node, document_.visited - done.count_before};
    }
    add(*done.node);
  }

  void add(yaml_node& node) {
    if (open_.empty()) {
      root_ = &node;
      return;
    }
    auto& parent = open_.back();
    if (parent.node->kind == yaml_kind::sequence) {
      parent.node->items.push_back(&node);
    } else if (parent.key == nullptr) {
      if (node.kind != yaml_kind::scalar) {
        refuse(node.place, "a key must be text");
      }
      if (node.text == "<<" && !node.quoted) {
        refuse(node.place, "merge keys are not taken; an alias may stand for a whole value");
      }
      node.is_key = true;
      parent.key = &node;
    } else {
      parent.node->members.push_back({parent.key, &node});
      parent.key = nullptr;
    }
  }

  yaml_document& document_;
  std::string_view text_;
  std::uint32_t file_;
  yaml_node* root_ = nullptr;
  long_quote last_long_quote_;
  std::map<YAML::anchor_t, anchored> anchors_;
  std::vector<opened> open_;
};

auto place_at(std::string_view text, std::size_t offset, std::uint32_t file) -> yaml_place {
  auto const before = text.substr(0, offset);
  auto const lines = std::count(before.begin(), before.end(), '\n');
  auto const newline = before.rfind('\n');
  auto const begin = newline == std::string_view::npos ? 0 : newline + 1;
  return {static_cast<std::uint32_t>(lines) + 1, static_cast<std::uint32_t>(offset - begin) + 1,
          file};
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
    return "a value that begins with * must be in quotes: else it stands for an alias, and no "
           "anchor has that name";
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
  bool const is_in_flow = fault == END_OF_MAP_FLOW || fault == END_OF_SEQ_FLOW || fault == FLOW_END;
  if (is_in_flow && line.contains("${")) {
    return "a value with ${...} must be in quotes between { and } and between [ and ]";
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

/// yaml-cpp guesses UTF-16 and UTF-32 and lets broken UTF-8 pass, so what cannot be UTF-8 text is
/// refused before it looks.
auto first_strange_octet(std::string_view text) -> std::size_t {
  auto const at = std::find_if(text.begin(), text.end(), [](char c) {
    auto const byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7f || byte == 0xc0 ||
           byte == 0xc1 || byte > 0xf4;
  });
  return static_cast<std::size_t>(at - text.begin());
}

auto read_yaml(std::string_view text, yaml_document& document, std::uint32_t file)
    -> result<yaml_node*, yaml_fault> {
  if (auto const strange = first_strange_octet(text); strange != text.size()) {
    return failure(yaml_fault{place_at(text, strange, file),
                              "a control character, or not UTF-8 (expected text in UTF-8)"});
  }
  auto const no_yaml = [text](yaml_place place, std::string const& what) {
    constexpr std::size_t shown_max = 80;
    auto const line = line_at(text, place.line);
    auto const shown = line.substr(0, shown_max);
    return failure(yaml_fault{place, "this is not YAML: " + what + "; the line: \"" +
                                         std::string(shown) +
                                         (shown.size() < line.size() ? "..." : "") + "\""});
  };
  tree_builder builder(document, text, file);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (stop const& stopped) {
    return failure(stopped.fault);
  } catch (quote_not_closed const& stopped) {
    return no_yaml(stopped.place, "a quote that begins here is not closed");
  } catch (YAML::Exception const& error) {
    auto const place = place_of(error.mark, file);
    if (auto const& quote = builder.last_long_quote(); quote.end_line == place.line) {
      return no_yaml(quote.begin,
                     "a quote that begins here is not closed in its line, but by the next one, in "
                     "line " +
                         std::to_string(quote.end_line));
    }
    return no_yaml(place, in_plain_words(error.msg, line_at(text, place.line), place.column));
  }
  if (builder.root() != nullptr) {
    return builder.root();
  }
  auto& empty = document.nodes.emplace_back();
  empty.place.file = file;
  return &empty;
}

}  // namespace tidegate::gateway
