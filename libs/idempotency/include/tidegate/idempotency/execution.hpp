// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/http/field.hpp>
#include <tidegate/idempotency/change.hpp>
#include <tidegate/idempotency/decide.hpp>
#include <tidegate/idempotency/policy.hpp>
#include <tidegate/idempotency/problems.hpp>
#include <tidegate/idempotency/record.hpp>
#include <tidegate/idempotency/wall_time.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

/// One request with a key from its content to the last change of its record: events in, one action
/// out. It keeps the rules R1 to R8 of `change.hpp`. Nothing here knows a store, a connection, a
/// timer or a client: the caller performs the actions, and the model in the tests is such a caller.
namespace tidegate::TIDEGATE_ABI::idempotency {

/// The rules, so that tests can break one of them.
enum class rule : std::uint8_t { r1, r2, r3, r4, r5, r6, r7, r8 };

/// What ships: every rule is kept, and asking costs nothing.
struct all_rules {
  /// Every rule is kept.
  [[nodiscard]] static constexpr auto keeps(rule /*any*/) noexcept -> bool { return true; }
  auto operator==(all_rules const&) const -> bool = default;
};

/// Where a request is.
enum class stage : std::uint8_t {
  content,     ///< is coming
  lookup,      ///< the store is asked for the record
  waiting,     ///< for the answer to another request with the key
  admission,   ///< quotas are asked
  connecting,  ///< to the upstream
  claiming,    ///< the store makes the claim durable
  running,     ///< a byte may have been sent
  recording,   ///< the store writes what became of it
  streaming,   ///< recorded without its body; the answer passes through
  over,
};

/// What a caller has to do. Each says which event comes back.
enum class action_kind : std::uint8_t {
  none,         ///< nothing: another event will come
  find,         ///< ask the store for the record: `found` or `store_failed`
  fingerprint,  ///< make the fingerprint by `rule_text`: `found` with it, or `store_failed`
  join,         ///< become a waiter for the key, set the timer, then as `find`
  wait,         ///< set the timer; still a waiter: `timer` or `woken`
  admit,        ///< ask the quotas: `admitted` or `refused`
  connect,      ///< take a connection, a new one if `fresh`: `connected` or `upstream_failed`
  claim,        ///< apply `change`: `claim_applied` or `store_failed`
  send,         ///< send the request: `answer_*` or `upstream_failed`
  record,       ///< apply `change`: `record_applied` or `store_failed`
  renew,        ///< R6: apply `renew` of `mine()`, whatever comes of it, and set the timer
  report_late,  ///< tell the client 504 now; the request goes on without it
  detach,       ///< nothing: the request goes on without its client
  stream,       ///< send the answer so far and pass on what comes; `stream` says if that is all
  // With these it is over.
  end_stream,
  abort_stream,
  answer,              ///< the answer of the upstream
  answer_unknown,      ///< `first_status(end)`: what became of it is not known
  answer_unreachable,  ///< nothing was sent, because of `fault`
  replay,              ///< the stored response
  refuse,              ///< the problem `code`
  finish,              ///< nothing to tell
};

/// Why a store gives no answer. A change may have been made all the same, unless it says otherwise.
enum class store_failure : std::uint8_t {
  unavailable,
  damaged,     ///< what is stored cannot be understood
  no_space,    ///< the disk or the memory of the server is full
  full,        ///< it has as many keys as it may; nothing was changed
  scope_full,  ///< the scope has as many keys as it may; nothing was changed
};

/// Why the upstream does not answer.
enum class upstream_fault : std::uint8_t {
  not_connected,  ///< nothing was sent
  refused,        ///< the server has said that it did nothing with the request
  no_connection,  ///< nothing was sent: there are as many connections as there may be
  stale,          ///< a connection that was used before ended without a byte of an answer
  closed,         ///< or no HTTP
  timed_out,
  content_lost,  ///< the kept content of the request cannot be read back
};

/// How much of an answer is there when it begins to be streamed.
enum class stream_end : std::uint8_t { open, whole, cut };

/// Which part of the body of an answer.
enum class body_part : std::uint8_t {
  more,
  last,
  last_not_run,  ///< and a service of our own says that it has done nothing
};

/// What to do: first what the flags say, in their order, then `kind`. Pointers and views are into
/// the execution or what its event was given, and hold until the next event.
struct action {
  action_kind kind = action_kind::none;
  bool drops_connection = false;  ///< to the upstream, if there is one
  bool leaves_waiters = false;    ///< it waits for the key no longer
  bool refunds = false;           ///< what `admit` charged is given back
  bool settles = false;           ///< what `admit` charged is final, as at the end
  bool bypasses = false;          ///< from here on the request runs without protection
  bool fresh = false;             ///< connect
  stream_end stream{};            ///< stream
  exchange_end end{};             ///< answer_unknown
  upstream_fault fault{};         ///< answer_unreachable
  problem_code code{};            ///< refuse
  request_parts differs{};        ///< refuse with `key_reused`
  // NOLINTBEGIN(readability-redundant-member-init): so that they may be left out
  /// That the outcome is unknown is to be counted and logged, and why.
  std::optional<unknown_reason> unknown{};
  std::chrono::seconds retry_after{};  ///< refuse: Retry-After, where it is not 0
  std::string_view detail{};           ///< refuse; empty: what there is to say in general
  std::string_view rule_text{};        ///< fingerprint
  // NOLINTEND(readability-redundant-member-init)
  idempotency::change const* change = nullptr;  ///< claim, record
  /// To be applied as soon as the store can, whatever else is done. May be moved from.
  idempotency::change* queued = nullptr;
};

/// What is known of a key when a request with it is decided on.
struct lookup_result {
  record const* stored = nullptr;  ///< null where nothing is
  /// The claim that this process has under way, which is so whatever a store has lost. Needed only
  /// where the store has no record that counts.
  // NOLINTNEXTLINE(readability-redundant-member-init): so that it may be left out
  std::optional<record> running{};
  std::size_t waiters = 0;  ///< how many wait for the key
};

/// Whether `stored` says nothing, so that `lookup_result::running` is needed.
[[nodiscard]] inline auto is_absent(record const* stored, wall_time now) noexcept -> bool {
  return stored == nullptr || !state_at(*stored, now);
}

/// What of a route an execution depends on, besides its policy.
struct execution_options {
  bool bypasses_failed_store = false;  ///< requests run unprotected while the store fails
  bool connects = true;                ///< false: a service of our own, which needs no connection
  bool seals = true;                   ///< `change::seal` of responses
  std::int64_t tries_max = 1;          ///< connections for one request, while nothing was sent
  std::size_t body_max = 0;            ///< octets of a response that are kept
  auto operator==(execution_options const&) const -> bool = default;
};

/// The machine. Events that cannot come in a stage are answered with `none`.
template <class Rules = all_rules>
class basic_execution {
 public:
  /// `policy` must outlive it.
  basic_execution(policy const& policy, execution_options const& options, Rules rules = {})
      : policy_(&policy), options_(options), rules_(rules) {}

