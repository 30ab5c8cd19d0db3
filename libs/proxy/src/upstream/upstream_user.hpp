// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire/http1_head.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tidegate::gateway {

/// Why an upstream did not answer.
enum class upstream_failure : std::uint8_t {
  connect_refused,    ///< nothing was sent
  connect_timeout,    ///< nothing was sent
  closed_unanswered,  ///< a connection that was used before ended without a byte of an answer
  closed,             ///< in the middle of an answer, or a new connection without one
  malformed,          ///< an answer that HTTP does not allow
  timeout,            ///< no head in time
  idle,               ///< too long between two bytes
  no_descriptor,      ///< nothing was sent: there are as many connections as there may be
};

/// How a request and its response flow between a client and an upstream.
class upstream_flow {
 public:
  /// An answer is about to be read: prefetch what handling it will touch.
  virtual void prefetch() const noexcept {}
  /// More of the request can be sent.
  virtual void upstream_resumed() = 0;
  /// What was given so far is all for now.
  virtual void flush_client() = 0;
  [[nodiscard]] virtual auto wants_framing() const -> bool = 0;
  /// True when the upstream has all of the request.
  [[nodiscard]] virtual auto request_done() const -> bool = 0;
  /// True when no more of the response is to be read for now.
  [[nodiscard]] virtual auto client_is_full() const -> bool = 0;

 protected:
  upstream_flow() = default;
  upstream_flow(upstream_flow const&) = default;
  auto operator=(upstream_flow const&) -> upstream_flow& = default;
  virtual ~upstream_flow() = default;
};

/// Has a request sent to an upstream and takes its response. Everything is called on the thread of
/// the worker.
class upstream_user : public upstream_flow {
 public:
  /// The connection is there; only where `start` found none that was.
  virtual void upstream_connected() {}
  virtual void upstream_interim(wire::response_head const& head) = 0;
  virtual void upstream_head(wire::response_head const& head) = 0;
  /// A part of the response's content, `content_octets` of it; with its framing when
  /// `wants_framing`.
  virtual void upstream_body(std::string_view bytes, std::uint64_t content_octets) = 0;
  virtual void upstream_done() = 0;
  /// `unsent` is all of the request so far when none of it was sent.
  virtual void upstream_failed(upstream_failure why, std::string unsent) = 0;
  /// The head of the response did not come in time. How much longer to wait; nothing: the request
  /// has failed.
  [[nodiscard]] virtual auto upstream_is_late() -> std::optional<std::chrono::nanoseconds> {
    return std::nullopt;
  }

 protected:
  ~upstream_user() override = default;
};

}  // namespace tidegate::gateway
