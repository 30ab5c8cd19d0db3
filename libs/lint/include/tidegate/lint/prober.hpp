// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/http/field.hpp>
#include <tidegate/lint/exchange.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::TIDEGATE_ABI::lint {

/// Whether to look at an API as a SCIM server.
enum class scim_choice : std::uint8_t {
  when_seen,  ///< if the first answer looks like SCIM
  always,
  never,
};

/// What to probe, and what the prober may do.
struct probe_settings {
  std::string url;  ///< http or https
  std::vector<http::field> fields{};
  std::size_t samples = 3;  ///< GETs of the URL itself; they end with the first 429
  /// A method and content for the probes of Idempotency-Key, which change something. Empty: none is
  /// sent.
  std::string write_method{};
  std::string content{};
  std::string other_content{};  ///< for the reuse of a key; empty: see `altered`
  bool is_key_required = false;
  scim_choice scim = scim_choice::when_seen;
  std::function<std::string()> make_key{};  ///< fresh keys, without quotes
};

/// Which requests to make, one group after the other, by what came of those before.
///
/// Without a `write_method` all are GETs. Every group is a few requests that go out at the same
/// time, most groups are one. The probes that could end in a refusal by quota come last.
class prober {
 public:
  explicit prober(probe_settings settings);

  /// The next group; empty when all is done. The group before has been recorded.
  [[nodiscard]] auto next() -> std::vector<planned_request>;
  void record(exchange what);

  /// What was recorded so far.
  [[nodiscard]] auto exchanges() const noexcept -> std::vector<exchange> const& {
    return exchanges_;
  }
  /// Whether it is looked at as a SCIM server.
  [[nodiscard]] auto is_scim() const noexcept -> bool { return is_scim_; }

 private:
  enum class step : std::uint8_t;

  [[nodiscard]] auto make(step which) -> std::vector<planned_request>;
  [[nodiscard]] auto get(probe purpose, std::string url) const -> planned_request;
  [[nodiscard]] auto write(probe purpose, std::string const& content,
                           std::optional<std::string> const& key) const -> planned_request;
  [[nodiscard]] auto list(probe purpose, std::string_view parameters) const -> planned_request;
  [[nodiscard]] auto follow(probe purpose, probe page, std::string_view cursor) const
      -> std::vector<planned_request>;
  [[nodiscard]] auto find(probe purpose) const noexcept -> exchange const*;
  void look_for_scim();

  probe_settings settings_;
  std::vector<exchange> exchanges_;
  std::string key_;
  std::uint8_t next_ = 0;
  std::size_t samples_sent_ = 0;
  bool is_scim_ = false;
  std::string scim_endpoint_;
  std::string scim_base_;
};

/// Content that asks for something else: the first number, text or truth value of a JSON object is
/// changed, other content is made longer.
[[nodiscard]] auto altered(std::string_view content) -> std::string;

}  // namespace tidegate::TIDEGATE_ABI::lint
