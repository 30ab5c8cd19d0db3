// SPDX-License-Identifier: Apache-2.0
#include "observe/exchange_log.hpp"

#include "request/caller.hpp"

namespace tidegate::gateway {

void exchange_log::begin(request_context const& context, http::ip_address const& client,
                         std::string_view protocol) {
  server_.clear();
  key_id_.clear();
  key_outcome_ = {};
  append_log_client(line_, std::chrono::system_clock::now(), client, protocol);
  append_log_request(line_, *context.head, context.active->config.access_log.query,
                     context.active->secret_parameters);
}

auto exchange_log::finish(request_context const& context, early_answer const& early,
                          std::size_t local_octets) -> std::string const& {
  logged_response response{
      .principal = principal_of(context),
      .key_id = key_id_,
      .key_outcome = key_outcome_,
      .status = early.status != 0 ? early.status : context.status,
      .reason = early.status != 0 ? early.reason : context.reason,
      .request_octets = context.request_octets,
      .response_octets =
          context.response_octets + (context.method == wire::method::head ? 0 : local_octets),
      // The clock of the loop stands still while a request is answered at once.
      .duration = instant(std::chrono::steady_clock::now().time_since_epoch()) - context.begun,
  };
  if (early.status != 0) {
    response.response_octets = early.octets;  // what came later went to no client
  }
  if (context.route != nullptr) {
    auto const& settings = *context.route_settings().settings;
    response.route = settings.name;
    if (settings.service == route_service::upstream) {
      response.upstream = context.active->config.upstreams[context.route->upstream].name;
    }
  }
  response.server = server_;
  if (context.answered_at != instant::min()) {
    response.upstream_time = context.answered_at - context.begun;
  }
  append_log_response(line_, response);
  return line_;
}

}  // namespace tidegate::gateway
