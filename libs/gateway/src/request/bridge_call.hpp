// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/idempotency/record.hpp>
#include <tidegate/scim/bridge.hpp>
#include <tidegate/wire/http1_body.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tidegate::gateway {

/// A request by cursor to a SCIM server that has pages by index only, and what it answers.
struct bridge_call {
  enum class subject : std::uint8_t {
    list,
    list_or_resource,  // the answer tells: nothing in the request does
    search,            // POST to .search
    abilities,         // ServiceProviderConfig
  };
  static constexpr std::size_t search_octets_max = std::size_t{1} << 20;

  subject what{};
  std::string endpoint;
  std::string principal;
  std::string filter;  ///< in one spelling
  scim::list_request asked{};
  scim::bridged_page page{};

  // Of a search, until all of it is there.
  wire::body_decoder decoder{wire::body_framing{}};
  std::string content;

  // Of the answer.
  std::vector<idempotency::response_field> fields;
  std::string limit_lines;
  std::string answer;

  [[nodiscard]] auto binding() const -> scim::cursor_binding;
};

/// A longer answer is no page.
inline constexpr std::size_t bridged_octets_max = std::size_t{16} << 20;

}  // namespace tidegate::gateway
