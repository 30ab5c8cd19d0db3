// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/idempotency/change.hpp>
#include <tidegate/idempotency/fingerprint.hpp>
#include <tidegate/idempotency/policy.hpp>
#include <tidegate/idempotency/problems.hpp>
#include <tidegate/idempotency/record.hpp>
#include <tidegate/idempotency/wall_time.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

/// What is to be done with a request that has a key (draft-07, section 2.6).
namespace tidegate::TIDEGATE_ABI::idempotency {

/// A request, as far as decisions depend on it.
struct request_facts {
  lookup_key key{};
  idempotency::fingerprint fingerprint{};
  fencing_token token = 0;    ///< of the claim, if it comes to one; never used before
  bool prefers_wait = false;  ///< `Prefer: wait` (RFC 7240, section 4.3)
  std::size_t waiters = 0;    ///< how many wait for this key already
  auto operator==(request_facts const&) const -> bool = default;
};

enum class verdict : std::uint8_t {
  run,     ///< make `claim`, then forward; if the claim fails, decide again on what was found
  replay,  ///< answer with the stored response
  wait,    ///< until the record changes, then decide again
  refuse,  ///< answer with the problem `code`
  needs_other_fingerprint,  ///< make the fingerprint by the rule of the record, then decide again
};

/// What to do.
struct decision {
  idempotency::verdict verdict{};
  // NOLINTBEGIN(readability-redundant-member-init): so that they may be left out
  std::optional<change> claim{};       ///< run
  problem_code code{};                 ///< refuse
  std::chrono::seconds retry_after{};  ///< refuse: Retry-After, where it is not 0
  request_parts differs{};             ///< refuse with `key_reused`
  // NOLINTEND(readability-redundant-member-init)
};

/// Decides on `request`, for whose key `found` is stored, or nullptr where nothing is.
///
/// R7: a fingerprint that differs is refused in every state. Then by state: absent or forgotten
/// runs; dispatched waits or is in flight; an unknown outcome is refused, or runs once more where
/// the policy and the upstream let it; completed is replayed; a tombstone has expired. Deciding
/// changes nothing: the claim must have been made, durably, before a byte goes to the upstream
/// (R1).
[[nodiscard]] auto decide(record const* found, request_facts const& request, policy const& policy,
                          wall_time now) -> decision;

/// The same for a request that ran, and whose answer could not be stored because its owner was
/// overtaken. It never runs again (R8); and its client is told what every retry will be told, not
/// the answer that no retry will get.
[[nodiscard]] auto decide_overtaken(record const* found, request_facts const& request,
                                    policy const& policy, wall_time now) -> decision;

/// How an exchange with the upstream ended.
enum class exchange_end : std::uint8_t {
  answered,       ///< with a whole response
  not_sent,       ///< no byte of the request was sent: no connection, no TLS
  not_processed,  ///< the upstream says so: REFUSED_STREAM, or GOAWAY below our stream
  no_answer,      ///< the connection ended before the head of a response
  cut_answer,     ///< the connection ended before the end of the response
  timed_out,      ///< nothing came in time
  stopped,        ///< we gave up, because the gateway stops
};

enum class outcome : std::uint8_t {
  completed,  ///< `complete`: the answer is final
  released,   ///< `release`: it was not carried out
  unknown,    ///< `mark_unknown`
};

/// What an exchange says about the request.
struct judgement {
  idempotency::outcome outcome{};
  unknown_reason reason = unknown_reason::none;  ///< of `outcome::unknown`
  auto operator==(judgement const&) const -> bool = default;
};

/// Judges an exchange (R4). `status` is that of the answer.
///
/// Final are 2xx, 3xx, 4xx and 5xx, with these exceptions. Released: 401, 403, 407, 408, 421, 425
/// and 429, with which a request is refused before it is carried out. Unknown: 502, 503 and 504
/// unless the policy stores them. What was not sent or not processed is released; whatever else
/// is not a whole answer is unknown.
[[nodiscard]] auto judge(exchange_end end, int status, policy const& policy) noexcept -> judgement;

/// What the client gets that waited for an exchange without an answer: 504 when it timed out, else
/// 502.
[[nodiscard]] auto first_status(exchange_end end) noexcept -> int;

}  // namespace tidegate::TIDEGATE_ABI::idempotency
