// SPDX-License-Identifier: Apache-2.0
#include <tidegate/config/route.hpp>

#include <tidegate/base/hex.hpp>
#include <tidegate/http/query.hpp>
#include <tidegate/http/target.hpp>

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

namespace tidegate::gateway {

namespace {

/// pchar of RFC 3986, section 3.3, without percent-encoding.
auto is_path_character(char c) -> bool {
  return http::is_unreserved(c) ||
         std::string_view("!$&'()*+,;=:@/").find(c) != std::string_view::npos;
}

/// What a path may have as it is or escaped, and not every server takes for the same.
auto is_escaped_without_need(char c) -> bool {
  return c != '/' && !http::is_unreserved(c) && is_path_character(c);
}

/// Of a digit as RFC 3986, section 2.1 would have it written, or -1.
auto upper_hex_value(char c) -> int {
  return to_lower(c) != c || is_digit(c) ? hex_value(c) : -1;
}

auto normal_host(std::string_view host) -> std::string {
  auto const parsed = http::parse_host(host);
  if (!parsed) {
    return std::string(host);  // empty, or one that no request has
  }
  std::string normal;
  http::append_normal_host(normal, *parsed);
  return normal;
}

/// What stands before the name of `*.example.com`.
constexpr std::string_view any_labels = "*.";

/// Whether the host of a request ends with that of `*.example.com`, with something before it.
auto is_below(std::string_view authority, std::string_view wildcard) noexcept -> bool {
  auto const host = http::parse_host(authority);
  if (!host || host->kind != http::host_kind::reg_name) {
    return false;
  }
  auto name = host->name;
  name.remove_suffix(name.ends_with('.') ? 1 : 0);
  auto const suffix = wildcard.substr(any_labels.size() - 1);  // with its dot
  return name.size() > suffix.size() &&
         equal_ignoring_case(name.substr(name.size() - suffix.size()), suffix);
}

/// What stands between two slashes of a path.
struct segment_view {
  std::string_view text;
  /// A hash of it (FNV-1a).
  std::uint64_t key = 0;
  /// What follows behind the slash; nothing after the last segment.
  std::optional<std::string_view> rest;
};

auto first_segment(std::string_view path) noexcept -> segment_view {
  std::size_t size = 0;
  std::uint64_t key = 0xcbf29ce484222325U;
  for (; size < path.size() && path[size] != '/'; ++size) {
    key = (key ^ static_cast<std::uint8_t>(path[size])) * 0x100000001b3U;
  }
  return {path.substr(0, size), key,
          size < path.size() ? std::optional(path.substr(size + 1)) : std::nullopt};
}

auto check_segment(std::string_view segment, bool last, std::size_t offset)
    -> result<void, path_pattern_error> {
  using enum path_pattern_fault;
  if (segment == "**" && !last) {
    return failure(path_pattern_error{double_wildcard_not_last, offset});
  }
  if (auto const star = segment.find('*');
      star != std::string_view::npos && segment != "*" && segment != "**") {
    return failure(path_pattern_error{wildcard_inside_segment, offset + star});
  }
  if (segment == "." || segment == "..") {
    return failure(path_pattern_error{dot_segment, offset});
  }
  return {};
}

}  // namespace

auto message(path_pattern_fault fault) noexcept -> std::string_view {
  switch (fault) {
    case path_pattern_fault::no_leading_slash: return "a path begins with /";
    case path_pattern_fault::wildcard_inside_segment:
      return "* stands for a whole segment, as in /v1/*/items, and ** for all that follow";
    case path_pattern_fault::double_wildcard_not_last: return "** is the last segment of a path";
    case path_pattern_fault::dot_segment:
      return "segments . and .. are removed before paths are matched";
    case path_pattern_fault::invalid_character:
      return "not allowed in a path; other characters are percent-encoded, and a query is not "
             "matched";
    case path_pattern_fault::invalid_percent_encoding:
      return "% is followed by two digits of 0-9 and A-F";
    case path_pattern_fault::encoded_unreserved:
      return "letters, digits and - . _ ~ are decoded before paths are matched; write them as they "
             "are";
    case path_pattern_fault::encoded_without_need:
      return "! $ & ' ( ) + , ; = : @ are written as they are, and * stands for any segment; a "
             "request that escapes them to get to another route is refused";
  }
  return "unknown fault";
}

auto check_path_pattern(std::string_view pattern) -> result<void, path_pattern_error> {
  using enum path_pattern_fault;
  if (!pattern.starts_with('/')) {
    return failure(path_pattern_error{no_leading_slash, 0});
  }
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '%') {
      int const high = i + 2 < pattern.size() ? upper_hex_value(pattern[i + 1]) : -1;
      int const low = i + 2 < pattern.size() ? upper_hex_value(pattern[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return failure(path_pattern_error{invalid_percent_encoding, i});
      }
      if (http::is_unreserved(static_cast<char>(high * 16 + low))) {
        return failure(path_pattern_error{encoded_unreserved, i});
      }
      if (is_escaped_without_need(static_cast<char>(high * 16 + low))) {
        return failure(path_pattern_error{encoded_without_need, i});
      }
    } else if (!is_path_character(pattern[i])) {
      return failure(path_pattern_error{invalid_character, i});
    }
  }
  std::optional<std::string_view> rest = pattern.substr(1);
  while (rest) {
    auto const offset = static_cast<std::size_t>(rest->data() - pattern.data());
    auto const segment = first_segment(*rest);
    TIDEGATE_TRY_VOID(check_segment(segment.text, !segment.rest, offset));
    rest = segment.rest;
  }
  return {};
}

