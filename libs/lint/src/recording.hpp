// SPDX-License-Identifier: Apache-2.0
//
// Recorded exchanges as rules look at them, and what rules say.
#pragma once

#include <tidegate/http/field.hpp>
#include <tidegate/json/value.hpp>
#include <tidegate/lint/judge.hpp>
#include <tidegate/ratelimit/legacy.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::TIDEGATE_ABI::lint {

/// One exchange with its content read. Borrows the exchange.
struct seen {
  exchange const* source = nullptr;
  std::vector<http::field_view> lines;
  std::optional<json::value> json;  ///< the content, where it says that it is JSON and is

  [[nodiscard]] auto status() const noexcept -> int { return source->status; }
  [[nodiscard]] auto purpose() const noexcept -> probe { return source->request.purpose; }
  /// The first line of that name, trimmed; empty where there is none.
  [[nodiscard]] auto field(std::string_view name) const noexcept -> std::string_view;
  /// All lines of that name.
  [[nodiscard]] auto fields(std::string_view name) const -> std::vector<std::string_view>;
  /// The media type in lower case, without parameters.
  [[nodiscard]] auto media_type() const -> std::string;
  /// An answer that is not about quotas or the health of the server, and so about what was asked.
  [[nodiscard]] auto is_judged() const noexcept -> bool {
    return status() != 0 && status() != 429 && status() < 500;
  }
};

/// All of them.
class recording {
 public:
  explicit recording(std::span<exchange const> exchanges);

  [[nodiscard]] auto all() const noexcept -> std::span<seen const> { return all_; }
  /// The first of that purpose that is to be judged by what it answers; nothing when there is none.
  [[nodiscard]] auto find(probe purpose) const noexcept -> seen const*;

 private:
  std::vector<seen> all_;
};

/// What one rule says.
class verdict {
 public:
  explicit verdict(judgement& of) noexcept : of_(of) {}

  /// There is something that the rule is about.
  void applies() noexcept;
  void broken(seen const& by, std::string_view field, std::string text);
  void broken(seen const& by, explain::finding what);

 private:
  judgement& of_;
};

/// A rule and the function that judges it.
struct checked_rule {
  explain::rule about;
  void (*check)(recording const&, verdict&);
};

[[nodiscard]] auto ratelimit_rules() noexcept -> std::span<checked_rule const>;
[[nodiscard]] auto problem_rules() noexcept -> std::span<checked_rule const>;
[[nodiscard]] auto idempotency_rules() noexcept -> std::span<checked_rule const>;
[[nodiscard]] auto scim_config_rules() noexcept -> std::span<checked_rule const>;
[[nodiscard]] auto scim_rules() noexcept -> std::span<checked_rule const>;

/// The method and the target of a request, `GET /orders?x=1`, shortened.
[[nodiscard]] auto request_words(planned_request const& request) -> std::string;

}  // namespace tidegate::TIDEGATE_ABI::lint
