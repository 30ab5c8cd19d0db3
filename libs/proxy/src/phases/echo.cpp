// SPDX-License-Identifier: Apache-2.0
#include "phases/echo.hpp"

namespace tidegate::gateway {

auto echo(request_context const& context, reply_texts texts) -> local_reply {
  auto const& request = *context.head;
  auto& text = texts.content;
  text.assign("{\"method\":");
  json::append_string(text, request.method_text());
  text.append(",\"path\":");
  json::append_string(text, context.path);
  text.append(",\"query\":");
  json::append_string(text, request.query());
  text.append(",\"fields\":[");
  auto const* between = "";
  for (auto const& field : request.fields()) {
    text.append(between).append("[");
    json::append_string(text, field.name);
    text.append(",");
    json::append_string(text, field.value);
    text.append("]");
    between = ",";
  }
  text.append("]}\n");
  return {.status = 200, .content_type = "application/json", .content = text, .is_service = true};
}

}  // namespace tidegate::gateway
