// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>
#include <tidegate/http/field.hpp>
#include <tidegate/ratelimit/fields.hpp>
#include <tidegate/ratelimit/known_limit.hpp>
#include <tidegate/ratelimit/legacy.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// The client's part (draft-09, section 7; draft-07, section 5): when the next request may go,
/// learnt from the responses to those before. Nothing in here waits, locks or reads a clock;
/// workers that share a pacer ensure that one of them calls it at a time.
namespace tidegate::TIDEGATE_ABI::ratelimit {

/// What to do with quota that is there (draft-09, section 7).
enum class pacing_strategy : std::uint8_t {
  spread,  ///< so many requests a second that the quota lasts until it is reset
  burst,   ///< all at once, then wait
};

/// The bounds that a user sets. They hold whatever a server says (draft-09, section 8.5.1).
struct pacing_options {
  pacing_strategy strategy = pacing_strategy::spread;
  /// Requests are never closer than this: the cap on the rate.
  std::chrono::nanoseconds interval_min = std::chrono::milliseconds(1);
  /// No request waits longer than this: one then finds out whether the server still means it.
  std::chrono::nanoseconds wait_max = std::chrono::minutes(10);
  /// So many requests may be under way at a time.
  std::size_t in_flight_max = 100;
};

/// The answer to "may a request go now?".
struct permission {
  bool go = false;
  /// When `go`: stands for the request, to be given back with its response.
  std::uint64_t ticket = 0;
  /// When not: ask again then, or after the next answer if that is earlier. `instant::max()` when
  /// only an answer can change it.
  instant at;
  auto operator==(permission const&) const -> bool = default;
};

/// What a pacer needs to know of a response. Borrows its fields.
struct paced_response {
  int status = 200;
  /// The header section. Of it count RateLimit, RateLimit-Policy, Retry-After, Age, Date and those
  /// of `read_legacy`; names in any case.
  std::span<http::field_view const> fields;
  std::chrono::sys_seconds wall_clock;  ///< the client's, for responses without Date
  std::uint64_t content_bytes = 0;      ///< the size of its content
};

struct paced_fields;

/// When the next request to one partition of one origin may go.
///
/// What it learns from:
/// - Retry-After wins over everything else in a response; of several lines the longest wait.
/// - RateLimit of either draft; where there is none, X-RateLimit-* and its relatives. With several
///   limits the tightest one counts. Malformed fields are ignored, and so are those of a response
///   that comes from a cache (draft-09, section 7.3), which shows in an Age above 0; its status and
///   Retry-After still count.
/// - 429 and 503 without a word on when to come back: waits that double, with full jitter, up to a
///   minute.
///
/// What it does with it:
/// - It never sends more than what remained, before the reset (draft-09, section 7). A limit
///   without a reset time bounds how many requests are under way.
/// - Where quota comes back all the time and never much of it is there (a small burst), a reset in
///   whole seconds would waste most of it. There the moment of the next unit is estimated by quota
///   and window: the wait shrinks towards window over quota as long as nothing is refused. A
///   refusal ends that for a window, and for twice as many each time.
/// - Under `spread` it aims at the rate at which what remains lasts until the reset. Others may
///   spend the same quota, which shows in how fast it shrinks, so the own rate is corrected by the
///   proportion of both: many clients that know nothing of each other come to use one quota up and
///   hardly ever exceed it.
/// - Who sees that nothing of a quota was spent by others takes what remains over the time until
///   the reset, at most a quarter faster than quota over window (draft-09, section 8.5). So does
///   each window begin after one in which all was spent, and nothing is known of a rate before
///   something remained.
/// - After a wait under `spread`, one that shares a quota comes back at a random time within its
///   interval, so that those who waited for the same reset do not come back at once.
/// - A quota in content bytes is shared out by what requests and responses were in size lately; one
///   in a unit that a client cannot count, such as tokens, by what was gone after each request.
/// - A response that comes out of order can make it more careful, never less.
class pacer {
 public:
  explicit pacer(pacing_options const& options = {}) noexcept : options_(options) {}

  /// May a request go at `now`? If so, it is counted as under way until it is answered or fails.
  /// `content_bytes` is the size of its content, which counts where a quota is one of content
  /// bytes.
  [[nodiscard]] auto ask(instant now, std::uint64_t content_bytes = 0) -> permission;

  /// The response to a request that was let go. `randomness` is any number, another one each time.
  void answered(std::uint64_t ticket, paced_response const& response, instant now,
                std::uint64_t randomness);

  /// A request that was let go and got no response. Says nothing about quota.
  void failed(std::uint64_t ticket, instant now);

  /// How many requests are under way.
  [[nodiscard]] auto in_flight() const noexcept -> std::size_t { return in_flight_.size(); }

