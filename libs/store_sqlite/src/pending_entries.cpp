// SPDX-License-Identifier: Apache-2.0
#include "pending_entries.hpp"

#include <algorithm>
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
  auto const hash = hash_of(what.index_id, what.key);
  auto const at = find(what, hash);
  if (at == none) {
    count_new(what, hash, by);
    return;
  }
  items_[at].sum += by;
  log_.push_back({at, by});
}

void pending_entries::count_new(row const& what, std::size_t hash, std::int32_t by) {
  auto const at = static_cast<std::uint32_t>(items_.size());
  items_.push_back({.what = {what.index_id, keep_key(what.key), what.rid}, .sum = by});
  if (items_.size() > rows_.size()) {
    grow();
  } else {
    link(at, hash);
  }
  log_.push_back({at, by});
}

void pending_entries::link(std::uint32_t at, std::size_t hash) noexcept {
  auto& item = items_[at];
  auto const mask = rows_.size() - 1;
  item.next_key = std::exchange(by_key_[hash & mask], at);
  item.next_row = std::exchange(rows_[with_rid(hash, item.what.rid) & mask], at);
}

auto pending_entries::find(row const& what, std::size_t hash) const noexcept -> std::uint32_t {
  if (rows_.empty()) {
    return none;
  }
  auto at = rows_[with_rid(hash, what.rid) & (rows_.size() - 1)];
  while (at != none && items_[at].what != what) {
    at = items_[at].next_row;
  }
  return at;
}

auto pending_entries::added(std::int64_t index_id, std::string_view key) const
    -> std::vector<std::int64_t> {
  std::vector<std::int64_t> rids;
  if (items_.empty()) {
    return rids;
  }
  auto at = by_key_[hash_of(index_id, key) & (by_key_.size() - 1)];
  for (; at != none; at = items_[at].next_key) {
    auto const& item = items_[at];
    if (item.sum > 0 && item.what.index_id == index_id && item.what.key == key) {
      rids.push_back(item.what.rid);
    }
  }
  return rids;
}

auto pending_entries::is_removed(row const& what) const noexcept -> bool {
  auto const at = find(what, hash_of(what.index_id, what.key));
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
  std::fill(rows_.begin(), rows_.end(), none);
  std::fill(by_key_.begin(), by_key_.end(), none);
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

void pending_entries::grow() {
  auto const heads = std::max(heads_min, rows_.size() * 2);
  rows_.assign(heads, none);
  by_key_.assign(heads, none);
  for (std::uint32_t at = 0; at < items_.size(); ++at) {
    link(at, hash_of(items_[at].what.index_id, items_[at].what.key));
  }
}

}  // namespace tidegate::store_sqlite
