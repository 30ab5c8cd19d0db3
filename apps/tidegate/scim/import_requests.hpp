// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scim/import_journal.hpp"
#include "scim/settings.hpp"

#include <tidegate/client/message.hpp>
#include <tidegate/http/field.hpp>
#include <tidegate/json/value.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::app {

/// What is around the operations of a bulk request, at most.
inline constexpr std::size_t bulk_frame_octets = 128;
/// So long are answers of the server at most.
inline constexpr std::size_t answer_octets_max = std::size_t{16} << 20;

/// What ServiceProviderConfig says about /Bulk, `operations_max` operations at most. Nothing where
/// it does not say that there is one.
[[nodiscard]] auto parse_bulk_limits(std::string_view config, std::size_t operations_max)
    -> bulk_limits;

/// Makes the requests of an import.
class import_requests {
 public:
  explicit import_requests(import_settings const& settings);

  /// For ServiceProviderConfig, by which the server says what it can do.
  [[nodiscard]] auto config() const -> client::request;
  [[nodiscard]] auto create(import_identity const& identity, std::uint64_t line,
                            std::string_view text, json::value const& resource) const
      -> client::request;
  /// The same as one operation of a bulk request.
  [[nodiscard]] auto bulk_operation(std::uint64_t line, json::value const& resource) const
      -> std::string;
  /// `operations` with commas between, the first of which is of the line `first`.
  [[nodiscard]] auto bulk(import_identity const& identity, std::uint64_t first,
                          std::string_view operations) const -> client::request;
  /// For the one that has the same value of an attribute that must be unique. Nothing when the
  /// resource has none.
  [[nodiscard]] auto find(json::value const& resource) const -> std::optional<client::request>;
  [[nodiscard]] auto replace(std::string_view id, json::value const& resource) const
      -> client::request;

 private:
  [[nodiscard]] auto request(std::string method, std::string url, std::string body = {}) const
      -> client::request;
  [[nodiscard]] auto body_of(json::value resource) const -> std::string;

  std::string given_url_;
  std::string url_;     // without a query
  std::string schema_;  // of resources that do not say theirs
  std::vector<http::field> fields_;
};

}  // namespace tidegate::app
