// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/config.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace tidegate::gateway {

/// Consumers, found by their keys and by their names. Immutable: what has changed is another one.
class consumer_index {
 public:
  consumer_index() = default;
  explicit consumer_index(std::vector<consumer_config> listed);

  /// Whose key has that digest; null when there is none, and when it has expired by now. Looks at
  /// the clock only where the key can expire. Allocates nothing; how long it takes does not tell
  /// how much of a digest is right.
  [[nodiscard]] auto find_by_key(sha256_digest const& digest) const noexcept
      -> consumer_config const*;
  /// The same at a time of the caller's.
  [[nodiscard]] auto find_by_key(sha256_digest const& digest,
                                 std::chrono::sys_seconds now) const noexcept
      -> consumer_config const*;
  /// Null when there is none of that name.
  [[nodiscard]] auto find_by_name(std::string_view name) const noexcept -> consumer_config const*;

  [[nodiscard]] auto all() const noexcept -> std::vector<consumer_config> const& { return listed_; }
  [[nodiscard]] auto keys_count() const noexcept -> std::size_t { return keys_.size(); }

 private:
  struct key {
    sha256_digest digest{};
    std::chrono::sys_seconds expires{std::chrono::sys_seconds::max()};
    std::uint32_t consumer = 0;
  };
  [[nodiscard]] auto find(sha256_digest const& digest) const noexcept -> key const*;

  std::vector<consumer_config> listed_;  // by name
  std::vector<key> keys_;
  std::vector<std::uint32_t> slots_;  // places in `keys_`, from 1 on, by their digests; 0: free
};

/// The consumers of a configuration; reads their file where they have one.
[[nodiscard]] auto load_consumers(consumers_config const& settings)
    -> result<std::shared_ptr<consumer_index const>, std::vector<config_fault>>;

/// What became of the consumers since the start, for metrics.
struct consumer_figures {
  bool are_used = false;  ///< the configuration has some
  std::size_t consumers = 0;
  std::size_t keys = 0;
  bool last_reload_is_good = true;
  std::uint64_t reload_failures = 0;
};

}  // namespace tidegate::gateway
