// SPDX-License-Identifier: Apache-2.0
#include "recording.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/json/parse.hpp>

#include <algorithm>
#include <utility>

namespace tidegate::TIDEGATE_ABI::lint {

auto request_words(planned_request const& request) -> std::string {
  constexpr std::size_t target_max = 80;
  std::string_view target = request.url;
  auto const host = target.find("://");
  auto const path = host == std::string_view::npos ? host : target.find_first_of("/?", host + 3);
  target = path == std::string_view::npos ? std::string_view("/") : target.substr(path);
  auto text = request.method + " " + std::string(target.substr(0, target_max));
  return target.size() > target_max ? text + "..." : text;
}

auto seen::field(std::string_view name) const noexcept -> std::string_view {
  for (auto const& line : lines) {
    if (equal_ignoring_case(line.name, name)) {
      return trimmed(line.value);
    }
  }
  return {};
}

auto seen::fields(std::string_view name) const -> std::vector<std::string_view> {
  auto const all = [this](std::string_view wanted) {
    std::vector<std::string_view> values;
    for (auto const& line : lines) {
      if (equal_ignoring_case(line.name, wanted)) {
        values.push_back(line.value);
      }
    }
    return values;
  };
  auto values = all(name);
  // A server that tries the fields out has another name for them.
  bool const is_of_a_draft =
      equal_ignoring_case(name, "ratelimit") || equal_ignoring_case(name, "ratelimit-policy");
  if (values.empty() && is_of_a_draft) {
    values = all("beta-" + std::string(name));
  }
  return values;
}

auto seen::media_type() const -> std::string {
  return lower_case(http::media_type(field("content-type")));
}

recording::recording(std::span<exchange const> exchanges) {
  all_.reserve(exchanges.size());
  for (auto const& each : exchanges) {
    auto& added = all_.emplace_back(seen{.source = &each, .lines = {}, .json = {}});
    for (auto const& line : each.fields) {
      added.lines.push_back({line.name, line.value});
    }
    if (auto const type = added.media_type(); type.ends_with("json") && !each.content.empty()) {
      if (auto read = json::parse(each.content, {.octets_max = content_octets_max})) {
        added.json = *std::move(read);
      }
    }
  }
}

auto recording::find(probe purpose) const noexcept -> seen const* {
  auto const found = std::ranges::find_if(
      all_, [&](seen const& each) { return each.purpose() == purpose && each.is_judged(); });
  return found == all_.end() ? nullptr : &*found;
}

void verdict::applies() noexcept {
  of_.result = of_.result == outcome::broken ? outcome::broken : outcome::holds;
}

void verdict::broken(seen const& by, std::string_view field, std::string text) {
  broken(by, {.level = of_.rule.level,
              .rule = of_.rule.id,
              .field = std::string(field),
              .specification = of_.rule.specification,
              .section = of_.rule.section,
              .text = std::move(text)});
}

void verdict::broken(seen const& by, explain::finding what) {
  of_.result = outcome::broken;
  for (auto& known : of_.findings) {
    if (known.finding == what) {
      ++known.times;
      return;
    }
  }
  if (of_.findings.size() < broken_max) {
    auto where = request_words(by.source->request) + ": " + std::to_string(by.status());
    of_.findings.push_back({.finding = std::move(what), .where = std::move(where)});
  }
}

}  // namespace tidegate::TIDEGATE_ABI::lint
