// SPDX-License-Identifier: Apache-2.0
#include "phases/grpc_call.hpp"

#include "phases/exchange.hpp"
#include "request/grpc.hpp"

#include <new>

namespace tidegate::gateway {

auto grpc_call::enter(request_context& context, worker& on) -> step {
  auto const field = find_grpc_timeout(*context.head);
  if (field.count == 0) {
    return step::next;
  }
  auto const time = field.count == 1 ? parse_grpc_timeout(field.value) : std::nullopt;
  if (!time) {
    owner_.look_at_quotas();
    context.reply = problem_reply(owner_.texts(), "grpc-timeout", 400, "Bad Request",
                                  "grpc-timeout is not one number of at most eight digits and a "
                                  "unit: H, M, S, m, u or n.");
    return step::answered;
  }
  auto const until = context.begun + *time;
  if (until <= on.loop.now()) {
    owner_.look_at_quotas();
    context.reply = deadline_reply(owner_.texts());
    return step::answered;
  }
  set(on.loop.timers(), until);
  return step::next;
}

void grpc_call::expired() {
  try {
    owner_.deadline_passed();
  } catch (std::bad_alloc const&) {
    if (owner_.client() != nullptr) {
      owner_.client()->give_up();
    }
  }
}

auto deadline_reply(reply_texts texts) -> local_reply {
  return problem_reply(texts, "deadline", 504, "Gateway Timeout",
                       "The call took longer than its grpc-timeout.");
}

}  // namespace tidegate::gateway
