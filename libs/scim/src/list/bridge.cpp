// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/bridge.hpp>

#include "message.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/scim/list_response.hpp>
#include <tidegate/scim/service_provider_config.hpp>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace tidegate::TIDEGATE_ABI::scim {

namespace {

/// The parameters that say which page it is.
constexpr std::array<std::string_view, 3> page_parameters = {"cursor", "startIndex", "count"};

[[nodiscard]] auto is_page_parameter(std::string_view name) -> bool {
  return std::ranges::any_of(
      page_parameters, [&](std::string_view each) { return equal_ignoring_case(each, name); });
}

[[nodiscard]] auto read_object(std::string_view body, json::limits const& limits)
    -> result<json::value, error> {
  auto read = json::parse(body, limits);
  if (!read) {
    return failure(invalid_syntax(to_string(read.error())));
  }
  if (read->if_object() == nullptr) {
    return failure(invalid_syntax("an object is expected"));
  }
  return *std::move(read);
}

}  // namespace

auto bridged_filter(std::string_view filter) -> std::string {
  std::string out;
  out.reserve(filter.size());
  bool in_string = false;
  for (std::size_t i = 0; i < filter.size(); ++i) {
    char const c = filter[i];
    if (in_string) {
      out += c;
      if (c == '\\' && i + 1 < filter.size()) {
        out += filter[++i];
      }
      in_string = c != '"';
    } else if (c == ' ') {
      if (!out.empty() && out.back() != ' ') {
        out += c;
      }
    } else {
      out += to_lower(c);
      in_string = c == '"';
    }
  }
  if (out.ends_with(' ') && !in_string) {
    out.pop_back();
  }
  return out;
}

auto bridge_request(list_request const& request, cursor_sealer const& sealer,
                    cursor_binding const& binding, pagination_options const& options, wall_time now)
    -> result<bridged_page, error> {
  if (request.cursor.empty()) {
    TIDEGATE_TRY(auto const count, page_size(request, nullptr, options));
    return bridged_page{.count = count};
  }
  auto const from = sealer.open(request.cursor, binding, now);
  if (!from) {
    return failure(error_of(from.error()));
  }
  TIDEGATE_TRY(auto const count, page_size(request, &*from, options));
  return bridged_page{.start_index = from->place.from->at.rid,
                      .count = count,
                      .count_seen = static_cast<std::uint32_t>(
                          std::min<std::uint64_t>(from->rid_max, options.max_page_size)),
                      .total_results = from->total_results};
}

auto bridged_query(std::string_view query, bridged_page const& page) -> std::string {
  std::string out;
  while (!query.empty()) {
    auto const pair = take_until(query, '&');
    if (!pair.empty() && !is_page_parameter(pair.substr(0, pair.find('=')))) {
      out += pair;
      out += '&';
    }
  }
  out += "startIndex=" + std::to_string(page.start_index) + "&count=" + std::to_string(page.count);
  return out;
}

auto bridged_search(std::string_view body, bridged_page const& page) -> result<std::string, error> {
  TIDEGATE_TRY(auto message, read_object(body, {}));
  auto& members = *message.if_object();
  for (auto name : page_parameters) {
    members.erase(name);
  }
  members.append("startIndex", static_cast<std::int64_t>(page.start_index));
  members.append("count", static_cast<std::int64_t>(page.count));
  return to_string(message);
}

auto bridge_response(std::string_view body, bridged_page const& page, cursor_sealer const& sealer,
                     cursor_binding const& binding, pagination_options const& options,
                     wall_time now, bridge_nonces const& nonces, json::limits const& limits)
    -> result<std::string, error> {
  TIDEGATE_TRY(auto read, parse_list_response(body, limits));
  auto const items = static_cast<std::uint32_t>(read.resources.size());
  if (items > page.count) {
    return failure(invalid_syntax("there are more resources than were asked for"));
  }
  auto const total_now = read.head.total_results.value_or(page.start_index - 1 + items);
  auto const behind = page.start_index + items;  // the index of what comes next
  bool const has_next = items > 0 && behind <= total_now;
  auto const count_seen = has_next ? items : page.count_seen;

  list_head head;
  head.total_results = page.total_results ? page.total_results : read.head.total_results;
  auto const cursor_to = [&](std::uint64_t start, cursor_sealer::nonce const& random) {
    cursor const made{
        .place = {.towards = direction::forward, .from = gap{{.sort_key = {}, .rid = start}, true}},
        .count = page.count,
        .rid_max = count_seen,
        .total_results = head.total_results,
        .expires = now + options.cursor_timeout};
    return sealer.seal(made, binding, random).value_or(std::string());
  };
  if (page.count > 0 && has_next) {
    head.next_cursor = cursor_to(behind, nonces.next);
  }
  if (page.count > 0 && page.start_index > 1) {
    auto const step = count_seen > 0 ? count_seen : page.count;
    head.previous_cursor =
        cursor_to(page.start_index > step ? page.start_index - step : 1, nonces.previous);
  }

  std::vector<std::string> texts;
  texts.reserve(items);
  for (auto const& each : read.resources) {
    texts.push_back(to_string(each));
  }
  std::vector<std::string_view> const views(texts.begin(), texts.end());
  std::string out;
  append_list_response(out, head, views);
  return out;
}

auto bridge_service_provider_config(std::string_view body, pagination_options const& options,
                                    json::limits const& limits) -> result<std::string, error> {
  TIDEGATE_TRY(auto message, read_object(body, limits));
  std::string pagination;
  append_pagination(pagination, options);
  message.if_object()->set("pagination", *json::parse(pagination));
  return to_string(message);
}

}  // namespace tidegate::TIDEGATE_ABI::scim
