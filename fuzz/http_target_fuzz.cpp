// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a request-target, a path, a host, a query and a Cookie line:
//
// - never a crash, and never a look outside of the text;
// - an error is at a place of the text, and leaves the string as it was;
// - a normal path is its own normal form, begins with "/", has no dot segments, no escaped
//   unreserved characters and nothing but what a URI may have;
// - the quick look and the slow way agree on which paths are normal;
// - the parts of a target lie in it, and an origin-form is its path and its query;
// - the normal form of a host is a host with the same normal form;
// - the value of a parameter or cookie lies in the text.
#include "check.hpp"

#include <tidegate/http/cookie.hpp>
#include <tidegate/http/path_readings.hpp>
#include <tidegate/http/query.hpp>
#include <tidegate/http/target.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace tidegate::http;
using tidegate::fuzz::check;

auto lies_in(std::string_view part, std::string_view text) -> bool {
  return part.empty() ||
         (part.data() >= text.data() && part.data() + part.size() <= text.data() + text.size());
}

void check_no_dot_segments(std::string_view path) {
  for (std::size_t begin = 1; begin <= path.size();) {
    auto const end = std::min(path.find('/', begin), path.size());
    auto const segment = path.substr(begin, end - begin);
    check(segment != "." && segment != "..", "a normal path has no dot segments");
    begin = end + 1;
  }
}

void check_characters(std::string_view path) {
  constexpr std::string_view unreserved =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  constexpr std::string_view others = "!$&'()*+,;=:@/";
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '%') {
      check(unreserved.find(path[i]) != std::string_view::npos ||
                others.find(path[i]) != std::string_view::npos,
            "a normal path has the characters of a URI");
      continue;
    }
    check(path.size() - i >= 3, "an escape is whole");
    auto const high = digits.find(path[i + 1]);
    auto const low = digits.find(path[i + 2]);
    check(high != std::string_view::npos && low != std::string_view::npos,
          "an escape is in upper case");
    auto const octet = static_cast<char>(high * 16 + low);
    check(octet != '\0', "there is no NUL");
    check(unreserved.find(octet) == std::string_view::npos, "no unreserved character is escaped");
    i += 2;
  }
}

void check_path(std::string_view raw) {
  std::string out = "before";
  auto const appended = append_normal_path(out, raw);
  if (!appended) {
    check(out == "before", "an error leaves the string as it was");
    check(appended.error().offset <= raw.size(), "an error is at a place of the text");
    check(!is_normal_path(raw), "what is refused is not normal");
    return;
  }
  auto const path = out.substr(6);
  check(path.starts_with('/'), "a path begins with a slash");
  check(is_normal_path(raw) == (raw == path), "the quick look knows what is normal");
  check(is_normal_path(path), "a normal path is normal");
  check_no_dot_segments(path);
  check_characters(path);
  std::string scratch;
  auto const view = normal_path(raw, scratch);
  check(view.has_value() && *view == path, "the view shows the same path");
  bool is_read_otherwise = false;
  check(!find_other_reading(path,
                            [&](std::string_view reading) {
                              check(reading.starts_with('/') && reading != path,
                                    "another reading is another path");
                              is_read_otherwise = true;
                              return false;
                            }),
        "what is not wanted is not found");
  check(may_be_read_otherwise(path) == is_read_otherwise, "the quick look knows of other readings");
}

void check_host(std::string_view text) {
  auto const host = parse_host(text);
  if (!host) {
    check(host.error().offset <= text.size(), "an error is at a place of the text");
    return;
  }
  check(lies_in(host->name, text), "a host lies in the text");
  std::string once;
  append_normal_host(once, *host);
  auto const again = parse_host(once);
  check(again.has_value(), "a normal host is a host");
  std::string twice;
  append_normal_host(twice, *again);
  check(once == twice, "a normal host is its own normal form");
  check(is_host_of(text, once) && is_host_of(once, once), "and is found to be the host");
}

void check_target(std::string_view method, std::string_view text) {
  auto const target = parse_target(method, text);
  if (!target) {
    check(target.error().offset <= text.size(), "an error is at a place of the text");
    return;
  }
  check(lies_in(target->scheme, text), "the scheme lies in the text");
  check(target->path == "/" || lies_in(target->path, text), "the path lies in the text");
  check(!target->query || lies_in(*target->query, text), "the query lies in the text");
  if (target->form == target_form::origin) {
    auto joined = std::string(target->path);
    if (target->query) {
      joined.append("?").append(*target->query);
    }
    check(joined == text, "an origin-form is its path and its query");
  }
  bool const has_path =
      target->form == target_form::origin || target->form == target_form::absolute;
  check(target->path.starts_with('/') == has_path, "two forms have a path");
  check((target->form == target_form::authority) == (method == "CONNECT"),
        "an authority is for CONNECT");
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) -> int {
  // Exactly as many bytes as there are, so that a look behind them is seen.
  std::vector<char> const exact(data, data + size);
  auto const text = std::string_view(exact.data(), exact.size());
  check_path(text);
  check_host(text);
  for (auto const* method : {"GET", "OPTIONS", "CONNECT"}) {
    check_target(method, text);
  }
  std::array const lines = {text};
  for (auto const* name : {"a", "a b", ""}) {
    auto const value = find_query_value(text, name);
    check(!value || lies_in(*value, text), "a value lies in the query");
    std::string scratch;
    auto const decoded = query_value(text, name, scratch);
    check(decoded.has_value() == value.has_value(), "a value is found or not");
    check(!decoded || decoded->size() <= value->size(), "decoding makes nothing longer");
    auto const cookie = find_cookie(lines, name);
    check(!cookie || lies_in(*cookie, text), "a cookie lies in the line");
  }
  return 0;
}
