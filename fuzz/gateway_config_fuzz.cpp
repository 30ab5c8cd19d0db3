// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a configuration file, with variables and files to include, and its lines as flags:
//
// - never a crash or an exception;
// - every fault has a message and a place inside of its file, and they stand in its order;
// - what came through a variable is in no fault, no warning and no effective option;
// - what is accepted has something to listen on and a route, every position in it exists, its
//   patterns can be compiled, and no cost is above what a policy admits;
// - no rule for headers, paths and redirects has text that ends a line, or leads to another host
//   than the operator wrote.
#include "check.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/config/config.hpp>
#include <tidegate/http/field.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace tidegate::gateway;
using tidegate::fuzz::check;

auto lines_of(std::string_view text) -> std::vector<std::string_view> {
  std::vector<std::string_view> lines;
  for (std::size_t begin = 0; begin <= text.size();) {
    auto const end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

constexpr std::string_view secret = "zq7-secret";
constexpr std::string_view included =
    "policies:\n  of-file: {quota: '${NUMBER}', window: 1m}\nroutes:\n  - {match: {path: "
    "'/${SECRET}'}, "
    "service: echo}\n";

/// Two variables, a file with a secret and one to include.
auto sources() -> config_sources {
  return {.variable = [](std::string const& name) -> std::optional<std::string> {
            return name == "SECRET"   ? std::optional(std::string(secret))
                   : name == "NUMBER" ? std::optional(std::string("7"))
                                      : std::nullopt;
          },
          .file = [](std::string const& path,
                     std::size_t octets_max) -> tidegate::result<std::string, std::string> {
            if (path == "secret" || path == "included.yaml") {
              return std::string(path == "secret" ? secret : included).substr(0, octets_max + 1);
            }
            return tidegate::failure(std::string("there is no such file"));
          },
          .matching = [](std::string const& pattern)
              -> tidegate::result<std::vector<std::string>, std::string> {
            return pattern == "*.yaml" ? std::vector<std::string>{"included.yaml"}
                                       : std::vector<std::string>();
          }};
}

/// Unless the file has it as plain text.
void check_hidden(std::string_view shown, std::string_view text) {
  check(text.contains(secret) || !shown.contains(secret), "a value of a variable is hidden");
}

void check_faults(std::vector<config_fault> const& faults, std::string_view text) {
  check(!faults.empty());
  config_fault const* before = nullptr;
  for (auto const& fault : faults) {
    auto const lines = lines_of(fault.file == "fuzz.yaml" ? text : included);
    check(fault.file == "fuzz.yaml" || fault.file == "included.yaml", "it is one of the files");
    check_hidden(fault.message, text);
    check(!fault.message.empty());
    check(fault.line >= 1 && fault.line <= lines.size(), "the line is in the text");
    check(fault.column >= 1 && fault.column <= lines[fault.line - 1].size() + 1,
          "the column is in the line");
    check(before == nullptr || before->file < fault.file || before->line < fault.line ||
              (before->line == fault.line && before->column <= fault.column),
          "in order");
    before = &fault;
  }
}

/// Nothing in a rule can end a line of a head.
void check_rules(field_rules const& rules) {
  for (auto const* const written : {&rules.set, &rules.add}) {
    for (auto const& rule : *written) {
      check(tidegate::http::is_token(rule.name));
      check(tidegate::http::is_field_value(rule.value));
      check(!rule.value.empty() && tidegate::trimmed(rule.value) == rule.value);
    }
  }
  for (auto const& name : rules.remove) {
    check(tidegate::http::is_token(name));
  }
}

void check_edge(route_config const& route) {
  check_rules(route.request);
  check_rules(route.response);
  if (route.cors) {
    check(route.cors->any_origin == route.cors->origins.empty());
    check(!route.cors->any_origin || !route.cors->credentials, "a page of any origin has none");
  }
  if (route.rewrite) {
    auto const& [strip, add, path] = *route.rewrite;
    check(path.empty() != (strip.empty() && add.empty()), "either a path or prefixes");
    check(path.empty() || path.starts_with('/'));
    check(add.empty() || (add.starts_with('/') && !add.ends_with('/')));
    check(strip.empty() || route.match.path.starts_with(strip));
  }
  if (route.redirect) {
    std::string_view const to = route.redirect->to;
    check(to.starts_with("http://") || to.starts_with("https://") ||
              (to.starts_with('/') && !to.starts_with("//")),
          "no capture and no other scheme leads to another host");
    auto const authority = to.find("://");
    check(authority == std::string_view::npos ||
              !to.substr(0, to.find('/', authority + 3)).contains('{'),
          "a capture stands in the path");
  }
}

void check_route(config const& made, route_config const& route) {
  check(!route.name.empty());
  check(route.service != route_service::upstream || route.upstream < made.upstreams.size());
  check((route.service == route_service::redirect) == route.redirect.has_value());
  check((route.service == route_service::respond) == route.respond.has_value());
  check_edge(route);
  cost_table const costs(route.cost);
  for (auto const position : route.limits) {
    check(position < made.policies.size());
    auto const& policy = made.policies[position].policy;
    check(policy.unit() != tidegate::ratelimit::quota_unit::requests ||
          costs.cost("GET", "/") <= policy.cost_max());
  }
}

void check_config(config const& made) {
  check(!made.listen.empty());
  check(!made.routes.empty());
  std::vector<request_match> matches;
  for (auto const& route : made.routes) {
    check_route(made, route);
    matches.push_back(route.match);
  }
  (void)router(matches).find("GET", "example.com", "/v1/orders/7");
  for (auto const& upstream : made.upstreams) {
    check(!upstream.servers.empty());
  }
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) -> int {
  auto const text = std::string_view(reinterpret_cast<char const*>(data), size);
  auto const made = parse_config(text, "fuzz.yaml", sources());
  made ? check_config(*made) : check_faults(made.error(), text);
  if (made) {
    for (auto const& each : made->effective) {
      check_hidden(each.path, text);
      check_hidden(each.value, text);
    }
    for (auto const& warning : made->warnings) {
      check_hidden(warning.message, text);
    }
  }

  auto const lines = lines_of(text);
  serve_flags flags{.upstream = "http://127.0.0.1:3000"};
  for (auto const line : lines) {
    flags.limits.emplace_back(line);
  }
  if (auto const from_flags = config_from_flags(flags)) {
    check_config(*from_flags);
    check(from_flags->policies.size() == lines.size());
  } else {
    for (auto const& fault : from_flags.error()) {
      check(fault.file == "--limit" && fault.line == 1,
            "a flag is at fault, and not what it became");
    }
  }
  (void)config_from_flags({.upstream = std::string(text), .listen = std::string(text)});
  return 0;
}
