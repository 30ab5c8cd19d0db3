// SPDX-License-Identifier: Apache-2.0
#include "phases/edge/enter.hpp"

#include "request/request_fields.hpp"

#include <tidegate/proxy/route_edge.hpp>

namespace tidegate::gateway {

auto path_refusal(reply_texts texts) -> local_reply {
  return problem_reply(texts, "path-not-rewritable", 400, "Bad Request",
                       "The path of the request has what servers take for a dot segment or for "
                       "the name of another host, and this route makes another path of it.");
}

void note_scheme(request_context& context, std::vector<std::string_view>& lines) {
  context.terms.is_https = context.route_settings().edge->has_hsts &&
                           is_secure(*context.head, *context.from, *context.active, lines);
}

auto enter_edge(request_context& context, std::vector<std::string_view>& lines, reply_texts texts)
    -> step {
  auto const& edge = *context.route_settings().edge;
  if (edge.networks &&
      !edge.networks->admits(find_client(*context.head, *context.from, *context.active, lines))) {
    context.reply = problem_reply(texts, "address-denied", 403, "Forbidden",
                                  "Clients of this address may not use this resource.");
    return step::answered;
  }
  if (edge.rewrite) {
    texts.content.clear();
    if (!edge.rewrite->append(texts.content, context.path)) {
      context.reply = path_refusal(texts);
      return step::answered;
    }
  } else if (edge.has_base_path && may_have_dot_segments(context.path)) {
    context.reply = path_refusal(texts);
    return step::answered;
  }
  return step::next;
}

}  // namespace tidegate::gateway
