// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/csv.hpp>

#include <tidegate/base/ascii.hpp>
#include <tidegate/json/parse.hpp>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>
#include <string>
#include <utility>

namespace tidegate::TIDEGATE_ABI::scim {

namespace {

constexpr std::string_view json_suffix = " (json)";
/// An index above this is a slip, not a value.
constexpr std::size_t index_max = 999;

/// Whether a plain cell would not be read as the same value again.
[[nodiscard]] auto needs_json(json::value const& value) -> bool {
  if (auto const* const text = value.if_string()) {
    return text->empty() || *text == "true" || *text == "false";
  }
  return value.if_bool() == nullptr;
}

void append_cell(std::string& out, std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    out += text;
    return;
  }
  out += '"';
  for (auto const each : text) {
    out.append(each == '"' ? 2 : 1, each);
  }
  out += '"';
}

[[nodiscard]] auto index_of(std::string_view segment) -> std::optional<std::size_t> {
  std::size_t number = 0;
  auto const* const end = segment.data() + segment.size();
  auto const [stopped, fault] = std::from_chars(segment.data(), end, number);
  return fault == std::errc{} && stopped == end && number <= index_max ? std::optional(number)
                                                                       : std::nullopt;
}

/// Puts `value` where `path` leads, from `depth` on. False when something else is there.
[[nodiscard]] auto put(json::value& into, std::vector<std::string> const& path, std::size_t depth,
                       json::value value) -> bool {
  if (depth == path.size()) {
    if (!into.is_null()) {
      return false;
    }
    into = std::move(value);
    return true;
  }
  if (auto const index = index_of(path[depth]); index && depth > 0) {
    auto* values = into.is_null() ? &into.emplace<json::array>() : into.if_array();
    if (values == nullptr) {
      return false;
    }
    if (values->size() <= *index) {
      values->resize(*index + 1);
    }
    return put((*values)[*index], path, depth + 1, std::move(value));
  }
  auto* members = into.is_null() ? &into.emplace<json::object>() : into.if_object();
  if (members == nullptr) {
    return false;
  }
  auto* member = members->find(path[depth]);
  if (member == nullptr) {
    members->append(path[depth], json::value());
    member = members->find(path[depth]);
  }
  return put(*member, path, depth + 1, std::move(value));
}

/// Takes values out of arrays that no cell had.
void close_gaps(json::value& value) {
  if (auto* const values = value.if_array()) {
    std::erase_if(*values, [](json::value const& each) { return each.is_null(); });
    std::ranges::for_each(*values, close_gaps);
  } else if (auto* const members = value.if_object()) {
    for (auto& each : members->members()) {
      close_gaps(each.value);
    }
  }
}

}  // namespace

auto message(csv_fault fault) noexcept -> std::string_view {
  switch (fault) {
    case csv_fault::quote_in_plain_cell: return "a quote in a cell that does not begin with one";
    case csv_fault::text_behind_quote: return "text behind the quote that ends a cell";
    case csv_fault::unterminated_quote: return "the file ends within quotes";
    case csv_fault::too_few_cells: return "fewer cells than columns";
    case csv_fault::too_many_cells: return "more cells than columns";
    case csv_fault::invalid_name: return "a column has a name that is not an attribute";
    case csv_fault::name_twice: return "two columns have the same name";
    case csv_fault::attribute_twice: return "a column is part of what another one has";
    case csv_fault::invalid_json: break;
  }
  return "a cell is not JSON";
}

