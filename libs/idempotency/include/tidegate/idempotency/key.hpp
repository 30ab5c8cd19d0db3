// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/idempotency/problems.hpp>
#include <tidegate/idempotency/wall_time.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// The Idempotency-Key field (draft-07, section 2): an Item whose value is a String, by RFC 8941.
namespace tidegate::TIDEGATE_ABI::idempotency {

/// What a key has to look like (draft-07, sections 2.2, 2.3 and 5).
enum class key_format : std::uint8_t {
  any,     ///< any String
  uuid,    ///< 8-4-4-4-12 hexadecimal digits
  uuidv7,  ///< a UUID of version 7 (RFC 9562, section 5.7), which says when it was made
};

/// Whether a text is a UUID (RFC 9562, section 4), whatever version and variant it says.
[[nodiscard]] auto is_uuid(std::string_view text) noexcept -> bool;

/// `any`, `uuid`, `uuidv7`.
[[nodiscard]] auto name_of(key_format format) noexcept -> std::string_view;

/// What a route says of its keys.
struct key_options {
  key_format format = key_format::any;
  std::size_t length_max = 255;  ///< characters of the key itself, without quotes and escapes
  /// Also takes the bare form that clients send who do not know the draft; `"abc"` and `abc` are
  /// one key.
  bool accept_unquoted = false;
  /// How long ago a key may have been made. Only `uuidv7` can be judged by it.
  // NOLINTNEXTLINE(readability-redundant-member-init): so that it may be left out
  std::optional<std::chrono::milliseconds> age_max{};
};

/// How far ahead of ours the clock of a client may be. A key whose age is bounded must not come
/// from a later time, or it would outlive the record of its first use.
inline constexpr std::chrono::minutes key_clock_skew_max{5};

/// Why there is no key.
enum class key_fault : std::uint8_t {
  missing,            ///< there is no such field
  repeated,           ///< there are several lines; which one counts cannot be known
  not_a_string,       ///< the value is not in double quotes
  syntax,             ///< it begins as a String, but is not an Item by RFC 8941
  invalid_character,  ///< one that the bare form cannot have
  empty,              ///< the field or the String is empty
  too_long,           ///< `offset` is the length that is allowed
  not_a_uuid,         ///< `key_format::uuid`
  not_a_uuidv7,       ///< `key_format::uuidv7`
  too_old,            ///< made longer than `age_max` ago
  from_the_future,    ///< made later than now, by more than `key_clock_skew_max`
};

/// Why, and at which byte of the field value; 0 where the whole is meant.
struct key_error {
  key_fault fault{};
  std::size_t offset{};
  auto operator==(key_error const&) const -> bool = default;
};

/// What to answer: `key-missing`, `key-malformed` or `key-too-old`, each with 400.
[[nodiscard]] auto code_of(key_error const& error) noexcept -> problem_code;
/// One sentence that says what is wrong with the field. It holds nothing of what the client sent.
[[nodiscard]] auto to_string(key_error const& error) -> std::string;

/// Reads the key from the lines of the Idempotency-Key field of one request.
///
/// Returns the text of the String: a view into the line, or of `scratch` (whose text it replaces)
/// where something had to be decoded. Parameters are checked and ignored. Two spellings of one UUID
/// are one key where the format asks for UUIDs: letters come in lower case. `now` is looked at only
/// where the age counts. An error is never to be taken as "no key": the request must not go on
/// unprotected.
[[nodiscard]] auto read_key(std::span<std::string_view const> lines, key_options const& options,
                            wall_time now, std::string& scratch)
    -> result<std::string_view, key_error>;

}  // namespace tidegate::TIDEGATE_ABI::idempotency
