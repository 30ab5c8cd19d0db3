// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/scim/error.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::client {

/// Why there are no more resources.
enum class scim_fault : std::uint8_t {
  no_answer,         ///< `detail` says why
  answer_too_large,  ///< also with one resource a page
  refused,           ///< with `status` and, where the server tells, `type` and `detail`
  invalid_answer,    ///< what came is not a list of resources
  place_lost,        ///< the server does not accept its cursor any more, and nothing else helps
  stuck,             ///< the server brings nothing new, and has no end or says that there is more
  no_way_back,       ///< the server gives no cursor of the page before
};

/// `no-answer`, `refused` and so on, for programs.
[[nodiscard]] auto name_of(scim_fault fault) noexcept -> std::string_view;

/// Why, and what the server said.
struct scim_error {
  scim_fault fault{};
  int status = 0;
  scim::scim_type type = scim::scim_type::none;
  std::string detail{};
  auto operator==(scim_error const&) const -> bool = default;
};

/// One line for people.
[[nodiscard]] auto to_string(scim_error const& error) -> std::string;

/// Reads why a server refused, in the form of SCIM or of problem details.
[[nodiscard]] auto refusal_of(int status, std::string_view body) -> scim_error;

}  // namespace tidegate::TIDEGATE_ABI::client
