// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/cors_rules.hpp>

#include <tidegate/base/ascii.hpp>
#include <tidegate/http/field.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <initializer_list>
#include <span>

namespace tidegate::gateway {

namespace {

constexpr std::array<std::string_view, 6> usual_methods{"GET", "HEAD",  "POST",
                                                        "PUT", "PATCH", "DELETE"};
constexpr std::array<std::string_view, 4> usual_headers{"Authorization", "Content-Type",
                                                        "Idempotency-Key", "Prefer"};
constexpr std::string_view vary_by_origin = "Vary: Origin\r\n";
constexpr std::string_view vary_of_preflight =
    "Vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers\r\n";
constexpr std::string_view vary_of_preflight_by_any =
    "Vary: Access-Control-Request-Method, Access-Control-Request-Headers\r\n";
constexpr std::string_view credentials_line = "Access-Control-Allow-Credentials: true\r\n";

void add_name(std::vector<std::string>& names, std::string_view name) {
  bool const is_there = std::ranges::any_of(
      names, [&](std::string_view each) { return equal_ignoring_case(each, name); });
  if (!is_there) {
    names.emplace_back(name);
  }
}

void add_names(std::vector<std::string>& names, std::initializer_list<std::string_view> more) {
  for (auto const name : more) {
    add_name(names, name);
  }
}

[[nodiscard]] auto joined(std::vector<std::string> const& names) -> std::string {
  std::string out;
  for (auto const& name : names) {
    out.append(out.empty() ? "" : ", ").append(name);
  }
  return out;
}

/// What pages see of every response by themselves (the Fetch standard, section 2.2.2), or never.
[[nodiscard]] auto is_exposed_anyway(std::string_view name) -> bool {
  constexpr std::array<std::string_view, 9> names{
      "cache-control", "content-language", "content-length", "content-type", "expires",
      "last-modified", "pragma",           "set-cookie",     "set-cookie2"};
  return std::ranges::any_of(names, [&](auto each) { return equal_ignoring_case(each, name); });
}

void add_sources(std::vector<std::string>& names,
                 std::span<ratelimit::partition_source const> sources) {
  for (auto const& source : sources) {
    if (source.kind == ratelimit::partition_source_kind::header) {
      add_name(names, source.name);
    }
  }
}

[[nodiscard]] auto methods_of(route_config const& settings) -> std::vector<std::string> {
  if (!settings.cors->methods.empty()) {
    return settings.cors->methods;
  }
  if (!settings.match.methods.empty()) {
    return settings.match.methods;
  }
  return {usual_methods.begin(), usual_methods.end()};
}

/// What is listed, else what the gateway reads on this route.
[[nodiscard]] auto headers_of(route_config const& settings, config const& all)
    -> std::vector<std::string> {
  if (!settings.cors->headers.empty()) {
    return settings.cors->headers;
  }
  std::vector<std::string> names(usual_headers.begin(), usual_headers.end());
  for (auto const& place : settings.auth ? settings.auth->api_keys : std::vector<key_place>()) {
    if (place.kind == key_place::place_kind::header) {
      add_name(names, place.name);
    }
  }
  for (auto const& wanted : settings.match.headers) {
    add_name(names, wanted.name);
  }
  for (auto const position : settings.limits) {
    add_sources(names, all.policies[position].partition.sources());
  }
  if (settings.idempotency) {
    add_sources(names, settings.idempotency->scope);
  }
  return names;
}

[[nodiscard]] auto origin_line(std::string_view origin) -> std::string {
  return std::string("Access-Control-Allow-Origin: ").append(origin).append("\r\n");
}

[[nodiscard]] auto expose_line(std::vector<std::string> const& names) -> std::string {
  return "Access-Control-Expose-Headers: " + joined(names) + "\r\n";
}

}  // namespace

auto is_access_control(std::string_view name) noexcept -> bool {
  constexpr std::string_view beginning = "access-control-";
  return name.size() > beginning.size() &&
         equal_ignoring_case(name.substr(0, beginning.size()), beginning);
}

auto exposed_names(route_config const& settings, config const& all) -> std::vector<std::string> {
  std::vector<std::string> names;
  bool const is_limited = std::ranges::any_of(
      settings.limits, [&](std::size_t position) { return !all.policies[position].shadow; });
  bool const has_upstream =
      settings.service == route_service::upstream && !settings.redirect && !settings.respond;
  bool const is_scim = settings.service == route_service::scim;
  if (is_limited && all.fields.ratelimit) {
    add_names(names, {"RateLimit", "RateLimit-Policy"});
  }
  if (is_limited && all.fields.legacy_x) {
    add_names(names, {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"});
  }
  if (is_limited && all.fields.legacy_triple) {
    add_names(names, {"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"});
  }
  if (!settings.limits.empty() || has_upstream || is_scim) {
    add_name(names, "Retry-After");
  }
  if (settings.idempotency) {
    add_names(names, {"Idempotent-Replayed", "Idempotency-Status"});
  }
  if (settings.idempotency || has_upstream) {
    add_name(names, "Link");
  }
  if (has_upstream || is_scim) {
    add_names(names, {"Location", "ETag", "Allow"});
  } else if (settings.redirect) {
    add_name(names, "Location");
  }
  if (is_scim) {
    add_name(names, "Content-Location");
  }
  if (settings.auth || has_upstream) {
    add_name(names, "WWW-Authenticate");
  }
  add_name(names, "Date");
  for (auto const& name : settings.cors->expose) {
    add_name(names, name);
  }
  for (auto const* const rules : {&settings.response.set, &settings.response.add}) {
    for (auto const& rule : *rules) {
      if (!is_exposed_anyway(rule.name)) {
        add_name(names, rule.name);
      }
    }
  }
  return names;
}

cors_rules::cors_rules(route_config const& settings, config const& all)
    : methods_(methods_of(settings)), any_origin_(settings.cors->any_origin) {
  auto const& cors = *settings.cors;
  if (any_origin_) {
    origins_.push_back({"", origin_line("*")});
  } else {
    for (auto const& origin : cors.origins) {
      origins_.push_back({origin, origin_line(origin)});
    }
    std::ranges::sort(origins_, {}, &allowed_origin::name);
  }

  auto const names = headers_of(settings, all);
  headers_text_ = joined(names);
  for (auto const& name : names) {
    header_size_max_ = std::max(header_size_max_, name.size());
    headers_.push_back(lower_case(name));
  }
  std::ranges::sort(headers_);

  auto exposed = exposed_names(settings, all);
  std::string_view const credentials = cors.credentials ? credentials_line : "";
  auto const vary = foreign_lines();
  allowed_lines_.append(credentials).append(expose_line(exposed)).append(vary);
  add_names(exposed, {"grpc-status", "grpc-message", "grpc-retry-pushback-ms"});
  grpc_lines_.append(credentials).append(expose_line(exposed)).append(vary);
  auto const age = std::chrono::floor<std::chrono::seconds>(cors.max_age).count();
  preflight_lines_.append(credentials)
      .append("Access-Control-Allow-Methods: ")
      .append(joined(methods_))
      .append("\r\nAccess-Control-Max-Age: ")
      .append(std::to_string(age))
      .append("\r\n")
      .append(refusal_lines());
}

auto cors_rules::line_for(std::string_view origin) const noexcept -> std::string_view {
  if (any_origin_) {
    return origins_.front().line;
  }
  auto const found = std::ranges::lower_bound(
      origins_, origin, {}, [](allowed_origin const& each) { return std::string_view(each.name); });
  return found != origins_.end() && found->name == origin ? std::string_view(found->line)
                                                          : std::string_view();
}

auto cors_rules::foreign_lines() const noexcept -> std::string_view {
  return any_origin_ ? std::string_view() : vary_by_origin;
}

auto cors_rules::refusal_lines() const noexcept -> std::string_view {
  return any_origin_ ? vary_of_preflight_by_any : vary_of_preflight;
}

auto cors_rules::allows_method(std::string_view method) const noexcept -> bool {
  return std::ranges::find(methods_, method) != methods_.end();
}

auto cors_rules::lists_header(std::string_view name) const noexcept -> bool {
  if (name.size() > header_size_max_) {
    return false;
  }
  auto const less = [](std::string_view known, std::string_view asked) {
    return std::ranges::lexicographical_compare(known, asked, {}, {}, to_lower);
  };
  auto const found = std::ranges::lower_bound(headers_, name, less);
  return found != headers_.end() && equal_ignoring_case(*found, name);
}

auto cors_rules::takes_headers(std::string_view line, requested_headers& asked) const noexcept
    -> bool {
  while (!line.empty()) {
    auto const name = http::take_element(line);
    if (name.empty()) {
      continue;
    }
    if (++asked.count > requested_headers_max) {
      return false;
    }
    if (lists_header(name)) {
      continue;
    }
    auto const safe = std::ranges::find_if(
        safelisted_headers, [&](auto each) { return equal_ignoring_case(each, name); });
    if (safe == safelisted_headers.end()) {
      return false;
    }
    asked.safelisted.set(static_cast<std::size_t>(safe - safelisted_headers.begin()));
  }
  return true;
}

void cors_rules::append_headers_line(std::string& out, requested_headers const& asked) const {
  if (headers_text_.empty() && asked.safelisted.none()) {
    return;
  }
  out.append("Access-Control-Allow-Headers: ").append(headers_text_);
  auto const* between = headers_text_.empty() ? "" : ", ";
  for (std::size_t i = 0; i < safelisted_headers.size(); ++i) {
    if (asked.safelisted[i]) {
      out.append(between).append(safelisted_headers[i]);
      between = ", ";
    }
  }
  out.append("\r\n");
}

}  // namespace tidegate::gateway