namespace {

auto covers_path(std::string_view wide, std::string_view narrow) -> bool {
  std::optional<std::string_view> wide_rest = wide.substr(1);
  std::optional<std::string_view> narrow_rest = narrow.substr(1);
  for (;;) {
    if (!wide_rest) {
      return !narrow_rest;
    }
    auto const wanted = first_segment(*wide_rest);
    if (wanted.text == "**") {
      return true;
    }
    if (!narrow_rest) {
      return false;
    }
    auto const given = first_segment(*narrow_rest);
    bool const is_same = wanted.text == given.text;
    if (given.text == "**" || (!is_same && (wanted.text != "*" || given.text.empty()))) {
      return false;
    }
    wide_rest = wanted.rest;
    narrow_rest = given.rest;
  }
}

auto covers_host(std::string_view wide, std::string_view narrow) -> bool {
  if (wide.empty() || normal_host(wide) == normal_host(narrow)) {
    return true;
  }
  return wide.starts_with(any_labels) && is_below(narrow, normal_host(wide));
}

/// Whether all that `wide` asks for is asked for by `narrow`.
auto covers_values(std::vector<value_match> const& wide, std::vector<value_match> const& narrow)
    -> bool {
  return std::ranges::all_of(wide, [&](value_match const& wanted) {
    return std::ranges::any_of(narrow, [&](value_match const& given) {
      return given.name == wanted.name && (!wanted.value || given.value == wanted.value);
    });
  });
}

}  // namespace

auto covers(request_match const& wide, request_match const& narrow) -> bool {
  bool const methods =
      wide.methods.empty() ||
      (!narrow.methods.empty() && std::ranges::all_of(narrow.methods, [&](auto const& method) {
        return std::ranges::find(wide.methods, method) != wide.methods.end();
      }));
  return covers_host(wide.host, narrow.host) && methods && covers_path(wide.path, narrow.path) &&
         covers_values(wide.headers, narrow.headers) && covers_values(wide.query, narrow.query);
}

/// The patterns as a tree of their segments. A path walks down it, once into the child of that name
/// and once into that of `*`; no node is visited twice, since its depth is that of the segment.
struct router::tree {
  using index = std::uint32_t;
  static constexpr index none = std::numeric_limits<index>::max();

  /// A match whose path ends in a node, and what else it asks for.
  struct candidate {
    index position;
    index values = none;               // that it asks for, in `values`
    std::vector<std::string> methods;  // none for any
    std::string host;                  // as `append_normal_host` writes it; empty for any
  };

  /// Headers and query, which few matches ask for.
  struct wanted_values {
    std::vector<value_match> headers;
    std::vector<value_match> query;
  };

  /// From a node to the child of that name.
  struct edge {
    std::uint64_t key = 0;
    index parent = none;  // none where there is no edge
    index child = none;
    std::string segment{};
  };

  struct node {
    index any = none;                // child for `*`
    std::vector<candidate> exact{};  // the path ends here
    std::vector<candidate> below{};  // `**` is next
    index first = none;              // lowest position in and under this node
  };

  /// One request on its way down.
  struct search {
    std::string_view method;
    std::string_view host;
    request_details const* details;
    index best = none;
  };

  std::vector<node> nodes{1};
  std::vector<wanted_values> values{};
  /// Of all nodes, each at its place or behind it; a power of two, at most half of them taken.
  std::vector<edge> edges = std::vector<edge>(2);
  std::size_t edge_count = 0;

  /// Where the edge is, or would be.
  [[nodiscard]] auto place_of(index parent, std::uint64_t key,
                              std::string_view segment) const noexcept -> std::size_t {
    auto const last = edges.size() - 1;
    auto const hash = (key ^ parent) * 0x9e3779b97f4a7c15U;
    auto at = static_cast<std::size_t>(hash >> 32) & last;
    for (; edges[at].parent != none; at = (at + 1) & last) {
      if (edges[at].key == key && edges[at].parent == parent && edges[at].segment == segment) {
        break;
      }
    }
    return at;
  }

  /// The child of that name, if there is one.
  [[nodiscard]] auto child_of(index parent, segment_view const& segment) const noexcept -> index {
    return edges[place_of(parent, segment.key, segment.text)].child;
  }

  void make_room_for_edge() {
    if (2 * ++edge_count <= edges.size()) {
      return;
    }
    for (auto& each : std::exchange(edges, std::vector<edge>(2 * edges.size()))) {
      if (each.parent != none) {
        auto& place = edges[place_of(each.parent, each.key, each.segment)];
        place = std::move(each);
      }
    }
  }

