// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/forwarded_head.hpp"
#include "request/request_fields.hpp"

#include <tidegate/proxy/idempotency_service.hpp>
#include <tidegate/scim_server/service.hpp>

namespace tidegate::gateway {

/// What a request with a key is made of, from its head.
struct keyed_head {
  idempotency::lookup_key key{};
  std::optional<std::chrono::seconds> wait;  ///< `Prefer: wait` (RFC 7240, section 4.3)
  wire::method method = wire::method::post;
  std::string method_text;
  std::string principal;  ///< who asks, by the name that the operator gave, if one did
  std::string owner;      ///< else what tells its client apart, if anything does: a secret
  std::string host;       ///< as hosts are compared
  std::string path;       ///< normal
  std::string query;      ///< without its "?"
  /// Request line and fields for the upstream, without the empty line behind them; gone when sent.
  std::string lines;
  std::optional<sha256_digest>
      content_digest;                   ///< that of the content by SHA-256, if the client says it
  wire::body_framing framing;           ///< of the content, also towards the upstream
  std::optional<scim_request> service;  ///< for the SCIM service, in place of an upstream
};

/// Who asks, by name or by a digest; empty where nothing tells.
[[nodiscard]] auto principal_of(keyed_head const& head) -> std::string;

/// What the reading of a key needs besides the request.
struct key_reading {
  idempotency_service& keys;
  std::shared_ptr<active_config const> const& active;
  std::string_view protocol;  ///< the client's, such as `HTTP/1.1`
  value_scratch& values;
  forwarding_texts texts;
  std::string& last_host;  ///< of the last request with a key of this thread
  idempotency::wall_time now;
};

/// Why a request is refused for its key.
struct key_fault {
  idempotency::problem_code code;
  std::string detail{};
};
/// A value of the scope came more than once: `value_scratch::repeated` says which.
struct repeated_scope {};
/// The request has no key and needs none.
struct no_key {};

/// Reads the key of a request on a route with `idempotency`, who owns it, and all that is needed of
/// the head later.
[[nodiscard]] auto read_keyed_head(request_context const& context, key_reading const& by)
    -> std::variant<no_key, keyed_head, key_fault, repeated_scope>;

}  // namespace tidegate::gateway
