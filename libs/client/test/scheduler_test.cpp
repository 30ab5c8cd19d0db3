// SPDX-License-Identifier: Apache-2.0
#include "scheduler.hpp"

#include <tidegate/http/field.hpp>

#include <gtest/gtest.h>

#include <array>
#include <map>

namespace tidegate::TIDEGATE_ABI::client {
namespace {

using namespace std::chrono_literals;
using idempotency::delivery;
using std::chrono::nanoseconds;

/// A scheduler whose clock the test moves, and which sends nothing.
class scheduled {
 public:
  explicit scheduled(session_options options = {}) : options_(std::move(options)) {}

  auto send(request wanted) -> request_id {
    std::array<std::uint8_t, 10> randomness{};
    randomness[9] = static_cast<std::uint8_t>(++last_id_);
    auto made = prepare(std::move(wanted), options_, {now, {}, randomness});
    (*made)->id = last_id_;
    scheduler_.submit(*std::move(made), now);
    return last_id_;
  }
  auto start() -> exchange* { return scheduler_.start(now); }
  /// The number of the request that goes now; 0 when there is none.
  auto started() -> request_id {
    auto const* const each = start();
    return each == nullptr ? 0 : each->id;
  }
  void answer(exchange& each, int status, std::vector<http::field> const& fields = {},
              std::string body = "") {
    each.answer.status = status;
    for (auto const& [name, value] : fields) {
      each.answer.fields.add(name, value);
    }
    each.answer.body = std::move(body);
    scheduler_.finish(each, {}, now, {});
    collect();
  }
  void fail(exchange& each, attempt_end const& how) {
    scheduler_.finish(each, how, now, {});
    collect();
  }
  void lose_connection(exchange& each) {
    fail(each, {.delivery = delivery::no_answer, .fault = client_fault::connection_lost});
  }
  void cancel(request_id id) {
    if (auto* const each = scheduler_.cancel(id)) {
      scheduler_.finish(*each, {.delivery = delivery::no_answer}, now, {});
    }
    collect();
  }
  /// Goes to the next moment at which something is to be done; how far that is.
  auto pass() -> nanoseconds {
    auto const next = scheduler_.next();
    if (next == instant::max()) {
      ADD_FAILURE() << "nothing waits";
      return {};
    }
    auto const wait = next - now;
    pass(wait);
    return wait;
  }
  void pass(nanoseconds time) {
    now += time;
    scheduler_.pass_time(now);
    collect();
  }
  /// Passes time until a request goes.
  auto pass_to_start() -> exchange* {
    auto* each = start();
    for (int i = 0; each == nullptr && i < 10 && scheduler_.next() != instant::max(); ++i) {
      (void)pass();
      each = start();
    }
    return each;
  }
  auto outcome(request_id id) -> result<response, client_error> const* {
    auto const found = outcomes.find(id);
    return found == outcomes.end() ? nullptr : &found->second;
  }
  [[nodiscard]] auto status(request_id id) -> int {
    auto const* const what = outcome(id);
    return what == nullptr || !*what ? 0 : (*what)->status;
  }
  [[nodiscard]] auto fault(request_id id) -> std::optional<client_fault> {
    auto const* const what = outcome(id);
    return what == nullptr || *what ? std::nullopt : std::optional((*what).error().fault);
  }
  auto state() -> scheduler& { return scheduler_; }

  instant now{100s};
  std::map<request_id, result<response, client_error>> outcomes;

 private:
  void collect() {
    std::vector<scheduler::outcome> taken;
    scheduler_.take_outcomes(taken);
    for (auto& [of, what] : taken) {
      EXPECT_TRUE(outcomes.emplace(of->id, std::move(what)).second) << "one outcome for each";
    }
  }

