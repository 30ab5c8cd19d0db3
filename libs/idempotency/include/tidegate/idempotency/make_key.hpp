// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/idempotency/wall_time.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

/// The client's side of the Idempotency-Key field: keys for new requests (draft-07, section 2.2).
namespace tidegate::TIDEGATE_ABI::idempotency {

/// A fresh key: a UUID of version 7 (RFC 9562, section 5.7), which servers take whatever format
/// they ask for.
///
/// Make one for each new request and send it with every retry of that request. `randomness` comes
/// from a source that cannot be guessed; of its 80 bits 74 are used. `now` before 1970 counts as
/// 1970.
[[nodiscard]] auto make_key(wall_time now, std::span<std::uint8_t const, 10> randomness)
    -> std::string;

/// Appends the value of the field: the key as a String of RFC 8941, in quotes. False, and `out` is
/// as it was, when the key is empty or has characters that no String can hold: all but printable
/// ASCII.
[[nodiscard]] auto append_key_field(std::string& out, std::string_view key) -> bool;

}  // namespace tidegate::TIDEGATE_ABI::idempotency
