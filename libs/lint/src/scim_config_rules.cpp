// SPDX-License-Identifier: Apache-2.0
//
// What ServiceProviderConfig says, and whether it is so.
#include "scim_pages.hpp"

#include <tidegate/base/ascii.hpp>

#include <algorithm>
#include <array>
#include <string>

namespace tidegate::TIDEGATE_ABI::lint {

namespace {

using namespace explain::specification;
using enum explain::severity;

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
                     (pagination->find(name) == nullptr ? " is missing" : " is not a boolean"));
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
                 std::string(name) + " is not a non-negative integer");
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
    if (std::ranges::none_of(known,
                             [&](auto name) { return equal_ignoring_case(name, member.name); })) {
      out.broken(*what.find(probe::scim_config), "pagination",
                 member.name.substr(0, 40) +
                     " is not a name of the specification; it has defaultPageSize, "
                     "maximumPageSize (maxPageSize in RFC 9865) and cursorTimeout");
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

constexpr auto table = std::to_array<checked_rule>({
    {{"scim-config", warning, scim_protocol, "4", "There is a ServiceProviderConfig."},
     check_config},
    {{"scim-config-pagination", warning, scim_cursor, "4",
      "ServiceProviderConfig has pagination where cursors are there."},
     check_config_pagination},
    {{"scim-config-booleans", error, scim_cursor, "4",
      "pagination has the booleans cursor and index."},
     check_config_booleans},
    {{"scim-config-numbers", error, scim_cursor, "4",
      "defaultPageSize, maximumPageSize and cursorTimeout are non-negative integers."},
     check_config_numbers},
    {{"scim-config-names", warning, scim_cursor, "4",
      "pagination has the names of the specification and no others."},
     check_config_names},
    {{"scim-config-method", error, scim_cursor_rfc, "4",
      "defaultPaginationMethod is cursor or index."},
     check_config_method},
    {{"scim-config-true", warning, scim_cursor, "4", "What pagination says of cursors is so."},
     check_config_true},
});

}  // namespace

auto scim_config_rules() noexcept -> std::span<checked_rule const> {
  return table;
}

}  // namespace tidegate::TIDEGATE_ABI::lint
