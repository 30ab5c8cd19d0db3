// SPDX-License-Identifier: Apache-2.0
#include "request/key_replies.hpp"

namespace tidegate::gateway {

namespace {

void append_link_line(std::string& lines, std::string_view documentation) {
  lines.append("Link: ");
  idempotency::append_link(lines, documentation);
  lines.append("\r\n");
}

}  // namespace

auto key_refusal(reply_texts texts, idempotency::problem_details const& problem,
                 std::chrono::seconds retry_after, std::string_view more_lines) -> local_reply {
  texts.lines.clear();
  append_link_line(texts.lines, problem.documentation);
  texts.lines.append(more_lines);
  texts.content.clear();
  idempotency::append_problem(texts.content, problem);
  return {.status = problem.status != 0 ? problem.status : idempotency::status_of(problem.code),
          .reason = idempotency::name_of(problem.code),
          .content = texts.content,
          .field_lines = texts.lines,
          .retry_after = retry_after};
}

auto unknown_reply(reply_texts texts, int status, std::string_view reason,
                   idempotency_config const& settings) -> local_reply {
  auto reply = key_refusal(texts,
                           {.code = idempotency::problem_code::outcome_unknown,
                            .documentation = settings.documentation,
                            .status = status},
                           settings.policy.retry_unknown_outcome);
  reply.reason = reason.empty() ? (status == 504 ? "upstream-timeout" : "upstream-closed") : reason;
  return reply;
}

}  // namespace tidegate::gateway
