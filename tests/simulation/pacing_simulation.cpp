// SPDX-License-Identifier: Apache-2.0
#include "pacing_simulation.hpp"

#include <tidegate/http/field.hpp>
#include <tidegate/ratelimit/limiter.hpp>
#include <tidegate/ratelimit/write.hpp>

#include <algorithm>
#include <cmath>
#include <queue>
#include <random>
#include <string>

namespace tidegate::simulation {

namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

struct client {
  ratelimit::pacer paces;
  std::int64_t admitted = 0;
};

struct worker {
  std::uint64_t ticket = 0;
  unsigned refusals = 0;       // one after the other
  bool waits = false;          // for its turn or for an answer to another worker
  std::uint64_t woken_by = 0;  // the event that will do it; earlier ones are stale
};

/// The response that is on its way to a client.
struct reply {
  int status = 0;
  std::string policy;
  std::string limit;
  std::string retry_after;
};

enum class step : std::uint8_t { wants_to_send, reaches_server, is_answered, is_spent };

struct event {
  instant at;
  std::uint64_t order;  // of equal times the earlier one first
  step kind;
  std::size_t who;
  auto operator>(event const& other) const -> bool {
    return at != other.at ? at > other.at : order > other.order;
  }
};

class world {
 public:
  explicit world(pacing_run const& run)
      : run_(run),
        policy_(*ratelimit::policy::make({.quota = run.quota,
                                          .window = run.window,
                                          .unit = ratelimit::quota_unit::requests,
                                          .algorithm = run.algorithm,
                                          .burst = run.burst})),
        random_(run.seed),
        clients_(run.clients, client{ratelimit::pacer({.strategy = run.strategy}), 0}),
        workers_(run.clients * run.workers),
        replies_(run.clients * run.workers) {}

  auto run() -> pacing_outcome {
    outcome_.seconds.resize(static_cast<std::size_t>(run_.length.count()));
    for (std::size_t who = 0; who < workers_.size(); ++who) {
      add(begin_ + up_to(run_.start_within), step::wants_to_send, who);
    }
    if (run_.spent_at) {
      add(begin_ + *run_.spent_at, step::is_spent, 0);
    }
    while (!events_.empty() && events_.top().at < begin_ + run_.length) {
      auto const next = events_.top();
      events_.pop();
      switch (next.kind) {
        case step::wants_to_send:
          if (workers_[next.who].woken_by == next.order) {
            send(next.who, next.at);
          }
          break;
        case step::reaches_server: serve(next.who, next.at); break;
        case step::is_answered: answer(next.who, next.at); break;
        case step::is_spent: spend_all(next.at); break;
      }
    }
    finish();
    return std::move(outcome_);
  }

 private:
  auto up_to(nanoseconds most) -> nanoseconds {
    return nanoseconds(std::uniform_int_distribution<std::int64_t>(0, most.count())(random_));
  }
  auto one_way() -> nanoseconds {
    return (run_.latency_min + up_to(run_.latency_max - run_.latency_min)) / 2;
  }
  void add(instant at, step kind, std::size_t who) {
    events_.push({at, ++order_, kind, who});
    if (kind == step::wants_to_send) {
      workers_[who].woken_by = order_;
    }
  }

  auto client_of(std::size_t who) -> client& { return clients_[who / run_.workers]; }

  void send(std::size_t who, instant now) {
    auto& client = client_of(who);
    auto& worker = workers_[who];
    if (run_.clients_are == behaviour::paced) {
      auto const permission = client.paces.ask(now);
      if (!permission.go) {
        worker.waits = true;
        if (permission.at != instant::max()) {
          add(permission.at, step::wants_to_send, who);
        }
        return;
      }
      worker.waits = false;
      worker.ticket = permission.ticket;
    }
    add(now + one_way(), step::reaches_server, who);
  }

  void spend_all(instant now) {
    bucket_ =
        ratelimit::decide(policy_, bucket_, now, ratelimit::look(policy_, bucket_, now).remaining)
            .next;
    // With gcra, quota comes back from now on.
    reset_ =
        run_.algorithm == ratelimit::algorithm::gcra ? now : instant(nanoseconds(bucket_.time));
    reset_ = std::max(reset_, begin_);
  }

