// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/idempotency/lookup.hpp>
#include <tidegate/idempotency/record.hpp>
#include <tidegate/idempotency/wall_time.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// How a record is written in Redis, and when. No I/O.
namespace tidegate::store_redis {

/// Keys whose scopes are in one bucket are on one server of a cluster, so that a script can count
/// them.
inline constexpr std::size_t buckets = 64;
[[nodiscard]] auto bucket_of(idempotency::lookup_key const& key) noexcept -> std::size_t;

/// The keys of Redis for a bucket: when time has something to do with which record, how many
/// records each scope has, which outcomes are unknown since when, and the digest of the secret that
/// lookup keys are made with. With the ending of a record: the record and its response.
[[nodiscard]] auto due_key(std::size_t bucket) -> std::string;
[[nodiscard]] auto scopes_key(std::size_t bucket) -> std::string;
[[nodiscard]] auto unknown_key(std::size_t bucket) -> std::string;
[[nodiscard]] auto secret_key(std::size_t bucket) -> std::string;
[[nodiscard]] auto record_key_prefix(std::size_t bucket) -> std::string;
[[nodiscard]] auto response_key_prefix(std::size_t bucket) -> std::string;

/// Identifies a process, as far as chance lets it.
using writer_id = std::uint64_t;

/// Who wrote a record, and when by its own clock.
struct written {
  writer_id by = 0;
  idempotency::wall_time at{};
};

/// What stands before the time of Redis, which the script puts there, and the record: the token,
/// the state, the writer and its time.
[[nodiscard]] auto stored_head(idempotency::record const& record, written const& when)
    -> std::string;
/// A token as it stands there.
[[nodiscard]] auto stored_token(idempotency::fencing_token token) -> std::string;

inline constexpr std::size_t token_octets = 8;
inline constexpr std::size_t time_digits = 15;
inline constexpr std::size_t head_octets = token_octets + 1 + 8 + time_digits;

/// Whose eyes a record is read with.
struct reader {
  writer_id id = 0;
  idempotency::wall_time now{};       ///< by his clock
  std::chrono::milliseconds store{};  ///< at the same moment by that of Redis, since 1970
};

/// Reads what the script has stored. The times of another writer are moved to the clock of the
/// reader; one's own are exactly what they were. The error is for people.
[[nodiscard]] auto read_stored(std::string_view octets, reader const& by)
    -> result<idempotency::record, std::string>;

/// When time has something to do with a record.
[[nodiscard]] auto due(idempotency::record const& record) noexcept -> idempotency::wall_time;

/// Makes a change on its condition.
///
/// KEYS: of the record, its response, due, scopes, unknown, secret. ARGV: the token that must be
/// there, or nothing; the states that it may have; the head of what to store, or nothing; the
/// record; 1 for a response; the response; the ending of the keys; the scope; how many records it
/// may have, or 0; how many the bucket may have; how long after the time of the writer it is due,
/// and how long after it became what it is; the digest of the secret, or nothing. A record that is
/// new needs the same digest in the bucket, and leaves it where there is none.
///
/// Answers: made, found, full, scope_full or other_secret; the time in milliseconds; how many
/// records the bucket has; with made how many unknown outcomes it has; with found the record and
/// the response, as far as they are there.
[[nodiscard]] auto change_script() -> std::string_view;

/// Lists what is due.
///
/// KEYS: due, unknown. ARGV: the prefix of records, how long from now, how many. Answers: the time;
/// how many records and how many unknown outcomes the bucket has; endings of keys and records in
/// turns. The keys of the records are on the same server by their hash tag.
[[nodiscard]] auto due_script() -> std::string_view;

/// Lists unknown outcomes, the newest first.
///
/// KEYS: unknown. ARGV: the prefix of records, how many. Answers: the time; endings of keys and
/// records in turns. What was deleted by hand is forgotten.
[[nodiscard]] auto unknown_script() -> std::string_view;

}  // namespace tidegate::store_redis