  // ---- the content ----

  /// The body of the request is there, and with it all that is known of it.
  [[nodiscard]] auto content_complete(request_facts facts) -> action;
  /// It is too large, not what its digest says, or could not be kept.
  [[nodiscard]] auto content_refused(problem_code code, std::string_view detail = {}) -> action;

  // ---- what is known of the key ----

  /// `other` is the fingerprint by the rule of the record, once that was asked for.
  [[nodiscard]] auto found(lookup_result& known, wall_time now, fingerprint const* other = nullptr)
      -> action;
  /// The record may have changed; a request that is woken is a waiter no longer.
  [[nodiscard]] auto woken() -> action;
  /// `wait_is_over`: the client waits no longer for the answer to another request.
  [[nodiscard]] auto timer(bool wait_is_over) -> action;
  /// In place of `found`, `claim_applied` or `record_applied`.
  [[nodiscard]] auto store_failed(store_failure why, wall_time now) -> action;

  // ---- the run ----

  /// The limits of the route have admitted the request.
  [[nodiscard]] auto admitted(request_origin origin, wall_time now) -> action;
  /// By the quotas; the client has its answer.
  void refused() { stage_ = stage::over; }
  [[nodiscard]] auto connected(wall_time now) -> action;
  /// When it was not made: `known` is why not, `token` one for another claim.
  [[nodiscard]] auto claim_applied(bool made, lookup_result& known, fencing_token token,
                                   wall_time now) -> action;
  [[nodiscard]] auto upstream_failed(upstream_fault why, wall_time now) -> action;
  /// No answer came in time.
  [[nodiscard]] auto answer_late() -> action;

  // ---- the answer ----

  /// `fields` are those that the client gets and Connection: `is_kept_field` says what is stored.
  void answer_head(std::uint16_t status, std::span<http::field const> fields);
  /// Those behind the body, before its last part is told.
  void answer_trailers(std::span<http::field const> trailers);
  [[nodiscard]] auto answer_body(std::string_view piece, body_part part, wall_time now) -> action;
  /// When it was not made: `known` is why not.
  [[nodiscard]] auto record_applied(bool made, lookup_result const& known, wall_time now) -> action;

  /// `finish` or `detach`.
  [[nodiscard]] auto client_gone(wall_time now) -> action;

  /// Where the request is.
  [[nodiscard]] auto at() const noexcept -> stage { return stage_; }
  /// Whether its claim was made, and the record as it was claimed.
  [[nodiscard]] auto is_claimed() const noexcept -> bool { return is_claimed_; }
  [[nodiscard]] auto mine() const noexcept -> record const& { return mine_; }

  auto operator==(basic_execution const&) const -> bool = default;

 private:
  [[nodiscard]] auto follow(decision decided, wall_time now) -> action;
  [[nodiscard]] auto refuse(decision const& why, std::string_view detail = {}) -> action;
  [[nodiscard]] auto run(wall_time now) -> action;
  [[nodiscard]] auto connect(bool fresh) -> action;
  [[nodiscard]] auto claim(wall_time now) -> action;
  [[nodiscard]] auto send() -> action;
  [[nodiscard]] auto record_change(change next) -> action;
  [[nodiscard]] auto record_end(exchange_end end, wall_time now) -> action;
  [[nodiscard]] auto change_by(exchange_end end, wall_time now) -> change;
  [[nodiscard]] auto reply() -> action;

  policy const* policy_;
  execution_options options_;
  [[no_unique_address]] Rules rules_;
  stage stage_ = stage::content;
  bool has_client_ = true;
  bool is_waiter_ = false;
  bool is_charged_ = false;
  bool is_claimed_ = false;
  bool is_bypassed_ = false;      // it will never be claimed
  bool lost_connection_ = false;  // while it was claimed
  bool is_late_ = false;          // the client was told so
  stream_end ended_ = stream_end::open;
  upstream_fault fault_{};  // of `exchange_end::not_sent`
  std::optional<exchange_end> end_;
  std::int64_t tries_ = 0;
  request_facts facts_;
  change pending_;  // the claim, then what became of it, while it is not certain to be made
  record mine_;
  std::uint16_t status_ = 0;
  std::optional<response_recorder> recorder_;
};

extern template class basic_execution<all_rules>;

/// What ships.
using execution = basic_execution<>;

}  // namespace tidegate::TIDEGATE_ABI::idempotency
