// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "http.hpp"

#include <tidegate/base/instant.hpp>
#include <tidegate/base/result.hpp>
#include <tidegate/base/sha256.hpp>
#include <tidegate/config/config.hpp>
#include <tidegate/http/ip_address.hpp>
#include <tidegate/ratelimit/limiter.hpp>
#include <tidegate/wire/http1_head.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {

/// The client of an authorized request.
struct admin_caller {
  std::string token{};                     ///< its name; empty where the address asks for none
  sha256_digest digest{};                  ///< of the token
  bool read_only = false;                  ///< may look, and change nothing
  std::optional<sha256_digest> session{};  ///< of the id, where a cookie brought it
};

/// True when a page of another origin sends it. Browsers say so, and let any page send requests to
/// any address that they reach.
[[nodiscard]] auto is_from_elsewhere(wire::request_head const& request) -> bool;

/// True when it has a token, right or wrong. Other schemes than Bearer are meant for a proxy in
/// front of the address.
[[nodiscard]] auto asks_by_token(wire::request_head const& request) -> bool;

/// Who may use the admin address: tokens, sessions of browsers, and tries that failed. It neither
/// reads a clock nor makes random numbers. One thread uses it.
class admin_access {
 public:
  /// How long a session lasts from its log-in on.
  static constexpr std::chrono::hours session_lifetime{12};
  /// So many are kept; one more ends the oldest of the same token, or of all.
  static constexpr std::size_t sessions_max = 64;
  /// So many wrong tokens of one address, or of one IPv6 network of 64 bits, are compared within
  /// `tries_window`.
  static constexpr std::int64_t tries_max = 10;
  static constexpr std::chrono::seconds tries_window{60};
  /// So many addresses are remembered; those that there is no room for share `shared_tries_max`.
  static constexpr std::size_t addresses_max = 1024;
  static constexpr std::int64_t shared_tries_max = 100;
  /// So many addresses that sent a right token last have tries of their own, however many others
  /// come.
  static constexpr std::size_t known_max = 64;
  /// Wrong tokens are logged at most so often.
  static constexpr std::chrono::seconds note_interval{10};

  /// `needs_token`: also while there are none; then every request is refused.
  explicit admin_access(bool needs_token);

  /// From now on these are the tokens. What was opened with another one ends.
  void use(std::span<bearer_token const> tokens);
  [[nodiscard]] auto needs_token() const -> bool { return needs_token_ || !tokens_.empty(); }

  /// The caller, or the refusal: 401, 403, or 429 after too many wrong tokens. `cookie` is the name
  /// of the cookie with the session. It counts for a change only when the request comes from a page
  /// of this origin.
  [[nodiscard]] auto authorize(wire::request_head const& request, std::string_view cookie,
                               http::ip_address const& from, instant now)
      -> result<admin_caller, admin_answer>;

  /// Makes a session of what a token may do. `id` is what the cookie will say.
  void open_session(admin_caller const& caller, std::string_view id, instant now);
  void close_session(admin_caller const& caller);
  /// Whether it would still be authorized.
  [[nodiscard]] auto holds(admin_caller const& caller, instant now) const -> bool;

  struct failures {
    std::size_t count = 0;
    http::ip_address last_from;
  };
  /// The wrong tokens that were not logged yet, when it is time to do so.
  [[nodiscard]] auto take_failures(instant now) -> std::optional<failures>;

 private:
  struct session {
    sha256_digest id{};
    sha256_digest token{};
    instant ends{};
  };

  [[nodiscard]] auto by_token(std::string_view given, http::ip_address const& from, instant now)
      -> result<admin_caller, admin_answer>;
  [[nodiscard]] auto by_cookie(wire::request_head const& request, std::string_view cookie,
                               instant now) const -> std::optional<admin_caller>;
  void remember(http::ip_address const& from);
  [[nodiscard]] auto tries_of(http::ip_address const& from, instant now) -> ratelimit::bucket&;
  [[nodiscard]] auto find(sha256_digest const& token) const -> bearer_token const*;

  bool needs_token_;
  std::vector<bearer_token> tokens_;
  std::vector<session> sessions_;  // the oldest first
  ratelimit::policy tries_policy_;
  ratelimit::policy shared_policy_;
  std::map<http::ip_address, ratelimit::bucket> tries_;
  ratelimit::bucket shared_tries_;
  struct known_address {
    http::ip_address from;
    ratelimit::bucket tries{};
  };
  std::deque<known_address> known_;  // the latest last
  failures failures_;                // that were not logged
  std::optional<instant> logged_at_;
};

}  // namespace tidegate::gateway
