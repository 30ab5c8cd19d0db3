// SPDX-License-Identifier: Apache-2.0
#include "recording.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace tidegate::lint {

namespace {

using namespace explain::specification;
using enum explain::severity;

constexpr std::string_view list_schema = "urn:ietf:params:scim:api:messages:2.0:ListResponse";
constexpr std::string_view error_schema = "urn:ietf:params:scim:api:messages:2.0:Error";
/// What the prober asks for on pages.
constexpr std::size_t page_size = 2;

[[nodiscard]] auto is_scim(probe purpose) -> bool {
  return purpose >= probe::scim_config;
}

[[nodiscard]] auto has_schema(json::value const& message, std::string_view schema) -> bool {
  auto const* const member = message.find("schemas");
  auto const* const schemas = member == nullptr ? nullptr : member->if_array();
  return schemas != nullptr && std::ranges::any_of(*schemas, [&](json::value const& one) {
           return one.if_string() != nullptr && same_name(*one.if_string(), schema);
         });
}

/// A page of a list that was answered with 200 and an object.
struct page {
  seen const* by = nullptr;
  std::vector<std::string_view> ids;
  std::size_t resources = 0;
  std::int64_t const* total = nullptr;
  json::value const* next = nullptr;
  json::value const* previous = nullptr;
};

[[nodiscard]] auto page_of(recording const& what, probe purpose) -> std::optional<page> {
  auto const* const each = what.find(purpose);
  if (each == nullptr || each->status() != 200 || !each->json ||
      each->json->if_object() == nullptr) {
    return std::nullopt;
  }
  page read{.by = each, .ids = {}};
  auto const& message = *each->json;
  read.next = message.find("nextCursor");
  read.previous = message.find("previousCursor");
  auto const* const total = message.find("totalResults");
  read.total = total == nullptr ? nullptr : total->if_integer();
  auto const* const resources = message.find("Resources");
  if (resources != nullptr && resources->if_array() != nullptr) {
    read.resources = resources->if_array()->size();
    for (auto const& resource : *resources->if_array()) {
      if (auto const id = text_of(resource, "id"); !id.empty()) {
        read.ids.push_back(id);
      }
    }
  }
  return read;
}

constexpr std::array<probe, 7> list_probes = {probe::scim_first_page,     probe::scim_next_page,
                                              probe::scim_previous_page,  probe::scim_count_zero,
                                              probe::scim_count_negative, probe::scim_count_word,
                                              probe::scim_default_page};

[[nodiscard]] auto pages_of(recording const& what) -> std::vector<page> {
  std::vector<page> pages;
  for (auto const purpose : list_probes) {
    if (auto read = page_of(what, purpose)) {
      pages.push_back(*std::move(read));
    }
  }
  return pages;
}

/// The member `pagination` of ServiceProviderConfig.
[[nodiscard]] auto pagination_of(recording const& what) -> json::object const* {
  auto const* const config = what.find(probe::scim_config);
  auto const* const member =
      config == nullptr || !config->json ? nullptr : config->json->find("pagination");
  return member == nullptr ? nullptr : member->if_object();
}

[[nodiscard]] auto says(json::object const* object, std::string_view name) -> std::optional<bool> {
  auto const* const member = object == nullptr ? nullptr : object->find(name);
  auto const* const value = member == nullptr ? nullptr : member->if_bool();
  return value == nullptr ? std::nullopt : std::optional(*value);
}

/// Cursors are there: it says so, or gives one.
[[nodiscard]] auto has_cursors(recording const& what) -> bool {
  return says(pagination_of(what), "cursor").value_or(false) ||
         std::ranges::any_of(pages_of(what), [](page const& each) {
           return each.next != nullptr || each.previous != nullptr;
         });
}

// ── ServiceProviderConfig ──

void check_config(recording const& what, verdict& out) {
  auto const* const config = what.find(probe::scim_config);
  if (config == nullptr || config->status() == 401 || config->status() == 403) {
    return;
  }
  out.applies();
  if (config->status() != 200 || !config->json || config->json->if_object() == nullptr) {
    out.broken(*config, "ServiceProviderConfig", "there is none");
  }
}

void check_config_pagination(recording const& what, verdict& out) {
  auto const* const config = what.find(probe::scim_config);
  if (config == nullptr || config->status() != 200 || !has_cursors(what)) {
    return;
  }
  out.applies();
  if (pagination_of(what) == nullptr) {
    out.broken(*config, "pagination", "cursors are given, but the attribute pagination is missing");
  }
}

void check_config_booleans(recording const& what, verdict& out) {
  auto const* const pagination = pagination_of(what);
  if (pagination == nullptr) {
    return;
  }
  out.applies();
  for (std::string_view const name : {"cursor", "index"}) {
    if (!says(pagination, name)) {
      out.broken(*what.find(probe::scim_config), "pagination",
                 std::string(name) +
                     (pagination->find(name) == nullptr ? " is missing" : " is no boolean"));
    }
  }
}

void check_config_numbers(recording const& what, verdict& out) {
  auto const* const pagination = pagination_of(what);
  if (pagination == nullptr) {
    return;
  }
  for (std::string_view const name :
       {"defaultPageSize", "maximumPageSize", "maxPageSize", "cursorTimeout"}) {
    auto const* const member = pagination->find(name);
    if (member == nullptr) {
      continue;
    }
    out.applies();
    if (member->if_integer() == nullptr || *member->if_integer() < 0) {
      out.broken(*what.find(probe::scim_config), "pagination",
                 std::string(name) + " is no non-negative integer");
    }
  }
}

void check_config_names(recording const& what, verdict& out) {
  constexpr std::array<std::string_view, 7> known = {
      "cursor",          "index",           "defaultPaginationMethod",
      "defaultPageSize", "maximumPageSize", "maxPageSize",
      "cursorTimeout"};
  auto const* const pagination = pagination_of(what);
  if (pagination == nullptr) {
    return;
  }
  out.applies();
  for (auto const& member : pagination->members()) {
    if (std::ranges::none_of(known, [&](auto name) { return same_name(name, member.name); })) {
      out.broken(*what.find(probe::scim_config), "pagination",
                 member.name.substr(0, 40) +
                     " is no name of the specification; it has defaultPageSize, maximumPageSize "
                     "(maxPageSize in "
                     "RFC 9865) and cursorTimeout");
    }
  }
}

void check_config_method(recording const& what, verdict& out) {
  auto const* const pagination = pagination_of(what);
  auto const* const method =
      pagination == nullptr ? nullptr : pagination->find("defaultPaginationMethod");
  if (method == nullptr) {
    return;
  }
  out.applies();
  auto const* const text = method->if_string();
  if (text == nullptr || (*text != "cursor" && *text != "index")) {
    out.broken(*what.find(probe::scim_config), "pagination",
               "defaultPaginationMethod is neither \"cursor\" nor \"index\"");
  }
}

void check_config_true(recording const& what, verdict& out) {
  auto const cursor = says(pagination_of(what), "cursor");
  auto const* const first = what.find(probe::scim_first_page);
  if (!cursor || first == nullptr) {
    return;
  }
  out.applies();
  auto const read = page_of(what, probe::scim_first_page);
  if (*cursor && first->status() != 200) {
    out.broken(*first, "pagination",
               "cursors are said to be supported, but the first page is refused");
  } else if (!*cursor && read && read->next != nullptr) {
    out.broken(*first, "pagination",
               "cursors are said not to be supported, but nextCursor is there");
  }
}

// ── lists ──

void check_media_type(recording const& what, verdict& out) {
  for (auto const& each : what.all()) {
    if (!is_scim(each.purpose()) || !each.is_judged() || each.of->content.empty()) {
      continue;
    }
    out.applies();
    if (each.media_type() != "application/scim+json") {
      out.broken(each, "Content-Type",
                 "application/scim+json was asked for, " +
                     (each.media_type().empty() ? std::string("nothing") : each.media_type()) +
                     " was sent");
    }
  }
}

void check_list_form(recording const& what, verdict& out) {
  for (auto const& each : pages_of(what)) {
    out.applies();
    auto const& message = *each.by->json;
    if (!has_schema(message, list_schema)) {
      out.broken(*each.by, "schemas", "the message does not say that it is a ListResponse");
    }
    auto const* const total = message.find("totalResults");
    if (total != nullptr && (each.total == nullptr || *each.total < 0)) {
      out.broken(*each.by, "totalResults", "it is no non-negative integer");
    }
    auto const* const resources = message.find("Resources");
    if (resources != nullptr && resources->if_array() == nullptr) {
      out.broken(*each.by, "Resources", "it is no array");
    }
    auto const* const items = message.find("itemsPerPage");
    if (items != nullptr && items->if_integer() == nullptr) {
      out.broken(*each.by, "itemsPerPage", "it is no integer");
    }
  }
}

void check_count(recording const& what, verdict& out) {
  for (auto const purpose :
       {probe::scim_first_page, probe::scim_next_page, probe::scim_previous_page}) {
    if (auto const read = page_of(what, purpose)) {
      out.applies();
      if (read->resources > page_size) {
        out.broken(*read->by, "count",
                   "count=2 was answered with " + std::to_string(read->resources) + " resources");
      }
    }
  }
}

void check_no_resources(recording const& what, verdict& out, probe purpose,
                        std::string_view count) {
  if (auto const read = page_of(what, purpose)) {
    out.applies();
    if (read->resources > 0) {
      out.broken(*read->by, "count",
                 "count=" + std::string(count) + " was answered with " +
                     std::to_string(read->resources) + " resources");
    }
  } else if (auto const* const refused = what.find(purpose);
             refused != nullptr && refused->status() == 400) {
    out.applies();  // the draft asks for a positive number, so that a refusal is right too
  }
}

void check_count_zero(recording const& what, verdict& out) {
  check_no_resources(what, out, probe::scim_count_zero, "0");
}

void check_count_negative(recording const& what, verdict& out) {
  check_no_resources(what, out, probe::scim_count_negative, "-1");
}

void check_next_cursor(recording const& what, verdict& out) {
  auto const first = page_of(what, probe::scim_first_page);
  if (!first || first->total == nullptr || !has_cursors(what)) {
    return;
  }
  out.applies();
  if (first->next == nullptr && *first->total > static_cast<std::int64_t>(first->resources)) {
    out.broken(*first->by, "nextCursor",
               std::to_string(first->resources) + " of " + std::to_string(*first->total) +
                   " results were given, but no nextCursor");
  }
}

void check_cursor_form(recording const& what, verdict& out) {
  for (auto const& each : pages_of(what)) {
    for (auto const& [name, cursor] :
         {std::pair("nextCursor", each.next), std::pair("previousCursor", each.previous)}) {
      if (cursor == nullptr) {
        continue;
      }
      out.applies();
      auto const* const text = cursor->if_string();
      if (text == nullptr || text->empty()) {
        out.broken(*each.by, name,
                   "it is no string with text; without another page it has to be left out");
      } else if (std::ranges::any_of(*text, [](char c) {
                   bool const is_plain =
                       (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
                   return !is_plain && !std::string_view("-._~").contains(c);
                 })) {
        out.broken(*each.by, name, "it has characters that a query must escape");
      }
    }
  }
}

void check_next_page(recording const& what, verdict& out) {
  auto const* const next = what.find(probe::scim_next_page);
  if (next == nullptr) {
    return;
  }
  out.applies();
  if (!page_of(what, probe::scim_next_page)) {
    out.broken(*next, "nextCursor", "it does not lead to a page");
  }
}

void check_disjoint(recording const& what, verdict& out) {
  auto const first = page_of(what, probe::scim_first_page);
  auto const next = page_of(what, probe::scim_next_page);
  if (!first || !next) {
    return;
  }
  out.applies();
  std::set<std::string_view> const before(first->ids.begin(), first->ids.end());
  for (auto const id : next->ids) {
    if (before.contains(id)) {
      out.broken(*next->by, "Resources", "a resource of the page before is there again");
      return;
    }
  }
}

void check_total(recording const& what, verdict& out) {
  auto const first = page_of(what, probe::scim_first_page);
  auto const next = page_of(what, probe::scim_next_page);
  if (!first || first->total == nullptr) {
    return;
  }
  out.applies();
  auto const seen_so_far =
      static_cast<std::int64_t>(first->resources + (next ? next->resources : 0));
  bool const is_whole = next ? next->next == nullptr : first->next == nullptr && has_cursors(what);
  if (*first->total < seen_so_far || (is_whole && next && *first->total != seen_so_far)) {
    out.broken(next ? *next->by : *first->by, "totalResults",
               "it says " + std::to_string(*first->total) + ", but " + std::to_string(seen_so_far) +
                   " results were given" + (is_whole ? " in all" : " so far"));
  }
}

void check_first_previous(recording const& what, verdict& out) {
  auto const first = page_of(what, probe::scim_first_page);
  if (!first || !has_cursors(what)) {
    return;
  }
  out.applies();
  if (first->previous != nullptr) {
    out.broken(*first->by, "previousCursor", "the first page has one");
  }
}

void check_previous_page(recording const& what, verdict& out) {
  auto const* const previous = what.find(probe::scim_previous_page);
  auto const first = page_of(what, probe::scim_first_page);
  if (previous == nullptr || !first) {
    return;
  }
  out.applies();
  auto const read = page_of(what, probe::scim_previous_page);
  if (!read || read->ids != first->ids) {
    out.broken(*previous, "previousCursor", "it does not lead back to the page before");
  }
}

void check_default_page(recording const& what, verdict& out) {
  auto const read = page_of(what, probe::scim_default_page);
  auto const* const pagination = pagination_of(what);
  if (!read || pagination == nullptr) {
    return;
  }
  for (std::string_view const name : {"defaultPageSize", "maximumPageSize", "maxPageSize"}) {
    auto const* const member = pagination->find(name);
    auto const* const most = member == nullptr ? nullptr : member->if_integer();
    if (most == nullptr) {
      continue;
    }
    out.applies();
    if (*most >= 0 && static_cast<std::int64_t>(read->resources) > *most) {
      out.broken(
          *read->by, name,
          std::to_string(read->resources) + " resources are more than " + std::to_string(*most));
    }
  }
}

// ── errors ──

void check_refused(recording const& what, verdict& out, probe purpose, std::string_view parameter) {
  auto const* const each = what.find(purpose);
  if (each == nullptr || each->status() == 401 || each->status() == 403) {
    return;
  }
  out.applies();
  if (each->status() != 400) {
    out.broken(*each, parameter,
               "the value makes no sense, but was answered with " + std::to_string(each->status()));
  }
}

void check_type(recording const& what, verdict& out, probe purpose,
                std::initializer_list<std::string_view> types) {
  auto const* const each = what.find(purpose);
  if (each == nullptr || each->status() != 400) {
    return;
  }
  out.applies();
  auto const type = each->json ? text_of(*each->json, "scimType") : std::string_view();
  if (std::ranges::find(types, type) == types.end()) {
    out.broken(
        *each, "scimType",
        type.empty()
            ? "it is missing; " + std::string(*types.begin()) + " is defined for this"
            : std::string(type.substr(0, 40)) + " instead of " + std::string(*types.begin()));
  }
}

void check_invalid_cursor(recording const& what, verdict& out) {
  if (has_cursors(what)) {
    check_refused(what, out, probe::scim_invalid_cursor, "cursor");
  }
}

void check_invalid_cursor_type(recording const& what, verdict& out) {
  if (has_cursors(what)) {
    check_type(what, out, probe::scim_invalid_cursor, {"invalidCursor", "expiredCursor"});
  }
}

// A server without cursors does not follow the draft, and RFC 7644 says nothing of such a count.

void check_invalid_count(recording const& what, verdict& out) {
  if (has_cursors(what)) {
    check_refused(what, out, probe::scim_count_word, "count");
  }
}

void check_invalid_count_type(recording const& what, verdict& out) {
  if (has_cursors(what)) {
    check_type(what, out, probe::scim_count_word, {"invalidCount", "invalidValue"});
  }
}

void check_error_form(recording const& what, verdict& out) {
  for (auto const& each : what.all()) {
    if (!is_scim(each.purpose()) || !each.is_judged() || each.status() < 400) {
      continue;
    }
    out.applies();
    if (!each.json || !has_schema(*each.json, error_schema)) {
      out.broken(each, "schemas", "the error is not in the form of SCIM");
      continue;
    }
    auto const* const status = each.json->find("status");
    if (status == nullptr || status->if_string() == nullptr ||
        *status->if_string() != std::to_string(each.status())) {
      out.broken(each, "status", "it is not the status code as a string");
    }
  }
}

constexpr auto table = std::to_array<checked_rule>({
    {{"scim-config", warning, scim_protocol, "4", {}, "There is a ServiceProviderConfig."},
     check_config},
    {{"scim-config-pagination",
      warning,
      scim_cursor,
      "4",
      {},
      "ServiceProviderConfig has pagination where cursors are there."},
     check_config_pagination},
    {{"scim-config-booleans",
      error,
      scim_cursor,
      "4",
      {},
      "pagination has the booleans cursor and index."},
     check_config_booleans},
    {{"scim-config-numbers",
      error,
      scim_cursor,
      "4",
      {},
      "defaultPageSize, maximumPageSize and cursorTimeout are non-negative integers."},
     check_config_numbers},
    {{"scim-config-names",
      warning,
      scim_cursor,
      "4",
      {},
      "pagination has the names of the specification and no others."},
     check_config_names},
    {{"scim-config-method",
      error,
      scim_cursor_rfc,
      "4",
      {},
      "defaultPaginationMethod is cursor or index."},
     check_config_method},
    {{"scim-config-true", warning, scim_cursor, "4", {}, "What pagination says of cursors is so."},
     check_config_true},
    {{"scim-media-type",
      error,
      scim_protocol,
      "3.8",
      {},
      "Whoever accepts application/scim+json gets it."},
     check_media_type},
    {{"scim-list-form", error, scim_protocol, "3.4.2", {}, "A list is a ListResponse."},
     check_list_form},
    {{"scim-count", error, scim_cursor, "2", {}, "A page has no more results than count says."},
     check_count},
    {{"scim-count-zero", error, scim_cursor_rfc, "2", {}, "count=0 gives no resources."},
     check_count_zero},
    {{"scim-count-negative",
      error,
      scim_cursor_rfc,
      "2",
      {},
      "A negative count gives no resources."},
     check_count_negative},
    {{"scim-next-cursor", error, scim_cursor, "2", {}, "Every page but the last has nextCursor."},
     check_next_cursor},
    {{"scim-cursor-form",
      error,
      scim_cursor,
      "2",
      {},
      "A cursor is a string of unreserved characters; without another page it is left out."},
     check_cursor_form},
    {{"scim-next-page", error, scim_cursor, "2", {}, "nextCursor leads to the next page."},
     check_next_page},
    {{"scim-pages-disjoint", warning, scim_cursor, "2", {}, "No resource is on two pages."},
     check_disjoint},
    {{"scim-total-results", warning, scim_cursor, "2", {}, "totalResults is accurate."},
     check_total},
    {{"scim-first-previous",
      error,
      scim_cursor_rfc,
      "2",
      {},
      "The first page has no previousCursor."},
     check_first_previous},
    {{"scim-previous-page",
      warning,
      scim_cursor,
      "2",
      {},
      "previousCursor leads to the page before."},
     check_previous_page},
    {{"scim-page-size",
      warning,
      scim_cursor,
      "4",
      {},
      "Without count a page has at most defaultPageSize and maximumPageSize results."},
     check_default_page},
    {{"scim-invalid-cursor", warning, scim_cursor, "2.1", {}, "A cursor that is none gets 400."},
     check_invalid_cursor},
    {{"scim-invalid-cursor-type",
      warning,
      scim_cursor,
      "2.1",
      {},
      "A cursor that is none gets invalidCursor."},
     check_invalid_cursor_type},
    {{"scim-invalid-count", warning, scim_cursor, "2.1", {}, "A count that is no number gets 400."},
     check_invalid_count},
    {{"scim-invalid-count-type",
      warning,
      scim_cursor,
      "2.1",
      {},
      "A count that is no number gets invalidCount."},
     check_invalid_count_type},
    {{"scim-error-form",
      error,
      scim_protocol,
      "3.12",
      {},
      "Errors have the schema Error and their status as a string."},
     check_error_form},
});

}  // namespace

auto scim_rules() noexcept -> std::span<checked_rule const> {
  return table;
}

}  // namespace tidegate::lint
