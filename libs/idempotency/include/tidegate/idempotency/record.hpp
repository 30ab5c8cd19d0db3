// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/enum_set.hpp>
#include <tidegate/base/result.hpp>
#include <tidegate/http/field.hpp>
#include <tidegate/idempotency/fingerprint.hpp>
#include <tidegate/idempotency/wall_time.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What is stored of a key: the record, by which is decided, and the response, which is replayed.
/// They are written apart, so that a store can keep records at hand and seal responses.
namespace tidegate::TIDEGATE_ABI::idempotency {

/// A key without a record is absent.
enum class record_state : std::uint8_t {
  dispatched,  ///< the request may have reached the upstream; the owner of the token waits
  completed,   ///< it was answered
  unknown,     ///< whether it was carried out is not known
  tombstone,   ///< it was answered, and the answer is not kept any more
};

/// Some of the states.
using record_states = enum_set<record_state>;

/// `dispatched`, `completed`, `unknown`, `tombstone`.
[[nodiscard]] auto name_of(record_state state) noexcept -> std::string_view;

/// Why an outcome is unknown.
enum class unknown_reason : std::uint8_t {
  none,             ///< nothing is unknown
  no_answer,        ///< the connection ended before an answer came
  cut_answer,       ///< the answer is not complete
  timed_out,        ///< no answer came in time
  upstream_failed,  ///< 502, 503 or 504 from the upstream
  gateway_stopped,  ///< the gateway stopped, or nothing was heard of it any more
};

/// `none`, `no-answer`, `cut-answer` and so on.
[[nodiscard]] auto name_of(unknown_reason reason) noexcept -> std::string_view;

/// Identifies one attempt: no two claims ever have the same, whatever became of the first. The
/// caller draws it at random or from a counter of the store.
using fencing_token = std::uint64_t;

/// Which request a record is about, so that an operator finds what it was for. Neither the key nor
/// a credential is in it, and nothing of the query, the fields or the content.
struct request_origin {
  std::string route;
  /// Who asked: a name, or a digest of what tells clients apart; empty where nothing does.
  std::string principal;
  std::string method;
  std::string host;
  std::string path;
  /// Whether nothing is known of the request.
  [[nodiscard]] auto empty() const noexcept -> bool {
    return route.empty() && principal.empty() && method.empty() && host.empty() && path.empty();
  }
  auto operator==(request_origin const&) const -> bool = default;
};

/// Octets that each text of an origin may have; the caller cuts what is longer.
inline constexpr std::size_t origin_text_max = 512;

/// What is known of a key.
struct record {
  record_state state = record_state::dispatched;
  /// Why the outcome is unknown; of a dispatched record, why that of the attempt before was.
  unknown_reason reason = unknown_reason::none;
  fencing_token token = 0;
  std::uint32_t attempt = 1;  ///< how many times the request was dispatched
  /// The answer: 200 to 599; 0 where there is none, or none that we saw.
  std::uint16_t status = 0;
  bool replayable = false;           ///< completed, and the whole response is stored
  wall_time created{};               ///< when the key was first claimed
  wall_time changed{};               ///< when the state became what it is
  wall_time lease_until{};           ///< dispatched: until when its owner counts as alive
  std::chrono::seconds ttl{};        ///< how long after `changed` the response is kept
  std::chrono::seconds tombstone{};  ///< how long after that the key is remembered
  idempotency::fingerprint fingerprint{};
  /// Kept until the request was answered: after that it would only make every record in memory
  /// larger.
  request_origin origin{};
  auto operator==(record const&) const -> bool = default;
};

/// When a completed record becomes a tombstone, and when any record but a living dispatched one is
/// forgotten. They never overflow.
[[nodiscard]] auto expires(record const& record) noexcept -> wall_time;
[[nodiscard]] auto forgotten(record const& record) noexcept -> wall_time;

/// The response to a request that ran: all that a replay is made from.
struct stored_response {
  std::uint16_t status = 200;
  // NOLINTBEGIN(readability-redundant-member-init): so that they may be left out
  std::vector<http::field> fields{};  ///< in the order of the message
  std::string body{};                 ///< empty when it was left out
  // NOLINTEND(readability-redundant-member-init)
  std::uint64_t body_size = 0;  ///< of the response, also when the body was left out
  bool body_kept = true;
  std::vector<http::field> trailers = {};  ///< behind the body
  auto operator==(stored_response const&) const -> bool = default;
};

/// Whether a field of a response is kept for replays. Left out are: fields of a connection (RFC
/// 9110, section 7.6.1); Set-Cookie, WWW-Authenticate, Proxy-Authenticate, Authentication-Info,
/// Proxy-Authentication-Info and Alt-Svc, which are for one client at one time; RateLimit fields,
/// since a replay has current ones; and the marker of a replay. `connection_options` are the values
/// of the Connection field, whose names are left out too.
[[nodiscard]] auto is_kept_field(std::string_view name,
                                 std::span<std::string_view const> connection_options) noexcept
    -> bool;

/// Collects a response while it passes. Memory is bounded: where the body is above `body_max`, or a
/// stream of events, it is left out, and only its size is counted.
class response_recorder {
 public:
  /// `fields` are those of the final response, never of an interim one.
  response_recorder(std::uint16_t status, std::span<http::field const> fields,
                    std::size_t body_max);

  /// Takes the next piece of the body.
  void add(std::string_view piece);
  /// What came behind the body, in the order of the message.
  void set_trailers(std::span<http::field const> trailers);
  /// False once the body is left out.
  [[nodiscard]] auto keeps_body() const noexcept -> bool { return response_.body_kept; }

  /// The response, when all of it has passed. One that was cut off must not be stored.
  [[nodiscard]] auto finish() -> stored_response { return std::move(response_); }

  auto operator==(response_recorder const&) const -> bool = default;

 private:
  stored_response response_;
  std::size_t body_max_;
};

/// Why bytes are not a record or response.
enum class format_fault : std::uint8_t {
  unknown_version,
  truncated,
  trailing_octets,
  invalid_value,  ///< one that no writer writes
};

/// Why, and at which byte.
struct format_error {
  format_fault fault{};
  std::size_t offset{};
  auto operator==(format_error const&) const -> bool = default;
};

/// One line for people.
[[nodiscard]] auto to_string(format_error const& error) -> std::string;

/// How many fields a stored response may have.
inline constexpr std::size_t stored_fields_max = 1024;

/// Append the stored form: its version, then numbers as LEB128 and texts with their sizes. A record
/// without an origin has the form of version 1, one with an origin that of version 2.
void append_record(std::string& out, record const& record);
void append_response(std::string& out, stored_response const& response);

/// Read what was written, strictly: whatever is read is written the same way again, and a response
/// that is read can be sent: its status, names and values are those of HTTP.
[[nodiscard]] auto read_record(std::string_view octets) -> result<record, format_error>;
[[nodiscard]] auto read_response(std::string_view octets) -> result<stored_response, format_error>;

}  // namespace tidegate::TIDEGATE_ABI::idempotency
