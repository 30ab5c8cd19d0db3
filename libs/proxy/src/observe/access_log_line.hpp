// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/http/ip_address.hpp>
#include <tidegate/wire/http1_head.hpp>

#include <chrono>
#include <optional>

/// One line of the access log: a JSON object with the same members in every line, null where there
/// is nothing to say. Written in parts, as it becomes known. docs/reference/logs.md describes the
/// members.
namespace tidegate::gateway {

/// A text of a client is cut after so many octets.
inline constexpr std::size_t logged_octets_max = 4096;

/// RFC 3339, in UTC and with milliseconds.
void append_log_time(std::string& out, std::chrono::system_clock::time_point time);

/// When, who and by which protocol; begins the object.
void append_log_client(std::string& out, std::chrono::system_clock::time_point time,
                       http::ip_address const& client, std::string_view protocol);
/// What was asked for. `query` only when it is wanted: it may hold secrets. Parameters that are
/// named in `secret` are left out of it.
void append_log_request(std::string& out, wire::request_head const& request, bool query,
                        std::vector<std::string> const& secret = {});
/// In place of it, when the head of the request could not be read.
void append_log_no_request(std::string& out, bool query);
/// What policies said; nothing when none was asked. `partitions` are the digests of the partitions
/// that were refused, one for each policy.
void append_log_decision(std::string& out, std::string_view decision,
                         std::span<std::string_view const> policies,
                         std::span<std::string const> partitions);

struct logged_response {
  std::string_view principal{};    ///< who asked, by name; empty: not known
  std::string_view key_id{};       ///< of the Idempotency-Key; empty: none that could be read
  std::string_view key_outcome{};  ///< what became of a request with a key; empty: it has none
  std::string_view route{};        ///< empty: none
  std::string_view upstream{};     ///< empty: none
  std::string_view server{};       ///< empty: none
  int status = 0;
  std::string_view
      reason{};  ///< why the gateway answered itself, or cut the answer; empty: it did not
  std::uint64_t request_octets = 0;
  std::uint64_t response_octets = 0;
  std::chrono::nanoseconds duration{0};
  std::optional<std::chrono::nanoseconds> upstream_time{};
};
/// The reason for a status that a request got which could not be read, or was too large or too
/// slow.
[[nodiscard]] auto reason_of_unreadable(int status) -> std::string_view;

/// What became of it; ends the object and the line.
void append_log_response(std::string& out, logged_response const& response);

}  // namespace tidegate::gateway
