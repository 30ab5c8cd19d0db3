// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/list_request.hpp>

#include "message.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/http/query.hpp>
#include <tidegate/json/string.hpp>

#include <algorithm>
#include <charconv>
#include <limits>
#include <span>

namespace tidegate::TIDEGATE_ABI::scim {

namespace {

/// The parameters as they came, before anything is made of them together.
struct parameters {
  std::optional<std::string> cursor;
  std::optional<std::int64_t> count;
  std::optional<std::int64_t> start_index;
  std::optional<std::string> filter;
  std::optional<std::string> sort_by;
  std::optional<std::string> sort_order;
  std::vector<std::string> attributes;
  std::vector<std::string> excluded_attributes;
};

[[nodiscard]] auto invalid_value(std::string detail) {
  return failure(error{400, scim_type::invalid_value, std::move(detail)});
}

[[nodiscard]] auto invalid_count() {
  return failure(error{400, scim_type::invalid_count,
                       "count must be an integer from 0 to the maximum page size, and the same on "
                       "every page of a query"});
}

/// A whole text that is an integer; one that does not fit is the nearest that does.
[[nodiscard]] auto parse_integer(std::string_view text) noexcept -> std::optional<std::int64_t> {
  std::int64_t value = 0;
  auto const* const end = text.data() + text.size();
  auto const [stop, fault] = std::from_chars(text.data(), end, value);
  if (stop != end || fault == std::errc::invalid_argument) {
    return std::nullopt;
  }
  if (fault == std::errc::result_out_of_range) {
    return text.front() == '-' ? std::numeric_limits<std::int64_t>::min()
                               : std::numeric_limits<std::int64_t>::max();
  }
  return value;
}

/// Whether it looks like standard attribute notation (RFC 7644, section 3.10): a name, with a
/// sub-attribute or a URN before it. Whether there is such an attribute is for the schema to say.
[[nodiscard]] auto is_attribute_notation(std::string_view text) noexcept -> bool {
  return !text.empty() && text.size() <= attribute_name_octets_max && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return c > ' ' && c < '\x7f' &&
                  std::string_view(R"("\,()[]{}<>)").find(c) == std::string_view::npos;
         });
}

[[nodiscard]] auto append_name(std::vector<std::string>& out, std::string_view parameter,
                               std::string_view name) -> result<void, error> {
  if (out.size() == attribute_names_max) {
    return invalid_value(std::string(parameter) + " has too many names");
  }
  if (!is_attribute_notation(name)) {
    return invalid_value(std::string(parameter) + " has a name that no attribute can have");
  }
  out.emplace_back(name);
  return {};
}

/// What is left of `query` behind a value that was found in it.
[[nodiscard]] auto rest_behind(std::string_view query, std::string_view value) noexcept
    -> std::string_view {
  return query.substr(static_cast<std::size_t>(value.data() + value.size() - query.data()));
}

[[nodiscard]] auto single(std::string_view query, std::string_view name)
    -> result<std::optional<std::string>, error> {
  auto const encoded = http::find_query_value(query, name);
  if (!encoded) {
    return std::nullopt;
  }
  // Two readers could take two different ones.
  if (http::find_query_value(rest_behind(query, *encoded), name)) {
    return invalid_value(std::string(name) + " comes twice");
  }
  std::string value;
  http::append_query_decoded(value, *encoded);
  return value;
}

[[nodiscard]] auto names(std::string_view query, std::string_view parameter)
    -> result<std::vector<std::string>, error> {
  std::vector<std::string> out;
  std::string value;
  for (auto encoded = http::find_query_value(query, parameter); encoded;
       encoded = http::find_query_value(query, parameter)) {
    query = rest_behind(query, *encoded);
    value.clear();
    http::append_query_decoded(value, *encoded);
    for (std::string_view rest = value; !rest.empty();) {
      auto const comma = std::min(rest.find(','), rest.size());
      auto name = rest.substr(0, comma);
      bool const more = comma < rest.size();
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
      name = name.substr(0, name.find_last_not_of(' ') + 1);
      TIDEGATE_TRY_VOID(append_name(out, parameter, name));
      if (more && rest.empty()) {
        return invalid_value(std::string(parameter) + " ends with a comma");
      }
    }
  }
  return out;
}

