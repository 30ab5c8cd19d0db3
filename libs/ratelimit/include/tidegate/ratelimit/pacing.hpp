// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>
#include <tidegate/ratelimit/fields.hpp>
#include <tidegate/ratelimit/legacy.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// The client's part (draft-09, section 7; draft-07, section 5): when the next request may go,
/// learnt from the responses to those before. Nothing in here waits, locks or reads a clock;
/// workers that share a pacer see to it that one of them calls it at a time.
namespace tidegate::ratelimit {

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
  /// Longer than this nobody waits: one request then finds out whether the server still means it.
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
  std::span<field_line const> fields;
  std::chrono::sys_seconds wall_clock;  ///< the client's, for responses without Date
  std::uint64_t content_bytes = 0;      ///< the size of its content
};

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
  [[nodiscard]] auto current() const -> state;

 private:
  /// What is known of one limit.
  struct known_limit {
    std::string name;
    std::optional<std::string> partition_key;
    quota_unit unit = quota_unit::requests;
    double per_request = 1;      // units that a request costs; 0 while that is not known
    std::int64_t remaining = 0;  // units, when it was last seen
    std::uint64_t ticket = 0;    // of the request whose response told
    std::uint64_t own = 0;  // requests of this client that had been let in by then, or nearly so
    std::int64_t overtaken = 0;  // requests sent before that one and still under way
    instant reset;               // when there is more, as far as is known
    instant until;               // how long nothing goes once the allowance is used up
    double quota = 0;            // units; as the policy says, else the most that was seen
    double window = 0;           // seconds; as the policy says, else the longest reset seen
    bool has_policy = false;
    bool refills = false;  // quota comes back before the reset
    // How fast it shrinks is measured from here on.
    instant since;
    std::int64_t remaining_then = 0;
    instant reset_then;
    std::uint64_t own_then = 0;
    // The first response of this window.
    instant window_since;
    std::int64_t window_remaining = 0;
    std::uint64_t window_own = 0;
    bool alone = false;  // all that was spent lately was spent by this client
    // Where a server holds far less than the quota at a time, the reset in whole seconds is too
    // coarse.
    double most = 0;      // units that were there at a time
    double patience = 1;  // the part of the time to the reset that is waited, at least
    double longest = 0;   // seconds to the reset when nothing was left
    instant shared_until{instant::min()};  // others are there: the reset is waited for
    unsigned came_too_early = 0;           // how often less than all of it was too short

    void measure_from(instant made) noexcept;
    void begin_window(instant made) noexcept;
    void learn_cost(std::int64_t spent, std::uint64_t now_answered) noexcept;
    [[nodiscard]] auto holds_little(instant made) const noexcept -> bool;
    void learn_patience(bool is_refused, instant made) noexcept;
    [[nodiscard]] auto cost_of_one() const noexcept -> double {
      return per_request > 0 ? per_request : 1;
    }
    [[nodiscard]] auto requests(double units) const noexcept -> double {
      return units / cost_of_one();
    }
  };
  struct relevant_lines;
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

  [[nodiscard]] auto room_of(known_limit const& limit) const noexcept -> double;
  [[nodiscard]] auto interval() const noexcept -> std::chrono::nanoseconds;
  void set_rate(double rate) noexcept;
  [[nodiscard]] auto land(std::uint64_t ticket, instant now) -> std::optional<flight>;
  void set_offset(double chance) noexcept;
  [[nodiscard]] auto read_said(relevant_lines const& lines, paced_response const& response)
      -> limit_field;
  void read_policies_anew(std::span<std::string_view const> lines);
  void learn(limit_field const& limits, seen_in const& from);
  void lower(limit_field const& limits);
  [[nodiscard]] auto has_new_window(known_limit& limit, instant made) const -> bool;
  [[nodiscard]] auto sees_others(known_limit const& limit, instant made) const
      -> std::optional<bool>;
  [[nodiscard]] auto is_alone() const noexcept -> bool;
  [[nodiscard]] static auto share_of_window(known_limit const& limit) -> double;
  [[nodiscard]] auto corrected(known_limit& limit, instant made) const -> std::optional<double>;
  [[nodiscard]] static auto first_rate(known_limit const& limit, instant made) -> double;
  [[nodiscard]] static auto spread_rate(known_limit const& limit, instant made) -> double;
  void block(std::chrono::nanoseconds wait, instant now);
  void back_off(instant now, double chance);

  pacing_options options_;
  std::vector<known_limit> limits_;
  policy_field policies_;                   // of the latest response
  std::optional<std::string> policy_line_;  // which they were read from
  std::vector<flight> in_flight_;
  std::optional<std::int64_t> in_flight_limit_;  // what a limit without a reset lets be under way
  double bytes_of_one_ = 0;                      // content of a request and its response, lately
  double rate_ = 0;                              // requests a second; 0 while nothing is known
  bool is_measured_ = false;                     // and not only a first guess
  instant slowed_{instant::min()};               // when the rate last fell because of a refusal
  bool had_to_wait_ = false;                     // for its turn, since the rate was last corrected
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

}  // namespace tidegate::ratelimit
