// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/client/error.hpp>
#include <tidegate/client/message.hpp>
#include <tidegate/idempotency/retry.hpp>
#include <tidegate/ratelimit/pacing.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tidegate::TIDEGATE_ABI::client {

/// Which version of HTTP is spoken.
enum class http_version : std::uint8_t {
  automatic,  ///< with TLS what the server prefers, else HTTP/1.1
  http1,      ///< HTTP/1.1
  http2,      ///< HTTP/2, in clear with prior knowledge
};

/// What a user decides. Servers may ask for less than these bounds, never for more.
struct session_options {
  /// For each origin, route and partition: strategy, cap on the rate, longest wait, requests under
  /// way.
  ratelimit::pacing_options pacing{};
  idempotency::retry_rules retries{};
  idempotency::budget_rules budget{};
  std::size_t requests_max = 10'000;  ///< that wait or are under way
  std::size_t in_flight_max = 100;    ///< under way to all origins together
  std::size_t response_head_octets_max = 64 * 1024;
  std::size_t response_body_octets_max = 16 * 1024 * 1024;
  /// For waits, attempts and retries of a request that does not say itself.
  std::chrono::nanoseconds time_max = std::chrono::minutes(10);
  std::chrono::nanoseconds attempt_time_max = std::chrono::seconds(30);
  std::chrono::nanoseconds connect_time_max = std::chrono::seconds(10);
  /// Requests with the same values of these fields share a partition; names in lower case.
  std::vector<std::string> partition_fields = {"authorization", "x-api-key"};
  http_version version = http_version::automatic;
  std::string user_agent = "tidegate";
  std::string proxy{};    ///< a URL; empty: what the environment says, as curl does
  std::string ca_file{};  ///< certificates to trust; empty: those of the system
};

/// Stands for a request that was sent, in `cancel`.
using request_id = std::uint64_t;

/// Gets the outcome of one request, on the thread of the session. It may call `send` and `cancel`;
/// it must not throw, wait long or end the session.
using completion = std::move_only_function<void(result<response, client_error>)>;

/// What a session is doing, for people to look at.
struct session_activity {
  std::size_t waiting = 0;    ///< for their turn, or to be sent again
  std::size_t under_way = 0;  ///< sent and not answered
  std::uint64_t retries = 0;  ///< since the session began
  /// When the next of those that wait goes, if that is known and nothing changes.
  std::optional<std::chrono::nanoseconds> next_in{};
};

/// Sends requests, any number of them at a time and from any thread, over connections that it
/// keeps.
///
/// Each request goes when the quota of its origin, route and partition allows it, is sent again
/// where that is safe and sensible, and ends in exactly one outcome: an answer, whatever its
/// status, or an error. All I/O is done by one thread of the session.
class session {
 public:
  /// Starts the thread. Fails when the system does not give what it needs.
  [[nodiscard]] static auto open(session_options options = {})
      -> result<std::unique_ptr<session>, client_error>;
  session(session const&) = delete;
  auto operator=(session const&) -> session& = delete;
  /// Cancels what is not finished, whose completions are called before this returns.
  ~session();

  /// Sends `wanted`; `done` is called once with the outcome. On error it never is.
  [[nodiscard]] auto send(request wanted, completion done) -> result<request_id, client_error>;
  /// The same with a future; an error is in it as well.
  [[nodiscard]] auto send(request wanted) -> std::future<result<response, client_error>>;

  /// Ends a request: its outcome is `client_fault::cancelled`, unless it has another one already. A
  /// request under way may have been carried out.
  void cancel(request_id id);

  /// What the session is doing now.
  [[nodiscard]] auto activity() const -> session_activity;

 private:
  class loop;
  explicit session(std::unique_ptr<loop> loop) noexcept;
  std::unique_ptr<loop> loop_;
};

}  // namespace tidegate::TIDEGATE_ABI::client
