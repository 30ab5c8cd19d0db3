// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::TIDEGATE_ABI::sf {

/// Parameters and Dictionaries: entries in the order they were added, reachable by index and by
/// key.
///
/// Looking a key up is a linear search while there are few entries and a binary search in an index
/// by hash, then text, beyond that: no chosen set of keys can make it slow. A key that is set again
/// keeps its position and takes the new value (RFC 9651, sections 4.2.2 and 4.2.3.2).
template <class Key, class Value>
class ordered_map {
 public:
  /// A key and its value.
  struct entry {
    Key key;
    Value value;
    auto operator==(entry const&) const -> bool = default;
  };

  ordered_map() = default;
  ~ordered_map() = default;
  ordered_map(ordered_map&&) noexcept = default;
  auto operator=(ordered_map&&) noexcept -> ordered_map& = default;
  ordered_map(ordered_map const& other) : entries_(other.entries_), index_(copy_of(other.index_)) {}
  auto operator=(ordered_map const& other) -> ordered_map& { return *this = ordered_map(other); }

  /// Takes all entries at once; of a repeated key the first position and the last value stay.
  [[nodiscard]] static auto from_entries(std::vector<entry> entries) -> ordered_map {
    ordered_map map;
    map.entries_ = std::move(entries);
    if (map.entries_.size() <= linear_max) {
      map.merge_few();
    } else {
      map.merge_many();
    }
    return map;
  }

  /// The entries in their order.
  [[nodiscard]] auto size() const noexcept -> std::size_t { return entries_.size(); }
  [[nodiscard]] auto empty() const noexcept -> bool { return entries_.empty(); }
  [[nodiscard]] auto begin() const noexcept { return entries_.cbegin(); }
  [[nodiscard]] auto end() const noexcept { return entries_.cend(); }

  /// The entry at a position; `position` must be less than `size()`.
  [[nodiscard]] auto operator[](std::size_t position) const noexcept -> entry const& {
    assert(position < entries_.size());
    return entries_[position];
  }

  /// The value of the key `wanted`, or null. Valid until the map changes.
  [[nodiscard]] auto find(std::string_view wanted) const noexcept -> Value const* {
    auto const position = position_of(wanted);
    return position == npos ? nullptr : &entries_[position].value;
  }
  /// The same, to be changed.
  [[nodiscard]] auto find(std::string_view wanted) noexcept -> Value* {
    auto const position = position_of(wanted);
    return position == npos ? nullptr : &entries_[position].value;
  }
  /// Whether there is the key `wanted`.
  [[nodiscard]] auto contains(std::string_view wanted) const noexcept -> bool {
    return position_of(wanted) != npos;
  }

  /// Gives a key the value: in its old position when it is there already, else at the end. To add
  /// very many, collect them for `from_entries`: one at a time, each moves a part of the index.
  auto set(Key added, Value value) -> Value& {
    if (auto* old = find(added.text())) {
      return *old = std::move(value);
    }
    if (index_) {
      index_->reserve(entries_.size() + 1);
    }
    entries_.push_back({std::move(added), std::move(value)});
    if (index_) {
      auto const indexed = index_entry(entries_.size() - 1);
      index_->insert(std::lower_bound(index_->begin(), index_->end(), indexed, before()), indexed);
    } else if (entries_.size() > linear_max) {
      build_index();
    }
    return entries_.back().value;
  }

  /// The same with a borrowed key, or with a literal, which the compiler checks:
  /// `set("u", sf::item{1})`.
  auto set(typename Key::view added, Value value) -> Value& {
    if (auto* old = find(added.text())) {
      return *old = std::move(value);
    }
    return set(Key(added), std::move(value));
  }

