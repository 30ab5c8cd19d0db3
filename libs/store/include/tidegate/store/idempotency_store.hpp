// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/idempotency/change.hpp>
#include <tidegate/idempotency/lookup.hpp>
#include <tidegate/idempotency/record.hpp>
#include <tidegate/idempotency/wall_time.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// Where records of idempotency keys live. The policy computes what to write and on which
/// condition; a store makes it so, atomically and as durably as it promises, and says what it
/// found.
namespace tidegate::TIDEGATE_ABI::store {

/// What a record counts as, besides its response, where a store bounds its octets.
inline constexpr std::size_t record_octets = 256;

/// Why a store gives no answer. Nothing was decided by it, but a change may or may not have been
/// made.
enum class store_fault : std::uint8_t {
  full,         ///< it has as much as its own bound lets it have; what is there stays and changes
  no_space,     ///< the disk or the memory of the server is full
  scope_full,   ///< the scope has as many keys as the change lets it have
  unavailable,  ///< the disk, the file or the server does not do what it should
  damaged,      ///< what is stored cannot be read
  stopped,      ///< the store is being closed
  in_doubt,     ///< the change was sent, and it is not known whether it was made
};

/// Why a store has no answer.
struct store_error {
  store_fault fault{};
  std::string text;  ///< for logs
  auto operator==(store_error const&) const -> bool = default;
};

/// What a store that gateways share says to one whose secret is not the one that its keys were
/// stored with. It would find none of them, and each would run again.
[[nodiscard]] inline auto stored_with_another_secret(std::string const& store) -> store_error {
  return {store_fault::damaged,
          store +
              ": its keys were stored with another secret, so that none of them would be found: "
              "gateways that share a store need the same secrets file; give this one the file of "
              "the others"};
}

/// What is stored under a key.
struct found_record {
  idempotency::record record;
  /// With a completed record; shared, since many may replay it at once.
  std::shared_ptr<idempotency::stored_response const> response;
};

/// The answer to `find`, and who gets it.
using find_answer = result<std::optional<found_record>, store_error>;
using find_callback = std::move_only_function<void(find_answer)>;

/// What became of a change.
struct applied {
  bool made = false;
  std::optional<found_record> found;  ///< when it was not made: why not
};

/// The answer to `apply`, and who gets it.
using apply_answer = result<applied, store_error>;
using apply_callback = std::move_only_function<void(apply_answer)>;

/// A record with what it is stored under.
struct listed_record {
  idempotency::lookup_key key;
  idempotency::record record;
};

/// The answer to `list_unknown`, and who gets it.
using list_answer = result<std::vector<listed_record>, store_error>;
using list_callback = std::move_only_function<void(list_answer)>;

/// Puts those that changed last first, and leaves out what is more than `records`.
inline void keep_newest(std::vector<listed_record>& all, std::size_t records) {
  std::ranges::stable_sort(all, std::ranges::greater(),
                           [](listed_record const& each) { return each.record.changed; });
  all.resize(std::min(all.size(), records));
}

/// Takes requests and answers each exactly once: perhaps before the call returns, perhaps later and
/// on a thread of its own. Every member may be called by any thread.
class idempotency_store {
 public:
  idempotency_store() = default;
  virtual ~idempotency_store() = default;
  idempotency_store(idempotency_store const&) = delete;
  auto operator=(idempotency_store const&) -> idempotency_store& = delete;

  /// What is stored under `key`, and will be after a crash too.
  virtual void find(idempotency::lookup_key const& key, find_callback answer) = 0;

  /// Makes a change if its condition holds. The answer comes when the change is as durable as it
  /// gets.
  virtual void apply(idempotency::change change, apply_callback answer) = 0;

  /// Unknown outcomes, those that changed last first, at most `records` of them. One whose owner
  /// has just vanished is among them when a sweep has come by; the caller leaves out what
  /// `state_at` says is forgotten.
  virtual void list_unknown(std::size_t records, list_callback answer) = 0;

  /// Looks at up to `records` of what is stored, from where the last call ended, and makes what
  /// time has made of it. To be called every now and then; it is never in the way for long.
  virtual void sweep(idempotency::wall_time now, std::size_t records) = 0;

  /// Whether others change records too: then a caller that waits for a change has to look again.
  [[nodiscard]] virtual auto is_shared() const -> bool { return false; }

  /// What a store takes.
  struct usage {
    std::size_t records = 0;
    std::size_t response_octets = 0;  ///< of the responses in memory
    std::size_t memory = 0;           ///< octets for everything but responses
    /// Unknown outcomes. In a store that others use too, as it was when it was last asked, at most
    /// a second or two ago; nothing before that.
    std::optional<std::size_t> unknown{};
    /// Of records and responses as they are stored, and how much that may be; 0 where the store
    /// does not bound it.
    std::size_t stored_octets = 0;
    std::size_t stored_octets_max = 0;
  };
  /// What the store takes now.
  [[nodiscard]] virtual auto used() const -> usage = 0;
};

}  // namespace tidegate::TIDEGATE_ABI::store
