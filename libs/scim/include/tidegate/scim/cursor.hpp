// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/base/sha256.hpp>
#include <tidegate/scim/walk.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Cursors (RFC 9865, section 2): where a walk stands, sealed, so that the server keeps nothing.
namespace tidegate::TIDEGATE_ABI::scim {

/// A moment by the clock on the wall. Nothing reads it in here.
using wall_time = std::chrono::sys_time<std::chrono::milliseconds>;

/// What a cursor says to those that can open it.
struct cursor {
  page_place place;           ///< with a gap: the first page has no cursor
  std::uint32_t count = 0;    ///< of resources on a page
  std::uint64_t rid_max = 0;  ///< what was created later is not part of the walk
  std::optional<std::uint64_t> total_results;
  wall_time expires;  ///< the last moment at which it is good
  auto operator==(cursor const&) const -> bool = default;
};

/// How long the sort key of a position may be; a longer one cannot be sealed. An index that cuts
/// keys there still has a total order, by `rid`.
inline constexpr std::size_t sort_key_octets_max = 255;
/// No cursor is longer.
inline constexpr std::size_t cursor_octets_max = 487;

/// Whose cursor it is, and of which query: it opens with the same ones only. Borrows its texts.
struct cursor_binding {
  std::string_view tenant;
  std::string_view principal;
  std::uint64_t permission_epoch = 0;  ///< raised to make all cursors of the principal invalid
  std::string_view endpoint;           ///< GET and POST to `.search` have the same
  std::string_view filter;             ///< in its canonical form
  std::string_view sort_by;  ///< case makes no difference in names, nor the order of these lists
  bool descending = false;
  std::span<std::string const> attributes;
  std::span<std::string const> excluded_attributes;
};

/// A secret that keys of cursors are derived from.
struct cursor_key {
  std::uint32_t id = 0;  ///< stands in the cursor; never given to another secret
  std::array<std::byte, 32> secret{};
};

/// Why a cursor is refused. There is one answer for all that is `invalid`: tampered with, made up,
/// or of another tenant, principal or query. Only the true holder hears `expired`.
enum class cursor_fault : std::uint8_t { invalid, expired };

/// Makes and opens cursors. Never changes, so threads may share it.
///
/// A cursor is a version, the id of its key, a nonce and the sealed text, in base64url without
/// padding. Its size tells the size of the sort key in steps of 64 octets only.
class cursor_sealer {
 public:
  /// How many random octets a cursor takes. Twelve of them make a key for this cursor alone, the
  /// others are the nonce of AES-256-GCM: neither comes twice, however many cursors one secret
  /// makes.
  static constexpr std::size_t nonce_size = 24;
  using nonce = std::array<std::byte, nonce_size>;

  /// The first of `keys` seals, all of them open. There must be one, and no id twice.
  explicit cursor_sealer(std::span<cursor_key const> keys);

  /// Nothing when `c` has no gap or a sort key that is too long, or there is no memory.
  [[nodiscard]] auto seal(cursor const& c, cursor_binding const& binding, nonce const& random) const
      -> std::optional<std::string>;

  /// What `seal` made, when it has not expired at `now`. The text may be anything.
  [[nodiscard]] auto open(std::string_view text, cursor_binding const& binding, wall_time now) const
      -> result<cursor, cursor_fault>;

 private:
  struct derivation {
    std::uint32_t id;
    hmac_sha256 keys;
  };
  std::vector<derivation> derivations_;
};

}  // namespace tidegate::TIDEGATE_ABI::scim
