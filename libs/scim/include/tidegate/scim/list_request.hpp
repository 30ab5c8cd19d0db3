// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/scim/cursor.hpp>
#include <tidegate/scim/error.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What a client asks of a list of resources (RFC 7644, sections 3.4.2 and 3.4.3; RFC 9865, section
/// 2).
namespace tidegate::TIDEGATE_ABI::scim {

/// The schema of a search by POST.
inline constexpr std::string_view search_request_schema =
    "urn:ietf:params:scim:api:messages:2.0:SearchRequest";

/// How a list is paged.
enum class pagination_method : std::uint8_t { index, cursor };

/// What a server offers. `default_method` must be one that it does.
struct pagination_options {
  bool cursor = true;
  bool index = true;
  pagination_method default_method = pagination_method::index;
  std::uint32_t default_page_size = 100;
  std::uint32_t max_page_size = 500;
  bool count_over_max_is_error = false;  ///< otherwise a page has `max_page_size`
  std::chrono::seconds cursor_timeout{600};
  auto operator==(pagination_options const&) const -> bool = default;
};

/// How many names `attributes` and `excludedAttributes` may have each, and how long one may be.
inline constexpr std::size_t attribute_names_max = 256;
inline constexpr std::size_t attribute_name_octets_max = 512;

/// The parameters of a query. What is not checked here: whether the filter is one and the
/// attributes exist.
struct list_request {
  pagination_method method = pagination_method::index;
  std::string cursor{};  ///< empty: the first page
  /// Negative is 0; more than fits is as much as fits.
  std::optional<std::uint32_t> count{};
  std::uint64_t start_index = 1;  ///< from 1; of the index method
  std::optional<std::string> filter{};
  std::string sort_by{};  ///< empty: the order of the server
  bool descending = false;
  std::vector<std::string> attributes{};
  std::vector<std::string> excluded_attributes{};
  auto operator==(list_request const&) const -> bool = default;
};

/// Reads the query of a GET, without its "?". Parameters that are not known are ignored, and one
/// that is known comes once, but for the two lists of attributes.
[[nodiscard]] auto parse_list_query(std::string_view query, pagination_options const& options)
    -> result<list_request, error>;

/// Reads the body of a POST to `.search`. Members that are not known are ignored; `null` is the
/// same as none.
[[nodiscard]] auto parse_search_request(std::string_view body, pagination_options const& options)
    -> result<list_request, error>;

/// Append the same request as a query or a body, for clients and for what stands before another
/// server.
void append_list_query(std::string& out, list_request const& request);
void append_search_request(std::string& out, list_request const& request);

/// How many resources the page may have; 0: totalResults only, and no cursors.
///
/// `from` is what the cursor of the request says; null on a first page. `count` must be the same
/// then, as far as the server follows it, or is left out.
[[nodiscard]] auto page_size(list_request const& request, cursor const* from,
                             pagination_options const& options) -> result<std::uint32_t, error>;

/// The one answer for each fault of a cursor.
[[nodiscard]] auto error_of(cursor_fault fault) -> error;

}  // namespace tidegate::TIDEGATE_ABI::scim
