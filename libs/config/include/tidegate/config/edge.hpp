// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

/// What a route asks for at the border between clients and upstreams: rules for browsers, for
/// fields and for paths.
namespace tidegate::gateway {

/// `routes[].cors`: which pages of other origins may read what the route answers.
struct cors_config {
  bool any_origin = false;           ///< `origins: "*"`
  std::vector<std::string> origins;  ///< as browsers write them; empty with `any_origin`
  std::vector<std::string> methods;  ///< empty: the default list
  std::vector<std::string> headers;  ///< that a page may send; empty: the default list
  std::vector<std::string> expose;   ///< that a page may read, besides those the gateway knows of
  bool credentials = false;
  std::chrono::nanoseconds max_age{0};  ///< of the answer to a preflight
  auto operator==(cors_config const&) const -> bool = default;
};

/// A field that a rule writes.
struct field_rule {
  std::string name;
  std::string value;
  auto operator==(field_rule const&) const -> bool = default;
};

/// `routes[].request` and `routes[].response`
struct field_rules {
  std::vector<field_rule> set;
  std::vector<field_rule> add;
  std::vector<std::string> remove;
  [[nodiscard]] auto empty() const -> bool { return set.empty() && add.empty() && remove.empty(); }
  auto operator==(field_rules const&) const -> bool = default;
};

/// `routes[].rewrite`: a path template, or prefixes.
struct rewrite_config {
  std::string strip_prefix;
  std::string add_prefix;
  std::string path;  ///< with `{1}` and `{**}`; empty when prefixes are changed
  auto operator==(rewrite_config const&) const -> bool = default;
};

/// `routes[].redirect`
struct redirect_config {
  std::string to;  ///< with `{1}` and `{**}` behind its authority
  int status = 308;
  auto operator==(redirect_config const&) const -> bool = default;
};

/// `routes[].respond`
struct respond_config {
  int status = 200;
  std::string content_type;  ///< empty: none, since there is no body
  std::string body;
  auto operator==(respond_config const&) const -> bool = default;
};

}  // namespace tidegate::gateway
