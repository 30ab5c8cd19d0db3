// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>
#include <tidegate/http/ip_address.hpp>

#include <chrono>
#include <optional>
#include <vector>

namespace tidegate::balance {

/// How long an answer for a name is used.
struct resolve_bounds {
  std::chrono::nanoseconds min{std::chrono::seconds(1)};
  std::chrono::nanoseconds max{std::chrono::seconds(60)};
  auto operator==(resolve_bounds const&) const -> bool = default;
};

/// What a resolver said of a name.
struct name_answer {
  std::vector<http::ip_address> addresses;
  /// How long it is good for; nothing when the source does not say, as a hosts file.
  std::optional<std::chrono::nanoseconds> good_for;
  /// One family could not be looked up: what was known of it stays.
  bool lacks_v4 = false;
  bool lacks_v6 = false;
};

/// The addresses of one name, and when to ask for them again. What fails changes nothing: the last
/// answer stays, and the name is asked for again after `min`, later less often.
class name_record {
 public:
  static constexpr std::size_t addresses_max = 64;
  /// While a name fails it is asked for at least so often, unless `min` is longer.
  static constexpr std::chrono::seconds pause_max{10};

  /// An answer without any address is a failure. True when the addresses are others than before.
  [[nodiscard]] auto answered(name_answer answer, resolve_bounds const& within, instant now)
      -> bool;
  void failed(resolve_bounds const& within, instant now) noexcept;

  [[nodiscard]] auto addresses() const noexcept -> std::vector<http::ip_address> const& {
    return addresses_;
  }
  [[nodiscard]] auto due() const noexcept -> instant { return due_; }
  [[nodiscard]] auto is_known() const noexcept -> bool { return known_; }
  /// Failures since the last answer.
  [[nodiscard]] auto failures() const noexcept -> unsigned { return failures_; }

 private:
  std::vector<http::ip_address> addresses_;  // sorted
  instant due_{instant::min()};
  bool known_ = false;
  unsigned failures_ = 0;
};

}  // namespace tidegate::balance
