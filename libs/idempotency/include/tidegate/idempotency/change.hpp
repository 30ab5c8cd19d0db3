// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/idempotency/lookup.hpp>
#include <tidegate/idempotency/policy.hpp>
#include <tidegate/idempotency/record.hpp>
#include <tidegate/idempotency/wall_time.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

/// The transitions of a record. Each is computed here and made by a store, as a compare-and-set:
/// what to write, and what must be there for it. So every store is atomic in its own way (a lock, a
/// statement with WHERE, a script), answers when it has done so, and decides nothing.
///
/// The rules behind them:
///
/// - R1 A dispatched record is durable before the first byte goes to the upstream.
/// - R2 A completed record is durable before the first byte of the answer goes to the client.
/// - R3 Every transition is compare-and-set on token and state: an owner that was overtaken changes
///   nothing.
/// - R4 A key is given back only on proof that the request was not carried out.
/// - R5 Exchange and record go on when the client has gone.
/// - R6 A dispatched record whose owner is gone becomes unknown, never absent.
/// - R7 The fingerprint is compared before anything else, in every state.
/// - R8 Nothing is sent again once a byte was sent, but by R4 and by R6 where the upstream
///   deduplicates.
///
/// `execution` keeps them; the model check in the tests shows what breaks without each.
namespace tidegate::TIDEGATE_ABI::idempotency {

/// What must be stored under a key for a change to be made.
struct condition {
  /// Of the record; nothing: there must be no record.
  // NOLINTNEXTLINE(readability-redundant-member-init): so that it may be left out
  std::optional<fencing_token> token{};
  record_states states{};  ///< in which the record may be
  auto operator==(condition const&) const -> bool = default;
};

/// Whether `stored`, or nullptr where nothing is, meets it (R3).
[[nodiscard]] auto holds(condition const& when, record const* stored) noexcept -> bool;

/// One compare-and-set. When the condition does not hold, the store changes nothing and says what
/// it found; when it cannot tell whether the change was made, that is a failure and not an answer.
struct change {
  lookup_key key{};
  condition when{};
  // NOLINTBEGIN(readability-redundant-member-init): so that they may be left out
  std::optional<record> next{};  ///< what to store; nothing: remove what is there
  /// What to store with it; nothing: no response is stored any more.
  std::optional<stored_response> response{};
  /// How many keys the scope may have, with one that this adds; 0: any number. A store that would
  /// have to exceed it changes nothing and says `scope_full`.
  std::size_t scope_keys_max = 0;
  /// Whether the store's own bounds hold for a key that this adds. Not for one that only tries
  /// whether changes are made.
  bool bounded = true;
  /// Whether a store that outlives the process seals the response, if it has a key.
  bool seal = true;
  // NOLINTEND(readability-redundant-member-init)
  auto operator==(change const&) const -> bool = default;
};

/// In which state a record counts as at `now`: a lease that has ended makes an outcome unknown
/// (R6), and a response that has expired makes a tombstone, whether or not that was written
/// down. Nothing when the record is to be forgotten.
[[nodiscard]] auto state_at(record const& record, wall_time now) noexcept
    -> std::optional<record_state>;

// ---- by the owner of a claim: `mine` is the record as it was claimed ----

/// Says that the owner is alive.
[[nodiscard]] auto renew(lookup_key const& key, record const& mine, policy const& policy,
                         wall_time now) -> change;

/// Stores the answer. It may also resolve an outcome that was unknown meanwhile, since it is the
/// true one; but never after another attempt has begun (R3). A response whose body was left out is
/// stored too, and is not replayable. When the condition does not hold: `decide_overtaken` on what
/// was found.
[[nodiscard]] auto complete(lookup_key const& key, record const& mine, stored_response response,
                            wall_time now) -> change;

/// The request was not carried out, by proof (R4): the key may run at once. After a first attempt
/// the record goes; after a later one the outcome is as unknown as it was before.
[[nodiscard]] auto release(lookup_key const& key, record const& mine, wall_time now) -> change;

/// The outcome stays unknown. Also for every dispatched record of a process that is known to be
/// dead, as those are that a store without other users finds when it is opened.
[[nodiscard]] auto mark_unknown(lookup_key const& key, record const& mine, unknown_reason reason,
                                wall_time now) -> change;

// ---- by time ----

/// What time has made of a record, for a sweep; nothing when there is nothing to do.
[[nodiscard]] auto expire(lookup_key const& key, record const& found, wall_time now)
    -> std::optional<change>;

// ---- by an operator ----

enum class resolution : std::uint8_t {
  executed,      ///< it was carried out: retries are told so, and nothing runs again
  not_executed,  ///< it was not: the next request with the key runs
};

/// Why an operator cannot do this.
enum class admin_fault : std::uint8_t {
  not_unknown,  ///< only an unknown outcome can be resolved
  in_flight,    ///< a request is running, which could run again if its record went
};

/// One line for people.
[[nodiscard]] auto message(admin_fault fault) noexcept -> std::string_view;

/// Settles an unknown outcome. A caller that says `not_executed` must know that no attempt is under
/// way any more: a token keeps an old owner from the record, not from the upstream.
[[nodiscard]] auto resolve(lookup_key const& key, record const& found, resolution outcome,
                           wall_time now) -> result<change, admin_fault>;

/// Forgets a key before its time.
[[nodiscard]] auto purge(lookup_key const& key, record const& found, wall_time now)
    -> result<change, admin_fault>;

}  // namespace tidegate::TIDEGATE_ABI::idempotency
