// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::client {

/// Why there is no answer.
enum class client_fault : std::uint8_t {
  invalid_request,     ///< method, URL, field or key is none that can be sent
  too_many_requests,   ///< as many wait or are under way as may
  cannot_connect,      ///< no connection came about, or a certificate is not trusted
  connection_lost,     ///< the request went out, but no whole answer came
  attempt_timed_out,   ///< the request went out, but no whole answer came in time
  deadline_exceeded,   ///< waits, attempts and retries took as long as they may together
  response_too_large,  ///< the header section or the content of the answer is above the bound
  cancelled,           ///< by the caller, or because the session ended
  out_of_resources,    ///< the system gives no memory, descriptor, thread or random number
};

/// `invalid-request`, `too-many-requests` and so on, for programs.
[[nodiscard]] auto name_of(client_fault fault) noexcept -> std::string_view;
/// One sentence for people.
[[nodiscard]] auto message(client_fault fault) noexcept -> std::string_view;

/// Why there is no answer, and what is known of the request.
struct client_error {
  client_fault fault{};
  std::string detail{};        ///< what the system or the library below said; may be empty
  std::uint32_t attempts = 0;  ///< how often it was sent, or tried to
  /// An attempt may have been carried out. Sending the request as a new one could do its work
  /// twice.
  bool may_have_run = false;
  std::string key{};  ///< the Idempotency-Key that was sent: with it the request may be sent again
  auto operator==(client_error const&) const -> bool = default;
};

/// The message and the detail, as one line.
[[nodiscard]] auto to_string(client_error const& error) -> std::string;

}  // namespace tidegate::TIDEGATE_ABI::client
