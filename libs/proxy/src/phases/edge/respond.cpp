// SPDX-License-Identifier: Apache-2.0
#include "phases/edge/respond.hpp"

#include "request/client_stream.hpp"

namespace tidegate::gateway {

auto respond_fixed(request_context const& context,
                   std::shared_ptr<active_config const> const& active) -> local_reply {
  auto const& settings = *context.route_settings().settings->respond;
  local_reply reply{.status = settings.status, .reason = "respond", .content_type = {}};
  // gRPC has no content of this kind: it is told the status that stands for that of HTTP.
  reply.is_service = context.grpc == grpc_kind::none;
  if (settings.status == 204 || settings.status == 304) {
    return reply;  // without content, and without its length
  }
  reply.content_type = settings.content_type;
  reply.content = settings.body;
  if (settings.body.size() >= large_octets_min) {
    reply.owner = active;  // it may have to wait for the client
  }
  return reply;
}

}  // namespace tidegate::gateway
