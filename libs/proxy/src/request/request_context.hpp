// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/proxy/active_config.hpp>
#include <tidegate/proxy/cors_rules.hpp>
#include "request/client_address.hpp"
#include "request/grpc.hpp"
#include "request/local_reply.hpp"

#include <limits>

namespace tidegate::gateway {

/// What a phase says to the exchange that drives it.
enum class step : std::uint8_t {
  next,       ///< the next phase goes on
  answered,   ///< `request_context::reply` is to be sent
  suspended,  ///< a store has to be asked; the phase is resumed with the answer
};

/// What answers a request that has a route, once it is admitted.
enum class handler : std::uint8_t {
  forward,
  scim,
  echo,
  bridge,  ///< `forward` with pages by cursor
  redirect,
  respond,       ///< a fixed answer
  unauthorized,  ///< 401 or 403, which is charged as everything else is
  keyed,         ///< the key phase, by what it has found
};

/// What the options of its route mean for a request.
struct request_terms {
  bool upgrades = false;  ///< it is sent on with Upgrade, so that a 101 may answer it
  bool is_https = false;  ///< of the client; only where responses tell it of that
  /// Of its body; a client that sends more is refused.
  std::uint64_t body_octets_max = std::numeric_limits<std::uint64_t>::max();
  cors_lines cors{};  ///< of every answer on a route with `cors` but those to preflights
};

/// What a request shows of who asks, on a route with `auth`.
enum class shown_credential : std::uint8_t {
  none,       ///< nothing, or there is no `auth`
  anonymous,  ///< nothing, and the route lets such requests pass
  right,
  wrong,
};

/// What the phases of a request share. Data only: phases read and write it, and know nothing of
/// each other.
struct request_context {
  // Of the request. The texts live until the handler has begun.
  wire::request_head const* head = nullptr;
  std::string_view path{};  ///< normal
  client_address const* from = nullptr;
  wire::method method = wire::method::get;
  grpc_kind grpc = grpc_kind::none;

  // What serves it.
  active_config const* active = nullptr;
  worker_route const* route = nullptr;  ///< null when none was found
  bearer_token const* token = nullptr;  ///< who asks, on a route with `auth`
  /// Who asks by an API key, and what is known of who asks by a token; else null.
  std::shared_ptr<consumer_config const> consumer{};
  shown_credential credential = shown_credential::none;
  gateway::handler handler = gateway::handler::forward;
  request_terms terms{};
  std::optional<std::uint64_t> server_hash{};  ///< for an upstream whose servers are chosen by it

  // What became of it.
  std::optional<local_reply> reply{};
  int status = 0;
  std::string_view reason{};  ///< why the gateway answered itself, for the log; a literal
  std::uint64_t request_octets = 0;
  std::uint64_t response_octets = 0;
  double capacity = 1;  ///< the share of what remains of quotas that is told
  instant begun{};
  instant admitted_at{};                ///< when it was charged
  instant answered_at{instant::min()};  ///< when the head of the response came

  [[nodiscard]] auto route_settings() const -> gateway::route const& { return *route->route; }
};

}  // namespace tidegate::gateway
