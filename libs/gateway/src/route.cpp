// SPDX-License-Identifier: Apache-2.0
#include <tidegate/gateway/route.hpp>

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

namespace tidegate::gateway {

namespace {

auto is_unreserved(char c) -> bool {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

/// pchar of RFC 3986, section 3.3, without percent-encoding.
auto is_path_character(char c) -> bool {
  return is_unreserved(c) || std::string_view("!$&'()*+,;=:@/").find(c) != std::string_view::npos;
}

/// The value of a hexadecimal digit as RFC 3986, section 2.1 would have it written, or -1.
auto upper_hex_digit(char c) -> int {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

auto to_lower(char c) noexcept -> char {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

auto lower_case(std::string_view text) -> std::string {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), to_lower);
  return out;
}

/// Takes the port off a host; `[::1]` keeps its brackets.
auto without_port(std::string_view host) noexcept -> std::string_view {
  auto const colon = host.rfind(':');
  auto const bracket = host.rfind(']');
  bool const inside = bracket != std::string_view::npos && colon < bracket;
  return colon == std::string_view::npos || inside ? host : host.substr(0, colon);
}

/// Whether `host` is `lower`, which is in lower case, but for the case.
auto is_host(std::string_view host, std::string_view lower) noexcept -> bool {
  return std::equal(host.begin(), host.end(), lower.begin(), lower.end(),
                    [](char is, char wanted) { return to_lower(is) == wanted; });
}

/// Splits off the first segment: "v1/x" becomes "v1" and "x"; a last segment leaves nothing.
auto next_segment(std::string_view path) noexcept
    -> std::pair<std::string_view, std::optional<std::string_view>> {
  auto const slash = path.find('/');
  if (slash == std::string_view::npos) {
    return {path, std::nullopt};
  }
  return {path.substr(0, slash), path.substr(slash + 1)};
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
      int const high = i + 2 < pattern.size() ? upper_hex_digit(pattern[i + 1]) : -1;
      int const low = i + 2 < pattern.size() ? upper_hex_digit(pattern[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return failure(path_pattern_error{invalid_percent_encoding, i});
      }
      if (is_unreserved(static_cast<char>(high * 16 + low))) {
        return failure(path_pattern_error{encoded_unreserved, i});
      }
    } else if (!is_path_character(pattern[i])) {
      return failure(path_pattern_error{invalid_character, i});
    }
  }
  std::optional<std::string_view> rest = pattern.substr(1);
  while (rest) {
    auto const offset = static_cast<std::size_t>(rest->data() - pattern.data());
    auto const [segment, after] = next_segment(*rest);
    TIDEGATE_TRY_VOID(check_segment(segment, !after.has_value(), offset));
    rest = after;
  }
  return {};
}

/// The patterns as a tree of their segments. A path walks down it, once into the child of that name and
/// once into that of `*`; no node is visited twice, since its depth is that of the segment.
struct router::tree {
  using index = std::uint32_t;
  static constexpr index none = std::numeric_limits<index>::max();

  /// A match whose path ends in a node, and what else it asks for.
  struct candidate {
    index position;
    std::uint64_t methods;  // a bit for each of `methods`; 0 for any
    index host;             // in `hosts`; `none` for any
  };

  struct node {
    std::vector<std::pair<std::string, index>> children{};  // sorted by segment
    index any = none;                                       // child for `*`
    std::vector<candidate> exact{};                         // the path ends here
    std::vector<candidate> below{};                         // `**` is next
    index first = none;  // lowest position in and under this node
  };

  /// One request on its way down.
  struct search {
    std::string_view method;
    std::string_view host;
    index best = none;
  };

  std::vector<node> nodes{1};
  std::vector<std::string> methods{};
  std::vector<std::string> hosts{};

  auto child_of(index parent, std::string_view segment) -> index {
    auto const fresh = static_cast<index>(nodes.size());
    auto& children = nodes[parent].children;
    auto& slot = segment == "*" ? nodes[parent].any : named_child(children, segment, fresh);
    if (slot == none) {
      slot = fresh;
    }
    auto const found = slot;
    if (found == fresh) {
      nodes.emplace_back();
    }
    return found;
  }

  static auto named_child(std::vector<std::pair<std::string, index>>& children,
                          std::string_view segment, index fresh) -> index& {
    auto const at = std::lower_bound(
        children.begin(), children.end(), segment,
        [](auto const& child, std::string_view wanted) { return child.first < wanted; });
    if (at != children.end() && at->first == segment) {
      return at->second;
    }
    return children.emplace(at, segment, fresh)->second;
  }

  auto bit_of(std::string const& method) -> std::uint64_t {
    auto at = std::find(methods.begin(), methods.end(), method);
    if (at == methods.end()) {
      at = methods.insert(at, method);
    }
    auto const bit = at - methods.begin();
    assert(bit < 64);
    return std::uint64_t{1} << bit;
  }

  auto position_of_host(std::string_view host) -> index {
    if (host.empty()) {
      return none;
    }
    auto const lower = lower_case(host);
    auto at = std::find(hosts.begin(), hosts.end(), lower);
    if (at == hosts.end()) {
      at = hosts.insert(at, lower);
    }
    return static_cast<index>(at - hosts.begin());
  }

  void add(request_match const& match, index position) {
    candidate wanted{position, 0, position_of_host(match.host)};
    for (auto const& method : match.methods) {
      wanted.methods |= bit_of(method);
    }
    index at = 0;
    std::optional<std::string_view> rest = std::string_view(match.path).substr(1);
    while (true) {
      nodes[at].first = std::min(nodes[at].first, position);
      if (!rest) {
        nodes[at].exact.push_back(wanted);
        return;
      }
      auto const [segment, after] = next_segment(*rest);
      if (segment == "**") {
        nodes[at].below.push_back(wanted);
        return;
      }
      at = child_of(at, segment);
      rest = after;
    }
  }

  [[nodiscard]] auto meets(candidate const& wanted, search const& request) const noexcept -> bool {
    if (wanted.host != none && !is_host(request.host, hosts[wanted.host])) {
      return false;
    }
    if (wanted.methods == 0) {
      return true;
    }
    for (auto bits = wanted.methods; bits != 0; bits &= bits - 1) {
      if (methods[static_cast<std::size_t>(__builtin_ctzll(bits))] == request.method) {
        return true;
      }
    }
    return false;
  }

  void take_first(std::vector<candidate> const& candidates, search& request) const noexcept {
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

  // Recursion is as deep as the deepest pattern, which the operator wrote.
  void walk(index at, std::optional<std::string_view> rest, search& request) const noexcept {
    auto const& here = nodes[at];
    if (here.first >= request.best) {
      return;
    }
    take_first(here.below, request);
    if (!rest) {
      take_first(here.exact, request);
      return;
    }
    auto const [segment, after] = next_segment(*rest);
    auto const child = std::lower_bound(
        here.children.begin(), here.children.end(), segment,
        [](auto const& known, std::string_view wanted) { return known.first < wanted; });
    if (child != here.children.end() && child->first == segment) {
      walk(child->second, after, request);
    }
    if (here.any != none && !segment.empty()) {
      walk(here.any, after, request);
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

auto router::find(std::string_view method, std::string_view host,
                  std::string_view path) const noexcept -> std::optional<std::size_t> {
  if (!path.starts_with('/')) {
    return std::nullopt;
  }
  tree::search request{method, without_port(host)};
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