  /// What the pacer holds to now, for people to look at.
  struct state {
    std::optional<double> rate;             ///< requests a second; none while nothing is known
    instant blocked_until;                  ///< nothing goes before
    std::optional<std::int64_t> allowance;  ///< of the tightest limit: what may go before its reset
    auto operator==(state const&) const -> bool = default;
  };
  /// What the pacer knows now.
  [[nodiscard]] auto current() const -> state;

 private:
  struct flight {
    std::uint64_t ticket;
    instant sent;
    std::uint64_t content_bytes;
  };
  /// Which response is learnt from.
  struct seen_in {
    std::uint64_t ticket;
    std::int64_t content_bytes;
    instant made;
    instant now;
    bool is_refused;
  };

  /// What the limits of a response say of the rate, the lowest of each; `none` where no limit does.
  struct rate_bounds {
    static constexpr auto none = std::numeric_limits<double>::infinity();
    double start = none;   // where nothing is known of others yet
    double wanted = none;  // after what was measured
    double floor = none;   // what all limits allow this client, for all that it has seen
  };
  /// How fast requests go.
  struct pace {
    double rate = 0;                 // requests a second; 0 while nothing is known
    bool is_measured = false;        // and not only a first guess
    instant slowed{instant::min()};  // when the rate last fell because of a refusal
    bool had_to_wait = false;        // for its turn, since the rate was last corrected
  };

  [[nodiscard]] auto room_of(known_limit const& limit) const noexcept -> double;
  [[nodiscard]] auto interval() const noexcept -> std::chrono::nanoseconds;
  void set_rate(double rate) noexcept;
  [[nodiscard]] auto land(std::uint64_t ticket, instant now) -> std::optional<flight>;
  void set_offset(double chance) noexcept;
  [[nodiscard]] auto read_said(paced_fields const& lines, paced_response const& response)
      -> limit_field;
  void update_policies(std::span<std::string_view const> lines);
  void learn(limit_field const& limits, seen_in const& from);
  [[nodiscard]] auto limit_of(service_limit const& seen) -> known_limit&;
  [[nodiscard]] auto update(known_limit& limit, service_limit const& seen,
                            seen_in const& from) const -> double;
  void learn_limit(service_limit const& seen, seen_in const& from, rate_bounds& bounds);
  [[nodiscard]] auto learn_burst(known_limit& limit, std::chrono::nanoseconds wait,
                                 seen_in const& from, double floor) const -> double;
  void adjust_rate(rate_bounds const& bounds) noexcept;
  void lower(limit_field const& limits);
  [[nodiscard]] auto is_alone() const noexcept -> bool;
  void block(std::chrono::nanoseconds wait, instant now);
  void back_off(instant now, double chance);

  pacing_options options_;
  std::vector<known_limit> limits_;
  policy_field policies_;                   // of the latest response
  std::optional<std::string> policy_line_;  // which they were read from
  std::vector<flight> in_flight_;
  std::optional<std::int64_t> in_flight_limit_;  // what a limit without a reset lets be under way
  double bytes_of_one_ = 0;                      // content of a request and its response, lately
  pace pace_;
  instant turn_{instant::min()};  // of the last request; the next is an interval later
  instant last_{instant::min()};  // when the last request went
  instant blocked_until_{instant::min()};
  bool finding_out_ =
      true;                 // at first and after a block: one request at a time until one is served
  unsigned back_offs_ = 0;  // one after the other
  unsigned refusals_ = 0;   // one after the other
  std::uint64_t all_refusals_ = 0;
  // A random part of the interval, by which this client comes back later than the others.
  std::chrono::nanoseconds offset_{0};
  std::uint64_t sent_ = 0;
  std::uint64_t newest_ = 0;  // the latest request that was answered
  std::chrono::nanoseconds latency_min_ = std::chrono::nanoseconds::max();
};

/// The pacers of a client, one for each origin and partition, at most `size_max`: the one that was
/// not used for longest goes when another is needed, unless a request of its own is under way.
///
/// What a partition is to the server shows in `pk`. A client that can work it out for a request
/// (draft-09, section 7.1) asks under that; one that cannot asks under what sets its requests
/// apart, such as the credentials or the resource, or under nothing at all.
class pacers {
 public:
  explicit pacers(pacing_options const& options = {}, std::size_t size_max = 1024);
  pacers(pacers&&) = default;
  auto operator=(pacers&&) -> pacers& = default;

  /// The pacer of an origin and a partition, made when there is none. Stays valid until the next
  /// call.
  [[nodiscard]] auto of(std::string_view origin, std::string_view partition = {}) -> pacer&;
  [[nodiscard]] auto size() const noexcept -> std::size_t { return by_key_.size(); }

 private:
  struct entry {
    std::string key;
    pacer paces;
  };
  pacing_options options_;
  std::size_t size_max_;
  std::list<entry> by_use_;  // the latest first
  std::unordered_map<std::string_view, std::list<entry>::iterator> by_key_;
};

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
