// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// How pages are cut from an ordered index, forwards and backwards.
///
/// The promise: a resource that matches throughout a walk, with the same sort key, comes exactly
/// once. It ends: a walk returns at most what was there when it began, and one more for each edit
/// of a sort key that moves a resource ahead of it. Walking back, that holds up to the page that
/// reaches the start. That one is the first page as a new query would give it, so it may repeat
/// what the page behind it had.
namespace tidegate::TIDEGATE_ABI::scim {

/// Where a resource stands in an order: by its sort key, then by its creation.
struct position {
  std::string sort_key;   ///< octets that compare as the values do; empty in the order of creation
  std::uint64_t rid = 0;  ///< unique, and higher for what was created later
  auto operator<=>(position const&) const = default;
};

/// A place between two neighbours. It stays what it is when the resource it was made from is gone.
struct gap {
  position at;
  bool behind = true;  ///< in front of `at` otherwise
  auto operator==(gap const&) const -> bool = default;
};

/// Which way a page is read from its cursor.
enum class direction : std::uint8_t { forward, backward };

/// Where a page begins and which way it goes.
struct page_place {
  direction towards = direction::forward;
  std::optional<gap> from;  ///< nothing: the start, or going backward the end
  auto operator==(page_place const&) const -> bool = default;
};

/// What an index is asked for: the first `rows_max` rows from a place on, in the order in which
/// they are met. `forward` and `behind` are meant in the order of the walk: where that is
/// descending, the index goes the other way.
struct scan {
  page_place place;
  std::uint32_t rows_max = 0;
};

/// What it answers. Where neither is true of it, that there are `rows_max` rows or that it was
/// stopped, it has come to the end.
template <class Row>
struct scan_answer {
  std::vector<Row> rows;
  /// The last position that was looked at, whether it matched or not, when the budget was spent.
  std::optional<position> stopped;
};

/// A page, its rows in the order of the index.
template <class Row>
struct page {
  std::vector<Row> rows;
  std::optional<page_place> previous;  ///< nothing on the first page
  std::optional<page_place> next;      ///< nothing on the last page
};

/// Reads a page of at most `count` rows, 1 or more. All scans of a page must see the same state of
/// the index.
///
/// `make_scan(scan)` returns a `scan_answer<Row>`; `position_of(row)` a `position`. One row more
/// than `count` is asked for, to see whether there is another page. A page is shorter than `count`
/// where the budget of the scan is spent; one without any rows takes two budgets. A backward page
/// that reaches the start is filled up from there.
template <class Row, class MakeScan, class PositionOf>
[[nodiscard]] auto read_page(page_place const& place, std::uint32_t count,
                             MakeScan const& make_scan, PositionOf const& position_of)
    -> page<Row> {
  bool const forward = place.towards == direction::forward;
  scan_answer<Row> found = make_scan(scan{place, count + 1});
  if (found.rows.empty() && found.stopped) {
    found = make_scan(scan{{place.towards, gap{*std::move(found.stopped), forward}}, count + 1});
  }

  // Where the page ends, in the direction of its scan; nothing when there is nothing more.
  std::optional<page_place> onward;
  if (found.rows.size() > count) {
    found.rows.pop_back();
    onward = page_place{place.towards, gap{position_of(found.rows.back()), forward}};
  } else if (found.stopped) {
    onward = page_place{place.towards, gap{*std::move(found.stopped), forward}};
  }

  if (forward) {
    page<Row> made{std::move(found.rows), std::nullopt, std::move(onward)};
    if (place.from) {
      made.previous = page_place{direction::backward, place.from};
    }
    return made;
  }
  if (!onward && found.rows.size() < count) {
    return read_page<Row>(page_place{}, count, make_scan, position_of);
  }
  std::reverse(found.rows.begin(), found.rows.end());
  return {std::move(found.rows), std::move(onward), page_place{direction::forward, place.from}};
}

}  // namespace tidegate::TIDEGATE_ABI::scim