  /// Takes the key `wanted` out; false when it was not there.
  auto erase(std::string_view wanted) -> bool {
    auto const position = position_of(wanted);
    if (position == npos) {
      return false;
    }
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(position));
    if (entries_.size() <= linear_max) {
      index_.reset();
    } else {
      std::erase_if(*index_, [=](auto indexed) { return position_in(indexed) == position; });
      for (auto& indexed : *index_) {
        indexed -= position_in(indexed) > position ? 1U : 0U;
      }
    }
    return true;
  }

  friend auto operator==(ordered_map const& a, ordered_map const& b) -> bool {
    return a.entries_ == b.entries_;
  }

 private:
  /// The hash of a key above the position of its entry: most comparisons are of two numbers.
  using index_type = std::vector<std::uint64_t>;
  static constexpr std::size_t linear_max = 16;
  static constexpr std::size_t npos = static_cast<std::size_t>(-1);

  static auto copy_of(std::unique_ptr<index_type> const& index) -> std::unique_ptr<index_type> {
    return index ? std::make_unique<index_type>(*index) : nullptr;
  }

  /// Spreads ordinary keys; keys chosen to collide cost comparisons of texts and nothing worse.
  [[nodiscard]] static auto hash_of(std::string_view text) noexcept -> std::uint64_t {
    constexpr std::uint64_t factor = 0x9e3779b97f4a7c15;
    std::uint64_t hash = text.size();
    while (!text.empty()) {
      std::uint64_t chunk = 0;
      auto const size = std::min(text.size(), sizeof chunk);
      std::memcpy(&chunk, text.data(), size);
      hash = (hash ^ chunk) * factor;
      hash ^= hash >> 29;
      text.remove_prefix(size);
    }
    return hash * factor >> 32;
  }
  [[nodiscard]] static auto position_in(std::uint64_t indexed) noexcept -> std::size_t {
    return indexed & 0xffff'ffff;
  }
  [[nodiscard]] auto index_entry(std::size_t position) const noexcept -> std::uint64_t {
    assert(position <= 0xffff'ffff);
    return hash_of(entries_[position].key.text()) << 32 | position;
  }
  [[nodiscard]] auto text_at(std::uint64_t indexed) const noexcept -> std::string_view {
    return entries_[position_in(indexed)].key.text();
  }
  /// By hash, then text, then position.
  [[nodiscard]] auto before() const noexcept {
    return [this](std::uint64_t a, std::uint64_t b) {
      if (a >> 32 != b >> 32) {
        return a < b;
      }
      auto const order = text_at(a).compare(text_at(b));
      return order != 0 ? order < 0 : a < b;
    };
  }

  [[nodiscard]] auto position_of(std::string_view wanted) const noexcept -> std::size_t {
    if (index_) {
      auto const hash = hash_of(wanted);
      auto const found = std::lower_bound(index_->begin(), index_->end(), wanted,
                                          [&](std::uint64_t indexed, std::string_view text) {
                                            return indexed >> 32 != hash ? indexed >> 32 < hash
                                                                         : text_at(indexed) < text;
                                          });
      return found != index_->end() && text_at(*found) == wanted ? position_in(*found) : npos;
    }
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].key.text() == wanted) {
        return i;
      }
    }
    return npos;
  }

  void build_index() {
    index_ = std::make_unique<index_type>();
    index_->reserve(entries_.size());
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      index_->push_back(index_entry(i));
    }
    std::sort(index_->begin(), index_->end());
    // Keys of one hash are nearly always one key, in the order of positions already.
    for (auto first = index_->begin(); first != index_->end();) {
      auto const last = std::find_if(first + 1, index_->end(),
                                     [first](auto other) { return other >> 32 != *first >> 32; });
      auto const text = text_at(*first);
      if (std::any_of(first + 1, last, [&](auto other) { return text_at(other) != text; })) {
        std::sort(first, last, before());
      }
      first = last;
    }
  }

  void merge_few() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      std::size_t same = 0;
      while (same < kept && !(entries_[same].key == entries_[i].key)) {
        ++same;
      }
      if (same < kept) {
        entries_[same].value = std::move(entries_[i].value);
      } else {
        if (kept != i) {
          entries_[kept] = std::move(entries_[i]);
        }
        ++kept;
      }
    }
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(kept), entries_.end());
  }

  void merge_many() {
    build_index();
    std::vector<bool> dropped;
    for (std::size_t i = 0; i < index_->size();) {
      auto const first = (*index_)[i];
      auto last = first;
      for (++i; i < index_->size() && first >> 32 == (*index_)[i] >> 32 &&
                text_at(first) == text_at((*index_)[i]);
           ++i) {
        last = (*index_)[i];
        dropped.resize(entries_.size());
        dropped[position_in(last)] = true;
      }
      if (last != first) {
        entries_[position_in(first)].value = std::move(entries_[position_in(last)].value);
      }
    }
    if (dropped.empty()) {
      return;
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (!dropped[i]) {
        if (kept != i) {
          entries_[kept] = std::move(entries_[i]);
        }
        ++kept;
      }
    }
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(kept), entries_.end());
    index_.reset();
    if (entries_.size() > linear_max) {
      build_index();
    }
  }

  std::vector<entry> entries_;
  std::unique_ptr<index_type> index_;
};

}  // namespace tidegate::TIDEGATE_ABI::sf
