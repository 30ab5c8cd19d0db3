// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/idempotency/lookup.hpp>
#include <tidegate/idempotency/record.hpp>
#include <tidegate/store/idempotency_store.hpp>
#include <tidegate/store_sqlite/idempotency_store.hpp>

#include <span>
#include <string>
#include <string_view>

namespace tidegate::store_sqlite {

/// What a sealed text belongs to: it cannot be opened as that of another key or attempt.
struct seal_place {
  idempotency::lookup_key const& key;
  idempotency::fencing_token token;
};

/// Seals `text` with the first of `keys`, or marks it as one in clear when there are none.
[[nodiscard]] auto seal(std::span<seal_key const> keys, seal_place const& place,
                        std::string_view text) -> result<std::string, store::store_error>;

/// What `seal` made, with whichever of `keys` it names.
[[nodiscard]] auto unseal(std::span<seal_key const> keys, seal_place const& place,
                          std::string_view sealed) -> result<std::string, store::store_error>;

}  // namespace tidegate::store_sqlite
