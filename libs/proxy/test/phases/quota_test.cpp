// SPDX-License-Identifier: Apache-2.0
#include "phases/quota.hpp"

#include "phases/phase_fixture.hpp"

#include <gmock/gmock.h>

#include <optional>
#include <utility>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A store that says what the test has it say, and notes what is settled.
class scripted_quota_store final : public store::quota_store {
 public:
  struct script {
    result<std::optional<bool>, store::store_error> here{std::optional<bool>()};
    std::vector<std::int64_t> settled;
  };
  explicit scripted_quota_store(script& by) : by_(by) { status_.gateways = 2; }

  [[nodiscard]] auto spend_here(std::span<store::shared_charge const> /*charges*/, instant /*now*/,
                                std::span<store::charged> results)
      -> result<std::optional<bool>, store::store_error> override {
    results[0].decision.admitted = by_.here && by_.here->value_or(false);
    return by_.here;
  }
  void spend(std::span<store::shared_charge const> /*charges*/, instant /*now*/,
             std::move_only_function<void(store::spend_answer)> /*answer*/) override {}
  void settle(store::shared_charge const& /*charge*/, instant /*admitted_at*/, instant /*now*/,
              std::int64_t units) override {
    by_.settled.push_back(units);
  }
  void forget(store::shared_charge const& /*charge*/,
              std::move_only_function<void(result<void, store::store_error>)> answer) override {
    answer({});
  }
  void forget_here(store::shared_charge const& /*charge*/) override {}
  [[nodiscard]] auto look(store::shared_charge const& charge, instant /*now*/) const
      -> ratelimit::service override {
    return {charge.local.policy->quota(), 1s};
  }

 private:
  script& by_;
};

[[nodiscard]] auto echo_config(std::string const& policies, std::string const& limits)
    -> std::string {
  return "policies: {" + policies +
         "}\nroutes: [{name: all, match: {path: /**}, service: echo, limits: [" + limits + "]}]\n";
}

/// What the phase does with one request after the other.
class gateway_quota_phase : public testing::Test {
 protected:
  [[nodiscard]] auto enter(phase_fixture& with, request_context& context) -> step {
    phase_.reset();
    EXPECT_TRUE(phase_.find_charges(context, with.quotas, with.now));
    return phase_.enter(context, with.quotas, with.now);
  }
  [[nodiscard]] auto enter(phase_fixture& with) -> step {
    context_ = with.get();
    return enter(with, context_);
  }
  [[nodiscard]] auto fields(phase_fixture& with, int status = 200) -> std::string {
    std::string out;
    phase_.append_fields(out, context_, with.quotas, nullptr, status);
    return out;
  }
  static auto down() -> store::store_error { return {store::store_fault::unavailable, ""}; }

  quota_phase phase_;
  request_context context_;
  scripted_quota_store::script script_;
};

TEST_F(gateway_quota_phase, passes_a_route_without_limits) {
  phase_fixture with("routes: [{name: all, match: {path: /**}, service: echo}]\n");
  EXPECT_EQ(enter(with), step::next);
  EXPECT_EQ(fields(with), "");
  EXPECT_EQ(phase_.decision(), "");
}

TEST_F(gateway_quota_phase, spends_the_quota_and_then_answers_429) {
  phase_fixture with(echo_config("p: {quota: 1, window: 1h}", "p"));
  EXPECT_EQ(enter(with), step::next);
  EXPECT_FALSE(context_.reply);
  EXPECT_EQ(phase_.decision(), "admitted");
  EXPECT_THAT(fields(with), HasSubstr("RateLimit: \"p\";r=0;t="));

  ASSERT_EQ(enter(with), step::answered);
  EXPECT_EQ(context_.reply->status, 429);
  EXPECT_EQ(context_.reply->reason, "quota");
  EXPECT_GT(context_.reply->retry_after, 0ns);
  EXPECT_TRUE(context_.reply->has_resets);
  EXPECT_FALSE(context_.reply->content_head.empty()) << "it was made before";
  EXPECT_EQ(phase_.decision(), "refused");
  EXPECT_THAT(phase_.refused(), ElementsAre(0));
  EXPECT_EQ(with.metrics.of_policy("p").admitted.value(), 1U);
  EXPECT_EQ(with.metrics.of_policy("p").refused.value(), 1U);
}

TEST_F(gateway_quota_phase, names_all_policies_that_refuse) {
  phase_fixture with(
      echo_config("p: {quota: 1, window: 1h}, q: {quota: 1, window: 2h}, s: {quota: 1, window: 1h, "
                  "enforce: shadow}",
                  "p, q, s"));
  EXPECT_EQ(enter(with), step::next);
  ASSERT_EQ(enter(with), step::answered);
  EXPECT_THAT(context_.reply->content, HasSubstr(R"("violated-policies":["p","q"])"));
  EXPECT_THAT(phase_.refused(), ElementsAre(0, 1));
  EXPECT_EQ(with.metrics.of_policy("s").shadow_refused.value(), 1U);
}

