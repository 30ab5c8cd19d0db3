// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/idempotency/lookup.hpp>
#include <tidegate/idempotency/record.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tidegate::TIDEGATE_ABI::store {

/// Records by lookup key, packed: at most 200 octets each with the room around them, without
/// responses; one whose outcome is unknown takes 64 more, and one that has an origin what that
/// takes. Not for several threads at once.
class record_table {
 public:
  /// One record. `row` is whatever the owner of the table needs to find the rest of it.
  struct entry {
    idempotency::record record;
    std::shared_ptr<idempotency::stored_response const> response;
    std::int64_t row = 0;
    std::uint32_t stored = 0;  ///< octets of the response where the owner keeps it
  };

  /// The record of a key, if there is one.
  [[nodiscard]] auto find(idempotency::lookup_key const& key) const -> std::optional<entry>;
  [[nodiscard]] auto contains(idempotency::lookup_key const& key) const noexcept -> bool {
    return place_of(key) != nowhere;
  }
  /// Adds the entry or takes the place of the one that is there. Durations above 136 years become
  /// that.
  void put(idempotency::lookup_key const& key, entry entry);
  void erase(idempotency::lookup_key const& key);
  /// Forgets the response of a record, which stays.
  void drop_response(idempotency::lookup_key const& key);

  /// The keys whose outcome is unknown, those that changed last first, at most `count` of them.
  [[nodiscard]] auto newest_unknown(std::size_t count) const
      -> std::vector<idempotency::lookup_key>;
  /// How many there are.
  [[nodiscard]] auto unknown() const noexcept -> std::size_t { return unknown_.size(); }

  /// How many records there are, and how many bytes they take.
  [[nodiscard]] auto size() const noexcept -> std::size_t { return places_ - free_.size(); }
  [[nodiscard]] auto memory() const noexcept -> std::size_t;
  /// Of all responses that are here: names, values and bodies.
  [[nodiscard]] auto response_octets() const noexcept -> std::size_t { return response_octets_; }
  /// The sum of what entries say is stored elsewhere.
  [[nodiscard]] auto stored_octets() const noexcept -> std::size_t { return stored_octets_; }

  /// The key at a place from 0 to `places() - 1`; nothing where none is. Places stay while entries
  /// do.
  [[nodiscard]] auto places() const noexcept -> std::size_t { return places_; }
  [[nodiscard]] auto key_at(std::size_t place) const noexcept
      -> std::optional<idempotency::lookup_key>;

 private:
  struct packed {
    idempotency::lookup_key key;
    std::shared_ptr<idempotency::stored_response const> response;
    std::int64_t row = 0;
    std::uint64_t token = 0;
    std::int64_t created = 0;
    std::int64_t changed = 0;
    std::int64_t lease_until = 0;
    std::array<idempotency::part_digest, idempotency::all_request_parts.size()> parts{};
    std::uint32_t ttl = 0;
    std::uint32_t tombstone = 0;
    std::uint32_t attempt = 0;
    std::uint32_t rule = 0;  // number in `rules_`
    std::uint32_t stored = 0;
    std::uint16_t status = 0;
    idempotency::record_state state{};
    idempotency::unknown_reason reason{};
    bool replayable = false;
    bool used = false;
  };
  static constexpr std::uint32_t nowhere = UINT32_MAX;

  /// Many in a block, so that they lie close; blocks never move.
  static constexpr std::size_t block_size = 256;
  using block = std::array<packed, block_size>;

  [[nodiscard]] auto at(std::size_t place) const noexcept -> packed& {
    return (*blocks_[place / block_size])[place % block_size];
  }
  [[nodiscard]] auto slot_of(idempotency::lookup_key const& key) const noexcept -> std::size_t;
  [[nodiscard]] auto place_of(idempotency::lookup_key const& key) const noexcept -> std::uint32_t;
  [[nodiscard]] auto number_of(std::string const& rule) -> std::uint32_t;
  void grow();
  void set_response(packed& p, std::shared_ptr<idempotency::stored_response const> response);
  void set_origin(std::uint32_t place, idempotency::request_origin origin);
  void forget_unknown(std::uint32_t place);

  std::vector<std::unique_ptr<block>> blocks_;
  std::size_t places_ = 0;            // that were ever used
  std::vector<std::uint32_t> free_;   // of them
  std::vector<std::uint32_t> slots_;  // places by hash, probed in a row; a power of two
  std::vector<std::string> rules_;    // as many as configurations ever had
  std::set<std::pair<std::int64_t, std::uint32_t>> unknown_;  // by when they changed: places
  std::size_t response_octets_ = 0;
  std::unordered_map<std::uint32_t, idempotency::request_origin> origins_;  // by place; of few
  std::size_t origin_octets_ = 0;
  std::size_t stored_octets_ = 0;
};

/// Names, values and body.
[[nodiscard]] auto octets_of(idempotency::stored_response const& response) noexcept -> std::size_t;

}  // namespace tidegate::TIDEGATE_ABI::store
