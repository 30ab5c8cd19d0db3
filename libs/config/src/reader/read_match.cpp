// SPDX-License-Identifier: Apache-2.0
//
// `routes[].match`: headers and query, which `fill` does not read.
#include <tidegate/base/ascii.hpp>
#include <tidegate/http/field.hpp>
#include "reader/edge_scalars.hpp"
#include "reader/parts.hpp"

#include <algorithm>
#include <array>

namespace tidegate::gateway {

namespace {

/// Headers that go no further than one connection, or that a match has another option for.
constexpr auto not_matched = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"connection", "it belongs to one connection"},
    {"http2-settings", "it belongs to one connection"},
    {"keep-alive", "it belongs to one connection"},
    {"proxy-connection", "it belongs to one connection"},
    {"te", "it belongs to one connection"},
    {"trailer", "it belongs to one connection"},
    {"transfer-encoding", "it belongs to one connection"},
    {"upgrade", "it belongs to one connection"},
    {"host", "match: {host: ...} is for it"},
});

auto reason_against(std::string_view name) -> std::string_view {
  auto const found =
      std::ranges::find(not_matched, name, &std::pair<std::string_view, std::string_view>::first);
  return found == not_matched.end() ? std::string_view() : found->second;
}

template <class Read>
auto read_values(option_reader& in, section const& from, std::string_view key, Read read)
    -> std::vector<value_match> {
  std::vector<value_match> made;
  auto const& rule = from.rule(key);
  auto const members = in.named_at(from, key);
  if (members.size() > value_matches_max) {
    in.fault(from.place_of(key), std::string(key) + ": too many" +
                                     expected("at most " + std::to_string(value_matches_max)));
  }
  for (auto const& member : members) {
    if (in.has_no_value(member)) {
      continue;
    }
    if (auto value = in.take_node(rule, *member.value, read)) {
      bool const is_any = *value == "*";
      made.push_back({member.key->text, is_any ? std::nullopt : std::optional(*std::move(value))});
    }
  }
  return made;
}

void check_header_names(option_reader& in, section const& from, request_match& match) {
  auto const* const given = from.find("headers");
  if (given == nullptr) {
    return;
  }
  std::vector<std::string> seen;
  for (auto const& member : given->value->members) {
    std::string name;
    std::ranges::transform(member.key->text, std::back_inserter(name), to_lower);
    auto const refuse = [&](std::string const& reason) {
      in.fault(member.key->place, "headers: " + reason);
    };
    if (!http::is_token(name)) {
      refuse("invalid header name " + shown(name) + expected("e.g. x-version"));
    } else if (auto const reason = reason_against(name); !reason.empty()) {
      refuse(shown(name) + " cannot be matched: " + std::string(reason));
    } else if (std::ranges::find(seen, name) != seen.end() &&
               std::ranges::find(seen, member.key->text) == seen.end()) {
      refuse("duplicate header " + shown(member.key->text));
    }
    seen.push_back(std::move(name));
  }
  for (auto& wanted : match.headers) {
    std::ranges::transform(wanted.name, wanted.name.begin(), to_lower);
  }
}

}  // namespace

void read_match(option_reader& in, section const& from, request_match& match) {
  if (match.path.empty()) {
    match.path = "/**";  // it has a fault
  }
  if (from.has_empty_list("methods")) {
    in.fault(from.place_of("methods"),
             "methods: empty list (expected at least one method, or no \"methods\" for all)");
  }
  match.headers = read_values(in, from, "headers", read_header_value);
  check_header_names(in, from, match);
  match.query = read_values(in, from, "query", read_scalar);
}

}  // namespace tidegate::gateway
