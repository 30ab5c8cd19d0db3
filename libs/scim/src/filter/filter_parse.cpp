// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/filter.hpp>

#include "filter/filter_terms.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/base/utf8.hpp>
#include <tidegate/json/parse.hpp>

#include <algorithm>

namespace tidegate::TIDEGATE_ABI::scim {

namespace {

/// Several operands as one; those of the same kind become part of it.
auto join(filter_kind kind, std::vector<filter> operands) -> filter {
  if (operands.size() == 1) {
    return std::move(operands.front());
  }
  filter joined;
  joined.kind = kind;
  for (auto& operand : operands) {
    if (operand.kind == kind) {
      std::ranges::move(operand.operands, std::back_inserter(joined.operands));
    } else {
      joined.operands.push_back(std::move(operand));
    }
  }
  return joined;
}

/// Stands for every attribute that a resource type lacks, where that is not an error.
auto lacking() -> attribute const* {
  static attribute const none;
  return &none;
}

/// Whether a filter says the same of every resource. All of them have an `id`.
auto constant_of(filter const& f) -> std::optional<bool> {
  if (f.kind == filter_kind::negation) {
    auto const inner = constant_of(f.operands.front());
    return inner ? std::optional(!*inner) : std::nullopt;
  }
  bool const is_true = f.kind == filter_kind::present && f.path.extension == nullptr &&
                       f.path.parent != nullptr && f.path.parent->name == "id";
  return is_true ? std::optional(true) : std::nullopt;
}

/// One pass over the text, one function for each level of precedence. Inside of a value path,
/// `parent_` is the attribute that it belongs to.
class filter_parser {
 public:
  filter_parser(std::string_view text, resource_definition const& definition,
                filter_limits const& limits, bool may_lack = false)
      : text_(text), definition_(definition), limits_(limits), may_lack_(may_lack) {}

  auto parse() -> result<filter, filter_error> {
    TIDEGATE_TRY(auto f, parse_or(0));
    TIDEGATE_TRY_VOID(expect_end());
    return f;
  }

  auto parse_path() -> result<patch_path, filter_error> {
    skip_spaces();
    TIDEGATE_TRY(auto const path, take_path());
    patch_path out{path, std::nullopt, {}};
    if (at('[')) {
      TIDEGATE_TRY(out.value_filter, parse_brackets(path, 0));
      if (take('.')) {
        TIDEGATE_TRY(out.path.sub, take_sub_attribute(*path.parent));
      }
      out.literals = std::move(literals_);
    }
    TIDEGATE_TRY_VOID(expect_end());
    return out;
  }

 private:
  [[nodiscard]] static auto fail(filter_fault fault, std::size_t offset)
      -> std::unexpected<filter_error> {
    return failure(filter_error{fault, offset});
  }
  [[nodiscard]] auto at(char c) const noexcept -> bool {
    return position_ < text_.size() && text_[position_] == c;
  }
  auto take(char c) noexcept -> bool {
    bool const there = at(c);
    position_ += there ? 1 : 0;
    return there;
  }
  void skip_spaces() noexcept {
    while (at(' ')) {
      ++position_;
    }
  }

  /// What stands here up to a space, a bracket, a quote or the end.
  [[nodiscard]] auto peek_token() const noexcept -> std::string_view {
    auto const rest = text_.substr(position_);
    return rest.substr(0, std::min(rest.find_first_of(" ()[]\""), rest.size()));
  }

  auto take_word(std::string_view word) noexcept -> bool {
    if (!equal_ignoring_case(peek_token(), word)) {
      return false;
    }
    position_ += word.size();
    return true;
  }

  auto expect_end() -> result<void, filter_error> {
    skip_spaces();
    if (position_ != text_.size()) {
      return fail(filter_fault::end_expected, position_);
    }
    return {};
  }

  /// What is true, or is not, of every resource.
  [[nodiscard]] auto constant(bool value) const -> filter {
    filter f;
    f.kind = filter_kind::present;
    f.path.parent = definition_.base().find("id");
    if (!value) {
      filter negated;
      negated.kind = filter_kind::negation;
      negated.operands.push_back(std::move(f));
      return negated;
    }
    return f;
  }

  /// Without operands that change nothing; one that decides is the whole.
  [[nodiscard]] auto reduced(filter_kind kind, std::vector<filter> operands) const -> filter {
    bool const neutral = kind == filter_kind::all_of;
    if (may_lack_) {
      auto const is = [](filter const& f, bool value) { return constant_of(f) == value; };
      if (std::ranges::any_of(operands, [&](filter const& f) { return is(f, !neutral); })) {
        return constant(!neutral);
      }
      std::erase_if(operands, [&](filter const& f) { return is(f, neutral); });
    }
    return operands.empty() ? constant(neutral) : join(kind, std::move(operands));
  }

  auto parse_or(int depth) -> result<filter, filter_error> {
    std::vector<filter> operands;
    do {
      TIDEGATE_TRY(auto operand, parse_and(depth));
      operands.push_back(std::move(operand));
      skip_spaces();
    } while (take_word("or"));
    return reduced(filter_kind::any_of, std::move(operands));
  }