  auto child_or_new(index parent, segment_view const& segment) -> index {
    bool const any = segment.text == "*";
    auto const known = any ? nodes[parent].any : child_of(parent, segment);
    if (known != none) {
      return known;
    }
    auto const fresh = static_cast<index>(nodes.size());
    nodes.emplace_back();
    if (any) {
      nodes[parent].any = fresh;
      return fresh;
    }
    make_room_for_edge();
    edges[place_of(parent, segment.key, segment.text)] = {segment.key, parent, fresh,
                                                          std::string(segment.text)};
    return fresh;
  }

  void add(request_match const& match, index position) {
    candidate wanted{position, none, match.methods, normal_host(match.host)};
    if (!match.headers.empty() || !match.query.empty()) {
      wanted.values = static_cast<index>(values.size());
      values.push_back({match.headers, match.query});
    }
    index at = 0;
    std::optional<std::string_view> rest = std::string_view(match.path).substr(1);
    while (true) {
      nodes[at].first = std::min(nodes[at].first, position);
      if (!rest) {
        nodes[at].exact.push_back(wanted);
        return;
      }
      auto const segment = first_segment(*rest);
      if (segment.text == "**") {
        nodes[at].below.push_back(wanted);
        return;
      }
      at = child_or_new(at, segment);
      rest = segment.rest;
    }
  }

  [[nodiscard]] auto has_values(candidate const& wanted, search const& request) const noexcept
      -> bool {
    auto const& [headers, query] = values[wanted.values];
    auto const* const details = request.details;
    return details != nullptr &&
           std::ranges::all_of(query,
                               [&](auto const& each) { return details->has_parameter(each); }) &&
           std::ranges::all_of(headers,
                               [&](auto const& each) { return details->has_header(each); });
  }

  [[nodiscard]] static auto is_at(std::string_view authority, std::string const& host) noexcept
      -> bool {
    return host.empty() || http::is_host_of(authority, host) ||
           (host.starts_with(any_labels) && is_below(authority, host));
  }

  [[nodiscard]] auto meets(candidate const& wanted, search const& request) const noexcept -> bool {
    bool const method = wanted.methods.empty() ||
                        std::find(wanted.methods.begin(), wanted.methods.end(), request.method) !=
                            wanted.methods.end();
    return method && is_at(request.host, wanted.host) &&
           (wanted.values == none || has_values(wanted, request));
  }

  [[gnu::always_inline]] void take_first(std::vector<candidate> const& candidates,
                                         search& request) const noexcept {
    for (auto const& wanted : candidates) {
      if (wanted.position >= request.best) {
        return;
      }
      if (meets(wanted, request)) {
        request.best = wanted.position;
        return;
      }
    }
  }

  // Goes on in the child of that name and calls itself for `*`: as deep as the deepest pattern.
  void walk(index at, std::optional<std::string_view> rest, search& request) const noexcept {
    while (at != none && nodes[at].first < request.best) {
      auto const& here = nodes[at];
      take_first(here.below, request);
      if (!rest) {
        take_first(here.exact, request);
        return;
      }
      auto const segment = first_segment(*rest);
      if (here.any != none && !segment.text.empty()) {
        walk(here.any, segment.rest, request);
      }
      at = child_of(at, segment);
      rest = segment.rest;
    }
  }
};

router::router(std::span<request_match const> matches) {
  auto made = std::make_unique<tree>();
  assert(matches.size() < tree::none);
  for (std::size_t i = 0; i < matches.size(); ++i) {
    made->add(matches[i], static_cast<tree::index>(i));
  }
  tree_ = std::move(made);
}

router::router(router&&) noexcept = default;
auto router::operator=(router&&) noexcept -> router& = default;
router::~router() = default;

auto router::find(std::string_view method, std::string_view host, std::string_view path,
                  request_details const* details) const noexcept -> std::optional<std::size_t> {
  if (!path.starts_with('/')) {
    return std::nullopt;
  }
  tree::search request{method, host, details};
  tree_->walk(0, path.substr(1), request);
  return request.best == tree::none ? std::nullopt : std::optional<std::size_t>(request.best);
}

namespace {

auto matches_of(cost_config const& costs) -> std::vector<request_match> {
  std::vector<request_match> matches;
  for (auto const& rule : costs.rules) {
    matches.push_back(rule.match);
  }
  return matches;
}

}  // namespace

cost_table::cost_table(cost_config const& costs)
    : otherwise_(costs.otherwise), rules_(matches_of(costs)) {
  for (auto const& rule : costs.rules) {
    costs_.push_back(rule.cost);
  }
}

auto cost_table::cost(std::string_view method, std::string_view path) const noexcept
    -> std::int64_t {
  auto const rule = costs_.empty() ? std::nullopt : rules_.find(method, "", path);
  return rule ? costs_[*rule] : otherwise_;
}

}  // namespace tidegate::gateway