/// A member that is a string; nothing when it is not there or null.
[[nodiscard]] auto string_member(json::value const& message, std::string_view name)
    -> result<std::optional<std::string>, error> {
  auto const* value = message.find(name);
  if (value == nullptr || value->is_null()) {
    return std::nullopt;
  }
  if (value->if_string() == nullptr) {
    return invalid_value(std::string(name) + " must be a string");
  }
  return *value->if_string();
}

[[nodiscard]] auto names_member(json::value const& message, std::string_view name)
    -> result<std::vector<std::string>, error> {
  std::vector<std::string> out;
  auto const* value = message.find(name);
  if (value == nullptr || value->is_null()) {
    return out;
  }
  auto const* list = value->if_array();
  if (list == nullptr) {
    return invalid_value(std::string(name) + " must be an array of strings");
  }
  for (auto const& element : *list) {
    if (element.if_string() == nullptr) {
      return invalid_value(std::string(name) + " must be an array of strings");
    }
    TIDEGATE_TRY_VOID(append_name(out, name, *element.if_string()));
  }
  return out;
}

/// Which method it is (RFC 9865, sections 2.3 and 2.4).
[[nodiscard]] auto method_of(parameters const& p, pagination_options const& options)
    -> result<pagination_method, error> {
  if (p.cursor && p.start_index) {
    return invalid_value("cursor and startIndex exclude each other");
  }
  if (p.cursor) {
    // To ignore it would look like a last page to the client.
    if (!options.cursor) {
      return invalid_value("there is no pagination by cursor here");
    }
    return pagination_method::cursor;
  }
  if (p.start_index && !options.index) {
    if (*p.start_index > 1) {
      return invalid_value("there is no pagination by startIndex here");
    }
    return pagination_method::cursor;  // the first page is the same by both
  }
  return p.start_index ? pagination_method::index : options.default_method;
}

[[nodiscard]] auto make_request(parameters p, pagination_options const& options)
    -> result<list_request, error> {
  list_request made;
  TIDEGATE_TRY(made.method, method_of(p, options));
  made.cursor = std::move(p.cursor).value_or("");
  if (p.count) {
    made.count = static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(*p.count, 0, std::numeric_limits<std::uint32_t>::max()));
  }
  if (made.method == pagination_method::index) {
    made.start_index =
        static_cast<std::uint64_t>(std::max<std::int64_t>(p.start_index.value_or(1), 1));
  }
  made.filter = std::move(p.filter);
  if (p.sort_by && !p.sort_by->empty()) {
    if (!is_attribute_notation(*p.sort_by)) {
      return invalid_value("sortBy is not the name of an attribute");
    }
    made.sort_by = *std::move(p.sort_by);
  }
  if (p.sort_order) {
    bool const descending = equal_ignoring_case(*p.sort_order, "descending");
    if (!descending && !equal_ignoring_case(*p.sort_order, "ascending")) {
      return invalid_value("sortOrder must be ascending or descending");
    }
    made.descending = descending && !made.sort_by.empty();
  }
  made.attributes = std::move(p.attributes);
  made.excluded_attributes = std::move(p.excluded_attributes);
  return made;
}

void append_names_query(std::string& out, std::string_view parameter,
                        std::span<std::string const> list) {
  char before = '=';
  for (auto const& name : list) {
    if (before == '=') {
      out += parameter;
    }
    out += before;
    http::append_query_encoded(out, name);
    before = ',';
  }
  if (!list.empty()) {
    out += '&';
  }
}

void append_names_member(std::string& out, std::string_view member,
                         std::span<std::string const> list) {
  if (list.empty()) {
    return;
  }
  out += ",\"";
  out += member;
  out += "\":";
  char before = '[';
  for (auto const& name : list) {
    out += before;
    json::append_string(out, name);
    before = ',';
  }
  out += ']';
}

}  // namespace

auto parse_list_query(std::string_view query, pagination_options const& options)
    -> result<list_request, error> {
  parameters p;
  TIDEGATE_TRY(p.cursor, single(query, "cursor"));
  TIDEGATE_TRY(auto const count, single(query, "count"));
  if (count) {
    p.count = parse_integer(*count);
    if (!p.count) {
      return invalid_count();
    }
  }
  TIDEGATE_TRY(auto const start_index, single(query, "startIndex"));
  if (start_index) {
    p.start_index = parse_integer(*start_index);
    if (!p.start_index) {
      return invalid_value("startIndex must be an integer");
    }
  }
  TIDEGATE_TRY(p.filter, single(query, "filter"));
  TIDEGATE_TRY(p.sort_by, single(query, "sortBy"));
  TIDEGATE_TRY(p.sort_order, single(query, "sortOrder"));
  TIDEGATE_TRY(p.attributes, names(query, "attributes"));
  TIDEGATE_TRY(p.excluded_attributes, names(query, "excludedAttributes"));
  return make_request(std::move(p), options);
}

