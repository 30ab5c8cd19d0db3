// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/idempotency/lookup.hpp>
#include <tidegate/idempotency/record.hpp>
#include <tidegate/store/idempotency_store.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

/// How stores that outlive the process keep responses from those who read the store.
namespace tidegate::TIDEGATE_ABI::store {

/// A key of AES-256-GCM, by which responses are sealed.
struct seal_key {
  std::uint32_t id = 0;  ///< stored with what it seals; never given to another key
  std::array<std::byte, 32> octets{};
};

/// What a sealed text belongs to: it cannot be opened as that of another key or attempt.
struct seal_place {
  idempotency::lookup_key const& key;
  idempotency::fencing_token token;
};

/// Seals `text` with the first of `keys`, or marks it as one in clear when there are none.
[[nodiscard]] auto seal(std::span<seal_key const> keys, seal_place const& place,
                        std::string_view text) -> result<std::string, store_error>;

/// What `seal` made, with whichever of `keys` it names.
[[nodiscard]] auto unseal(std::span<seal_key const> keys, seal_place const& place,
                          std::string_view sealed) -> result<std::string, store_error>;

}  // namespace tidegate::TIDEGATE_ABI::store