  session_options const options_;
  scheduler scheduler_{options_, 1};
  request_id last_id_ = 0;
};

auto get(std::string url = "http://a/") -> request {
  return {.url = std::move(url)};
}
auto post() -> request {
  return {.method = "POST", .url = "http://a/", .body = "x"};
}
auto keyed() -> request {
  return {.method = "POST", .url = "http://a/", .body = "x", .idempotent = true};
}

TEST(client_scheduler, sends_one_request_at_first_and_more_once_it_is_answered) {
  scheduled world({.pacing = {.interval_min = 0ns}});
  auto const first = world.send(get());
  auto const second = world.send(get());
  auto const third = world.send(get());
  auto* const each = world.start();
  ASSERT_NE(each, nullptr);
  EXPECT_EQ(each->id, first);
  EXPECT_EQ(world.started(), 0U) << "nothing is known of the server yet";
  world.answer(*each, 200);
  EXPECT_EQ(world.status(first), 200);
  EXPECT_EQ(world.started(), second);
  EXPECT_EQ(world.started(), third);
}

TEST(client_scheduler, waits_for_quota_and_paces_each_lane_by_itself) {
  scheduled world({.pacing = {.interval_min = 0ns}});
  (void)world.send(get("http://a/"));
  world.answer(*world.start(), 200,
               {{"RateLimit-Policy", "\"p\";q=1;w=10"}, {"RateLimit", "\"p\";r=0;t=10"}});
  auto const again = world.send(get("http://a/"));
  auto const elsewhere = world.send(get("http://b/"));
  EXPECT_EQ(world.started(), elsewhere);
  EXPECT_EQ(world.started(), 0U);
  auto const began = world.now;
  auto const* const each = world.pass_to_start();
  ASSERT_NE(each, nullptr);
  EXPECT_EQ(each->id, again);
  EXPECT_GE(world.now - began, 10s);
}

TEST(client_scheduler, takes_the_bound_of_the_user_over_what_a_server_invites_to) {
  scheduled world({.pacing = {.interval_min = 100ms}});
  for (int i = 0; i < 3; ++i) {
    (void)world.send(get());
  }
  world.answer(*world.start(), 200, {{"RateLimit", "\"p\";r=1000000;t=1"}});
  EXPECT_EQ(world.start(), nullptr);
  EXPECT_EQ(world.pass(), 100ms);
  EXPECT_NE(world.start(), nullptr);
  EXPECT_EQ(world.start(), nullptr);
}

TEST(client_scheduler, serves_lanes_in_turn_when_only_so_many_may_be_under_way) {
  scheduled world({.pacing = {.interval_min = 0ns}, .in_flight_max = 1});
  (void)world.send(get("http://a/"));
  auto const second = world.send(get("http://a/"));
  auto const other = world.send(get("http://b/"));
  auto* each = world.start();
  EXPECT_EQ(world.start(), nullptr);
  world.answer(*each, 200);
  each = world.start();
  ASSERT_NE(each, nullptr);
  EXPECT_EQ(each->id, other);
  world.answer(*each, 200);
  EXPECT_EQ(world.started(), second);
}

TEST(client_scheduler, sends_again_with_the_same_key_and_has_another_for_another_request) {
  scheduled world({.pacing = {.interval_min = 0ns}});
  auto const first = world.send(keyed());
  auto const second = world.send(keyed());
  auto* each = world.start();
  auto const key = each->key;
  EXPECT_EQ(key.size(), 36U);
  world.lose_connection(*each);
  EXPECT_EQ(world.outcome(first), nullptr);
  // The other goes while the first one waits.
  auto* const other = world.start();
  ASSERT_NE(other, nullptr);
  EXPECT_NE(other->key, key);
  world.answer(*other, 201);
  each = world.pass_to_start();
  ASSERT_NE(each, nullptr);
  EXPECT_EQ(each->id, first);
  EXPECT_EQ(each->key, key);
  world.answer(*each, 201);
  ASSERT_EQ(world.status(first), 201);
  EXPECT_EQ((*world.outcome(first))->attempts, 2U);
  EXPECT_EQ((*world.outcome(first))->key, key);
  EXPECT_EQ(world.status(second), 201);
}

TEST(client_scheduler, does_not_send_again_what_may_have_run_and_has_no_key) {
  scheduled world;
  auto const id = world.send(post());
  world.lose_connection(*world.start());
  EXPECT_EQ(world.fault(id), client_fault::connection_lost);
  EXPECT_TRUE(world.outcome(id)->error().may_have_run);
}

TEST(client_scheduler, knows_that_an_answer_of_a_proxy_proves_nothing) {
  for (int const status : {408, 429, 502, 503, 504}) {
    scheduled world;
    auto wanted = post();
    wanted.idempotent = true;
    auto const id = world.send(wanted);
    world.answer(*world.start(), status, {{"Retry-After", "5"}});
    if (world.outcome(id) != nullptr) {
      EXPECT_EQ(world.status(id), status) << "it is not sent again";
      continue;
    }
    world.cancel(id);
    ASSERT_EQ(world.fault(id), client_fault::cancelled);
    EXPECT_EQ(world.outcome(id)->error().may_have_run, status != 429) << status;
  }
}

TEST(client_scheduler, ends_what_has_no_time_before_it_is_sent) {
  scheduled world;
  auto wanted = get();
  wanted.time_max = -1s;
  auto const id = world.send(wanted);
  EXPECT_EQ(world.started(), 0U);
  world.pass(0s);
  EXPECT_EQ(world.fault(id), client_fault::deadline_exceeded);
}

TEST(client_scheduler, sends_again_what_was_never_sent) {
  scheduled world;
  auto const id = world.send(post());
  world.fail(*world.start(),
             {.delivery = delivery::not_sent, .fault = client_fault::cannot_connect});
  EXPECT_EQ(world.outcome(id), nullptr);
  auto* const each = world.pass_to_start();
  ASSERT_NE(each, nullptr);
  world.answer(*each, 200);
  EXPECT_EQ(world.status(id), 200);
}

TEST(client_scheduler, does_not_repeat_what_would_end_the_same_way) {
  scheduled world;
  auto const id = world.send(get());
  world.fail(*world.start(), {.delivery = delivery::not_sent,
                              .fault = client_fault::cannot_connect,
                              .detail = "the certificate is not trusted",
                              .permanent = true});
  EXPECT_EQ(world.fault(id), client_fault::cannot_connect);
  EXPECT_FALSE(world.outcome(id)->error().may_have_run);
}

TEST(client_scheduler, comes_back_after_retry_after_and_not_before) {
  scheduled world;
  auto const id = world.send(get());
  auto const began = world.now;
  world.answer(*world.start(), 503, {{"Retry-After", "7"}});
  auto* const each = world.pass_to_start();
  ASSERT_NE(each, nullptr);
  EXPECT_GE(world.now - began, 7s);
  EXPECT_LE(world.now - began, 8s);
  world.answer(*each, 200);
  EXPECT_EQ(world.status(id), 200);
  EXPECT_GE((*world.outcome(id))->waited, 7s);
}

TEST(client_scheduler, reads_a_date_in_retry_after_by_the_clock_of_the_server) {
  scheduled world;
  (void)world.send(get());
  auto const began = world.now;
  world.answer(*world.start(), 503,
               {{"Date", "Sun, 06 Nov 1994 08:49:37 GMT"},
                {"Retry-After", "Sun, 06 Nov 1994 08:49:40 GMT"}});
  ASSERT_NE(world.pass_to_start(), nullptr);
  EXPECT_GE(world.now - began, 3s);
  EXPECT_LE(world.now - began, 4s);
}

TEST(client_scheduler, gives_the_answer_when_there_is_no_time_for_another_attempt) {
  scheduled world;
  auto wanted = get();
  wanted.time_max = 5s;
  auto const id = world.send(wanted);
  world.answer(*world.start(), 503, {{"Retry-After", "7"}});
  EXPECT_EQ(world.status(id), 503);
}

TEST(client_scheduler, waits_while_a_key_is_in_flight_until_its_time_is_over) {
  scheduled world;
  auto wanted = keyed();
  wanted.time_max = 60s;
  auto const id = world.send(wanted);
  auto const problem =
      std::vector<http::field>{{"Content-Type", "application/problem+json"}, {"Retry-After", "1"}};
  int attempts = 0;
  for (auto* each = world.start(); each != nullptr; each = world.pass_to_start()) {
    ++attempts;
    world.answer(*each, 409, problem, R"({"code":"in-flight"})");
  }
  EXPECT_GT(attempts, 40) << "far more than retries_max";
  EXPECT_LE(attempts, 60);
  EXPECT_EQ(world.status(id), 409);
}

TEST(client_scheduler, takes_400_and_422_as_they_are) {
  for (auto const status : {400, 422}) {
    scheduled world;
    auto const id = world.send(keyed());
    world.answer(*world.start(), status, {{"Retry-After", "1"}});
    EXPECT_EQ(world.status(id), status);
  }
}

TEST(client_scheduler, ends_a_request_whose_deadline_passes_wherever_it_waits) {
  scheduled world({.time_max = 3s});
  auto const queued = world.send(get());
  auto const behind = world.send(get());
  auto* const each = world.start();
  EXPECT_EQ(each->id, queued);
  world.pass(3s);
  EXPECT_EQ(world.fault(behind), client_fault::deadline_exceeded);
  EXPECT_EQ(world.outcome(behind)->error().attempts, 0U);
  world.fail(*each, {.delivery = delivery::no_answer, .fault = client_fault::attempt_timed_out});
  EXPECT_EQ(world.fault(queued), client_fault::deadline_exceeded);
  EXPECT_TRUE(world.outcome(queued)->error().may_have_run);
  EXPECT_EQ(world.state().size(), 0U);
  EXPECT_EQ(world.state().next(), instant::max()) << "nothing is left behind";
}

TEST(client_scheduler, does_not_send_a_request_that_comes_too_late) {
  scheduled world;
  auto late = get();
  late.time_max = 0s;
  auto const id = world.send(std::move(late));
  auto const behind = world.send(get());
  world.answer(*world.start(), 200);
  EXPECT_EQ(world.status(behind), 200);
  EXPECT_EQ(world.fault(id), client_fault::deadline_exceeded);
}

TEST(client_scheduler, cancels_wherever_a_request_is) {
  scheduled world;
  auto const under_way = world.send(get());
  auto const queued = world.send(get());
  auto const waiting = world.send(get("http://b/"));
  (void)world.start();
  world.answer(*world.start(), 503, {{"Retry-After", "7"}});
  for (auto const id : {under_way, queued, waiting}) {
    EXPECT_EQ(world.outcome(id), nullptr);
    world.cancel(id);
    EXPECT_EQ(world.fault(id), client_fault::cancelled);
    world.cancel(id);
  }
  EXPECT_EQ(world.state().size(), 0U);
  EXPECT_EQ(world.state().under_way(), 0U);
}

TEST(client_scheduler, stops_retrying_when_the_budget_is_spent) {
  scheduled world({.retries = {.retries_max = 1000, .backoff_first = 1ms, .backoff_max = 1ms},
                   .budget = {.share = 0, .per_second = 0, .tokens_max = 5}});
  auto const id = world.send(get());
  int attempts = 0;
  for (auto* each = world.start(); each != nullptr; each = world.pass_to_start()) {
    ++attempts;
    world.lose_connection(*each);
  }
  EXPECT_EQ(attempts, 6);
  EXPECT_EQ(world.fault(id), client_fault::connection_lost);
}

TEST(client_scheduler, forgets_lanes_in_which_nothing_is_to_be_sent) {
  scheduled world;
  for (std::size_t i = 0; i < 3 * scheduler::lanes_max; ++i) {
    (void)world.send({.url = "http://a/", .partition = std::to_string(i)});
    world.answer(*world.start(), 200);
  }
  EXPECT_EQ(world.state().lanes(), scheduler::lanes_max);
}

TEST(client_scheduler, keeps_lanes_in_which_something_waits) {
  scheduled world({.in_flight_max = 1});
  auto constexpr count = scheduler::lanes_max + 10;
  for (std::size_t i = 0; i < count; ++i) {
    (void)world.send({.url = "http://a/", .partition = std::to_string(i)});
  }
  EXPECT_EQ(world.state().lanes(), count);
  for (std::size_t i = 0; i < count; ++i) {
    auto* const each = world.start();
    ASSERT_NE(each, nullptr);
    world.answer(*each, 200);
  }
  EXPECT_EQ(world.outcomes.size(), count);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::client
