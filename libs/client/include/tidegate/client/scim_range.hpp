// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/client/scim_walk.hpp>
#include <tidegate/client/session.hpp>
#include <tidegate/json/value.hpp>

#include <cstddef>
#include <iterator>
#include <optional>

namespace tidegate::TIDEGATE_ABI::client {

/// The resources of a SCIM server, read page by page as they are asked for, at the pace of the
/// session. What is promised, and what cannot be, is said at `scim_walk`.
///
/// ```
/// for (auto const& user : scim_range(*client, {.url = "https://example.com/scim/v2/Users"})) {
///   if (!user) return to_string(user.error());
///   use(*user);
/// }
/// ```
class scim_range {
 public:
  /// `via` must live as long as the range.
  explicit scim_range(session& via, scim_query query, scim_walk_options options = {})
      : via_(&via), walk_(std::move(query), options) {}
  /// Goes on from where another range was.
  scim_range(session& via, scim_walk walk) : via_(&via), walk_(std::move(walk)) {}

  /// The next resource, nothing at the end. Waits for the server. An error stays.
  [[nodiscard]] auto next() -> result<std::optional<json::value>, scim_error>;

  /// Goes the other way: what was given last comes first.
  void turn() { walk_.turn(); }
  [[nodiscard]] auto walk() const -> scim_walk const& { return walk_; }

  /// Goes through what `next` has not given yet; ends behind an error.
  class iterator {
   public:
    using value_type = result<json::value, scim_error>;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;

    iterator() = default;
    explicit iterator(scim_range& of) : of_(&of) { ++*this; }
    [[nodiscard]] auto operator*() const -> value_type const& { return *value_; }
    [[nodiscard]] auto operator->() const -> value_type const* { return &*value_; }
    auto operator++() -> iterator&;
    void operator++(int) { ++*this; }
    friend auto operator==(iterator const& each, std::default_sentinel_t /*end*/) -> bool {
      return !each.value_;
    }

   private:
    scim_range* of_ = nullptr;
    std::optional<value_type> value_;
  };
  /// For a range-based `for`: each resource comes once.
  [[nodiscard]] auto begin() -> iterator { return iterator(*this); }
  [[nodiscard]] auto end() const -> std::default_sentinel_t { return {}; }

 private:
  session* via_;
  scim_walk walk_;
};

/// The GET that a walk asks for.
[[nodiscard]] auto to_request(walk_request const& wanted, scim_query const& query) -> request;

}  // namespace tidegate::TIDEGATE_ABI::client