  void serve(std::size_t who, instant now) {
    auto const decision = ratelimit::decide(policy_, bucket_, now, 1);
    auto& second = outcome_.seconds[static_cast<std::size_t>((now - begin_) / 1s)];
    auto& reply = replies_[who];
    reply = {};
    if (decision.admitted) {
      bucket_ = decision.next;
      ++second.admitted;
      admitted_after_reset_ += run_.spent_at && now >= reset_ ? 1 : 0;
      ++client_of(who).admitted;
      reply.status = 200;
    } else {
      ++second.refused;
      reply.status = 429;
      ratelimit::append_retry_after(reply.retry_after, decision.retry);
    }
    auto const policy = std::array{
        ratelimit::quota_policy_view{.name = "shared", .quota = run_.quota, .window = run_.window}};
    auto const limit = std::array{ratelimit::service_limit_view{
        .remaining = decision.left.remaining,
        .reset = decision.admitted ? decision.left.reset : decision.retry}};
    if (run_.with_policy_field) {
      ratelimit::append_policies(reply.policy, policy, limit, ratelimit::draft::draft_09);
    }
    ratelimit::append_limits(reply.limit, policy, limit, ratelimit::draft::draft_09);
    add(now + one_way(), step::is_answered, who);
  }

  void answer(std::size_t who, instant now) {
    auto& client = client_of(who);
    auto& worker = workers_[who];
    auto const& reply = replies_[who];
    auto next = now;
    if (run_.clients_are == behaviour::paced) {
      std::vector<http::field_view> fields{{"RateLimit", reply.limit}};
      if (!reply.policy.empty()) {
        fields.push_back({"RateLimit-Policy", reply.policy});
      }
      if (!reply.retry_after.empty()) {
        fields.push_back({"Retry-After", reply.retry_after});
      }
      client.paces.answered(worker.ticket, {reply.status, fields, {}}, now, random_());
      auto const first = who - who % run_.workers;
      for (auto other = first; other < first + run_.workers; ++other) {
        if (workers_[other].waits) {
          add(now, step::wants_to_send, other);
        }
      }
    } else if (reply.status == 429) {
      auto const most = std::min<nanoseconds>(1s * (1 << std::min(worker.refusals, 6U)), 60s);
      ++worker.refusals;
      next += up_to(most);
    } else {
      worker.refusals = 0;
    }
    add(next, step::wants_to_send, who);
  }

  void finish() {
    for (auto const& second : outcome_.seconds) {
      outcome_.admitted += second.admitted;
      outcome_.refused += second.refused;
    }
    auto const windows = static_cast<double>(run_.length / run_.window);
    // A token bucket that begins full gives one window's worth more.
    auto const full = windows + (run_.algorithm == ratelimit::algorithm::gcra ? 1 : 0);
    outcome_.used =
        static_cast<double>(outcome_.admitted) / (full * static_cast<double>(run_.quota));
    auto const rest = std::chrono::duration<double>(begin_ + run_.length - reset_);
    outcome_.used_after_reset = static_cast<double>(admitted_after_reset_) /
                                (static_cast<double>(run_.quota) * (rest / run_.window));
    outcome_.refused_share =
        static_cast<double>(outcome_.refused) /
        static_cast<double>(std::max<std::int64_t>(outcome_.admitted + outcome_.refused, 1));
    auto const [fewest, most] = std::ranges::minmax_element(clients_, {}, &client::admitted);
    outcome_.fewest = fewest->admitted;
    outcome_.most = most->admitted;
  }

  pacing_run run_;
  ratelimit::policy policy_;
  ratelimit::bucket bucket_;
  std::mt19937_64 random_;
  std::vector<client> clients_;
  std::vector<worker> workers_;
  std::vector<reply> replies_;
  std::priority_queue<event, std::vector<event>, std::greater<>> events_;
  std::uint64_t order_ = 0;
  instant begin_{10000s};
  instant reset_ = instant::max();  // the first one after all was spent
  std::int64_t admitted_after_reset_ = 0;
  pacing_outcome outcome_;
};

}  // namespace

auto run(pacing_run const& run) -> pacing_outcome {
  return world(run).run();
}

}  // namespace tidegate::simulation