/// Calls `leaf(path, value, as_json)` for each cell of what is at `path`. `separator` is what comes
/// before the name of a member: a colon behind a URN, which has dots of its own (RFC 7644, section
/// 3.10).
template <class Leaf>
void csv_columns::visit(std::string& path, json::value const& value, char separator,
                        Leaf const& leaf) {
  auto const size = path.size();
  if (auto const* const members = value.if_object()) {
    for (auto const& each : members->members()) {
      path.append(1, separator).append(each.name);
      visit(path, each.value, '.', leaf);
      path.resize(size);
    }
  } else if (auto const* const values = value.if_array()) {
    if (values->empty()) {
      return;
    }
    auto const name = lower_case(path);
    if (values->size() > limits_.values_max) {
      whole_.insert(name);
    }
    if (whole_.contains(name)) {
      leaf(path, value, true);
      return;
    }
    for (std::size_t i = 0; i < values->size(); ++i) {
      path.append(".").append(std::to_string(i));
      visit(path, (*values)[i], '.', leaf);
      path.resize(size);
    }
  } else if (!value.is_null()) {
    leaf(path, value, needs_json(value));
  }
}

template <class Leaf>
void csv_columns::visit_members(json::value const& resource, Leaf const& leaf) {
  if (auto const* const members = resource.if_object()) {
    for (auto const& each : members->members()) {
      std::string path = each.name;
      visit(path, each.value, path.starts_with("urn:") ? ':' : '.', leaf);
    }
  }
}

auto csv_columns::add(json::value const& resource) -> bool {
  is_in_order_ = false;
  visit_members(resource, [this](std::string const& path, json::value const& /*value*/,
                                 bool as_json) {
    auto const [found, is_new] = by_name_.try_emplace(lower_case(path), columns_.size());
    if (is_new) {
      auto const begin = path.starts_with("urn:") ? path.rfind(':') + 1 : 0;
      auto const attribute = path.substr(0, path.find('.', begin));
      auto const group = groups_.try_emplace(lower_case(attribute), groups_.size()).first->second;
      columns_.push_back({.name = path, .group = group});
    }
    auto& column = columns_[found->second];
    column.as_json = column.as_json || as_json;
  });
  return columns_.size() <= limits_.columns_max;
}

