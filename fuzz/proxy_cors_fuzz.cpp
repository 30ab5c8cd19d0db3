// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as lines of Access-Control-Request-Headers and as an Origin:
//
// - what is allowed is what a plain reader of the list finds in the table, up to the bound;
// - how a list is split into lines makes no difference;
// - the line that answers it is one line, and names nothing but what is allowed;
// - an origin is allowed only if it is one of those that are listed.
#include "check.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/proxy/cors_rules.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace tidegate;
using namespace tidegate::gateway;
using fuzz::check;

constexpr std::string_view listed = "Content-Type, X-Id, x";

auto rules() -> cors_rules const& {
  static auto const made = [] {
    config all;
    auto& route = all.routes.emplace_back();
    route.match.path = "/**";
    route.service = route_service::echo;
    auto& cors = route.cors.emplace();
    cors.origins = {"https://a.example", "null", "https://b.example:8443"};
    cors.headers = {"Content-Type", "X-Id", "x"};
    return cors_rules(route, all);
  }();
  return made;
}

/// The elements of a list, without blanks around them and in lower case; none is empty.
auto elements_of(std::string_view text) -> std::vector<std::string> {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin <= text.size();) {
    auto const end = std::min(text.find(',', begin), text.size());
    auto const element = trimmed(text.substr(begin, end - begin));
    if (!element.empty()) {
      out.push_back(lower_case(element));
    }
    begin = end + 1;
  }
  return out;
}

auto is_known(std::string const& name) -> bool {
  auto const known = elements_of(listed);
  return std::ranges::find(known, name) != known.end() ||
         std::ranges::find(safelisted_headers, name) != safelisted_headers.end();
}

void check_answer(requested_headers const& asked, std::vector<std::string> const& names) {
  std::string line;
  rules().append_headers_line(line, asked);
  constexpr std::string_view begin = "Access-Control-Allow-Headers: ";
  check(line.starts_with(begin) && line.ends_with("\r\n"), "it is a line");
  check(line.find('\n') == line.size() - 1, "it is one line");
  auto const answered = elements_of(line.substr(begin.size(), line.size() - begin.size() - 2));
  check(std::ranges::all_of(answered, is_known), "only what is allowed is named");
  for (auto const& name : names) {
    check(std::ranges::find(answered, name) != answered.end(), "what was asked for is named");
  }
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) -> int {
  std::string const text(reinterpret_cast<char const*>(data), size);
  auto const names = elements_of(text);
  bool const is_allowed =
      names.size() <= requested_headers_max && std::ranges::all_of(names, is_known);

  requested_headers asked;
  check(rules().takes_headers(text, asked) == is_allowed, "the same as a plain reader");
  check(asked.count <= requested_headers_max + 1, "no more are looked at");
  if (is_allowed) {
    check_answer(asked, names);
  }

  requested_headers by_line;
  bool is_taken = true;
  for (std::size_t begin = 0; begin <= text.size() && is_taken;) {
    auto const end = std::min(text.find(',', begin), text.size());
    is_taken = rules().takes_headers(std::string_view(text).substr(begin, end - begin), by_line);
    begin = end + 1;
  }
  check(is_taken == is_allowed, "lines make no difference");

  auto const line = rules().line_for(text);
  bool const is_origin =
      text == "https://a.example" || text == "null" || text == "https://b.example:8443";
  check(line.empty() != is_origin, "only origins that are listed");
  return 0;
}
