// SPDX-License-Identifier: Apache-2.0
#include "pending_entries.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

namespace tidegate::store_sqlite {

namespace {

constexpr std::size_t piece_octets = std::size_t{64} << 10;
constexpr std::size_t heads_min = 1024;

constexpr std::size_t spread = 0x9e37'79b9'7f4a'7c15;

[[nodiscard]] auto with_rid(std::size_t hash, std::int64_t rid) noexcept -> std::size_t {
  auto const mixed = (hash ^ static_cast<std::size_t>(rid)) * spread;
  return mixed ^ (mixed >> 32);
}

}  // namespace

auto pending_entries::hash_of(std::int64_t index_id, std::string_view key) noexcept -> std::size_t {
  return std::hash<std::string_view>{}(key) ^ (static_cast<std::size_t>(index_id) * spread);
}

void pending_entries::count(row const& what, std::int32_t by) {
  auto const at = find(what);
  if (at == none) {
    count_new(what, by);
    return;
  }
  items_[at].sum += by;
  log_.push_back({at, by});
}

void pending_entries::count_new(row const& what, std::int32_t by) {
  auto const at = static_cast<std::uint32_t>(items_.size());
  items_.push_back({.what = {what.index_id, keep_key(what.key), what.rid}, .sum = by});
  log_.push_back({at, by});
}

void pending_entries::link() {
  if (items_.size() > rows_.size()) {
    auto const heads = std::max(heads_min, std::bit_ceil(items_.size()));
    // In this order there are never fewer of the first, also where memory ends.
    by_key_.assign(heads, none);
    rows_.assign(heads, none);
    linked_ = 0;
  }
  auto const mask = rows_.size() - 1;
  for (; linked_ < items_.size(); ++linked_) {
    auto& item = items_[linked_];
    auto const hash = hash_of(item.what.index_id, item.what.key);
    item.next_key = std::exchange(by_key_[hash & mask], linked_);
    item.next_row = std::exchange(rows_[with_rid(hash, item.what.rid) & mask], linked_);
  }
}

auto pending_entries::find(row const& what) -> std::uint32_t {
  if (items_.empty()) {
    return none;
  }
  link();
  auto at = rows_[with_rid(hash_of(what.index_id, what.key), what.rid) & (rows_.size() - 1)];
  while (at != none && items_[at].what != what) {
    at = items_[at].next_row;
  }
  return at;
}

auto pending_entries::added(std::int64_t index_id, std::string_view key)
    -> std::vector<std::int64_t> {
  std::vector<std::int64_t> rids;
  if (items_.empty()) {
    return rids;
  }
  link();
  auto at = by_key_[hash_of(index_id, key) & (by_key_.size() - 1)];
  for (; at != none; at = items_[at].next_key) {
    auto const& item = items_[at];
    if (item.sum > 0 && item.what.index_id == index_id && item.what.key == key) {
      rids.push_back(item.what.rid);
    }
  }
  return rids;
}

auto pending_entries::is_removed(row const& what) -> bool {
  auto const at = find(what);
  return at != none && items_[at].sum < 0;
}

void pending_entries::undo() noexcept {
  for (auto const& [item, by] : log_) {
    items_[item].sum -= by;
  }
  log_.clear();
}

auto pending_entries::in_order() const -> std::vector<change> {
  std::vector<change> all;
  all.reserve(items_.size());
  for (auto const& item : items_) {
    if (item.sum != 0) {
      all.push_back({item.what, item.sum > 0});
    }
  }
  std::sort(all.begin(), all.end(),
            [](change const& a, change const& b) { return a.what < b.what; });
  return all;
}

void pending_entries::clear() noexcept {
  items_.clear();
  log_.clear();
  keys_.clear();
  if (std::exchange(linked_, 0) > 0) {
    std::fill(rows_.begin(), rows_.end(), none);
    std::fill(by_key_.begin(), by_key_.end(), none);
  }
}

auto pending_entries::keep_key(std::string_view key) -> std::string_view {
  if (keys_.empty() || keys_.back().capacity() - keys_.back().size() < key.size()) {
    keys_.emplace_back().reserve(std::max(piece_octets, key.size()));
  }
  auto& piece = keys_.back();
  auto const begin = piece.size();
  piece += key;
  return std::string_view(piece).substr(begin);
}

}  // namespace tidegate::store_sqlite
