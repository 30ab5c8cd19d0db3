// SPDX-License-Identifier: Apache-2.0
#include "phases/describe.hpp"

#include "request/request_fields.hpp"

#include <tidegate/http/accept.hpp>

namespace tidegate::gateway {

auto describe(request_context const& context, std::shared_ptr<active_config const> const& active,
              reply_texts texts) -> local_reply {
  if (context.method != wire::method::get && context.method != wire::method::head) {
    auto reply = problem_reply(texts, "method-not-allowed", 405, "Method Not Allowed",
                               "This resource can be read with GET.");
    reply.field_lines = "Allow: GET, HEAD\r\n";
    return reply;
  }
  // Programs that take anything get JSON; browsers name what they want.
  auto const accepted = accepted_types(*context.head);
  auto const by_html = http::preference_for("text/html", accepted);
  bool const html = by_html.weight > 0 && by_html.closeness > 1 &&
                    by_html >= http::preference_for("application/json", accepted);
  return {.status = 200,
          .content_type = html ? "text/html; charset=utf-8" : "application/json",
          .content = html ? active->description_html : active->description_json,
          .field_lines = "Vary: Accept\r\nCache-Control: no-cache\r\n",
          .owner = active};
}

}  // namespace tidegate::gateway
