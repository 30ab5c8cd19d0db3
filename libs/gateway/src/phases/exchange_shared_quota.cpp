// SPDX-License-Identifier: Apache-2.0
//
// What an exchange does about quotas that other gateways share: it asks, holds the request until there is an
// answer, and decides by itself where there is none.
#include "exchange.hpp"

#include <tidegate/http/target.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;

/// No larger than what a client may send: the head was judged when it came.
constexpr wire::head_limits judged_before = {.request_line_octets_max = SIZE_MAX,
                                             .head_octets_max = SIZE_MAX,
                                             .fields_max = wire::fields_capacity};

/// What was spent for a request that nobody waits for.
void give_back(store::quota_store& quotas, quota_call const& call, store::spent const& spent,
               instant now) {
  for (std::size_t i = 0; i < call.charges_count; ++i) {
    auto const& charge = call.charges[i];
    if (spent.admitted && spent.results[i].decision.admitted && charge.local.cost != 0) {
      quotas.settle(charge, call.asked_at, now, -charge.local.cost);
    }
  }
}

}  // namespace

auto exchange::admit_step() -> step {
  if (resumed_) {
    return *std::exchange(resumed_, std::nullopt);
  }
  auto const said = quota_.enter(context_, quota_service_, worker_.loop.now());
  if (said == step::suspended) {
    ask_quota_store();
  }
  return said;
}

auto exchange::admit(holdable const* what) -> admission {
  switch (admit_step()) {
    case step::next: return admission::admitted;
    case step::answered: respond(); return admission::over;
    case step::suspended: hold(*what); break;
  }
  return admission::waiting;
}

void exchange::ask_quota_store() {
  asked_ = std::make_shared<quota_call>();
  auto& call = *asked_;
  call.of = this;
  call.runtime = runtime_;
  ++call.runtime->users;
  call.asked_at = worker_.loop.now();
  call.charges_count = quota_.copy_charges(context_, call.partitions, call.charges);
  worker_.quotas->spend({call.charges.data(), call.charges_count}, call.asked_at,
                        [&on = worker_, asked = asked_](store::spend_answer const& answer) {
                          auto* const runtime = asked->runtime;
                          if (!on.quotas) {  // the store is being closed
                            on.release(*runtime);
                            return;
                          }
                          on.count_round_trips();
                          if (asked->of != nullptr) {
                            asked->of->quotas_answered(answer);
                          } else if (answer) {
                            give_back(*on.quotas, *asked, *answer, on.loop.now());
                          }
                          on.release(*runtime);
                        });
}

void exchange::hold(holdable const& what) {
  auto const& request = what.request;
  auto& call = *asked_;
  call.head.append(request.method_text()).append(" ").append(request.target());
  call.head.append(request.minor_version() == 0 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
  call.head.append(request.field_lines()).append("\r\n");
  call.from = &what.from;
  call.waits = true;
}

void exchange::quotas_answered(store::spend_answer const& answer) {
  resumed_ = quota_.resume(context_, quota_service_, answer, worker_.loop.now());
  if (replayed_.first) {
    asked_.reset();
    auto const [stored, cost] = std::exchange(replayed_, {});
    replay(stored, cost);
  } else if (keyed_) {
    asked_.reset();
    auto const keyed = keyed_;  // it may end in this call
    keyed->admit();
  } else {
    go_on();
  }
}

void exchange::go_on() {
  auto const call = asked_;
  auto& request = worker_.request;
  auto const read = wire::parse_request_head(call->head, 0, judged_before, request);
  std::string_view path;
  if (read.state == wire::head_state::complete) {
    path = request.path() == "*"
               ? request.path()
               : http::normal_path(request.path(), worker_.path).value_or(std::string_view());
  }
  if (path.empty()) {  // it was read before, so this is a fault of our own
    context_.reason = "request-lost";
    answer_problem(500, "Internal Server Error", "The request was lost on its way.");
    return;
  }
  call->waits = false;
  octets_at_hand_ = call->content_octets;
  context_.head = &request;
  context_.path = path;
  begin_on_route(request, path, *call->from);
  if (call->of == nullptr) {
    return;  // it was answered, and the exchange may serve another request by now
  }
  if (call->body_is_last) {
    body(call->body, call->content_octets, *call->body_is_last);
    if (call->of == nullptr) {
      return;
    }
  }
  asked_.reset();
  count_held();
  client_->resume();
}

}  // namespace tidegate::gateway