  auto parse_and(int depth) -> result<filter, filter_error> {
    std::vector<filter> operands;
    do {
      TIDEGATE_TRY(auto operand, parse_operand(depth));
      operands.push_back(std::move(operand));
      skip_spaces();
    } while (take_word("and"));
    return reduced(filter_kind::all_of, std::move(operands));
  }

  auto parse_operand(int depth) -> result<filter, filter_error> {
    skip_spaces();
    auto const begin = position_;
    if (take_word("not")) {
      skip_spaces();
      if (at('(')) {
        TIDEGATE_TRY(auto inner, parse_group(depth));
        filter f;
        f.kind = filter_kind::negation;
        f.operands.push_back(std::move(inner));
        return f;
      }
      position_ = begin;  // an attribute of that name
    }
    if (at('(')) {
      return parse_group(depth);
    }
    return parse_expression(depth);
  }

  auto parse_group(int depth) -> result<filter, filter_error> {
    if (depth == limits_.depth_max) {
      return fail(filter_fault::too_deep, position_);
    }
    ++position_;
    TIDEGATE_TRY(auto inner, parse_or(depth + 1));
    skip_spaces();
    if (!take(')')) {
      return fail(filter_fault::round_bracket_expected, position_);
    }
    return inner;
  }

  /// From `[` to `]`, for the values of `path`.
  auto parse_brackets(attribute_path const& path, int depth) -> result<filter, filter_error> {
    if (parent_ != nullptr) {
      return fail(filter_fault::nested_value_path, position_);
    }
    if (path.parent != lacking() && (path.sub != nullptr || path.parent == nullptr ||
                                     path.parent->type != attribute_type::complex)) {
      return fail(filter_fault::not_complex, position_);
    }
    if (depth == limits_.depth_max) {
      return fail(filter_fault::too_deep, position_);
    }
    ++position_;
    parent_ = &path;
    auto inner = parse_or(depth + 1);
    parent_ = nullptr;
    if (!inner) {
      return inner;
    }
    skip_spaces();
    if (!take(']')) {
      return fail(filter_fault::square_bracket_expected, position_);
    }
    return inner;
  }

  auto parse_expression(int depth) -> result<filter, filter_error> {
    auto const begin = position_;
    TIDEGATE_TRY(auto const path, take_path());
    if (!at('[')) {
      return parse_attribute_expression(path, begin);
    }
    TIDEGATE_TRY(auto inner, parse_brackets(path, depth));
    if (at('.')) {
      ++position_;
      auto with_sub = path;
      auto const sub_begin = position_;
      TIDEGATE_TRY(with_sub.sub, take_sub_attribute(*path.parent));
      TIDEGATE_TRY(auto expression, parse_attribute_expression(with_sub, sub_begin));
      std::vector<filter> both;
      both.push_back(std::move(inner));
      both.push_back(std::move(expression));
      inner = join(filter_kind::all_of, std::move(both));
    }
    if (path.parent == lacking()) {
      return constant(false);
    }
    filter f;
    f.kind = filter_kind::value_path;
    f.path = path;
    f.operands.push_back(std::move(inner));
    return f;
  }

  /// What follows a path that begins at `begin`: `pr`, or an operator and a value.
  auto parse_attribute_expression(attribute_path path, std::size_t begin)
      -> result<filter, filter_error> {
    if (terms_ == limits_.terms_max) {
      return fail(filter_fault::too_many_terms, begin);
    }
    ++terms_;
    if (is_never_returned(path)) {
      return fail(filter_fault::not_filterable, begin);
    }
    skip_spaces();
    auto const operator_begin = position_;
    auto const word = peek_token();
    if (word.empty()) {
      return fail(filter_fault::operator_expected, operator_begin);
    }
    filter f;
    f.path = path;
    if (take_word("pr")) {
      f.kind = filter_kind::present;
      return path.parent == lacking() ? constant(false) : std::move(f);
    }
    f.kind = filter_kind::compare;
    auto const* const found = std::ranges::find_if(
        operator_words, [&](auto const& w) { return equal_ignoring_case(w.text, word); });
    if (found == operator_words.end()) {
      return fail(filter_fault::unknown_operator, operator_begin);
    }
    f.op = found->op;
    position_ += word.size();
    skip_spaces();
    auto const value_begin = position_;
    TIDEGATE_TRY(auto const literal, take_literal());
    literals_.push_back(literal);

    if (literal.is_null()) {
      if (f.op != compare_op::eq && f.op != compare_op::ne) {
        return fail(filter_fault::operator_not_allowed, operator_begin);
      }
      return path.parent == lacking() ? constant(f.op == compare_op::eq) : std::move(f);
    }
    if (path.parent == lacking()) {
      return constant(f.op == compare_op::ne);
    }
    if (path.parent != nullptr && path.leaf()->type == attribute_type::complex) {
      f.path.sub = path.parent->find("value");
    }
    auto const* const leaf = f.path.leaf();
    if (leaf == nullptr || leaf->type == attribute_type::complex) {
      return fail(filter_fault::sub_attribute_needed, begin);
    }
    if (is_never_returned(f.path)) {
      return fail(filter_fault::not_filterable, begin);
    }
    if (!is_allowed(f.op, leaf->type)) {
      return fail(filter_fault::operator_not_allowed, operator_begin);
    }
    auto value = convert(literal, *leaf);
    if (!value) {
      return fail(filter_fault::wrong_type, value_begin);
    }
    f.value = *std::move(value);
    return f;
  }

