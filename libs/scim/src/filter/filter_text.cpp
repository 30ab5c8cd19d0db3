// SPDX-License-Identifier: Apache-2.0
//
// The canonical text of a filter, and what is wrong with one.
#include <tidegate/scim/filter.hpp>

#include "filter/filter_terms.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/http/date.hpp>
#include <tidegate/json/parse.hpp>
#include <tidegate/json/string.hpp>

#include <string>
#include <variant>

namespace tidegate::TIDEGATE_ABI::scim {

namespace {

void append_value(std::string& out, filter_value const& value) {
  if (auto const* const text = std::get_if<std::string>(&value)) {
    json::append_string(out, *text);
  } else if (auto const* const boolean = std::get_if<bool>(&value)) {
    out += *boolean ? "true" : "false";
  } else if (auto const* const integer = std::get_if<std::int64_t>(&value)) {
    out += std::to_string(*integer);
  } else if (auto const* const decimal = std::get_if<double>(&value)) {
    json::append(out, *decimal);
  } else if (auto const* const moment = std::get_if<date_time>(&value)) {
    out += '"';
    http::append_rfc3339(out, moment->second);
    out.pop_back();
    auto const digits = std::to_string(1'000'000'000 + moment->nanosecond);
    out += '.';
    out += digits.substr(1);
    out += "Z\"";
  } else {
    out += "null";
  }
}

void append_filter(std::string& out, filter const& f, bool in_value_path) {
  auto const append_name = [&] {
    out += in_value_path ? lower_case(f.path.sub->name) : canonical_name(f.path);
  };
  switch (f.kind) {
    case filter_kind::all_of:
    case filter_kind::any_of:
      for (auto const& operand : f.operands) {
        if (&operand != &f.operands.front()) {
          out += f.kind == filter_kind::all_of ? " and " : " or ";
        }
        bool const grouped = operand.kind == filter_kind::any_of;
        out += grouped ? "(" : "";
        append_filter(out, operand, in_value_path);
        out += grouped ? ")" : "";
      }
      break;
    case filter_kind::negation:
      out += "not (";
      append_filter(out, f.operands.front(), in_value_path);
      out += ')';
      break;
    case filter_kind::value_path:
      append_name();
      out += '[';
      append_filter(out, f.operands.front(), true);
      out += ']';
      break;
    case filter_kind::present:
      append_name();
      out += " pr";
      break;
    case filter_kind::compare:
      append_name();
      out += ' ';
      out += operator_words[static_cast<std::size_t>(f.op)].text;
      out += ' ';
      append_value(out, f.value);
      break;
  }
}

}  // namespace

auto to_string(filter_error const& error) -> std::string {
  auto const what = [&]() -> std::string_view {
    switch (error.fault) {
      case filter_fault::too_long: return "too long";
      case filter_fault::too_deep: return "too many brackets in each other";
      case filter_fault::too_many_terms: return "too many comparisons";
      case filter_fault::expression_expected: return "an expression is expected";
      case filter_fault::malformed_path: return "not the name of an attribute";
      case filter_fault::unknown_schema: return "no such schema here";
      case filter_fault::unknown_attribute: return "no such attribute";
      case filter_fault::unknown_sub_attribute: return "no such sub-attribute";
      case filter_fault::sub_attribute_needed: return "a sub-attribute is needed";
      case filter_fault::not_complex: return "the attribute has no sub-attributes";
      case filter_fault::nested_value_path: return "square brackets inside of square brackets";
      case filter_fault::not_filterable: return "the attribute cannot be used in a filter";
      case filter_fault::operator_expected: return "an operator is expected";
      case filter_fault::unknown_operator: return "the operator is not supported";
      case filter_fault::operator_not_allowed:
        return "the operator is not for an attribute of this type";
      case filter_fault::value_expected: return "a value is expected";
      case filter_fault::invalid_value: return "the value is not JSON";
      case filter_fault::wrong_type: return "the value is not of the type of the attribute";
      case filter_fault::round_bracket_expected: return "\")\" is expected";
      case filter_fault::square_bracket_expected: return R"("]" is expected)";
      case filter_fault::end_expected: break;
    }
    return R"("and", "or" or the end is expected)";
  }();
  return std::string(what) + " at offset " + std::to_string(error.offset);
}

auto canonical_text(filter const& f) -> std::string {
  std::string out;
  append_filter(out, f, false);
  return out;
}

}  // namespace tidegate::TIDEGATE_ABI::scim
