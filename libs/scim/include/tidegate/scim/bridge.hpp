// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/json/parse.hpp>
#include <tidegate/scim/cursor.hpp>
#include <tidegate/scim/error.hpp>
#include <tidegate/scim/list_request.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Cursors in front of a server that has pages by index only.
///
/// A cursor seals the index of the first resource of its page. So pages are as stable as those of
/// the server behind: what is created or deleted in front of a place moves what comes after it. A
/// walk ends, since each page begins behind the one before and the server says when there is no
/// more.
namespace tidegate::TIDEGATE_ABI::scim {

/// A page by index that stands for one by cursor.
struct bridged_page {
  std::uint64_t start_index = 1;
  std::uint32_t count = 0;  ///< 0: totalResults only
  /// How many resources the server has been seen to put on a page; it may be less than what it is
  /// asked for.
  std::uint32_t count_seen = 0;
  std::optional<std::uint64_t> total_results{};  ///< of the first page of the walk
  auto operator==(bridged_page const&) const -> bool = default;
};

/// One spelling for filters that differ in case outside of strings, or in spaces: the schemas
/// behind are not known here.
[[nodiscard]] auto bridged_filter(std::string_view filter) -> std::string;

/// Which page `request`, one by cursor, is about. Errors are the client's: invalidCursor,
/// expiredCursor, invalidCount.
[[nodiscard]] auto bridge_request(list_request const& request, cursor_sealer const& sealer,
                                  cursor_binding const& binding, pagination_options const& options,
                                  wall_time now) -> result<bridged_page, error>;

/// The query of a GET for that page, without "?": everything that `query` says besides, as it is.
[[nodiscard]] auto bridged_query(std::string_view query, bridged_page const& page) -> std::string;

/// The body of a POST to `.search` for that page: everything that `body` says besides.
[[nodiscard]] auto bridged_search(std::string_view body, bridged_page const& page)
    -> result<std::string, error>;

/// Random octets for the two cursors of a page.
struct bridge_nonces {
  cursor_sealer::nonce next;
  cursor_sealer::nonce previous;
};

/// The ListResponse for the client, of that which the server gave for the page. An error says what
/// is wrong with it.
[[nodiscard]] auto bridge_response(std::string_view body, bridged_page const& page,
                                   cursor_sealer const& sealer, cursor_binding const& binding,
                                   pagination_options const& options, wall_time now,
                                   bridge_nonces const& nonces, json::limits const& limits)
    -> result<std::string, error>;

/// A ServiceProviderConfig that says what the bridge can do with pages; the rest is the server's.
[[nodiscard]] auto bridge_service_provider_config(std::string_view body,
                                                  pagination_options const& options,
                                                  json::limits const& limits)
    -> result<std::string, error>;

}  // namespace tidegate::TIDEGATE_ABI::scim