auto parse_search_request(std::string_view body, pagination_options const& options)
    -> result<list_request, error> {
  TIDEGATE_TRY(auto const message, parse_message(body, search_request_schema));
  parameters p;
  TIDEGATE_TRY(p.cursor, string_member(message, "cursor"));
  if (auto const* count = message.find("count"); count != nullptr && !count->is_null()) {
    if (count->if_integer() == nullptr) {
      return invalid_count();
    }
    p.count = *count->if_integer();
  }
  if (auto const* start = message.find("startIndex"); start != nullptr && !start->is_null()) {
    if (start->if_integer() == nullptr) {
      return invalid_value("startIndex must be an integer");
    }
    p.start_index = *start->if_integer();
  }
  TIDEGATE_TRY(p.filter, string_member(message, "filter"));
  TIDEGATE_TRY(p.sort_by, string_member(message, "sortBy"));
  TIDEGATE_TRY(p.sort_order, string_member(message, "sortOrder"));
  TIDEGATE_TRY(p.attributes, names_member(message, "attributes"));
  TIDEGATE_TRY(p.excluded_attributes, names_member(message, "excludedAttributes"));
  return make_request(std::move(p), options);
}

void append_list_query(std::string& out, list_request const& request) {
  append_names_query(out, "attributes", request.attributes);
  append_names_query(out, "excludedAttributes", request.excluded_attributes);
  if (request.filter) {
    out += "filter=";
    http::append_query_encoded(out, *request.filter);
    out += '&';
  }
  if (!request.sort_by.empty()) {
    out += "sortBy=";
    http::append_query_encoded(out, request.sort_by);
    out += request.descending ? "&sortOrder=descending&" : "&";
  }
  if (request.method == pagination_method::index) {
    out += "startIndex=" + std::to_string(request.start_index);
  } else {
    out += request.cursor.empty() ? "cursor" : "cursor=";
    http::append_query_encoded(out, request.cursor);
  }
  if (request.count) {
    out += "&count=" + std::to_string(*request.count);
  }
}

void append_search_request(std::string& out, list_request const& request) {
  out += R"({"schemas":[")";
  out += search_request_schema;
  out += "\"]";
  append_names_member(out, "attributes", request.attributes);
  append_names_member(out, "excludedAttributes", request.excluded_attributes);
  if (request.filter) {
    out += R"(,"filter":)";
    json::append_string(out, *request.filter);
  }
  if (!request.sort_by.empty()) {
    out += R"(,"sortBy":)";
    json::append_string(out, request.sort_by);
    out += request.descending ? R"(,"sortOrder":"descending")" : "";
  }
  if (request.method == pagination_method::index) {
    out += R"(,"startIndex":)" + std::to_string(request.start_index);
  } else {
    out += R"(,"cursor":)";
    json::append_string(out, request.cursor);
  }
  if (request.count) {
    out += R"(,"count":)" + std::to_string(*request.count);
  }
  out += '}';
}

auto page_size(list_request const& request, cursor const* from, pagination_options const& options)
    -> result<std::uint32_t, error> {
  auto const most = options.max_page_size;
  if (request.count && *request.count > most && options.count_over_max_is_error) {
    return invalid_count();
  }
  auto const first = std::min(from != nullptr ? from->count : options.default_page_size, most);
  if (!request.count) {
    return first;
  }
  auto const wanted = std::min(*request.count, most);
  if (from != nullptr && wanted != first) {
    return invalid_count();
  }
  return wanted;
}

auto error_of(cursor_fault fault) -> error {
  if (fault == cursor_fault::expired) {
    return {
        400, scim_type::expired_cursor,
        "the cursor has expired: begin again with an empty one, and wait less than cursorTimeout "
        "between pages"};
  }
  return {400, scim_type::invalid_cursor,
          "the cursor is not one of this query: it must be empty for the first page, then the "
          "nextCursor or previousCursor of a page, with all other parameters as they were"};
}

}  // namespace tidegate::TIDEGATE_ABI::scim
