// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::store_sqlite {

/// What is to be changed in the table of entries: rows that were added or taken out and wait for their turn. They
/// are found by what they are an entry of, and come out in the order of the table: thousands that go into it one
/// beside the other cost less than half of what they cost one by one.
class pending_entries {
 public:
  struct row {
    std::int64_t index_id = 0;
    std::string_view key;
    std::int64_t rid = 0;
    auto operator<=>(row const&) const = default;
  };
  struct change {
    row what;
    bool adds = false;
  };

  /// One that nobody can have added before, since its rid is new.
  void add_new(row const& what) { count_new(what, 1); }
  void add(row const& what) { count(what, 1); }
  void remove(row const& what) { count(what, -1); }

  /// The rids of rows with this key that were added.
  [[nodiscard]] auto added(std::int64_t index_id, std::string_view key)
      -> std::vector<std::int64_t>;
  [[nodiscard]] auto is_removed(row const& what) -> bool;

  /// Takes back all changes since the last `keep`.
  void undo() noexcept;
  void keep() noexcept { log_.clear(); }

  [[nodiscard]] auto empty() const noexcept -> bool { return items_.empty(); }
  [[nodiscard]] auto size() const noexcept -> std::size_t { return items_.size(); }
  /// All changes in the order of the table. They are good until the next change.
  [[nodiscard]] auto in_order() const -> std::vector<change>;
  void clear() noexcept;

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  struct item {
    row what;
    std::uint32_t next_row = none;  // with the same hash of all of it
    std::uint32_t next_key = none;  // with the same hash of all but the rid
    std::int32_t sum = 0;           // 1: added, -1: taken out, 0: as the table has it
  };
  struct logged {
    std::uint32_t item;
    std::int32_t by;
  };

  /// Of all but the rid.
  [[nodiscard]] static auto hash_of(std::int64_t index_id, std::string_view key) noexcept
      -> std::size_t;
  void count(row const& what, std::int32_t by);
  void count_new(row const& what, std::int32_t by);
  /// Puts those into the tables that are not there yet. Who only adds never looks, and two places in large tables that
  /// are somewhere else for each entry cost more than all else that is done with it.
  void link();
  [[nodiscard]] auto find(row const& what) -> std::uint32_t;
  [[nodiscard]] auto keep_key(std::string_view key) -> std::string_view;

  std::vector<item> items_;
  // By hash, as many as a power of two. Many resources may have one key, so a row is not looked for among them.
  std::vector<std::uint32_t> rows_;
  std::vector<std::uint32_t> by_key_;
  std::uint32_t linked_ = 0;      // so many items are there
  std::deque<std::string> keys_;  // pieces of memory that never move
  std::vector<logged> log_;
};

/// Those of several indexes, apart from each other: what goes into the table at once is of one index, so that many of them lie
/// side by side there, and whoever writes next does not wait for all of them.
class pending_indexes {
 public:
  /// Indexes whose numbers have the same rest share one.
  static constexpr std::size_t count = 8;

  [[nodiscard]] auto of(std::int64_t index_id) noexcept -> pending_entries& {
    return all_[static_cast<std::size_t>(index_id) % count];
  }
  [[nodiscard]] auto begin() noexcept { return all_.begin(); }
  [[nodiscard]] auto end() noexcept { return all_.end(); }

  [[nodiscard]] auto size() const noexcept -> std::size_t {
    std::size_t sum = 0;
    for (auto const& one : all_) {
      sum += one.size();
    }
    return sum;
  }
  [[nodiscard]] auto largest() noexcept -> pending_entries& {
    return *std::ranges::max_element(all_, {}, &pending_entries::size);
  }
  void undo() noexcept {
    for (auto& one : all_) {
      one.undo();
    }
  }
  void keep() noexcept {
    for (auto& one : all_) {
      one.keep();
    }
  }
  void clear() noexcept {
    for (auto& one : all_) {
      one.clear();
    }
  }
  /// And gives the memory back, which is kept for the next ones otherwise.
  void release() noexcept { all_ = {}; }

 private:
  std::array<pending_entries, count> all_;
};

}  // namespace tidegate::store_sqlite
