// SPDX-License-Identifier: Apache-2.0
//
// Any path and query through any `rewrite` and `redirect`, with any pattern of a route. The input
// is lines: a pattern, a template or a prefix to strip, a prefix to add, a path, a query.
//
// - never a crash, and what was in the text before stays;
// - a path that is made begins with one slash, has nothing that ends a request line, and no dot
//   segment, in whatever way a server reads it;
// - a location has nothing that ends a line; its scheme and authority are those of the template,
//   and one without them begins with one slash and no backslash;
// - the query of the request is in the location, as it came.
#include "check.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/config/route.hpp>
#include <tidegate/http/target.hpp>
#include <tidegate/proxy/path_template.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace {

using namespace tidegate::gateway;
using tidegate::fuzz::check;

constexpr std::string_view before = "before ";

/// What the reader of configurations lets into a template.
auto may_be_template(std::string_view text) -> bool {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

auto has_dot_segment(std::string_view path) -> bool {
  for (std::size_t begin = 1; begin <= path.size();) {
    auto const end = std::min(path.find('/', begin), path.size());
    auto const segment = path.substr(begin, end - begin);
    if (segment == "." || segment == "..") {
      return true;
    }
    begin = end + 1;
  }
  return false;
}

/// The path as one reads it who takes escapes of separators and dots for themselves, and leaves out
/// what follows ";".
auto as_read_generously(std::string_view path) -> std::string {
  std::string decoded;
  for (std::size_t i = 0; i < path.size(); ++i) {
    auto escape = std::string(path.substr(i, 3));
    std::ranges::transform(escape, escape.begin(), tidegate::to_lower);
    constexpr std::array<std::pair<std::string_view, char>, 4> known{
        {{"%2f", '/'}, {"%5c", '/'}, {"%2e", '.'}, {"%3b", ';'}}};
    auto const* const found =
        std::ranges::find(known, escape, [](auto const& e) { return e.first; });
    decoded.push_back(found != known.end() ? found->second : path[i] == '\\' ? '/' : path[i]);
    i += found != known.end() ? 2U : 0U;
  }
  std::string out;
  bool skips = false;
  for (char const c : decoded) {
    skips = c == ';' || (skips && c != '/');
    if (!skips) {
      out.push_back(c);
    }
  }
  return out;
}

void check_rewrite(rewrite_config const& settings, std::string_view pattern,
                   std::string_view path) {
  std::string out(before);
  if (!path_rewrite(settings, pattern).append(out, path)) {
    check(out == before, "what is refused leaves the text as it was");
    return;
  }
  check(out.starts_with(before), "what was there stays");
  auto const made = std::string_view(out).substr(before.size());
  check(made.starts_with('/') && !made.starts_with("//"), "a path begins with one slash");
  check(made.find_first_of("\r\n \t") == std::string_view::npos, "nothing ends the request line");
  check(!has_dot_segment(made), "there is no dot segment");
  check(!has_dot_segment(as_read_generously(made)), "and none that some find");
}

void check_redirect(std::string_view to, std::string_view pattern, std::string_view path,
                    std::string_view query) {
  std::string out(before);
  if (!redirect_location(to, pattern).append(out, path, query)) {
    check(out == before, "what is refused leaves the text as it was");
    return;
  }
  check(out.starts_with(before), "what was there stays");
  auto const made = std::string_view(out).substr(before.size());
  check(made.find_first_of("\r\n \t") == std::string_view::npos, "nothing ends the line");
  if (query.size() > 1) {
    check(made.find(query.substr(1)) != std::string_view::npos, "the query is there");
  }
  auto const slashes = made.find("://");
  bool const has_scheme = slashes != std::string_view::npos && made.find('/') == slashes + 1 &&
                          made.find_first_of("?#") > slashes;
  if (!has_scheme) {
    check(made.starts_with('/') && !made.starts_with("//") && !made.starts_with("/\\"),
          "a location without authority is a path");
    return;
  }
  auto const end = std::min(made.find_first_of("/\\?#", slashes + 3), made.size());
  check(to.starts_with(made.substr(0, end)), "scheme and authority are the operator's");
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) -> int {
  std::string_view input(reinterpret_cast<char const*>(data), size);
  std::array<std::string_view, 5> lines;
  for (auto& line : lines) {
    auto const end = std::min(input.find('\n'), input.size());
    line = input.substr(0, end);
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  auto const [pattern, text, add, raw_path, query] = lines;
  std::string path;
  bool const has_query =
      query.empty() || (query.starts_with('?') && may_be_template(query) && !query.contains('#'));
  if (!check_path_pattern(pattern) || !tidegate::http::append_normal_path(path, raw_path) ||
      !may_be_template(text) || !may_be_template(add) || !has_query) {
    return 0;
  }
  check_rewrite({{}, {}, std::string(text)}, pattern, path);
  check_rewrite({std::string(text), std::string(add), {}}, pattern, path);
  check_redirect(text, pattern, path, query);
  return 0;
}
