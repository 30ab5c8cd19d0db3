// SPDX-License-Identifier: Apache-2.0
#include "scim_pages.hpp"

#include <tidegate/base/ascii.hpp>

#include <algorithm>
#include <array>

namespace tidegate::TIDEGATE_ABI::lint {

namespace {

constexpr std::array<probe, 7> list_probes = {probe::scim_first_page,     probe::scim_next_page,
                                              probe::scim_previous_page,  probe::scim_count_zero,
                                              probe::scim_count_negative, probe::scim_count_word,
                                              probe::scim_default_page};

}  // namespace

auto is_scim(probe purpose) -> bool {
  return purpose >= probe::scim_config;
}

auto page_of(recording const& what, probe purpose) -> std::optional<page> {
  auto const* const each = what.find(purpose);
  if (each == nullptr || each->status() != 200 || !each->json ||
      each->json->if_object() == nullptr) {
    return std::nullopt;
  }
  page read{.by = each, .ids = {}};
  auto const& message = *each->json;
  read.next = message.find("nextCursor");
  read.previous = message.find("previousCursor");
  read.total = message.find<std::int64_t>("totalResults");
  if (auto const* const resources = message.find<json::array>("Resources")) {
    read.resources = resources->size();
    for (auto const& resource : *resources) {
      if (auto const id = text_of(resource, "id"); !id.empty()) {
        read.ids.push_back(id);
      }
    }
  }
  return read;
}

auto pages_of(recording const& what) -> std::vector<page> {
  std::vector<page> pages;
  for (auto const purpose : list_probes) {
    if (auto read = page_of(what, purpose)) {
      pages.push_back(*std::move(read));
    }
  }
  return pages;
}

auto pagination_of(recording const& what) -> json::object const* {
  auto const* const config = what.find(probe::scim_config);
  return config == nullptr || !config->json ? nullptr
                                            : config->json->find<json::object>("pagination");
}

auto says(json::object const* object, std::string_view name) -> std::optional<bool> {
  auto const* const value = object == nullptr ? nullptr : object->find<bool>(name);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

auto has_cursors(recording const& what) -> bool {
  return says(pagination_of(what), "cursor").value_or(false) ||
         std::ranges::any_of(pages_of(what), [](page const& each) {
           return each.next != nullptr || each.previous != nullptr;
         });
}

}  // namespace tidegate::TIDEGATE_ABI::lint