TEST_F(gateway_quota_phase, counts_each_value_of_a_field_by_itself_and_takes_one_only) {
  phase_fixture with(echo_config("p: {quota: 1, window: 1h, partition: [header:x-key]}", "p"));
  for (std::string const key : {"a", "b"}) {
    context_ = with.get("X-Key: " + key + "\r\n");
    EXPECT_EQ(enter(with, context_), step::next) << key;
  }
  context_ = with.get("X-Key: a\r\n");
  EXPECT_EQ(enter(with, context_), step::answered);
  context_ = with.get("X-Key: a\r\nX-Key: c\r\n");
  phase_.reset();
  EXPECT_FALSE(phase_.find_charges(context_, with.quotas, with.now));
  ASSERT_NE(with.values.repeated, nullptr);
  EXPECT_EQ(to_string(*with.values.repeated), "header:x-key");
}

TEST_F(gateway_quota_phase, answers_as_abuse_what_does_not_stop) {
  phase_fixture with(
      echo_config("p: {quota: 1, window: 1h, abuse: {refusals: 1, within: 1m, block: 10m}}", "p"));
  EXPECT_EQ(enter(with), step::next);
  ASSERT_EQ(enter(with), step::answered);
  EXPECT_EQ(context_.reply->reason, "quota");
  ASSERT_EQ(enter(with), step::answered);
  EXPECT_EQ(context_.reply->reason, "abuse");
  EXPECT_EQ(context_.reply->status, 429);
  EXPECT_EQ(phase_.decision(), "blocked");
  EXPECT_EQ(with.metrics.of_policy("p").blocked.value(), 1U);
}

TEST_F(gateway_quota_phase, gives_a_request_back_that_did_not_succeed) {
  phase_fixture with(echo_config("p: {quota: 1, window: 1h, count: successful}", "p"));
  EXPECT_EQ(enter(with), step::next);
  EXPECT_THAT(fields(with, 200), HasSubstr(";r=0"));
  EXPECT_THAT(fields(with, 500), HasSubstr(";r=1"));
  context_.status = 500;
  phase_.settle(context_, with.quotas, with.now);
  EXPECT_EQ(enter(with), step::next);
  context_.status = 200;
  phase_.settle(context_, with.quotas, with.now);
  phase_.settle(context_, with.quotas, with.now);  // which does nothing the second time
  EXPECT_EQ(enter(with), step::answered);
}

TEST_F(gateway_quota_phase, settles_content_by_the_octets_that_passed) {
  phase_fixture with(
      echo_config("p: {quota: 100, window: 1h, unit: content-bytes, algorithm: fixed}", "p"));
  EXPECT_EQ(enter(with), step::next);
  context_.request_octets = 10;
  context_.response_octets = 30;
  phase_.settle(context_, with.quotas, with.now);
  EXPECT_EQ(enter(with), step::next);
  EXPECT_THAT(fields(with), HasSubstr(";r=60"));
}

TEST_F(gateway_quota_phase, gives_all_back_of_a_request_that_never_ran) {
  phase_fixture with(echo_config("p: {quota: 1, window: 1h}", "p"));
  EXPECT_EQ(enter(with), step::next);
  phase_.release(context_, with.quotas, with.now);
  EXPECT_EQ(phase_.decision(), "");
  EXPECT_EQ(enter(with), step::next);
  phase_.keep_charge();
  phase_.release(context_, with.quotas, with.now);
  EXPECT_EQ(enter(with), step::answered);
}

TEST_F(gateway_quota_phase, charges_a_replay_what_it_costs) {
  phase_fixture with(echo_config("p: {quota: 5, window: 1h}", "p"));
  context_ = with.get();
  phase_.reset();
  ASSERT_TRUE(phase_.find_charges(context_, with.quotas, with.now));
  phase_.charge_replay(context_, 3);
  EXPECT_EQ(phase_.enter(context_, with.quotas, with.now), step::next);
  EXPECT_THAT(fields(with), HasSubstr(";r=2"));
}

TEST_F(gateway_quota_phase, decides_by_the_quota_that_an_operator_gave_a_partition) {
  phase_fixture with(echo_config("p: {quota: 1, window: 1h}", "p"));
  EXPECT_EQ(enter(with), step::next);
  EXPECT_EQ(enter(with), step::answered);
  std::string partitions;
  std::unique_ptr<overridden_policies> policies;
  std::array<store::shared_charge, limits_max> charges;
  ASSERT_EQ(phase_.copy_charges(context_, partitions, policies, charges), 1);
  auto const partition = std::string(charges[0].local.partition);
  ASSERT_TRUE(with.overrides.set({0, partition, 9, with.now + 1h}));
  EXPECT_EQ(enter(with), step::next);
  EXPECT_THAT(fields(with), HasSubstr("\"p\";q=9"));
}

