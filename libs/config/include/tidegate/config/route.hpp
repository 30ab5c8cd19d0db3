// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Which requests a route or a cost is for.
///
/// A pattern is a path whose segments are taken literally, but for `*`, which stands for one
/// segment that is not empty, and a last `**`, which stands for any number of them: `/v1/**`
/// matches `/v1`, `/v1/` and all below. Paths are matched as they are: the caller has removed
/// the query, dot segments and percent-encoded unreserved characters.
namespace tidegate::gateway {

/// Why a text is not a pattern.
enum class path_pattern_fault : std::uint8_t {
  no_leading_slash,
  wildcard_inside_segment,   ///< `*` is a segment of its own
  double_wildcard_not_last,  ///< `**` is the last segment
  dot_segment,               ///< `.` and `..` are never in a path that is matched
  invalid_character,         ///< not one of a path (RFC 3986, section 3.3); a query is not matched
  invalid_percent_encoding,  ///< `%` and two digits, the letters in upper case
  encoded_unreserved,    ///< letters, digits and `-._~` are never encoded in a path that is matched
  encoded_without_need,  ///< sub-delims, `:` and `@`, which some readers decode and some do not
};

[[nodiscard]] auto message(path_pattern_fault fault) noexcept -> std::string_view;

struct path_pattern_error {
  path_pattern_fault fault{};
  std::size_t offset{};
  auto operator==(path_pattern_error const&) const -> bool = default;
};

/// Says whether `pattern` is one.
[[nodiscard]] auto check_path_pattern(std::string_view pattern) -> result<void, path_pattern_error>;

/// A header field or a query parameter that a request must have.
struct value_match {
  std::string name;                    ///< of a field in lower case
  std::optional<std::string> value{};  ///< exactly; missing for `*`, any value
  auto operator==(value_match const&) const -> bool = default;
};

/// So many fields, and so many parameters, a match may name.
inline constexpr std::size_t value_matches_max = 16;

/// What a request must have.
struct request_match {
  std::string path;  ///< a pattern that `check_path_pattern` takes
  std::vector<std::string>
      methods{};  ///< one of these, exactly: GET does not imply HEAD; empty: any
  /// In any case; without a port. IPv6 in brackets. `*.example.com` stands for every name that ends
  /// with `.example.com`. Empty: any.
  std::string host{};
  std::vector<value_match> headers{};  ///< of a field with several lines any may have the value
  std::vector<value_match> query{};    ///< of a repeated parameter any may; compared decoded
  auto operator==(request_match const&) const -> bool = default;
};

/// Whether every request that meets `narrow` meets `wide` too.
[[nodiscard]] auto covers(request_match const& wide, request_match const& narrow) -> bool;

/// What a request has besides its method, host and path. A router looks at it only where a match
/// asks for it.
class request_details {
 public:
  /// Whether the request has what a match asks for in `headers`, and in `query`.
  [[nodiscard]] virtual auto has_header(value_match const& wanted) const noexcept -> bool = 0;
  [[nodiscard]] virtual auto has_parameter(value_match const& wanted) const noexcept -> bool = 0;

 protected:
  request_details() = default;
  request_details(request_details const&) = default;
  auto operator=(request_details const&) -> request_details& = default;
  ~request_details() = default;
};

/// Finds the first of many matches that a request meets. Immutable, so that threads can share one.
class router {
 public:
  /// The patterns must have been checked. At most 4,294,967,294 matches.
  explicit router(std::span<request_match const> matches);
  router(router&&) noexcept;
  auto operator=(router&&) noexcept -> router&;
  ~router();

  /// The position of the first match for a request, if any. `host` is the Host field or authority:
  /// its port is ignored, and so are case and a dot at the end. Without `details` a request has
  /// neither headers nor a query. Allocates nothing.
  [[nodiscard]] auto find(std::string_view method, std::string_view host, std::string_view path,
                          request_details const* details = nullptr) const noexcept
      -> std::optional<std::size_t>;

 private:
  struct tree;
  std::unique_ptr<tree const> tree_;
};

/// `cost` of a route: the first rule that matches, else `otherwise`. Spent on the policies that
/// count requests; content and concurrent requests have their own measure.
struct cost_config {
  struct rule {
    request_match match;
    std::int64_t cost = 1;
    auto operator==(rule const&) const -> bool = default;
  };
  std::int64_t otherwise = 1;  ///< `default`
  std::vector<rule> rules;
  auto operator==(cost_config const&) const -> bool = default;
};

/// The costs of one route, ready for use. Immutable.
class cost_table {
 public:
  explicit cost_table(cost_config const& costs);

  /// What a request costs: the first rule that matches, else the default. Allocates nothing.
  [[nodiscard]] auto cost(std::string_view method, std::string_view path) const noexcept
      -> std::int64_t;

 private:
  std::int64_t otherwise_;
  std::vector<std::int64_t> costs_;
  router rules_;
};

}  // namespace tidegate::gateway
