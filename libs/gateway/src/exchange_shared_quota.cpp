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
    if (spent.admitted && spent.results[i].decision.admitted && charge.of.cost != 0) {
      quotas.settle(charge, call.asked_at, now, -charge.of.cost);
    }
  }
}

}  // namespace

auto exchange::shared_charge_of(std::size_t i) const -> store::shared_charge {
  auto const& policy = *route_of().limits[i].policy;
  return {charges_[i], policy.name, policy.counting};
}

auto exchange::decide_shared() -> bool {
  without_store_ = false;
  denied_ = false;
  auto const count = route_of().limits.size();
  auto const now = worker_.loop.now();
  std::array<store::shared_charge, limits_max> charges;
  for (std::size_t i = 0; i < count; ++i) {
    charges[i] = shared_charge_of(i);
  }
  admitted_at_ = now;
  auto const here = worker_.quotas->spend_here({charges.data(), count}, now, results_);
  if (!here) {
    verdict_ = decide_without_store(here.error());
    return true;
  }
  if (*here) {
    worker_.metrics->quota_store_here.add();
    verdict_ = *here;
    return true;
  }
  worker_.metrics->quota_store_asked.add();
  asked_ = std::make_shared<quota_call>();
  auto& call = *asked_;
  call.of = this;
  call.runtime = runtime_;
  ++call.runtime->users;
  call.partitions = partitions_;
  call.charges_count = count;
  call.asked_at = now;
  for (std::size_t i = 0; i < count; ++i) {
    auto const at = static_cast<std::size_t>(charges[i].of.partition.data() - partitions_.data());
    charges[i].of.partition =
        std::string_view(call.partitions).substr(at, charges[i].of.partition.size());
    call.charges[i] = charges[i];
  }
  worker_.quotas->spend({call.charges.data(), count}, now,
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
  return false;
}

auto exchange::decide_without_store(store::store_error const& why) -> bool {
  std::span const limits = route_of().limits;
  without_store_ = true;
  worker_.shared.quota_health.note(&why);
  worker_.metrics->quota_store_failures.add();
  std::array<store::charge, limits_max> local;
  std::array<store::charged, limits_max> decided;
  std::array<std::optional<ratelimit::policy>, limits_max> shares;
  std::array<std::size_t, limits_max> places{};
  std::size_t count = 0;
  double const share = 1.0 / static_cast<double>(worker_.quotas->gateways());
  for (std::size_t i = 0; i < limits.size(); ++i) {
    auto const& policy = *limits[i].policy;
    results_[i] = {};
    results_[i].decision.admitted = true;
    results_[i].decision.left = {policy.policy.quota(), policy.policy.window()};
    switch (policy.on_store_failure) {
      case store_failure::allow: break;
      case store_failure::deny:
        denied_ = denied_ || !policy.shadow;
        results_[i].decision = {false, {0, 1s}, 1s};
        break;
      case store_failure::local:
        shares[i] = policy.policy.reduced(share);
        local[count] = charges_[i];
        local[count].policy = &*shares[i];
        places[count++] = i;
        break;
    }
  }
  if (denied_) {
    return false;
  }
  bool const admitted =
      count == 0 || worker_.shared.quotas.spend({local.data(), count}, worker_.loop.now(), decided);
  for (std::size_t i = 0; i < count; ++i) {
    results_[places[i]] = decided[i];
  }
  return admitted;
}

void exchange::refuse_without_store() {
  views_count_ = 0;  // nobody knows how they stand
  log_decision("store-unavailable", {});
  reason_ = "quota-store";
  auto& content = worker_.text;
  content.clear();
  ratelimit::append_problem(content, ratelimit::problem_type::temporary_reduced_capacity, {});
  refuse(ratelimit::problem_type::temporary_reduced_capacity, content, 1s);
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
  if (answer) {
    std::ranges::copy_n(answer->results.begin(),
                        static_cast<std::ptrdiff_t>(route_of().limits.size()), results_.begin());
    verdict_ = answer->admitted;
    worker_.shared.quota_health.note(nullptr);
  } else {
    verdict_ = decide_without_store(answer.error());
  }
  if (replayed_.first) {
    asked_.reset();
    auto const [stored, cost] = std::exchange(replayed_, {});
    replay(stored, cost);
  } else if (keyed_) {
    asked_.reset();
    auto const keyed = keyed_;  // it may end in this call
    keyed->quotas_decided();
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
    reason_ = "request-lost";
    answer_problem(500, "Internal Server Error", "The request was lost on its way.");
    return;
  }
  call->waits = false;
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
  client_->resume();
}

void exchange::settle_charge(std::size_t i, std::int64_t units) {
  auto const now = worker_.loop.now();
  if (!worker_.quotas) {
    worker_.shared.quotas.settle(charges_[i], results_[i], admitted_at_, now, units);
    return;
  }
  if (!without_store_) {
    worker_.quotas->settle(shared_charge_of(i), admitted_at_, now, units);
    return;
  }
  auto const& policy = *route_of().limits[i].policy;
  if (policy.on_store_failure == store_failure::local) {
    auto const share = policy.policy.reduced(1.0 / static_cast<double>(worker_.quotas->gateways()));
    auto charge = charges_[i];
    charge.policy = &share;
    worker_.shared.quotas.settle(charge, results_[i], admitted_at_, now, units);
  }
}

}  // namespace tidegate::gateway
