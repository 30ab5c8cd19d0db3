// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/config.hpp>

#include <array>
#include <bitset>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {

/// The lines of a response that are for pages of other origins, and for the caches between. Views
/// into a configuration.
struct cors_lines {
  std::string_view origin{};  ///< the line that allows it; empty for those that may not read
  std::string_view rest{};
  [[nodiscard]] auto empty() const noexcept -> bool { return origin.empty() && rest.empty(); }
};

/// A copy, for an answer that outlives the configuration.
[[nodiscard]] inline auto to_string(cors_lines const& lines) -> std::string {
  return std::string(lines.origin).append(lines.rest);
}

/// The names that pages may always send (the Fetch standard, section 2.2.2). Not Content-Type: when
/// a browser asks about it, its value is one that forms cannot send.
inline constexpr std::array<std::string_view, 4> safelisted_headers{"accept", "accept-language",
                                                                    "content-language", "range"};

/// So many names a preflight may ask about.
inline constexpr std::size_t requested_headers_max = 128;

/// What a preflight asks to send.
struct requested_headers {
  std::size_t count = 0;
  std::bitset<safelisted_headers.size()> safelisted;
};

/// `cors` of a route, ready for use: all lines are written when a configuration is loaded, and a
/// request finds its own by one search for its origin.
class cors_rules {
 public:
  /// `settings` is a route of `all` that has `cors`.
  cors_rules(route_config const& settings, config const& all);

  /// The line that allows pages of `origin`, compared octet by octet, to read; empty when they may
  /// not.
  [[nodiscard]] auto line_for(std::string_view origin) const noexcept -> std::string_view;
  /// The same for a request that does not say one.
  [[nodiscard]] auto line_for_none() const noexcept -> std::string_view {
    return any_origin_ ? std::string_view(origins_.front().line) : std::string_view();
  }

  /// The other lines of an answer: to an origin that is allowed, to one of gRPC, and to all others.
  [[nodiscard]] auto allowed_lines() const noexcept -> std::string_view { return allowed_lines_; }
  [[nodiscard]] auto grpc_lines() const noexcept -> std::string_view { return grpc_lines_; }
  [[nodiscard]] auto foreign_lines() const noexcept -> std::string_view;

  /// Of the answer to a preflight that is allowed, without its origin and its headers.
  [[nodiscard]] auto preflight_lines() const noexcept -> std::string_view {
    return preflight_lines_;
  }
  /// Of one that is refused.
  [[nodiscard]] auto refusal_lines() const noexcept -> std::string_view;

  /// Methods are compared octet by octet.
  [[nodiscard]] auto allows_method(std::string_view method) const noexcept -> bool;
  /// Takes one line of Access-Control-Request-Headers, which is a list. False when the page may not
  /// send all that is in it, or asks about too much. Names are compared without case.
  [[nodiscard]] auto takes_headers(std::string_view line, requested_headers& asked) const noexcept
      -> bool;
  /// Appends the line that says what may be sent: what is listed, and what was asked for besides.
  void append_headers_line(std::string& out, requested_headers const& asked) const;

 private:
  struct allowed_origin {
    std::string name;
    std::string line;
  };

  [[nodiscard]] auto lists_header(std::string_view name) const noexcept -> bool;

  std::vector<allowed_origin> origins_;  // by name; one without a name where any is allowed
  std::vector<std::string> methods_;
  std::vector<std::string> headers_;  // in lower case, sorted
  std::string headers_text_;
  std::string allowed_lines_;
  std::string grpc_lines_;
  std::string preflight_lines_;
  std::size_t header_size_max_ = 0;
  bool any_origin_;
};

/// Whether a field is one of those by which a server says what pages of other origins may do.
[[nodiscard]] auto is_access_control(std::string_view name) noexcept -> bool;

/// The names of fields that a route may send and that pages see only by leave: ours, those that an
/// upstream is known for, and what `settings` names. In the order in which they are listed, each
/// once.
[[nodiscard]] auto exposed_names(route_config const& settings, config const& all)
    -> std::vector<std::string>;

}  // namespace tidegate::gateway