void csv_columns::put_in_order() {
  if (is_in_order_) {
    return;
  }
  is_in_order_ = true;
  order_.resize(columns_.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  // Columns of values that became too many for columns of their own are gone.
  std::erase_if(order_, [this](std::size_t each) {
    auto const name = lower_case(columns_[each].name);
    for (auto dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
      if (whole_.contains(std::string_view(name).substr(0, dot))) {
        return true;
      }
    }
    return false;
  });
  std::ranges::sort(order_, {},
                    [this](std::size_t each) { return std::pair(columns_[each].group, each); });
  for (std::size_t i = 0; i < order_.size(); ++i) {
    columns_[order_[i]].place = i;
  }
}

void csv_columns::append_header(std::string& out) {
  put_in_order();
  if (order_.empty()) {
    return;
  }
  for (std::size_t i = 0; i < order_.size(); ++i) {
    out.append(i == 0 ? "" : ",");
    auto const& column = columns_[order_[i]];
    append_cell(out, column.as_json ? column.name + std::string(json_suffix) : column.name);
  }
  out += "\r\n";
}

void csv_columns::append_row(std::string& out, json::value const& resource) {
  put_in_order();
  std::vector<std::string> cells(order_.size());
  visit_members(resource, [&](std::string const& path, json::value const& value, bool /*as_json*/) {
    auto const found = by_name_.find(lower_case(path));
    if (found == by_name_.end()) {
      return;
    }
    auto const& column = columns_[found->second];
    auto& cell = cells[column.place];
    if (column.as_json) {
      json::append(cell = "", value);
    } else if (auto const* const text = value.if_string()) {
      cell = *text;
    } else {
      cell = *value.if_bool() ? "true" : "false";
    }
  });
  for (std::size_t i = 0; i < cells.size(); ++i) {
    out.append(i == 0 ? "" : ",");
    append_cell(out, cells[i]);
  }
  out += "\r\n";
}

auto parse_csv_record(std::string_view text, bool is_last)
    -> result<std::optional<csv_record>, csv_fault> {
  csv_record out;
  std::size_t at = 0;
  for (;;) {
    std::string cell;
    if (at < text.size() && text[at] == '"') {
      for (++at;; at += 2) {
        auto const quote = text.find('"', at);
        if (quote == std::string_view::npos || (quote + 1 == text.size() && !is_last)) {
          if (is_last) {
            return failure(csv_fault::unterminated_quote);
          }
          return std::nullopt;
        }
        cell.append(text.substr(at, quote - at));
        at = quote;
        if (quote + 1 == text.size() || text[quote + 1] != '"') {
          ++at;
          break;
        }
        cell += '"';
      }
    } else {
      auto const end = std::min(text.find_first_of(",\"\n", at), text.size());
      if (end < text.size() && text[end] == '"') {
        return failure(csv_fault::quote_in_plain_cell);
      }
      cell = text.substr(at, end - at);
      at = end;
      if ((at == text.size() || text[at] == '\n') && cell.ends_with('\r')) {
        cell.pop_back();
      }
    }
    out.lines += static_cast<std::size_t>(std::ranges::count(cell, '\n'));
    out.cells.push_back(std::move(cell));
    if (at < text.size() && text[at] == ',') {
      ++at;
      continue;
    }
    if (at < text.size() && text[at] == '\r') {  // behind a quote
      ++at;
    }
    if (at == text.size()) {
      if (!is_last || text.empty()) {
        return std::nullopt;
      }
      out.octets = at;
      return out;
    }
    if (text[at] != '\n') {
      return failure(csv_fault::text_behind_quote);
    }
    out.octets = at + 1;
    ++out.lines;
    return out;
  }
}

auto csv_header::of(std::vector<std::string> const& names) -> result<csv_header, csv_fault> {
  csv_header out;
  std::set<std::string> known;
  for (auto const& each : names) {
    std::string_view name = each;
    column made;
    if (name.ends_with(json_suffix)) {
      made.as_json = true;
      name.remove_suffix(json_suffix.size());
    }
    if (!known.insert(lower_case(name)).second) {
      return failure(csv_fault::name_twice);
    }
    if (auto const colon = name.rfind(':');
        lower_case(name).starts_with("urn:") && colon != std::string_view::npos) {
      made.path.emplace_back(name.substr(0, colon));
      name.remove_prefix(colon + 1);
    }
    for (;;) {
      auto const dot = name.find('.');
      made.path.emplace_back(name.substr(0, dot));
      if (made.path.back().empty()) {
        return failure(csv_fault::invalid_name);
      }
      if (dot == std::string_view::npos) {
        break;
      }
      name.remove_prefix(dot + 1);
    }
    // No attribute is that deep, and a resource is not either.
    if (made.path.size() > static_cast<std::size_t>(json::limits{}.depth_max)) {
      return failure(csv_fault::invalid_name);
    }
    out.columns_.push_back(std::move(made));
  }
  return out;
}

auto csv_header::resource_of(std::vector<std::string> const& cells) const
    -> result<json::value, csv_fault> {
  if (cells.size() != columns_.size()) {
    return failure(cells.size() < columns_.size() ? csv_fault::too_few_cells
                                                  : csv_fault::too_many_cells);
  }
  json::value out = json::object();
  for (std::size_t i = 0; i < cells.size(); ++i) {
    auto const& cell = cells[i];
    if (cell.empty()) {
      continue;
    }
    json::value value = cell;
    if (columns_[i].as_json) {
      auto read = json::parse(cell);
      if (!read) {
        return failure(csv_fault::invalid_json);
      }
      value = *std::move(read);
    } else if (cell == "true" || cell == "false") {
      value = cell == "true";
    }
    if (!put(out, columns_[i].path, 0, std::move(value))) {
      return failure(csv_fault::attribute_twice);
    }
  }
  close_gaps(out);
  return out;
}

}  // namespace tidegate::TIDEGATE_ABI::scim