TEST_F(gateway_quota_phase, tells_how_policies_stand_where_nothing_is_spent) {
  phase_fixture with(echo_config("p: {quota: 3, window: 1h}", "p"));
  EXPECT_EQ(enter(with), step::next);
  context_ = with.get();
  phase_.look(context_, with.quotas, with.now);
  EXPECT_THAT(fields(with), HasSubstr(";r=2"));
  phase_.refuse_overloaded(context_, with.quotas, with.now);
  ASSERT_TRUE(context_.reply);
  EXPECT_EQ(context_.reply->status, 503);
  EXPECT_EQ(context_.reply->reason, "overload");
  EXPECT_EQ(context_.reply->retry_after, 1s);
  EXPECT_FALSE(context_.reply->has_resets) << "no quota is the reason";
  EXPECT_EQ(phase_.decision(), "overloaded");
  EXPECT_THAT(phase_.refused(), IsEmpty());
}

TEST_F(gateway_quota_phase, is_suspended_until_the_store_has_answered) {
  phase_fixture with(echo_config("p: {quota: 3, window: 1h}", "p"));
  with.store = std::make_unique<scripted_quota_store>(script_);
  ASSERT_EQ(enter(with), step::suspended);
  EXPECT_EQ(with.metrics.quota_store_asked.value(), 1U);
  std::string partitions;
  std::unique_ptr<overridden_policies> policies;
  std::array<store::shared_charge, limits_max> charges;
  ASSERT_EQ(phase_.copy_charges(context_, partitions, policies, charges), 1U);
  EXPECT_EQ(charges[0].policy_name, "p");
  EXPECT_EQ(charges[0].local.partition.data(), partitions.data());

  store::spent spent{.admitted = true};
  spent.results[0].decision = {true, {2, 1h}, {}};
  EXPECT_EQ(phase_.resume(context_, with.quotas, spent, with.now), step::next);
  EXPECT_THAT(fields(with), HasSubstr(";r=2"));
  phase_.release(context_, with.quotas, with.now);
  EXPECT_THAT(script_.settled, ElementsAre(-1));
}

TEST_F(gateway_quota_phase, copies_windows_of_the_calendar_beside_usual_ones) {
  phase_fixture with(echo_config(
      "p: {quota: 3, window: 1h}, q: {quota: 5, window: {calendar: hour}, algorithm: fixed}",
      "p, q"));
  with.store = std::make_unique<scripted_quota_store>(script_);
  ASSERT_EQ(enter(with), step::suspended);
  std::string partitions;
  std::unique_ptr<overridden_policies> policies;
  std::array<store::shared_charge, limits_max> charges;
  ASSERT_EQ(phase_.copy_charges(context_, partitions, policies, charges), 2U);
  EXPECT_EQ(charges[0].local.policy, &context_.route_settings().limits[0].policy->policy);
  ASSERT_TRUE(policies && (*policies)[1]);
  EXPECT_EQ(charges[1].local.policy, &*(*policies)[1]);
}

TEST_F(gateway_quota_phase, goes_on_at_once_where_the_store_decides_without_being_asked) {
  phase_fixture with(echo_config("p: {quota: 3, window: 1h}", "p"));
  with.store = std::make_unique<scripted_quota_store>(script_);
  script_.here = std::optional(true);
  EXPECT_EQ(enter(with), step::next);
  EXPECT_EQ(with.metrics.quota_store_here.value(), 1U);
  script_.here = std::optional(false);
  EXPECT_EQ(enter(with), step::answered);
}

TEST_F(gateway_quota_phase, does_as_the_policy_says_where_the_store_fails) {
  struct row {
    std::string_view option;
    std::vector<step> said;
  };
  for (auto const& [option, said] : std::vector<row>{
           {"allow", {step::next, step::next}},
           {"deny", {step::answered, step::answered}},
           {"local", {step::next, step::answered}},  // half of the quota of 2
       }) {
    phase_fixture with(echo_config(
        "p: {quota: 2, window: 1h, on-store-failure: " + std::string(option) + "}", "p"));
    with.store = std::make_unique<scripted_quota_store>(script_);
    script_.here = failure(down());
    EXPECT_EQ(enter(with), said[0]) << option;
    script_.here = std::optional<bool>();
    ASSERT_EQ(enter(with), step::suspended) << option;
    EXPECT_EQ(phase_.resume(context_, with.quotas, failure(down()), with.now), said[1]) << option;
    EXPECT_EQ(with.metrics.quota_store_failures.value(), 2U) << option;
    EXPECT_TRUE(with.health.is_failing()) << option;
    if (option == "deny") {
      EXPECT_EQ(context_.reply->reason, "quota-store");
      EXPECT_EQ(context_.reply->status, 503);
      EXPECT_EQ(fields(with), "") << "it is not known how the policy stands";
    }
  }
}

}  // namespace
}  // namespace tidegate::gateway