  static auto is_never_returned(attribute_path const& path) noexcept -> bool {
    auto const never = [](attribute const* a) {
      return a != nullptr && a->returned == attribute_returned::never;
    };
    return never(path.parent) || never(path.sub);
  }

  auto take_path() -> result<attribute_path, filter_error> {
    auto const begin = position_;
    auto const token = peek_token();
    if (token.empty()) {
      return fail(filter_fault::expression_expected, begin);
    }
    if (parent_ != nullptr) {
      auto path = *parent_;
      TIDEGATE_TRY(path.sub, take_sub_attribute(*parent_->parent));
      return path;
    }
    auto const path = definition_.resolve(token);
    if (!path) {
      auto const fault = [&] {
        switch (path.error().fault) {
          case path_fault::malformed: return filter_fault::malformed_path;
          case path_fault::unknown_schema: return filter_fault::unknown_schema;
          case path_fault::unknown_attribute: return filter_fault::unknown_attribute;
          case path_fault::unknown_sub_attribute: break;
        }
        return filter_fault::unknown_sub_attribute;
      }();
      if (may_lack_ && fault != filter_fault::malformed_path) {
        position_ += token.size();
        return attribute_path{nullptr, lacking(), nullptr};
      }
      return fail(fault, begin + path.error().offset);
    }
    position_ += token.size();
    return *path;
  }

  auto take_sub_attribute(attribute const& parent) -> result<attribute const*, filter_error> {
    auto const token = peek_token();
    if (!is_attribute_name(token)) {
      return fail(filter_fault::malformed_path, position_);
    }
    auto const* const sub = &parent == lacking() ? lacking() : parent.find(token);
    if (sub == nullptr) {
      return fail(filter_fault::unknown_sub_attribute, position_);
    }
    position_ += token.size();
    return sub;
  }

  auto take_literal() -> result<json::value, filter_error> {
    if (auto const word = peek_token(); is_bare_word(word)) {
      TIDEGATE_TRY_VOID(take_bare_word(word));
      return json::value(word);
    }
    auto literal = json::parse_literal(text_.substr(position_));
    if (!literal) {
      auto const fault = literal.error().fault == json::fault::value_expected
                             ? filter_fault::value_expected
                             : filter_fault::invalid_value;
      return fail(fault, position_ + literal.error().offset);
    }
    position_ += literal->octets;
    TIDEGATE_TRY_VOID(expect_end_of_value());
    return std::move(literal->value);
  }

  auto take_bare_word(std::string_view word) -> result<void, filter_error> {
    for (std::size_t at = 0; at < word.size();) {
      auto const octets = utf8::character_octets(word.substr(at));
      if (octets == 0 || static_cast<unsigned char>(word[at]) < ' ' || word[at] == '\\') {
        return fail(filter_fault::invalid_value, position_ + at);
      }
      at += octets;
    }
    position_ += word.size();
    return expect_end_of_value();
  }

  auto expect_end_of_value() -> result<void, filter_error> {
    if (position_ != text_.size() && !at(' ') && !at(')') && !at(']')) {
      return fail(filter_fault::invalid_value, position_);
    }
    return {};
  }

  std::string_view text_;
  resource_definition const& definition_;
  filter_limits const& limits_;
  bool may_lack_;  // what is not known has no value
  std::size_t position_ = 0;
  std::size_t terms_ = 0;
  std::vector<json::value> literals_;
  attribute_path const* parent_ = nullptr;
};

}  // namespace

auto parse_filter(std::string_view text, resource_definition const& definition,
                  filter_limits const& limits) -> result<filter, filter_error> {
  if (text.size() > limits.octets_max) {
    return failure(filter_error{filter_fault::too_long, limits.octets_max});
  }
  return filter_parser(text, definition, limits).parse();
}

auto parse_filter_among_types(std::string_view text, resource_definition const& definition,
                              filter_limits const& limits) -> result<filter, filter_error> {
  if (text.size() > limits.octets_max) {
    return failure(filter_error{filter_fault::too_long, limits.octets_max});
  }
  return filter_parser(text, definition, limits, true).parse();
}

auto never_matches(filter const& f) -> bool {
  return constant_of(f) == false;
}

auto parse_patch_path(std::string_view text, resource_definition const& definition,
                      filter_limits const& limits) -> result<patch_path, filter_error> {
  if (text.size() > limits.octets_max) {
    return failure(filter_error{filter_fault::too_long, limits.octets_max});
  }
  return filter_parser(text, definition, limits).parse_path();
}

}  // namespace tidegate::TIDEGATE_ABI::scim
