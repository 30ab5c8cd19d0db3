// SPDX-License-Identifier: Apache-2.0
//
// Lists and errors of SCIM servers.
#include "scim_pages.hpp"

#include <tidegate/http/query.hpp>
#include <tidegate/scim/error.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string>

namespace tidegate::TIDEGATE_ABI::lint {

namespace {

using namespace explain::specification;
using enum explain::severity;

constexpr std::string_view list_schema = "urn:ietf:params:scim:api:messages:2.0:ListResponse";
constexpr std::string_view error_schema = "urn:ietf:params:scim:api:messages:2.0:Error";
/// What the prober asks for on pages.
constexpr std::size_t page_size = 2;

// ── lists ──

void check_media_type(recording const& what, verdict& out) {
  for (auto const& each : what.all()) {
    if (!is_scim(each.purpose()) || !each.is_judged() || each.source->content.empty()) {
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
    if (!scim::has_schema(message, list_schema)) {
      out.broken(*each.by, "schemas", "the message does not say that it is a ListResponse");
    }
    auto const* const total = message.find("totalResults");
    if (total != nullptr && (each.total == nullptr || *each.total < 0)) {
      out.broken(*each.by, "totalResults", "it is not a non-negative integer");
    }
    auto const* const resources = message.find("Resources");
    if (resources != nullptr && resources->if_array() == nullptr) {
      out.broken(*each.by, "Resources", "it is not an array");
    }
    auto const* const items = message.find("itemsPerPage");
    if (items != nullptr && items->if_integer() == nullptr) {
      out.broken(*each.by, "itemsPerPage", "it is not an integer");
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
                   "it is not a string with text; without another page it has to be left out");
      } else if (!std::ranges::all_of(*text, http::is_unreserved)) {
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
    auto const* const most = pagination->find<std::int64_t>(name);
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
    if (!each.json || !scim::has_schema(*each.json, error_schema)) {
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
    {{"scim-media-type", error, scim_protocol, "3.8",
      "A client that accepts application/scim+json gets it."},
     check_media_type},
    {{"scim-list-form", error, scim_protocol, "3.4.2", "A list is a ListResponse."},
     check_list_form},
    {{"scim-count", error, scim_cursor, "2", "A page has no more results than count says."},
     check_count},
    {{"scim-count-zero", error, scim_cursor_rfc, "2", "count=0 gives no resources."},
     check_count_zero},
    {{"scim-count-negative", error, scim_cursor_rfc, "2", "A negative count gives no resources."},
     check_count_negative},
    {{"scim-next-cursor", error, scim_cursor, "2", "Every page but the last has nextCursor."},
     check_next_cursor},
    {{"scim-cursor-form", error, scim_cursor, "2",
      "A cursor is a string of unreserved characters; without another page it is left out."},
     check_cursor_form},
    {{"scim-next-page", error, scim_cursor, "2", "nextCursor leads to the next page."},
     check_next_page},
    {{"scim-pages-disjoint", warning, scim_cursor, "2", "No resource is on two pages."},
     check_disjoint},
    {{"scim-total-results", warning, scim_cursor, "2", "totalResults is accurate."}, check_total},
    {{"scim-first-previous", error, scim_cursor_rfc, "2", "The first page has no previousCursor."},
     check_first_previous},
    {{"scim-previous-page", warning, scim_cursor, "2", "previousCursor leads to the page before."},
     check_previous_page},
    {{"scim-page-size", warning, scim_cursor, "4",
      "Without count a page has at most defaultPageSize and maximumPageSize results."},
     check_default_page},
    {{"scim-invalid-cursor", warning, scim_cursor, "2.1",
      "A cursor that the server did not give gets 400."},
     check_invalid_cursor},
    {{"scim-invalid-cursor-type", warning, scim_cursor, "2.1",
      "A cursor that the server did not give gets invalidCursor."},
     check_invalid_cursor_type},
    {{"scim-invalid-count", warning, scim_cursor, "2.1", "A count that is not a number gets 400."},
     check_invalid_count},
    {{"scim-invalid-count-type", warning, scim_cursor, "2.1",
      "A count that is not a number gets invalidCount."},
     check_invalid_count_type},
    {{"scim-error-form", error, scim_protocol, "3.12",
      "Errors have the schema Error and their status as a string."},
     check_error_form},
});

}  // namespace

auto scim_rules() noexcept -> std::span<checked_rule const> {
  return table;
}

}  // namespace tidegate::TIDEGATE_ABI::lint
