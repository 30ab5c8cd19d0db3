// SPDX-License-Identifier: Apache-2.0
#include "api/api_history.hpp"

#include "endpoint_fixture.hpp"

#include <tidegate/json/parse.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using enum wire::method;

class admin_api_history : public testing::Test {
 protected:
  admin_api_history() { history.add(now.steady, counted, {}); }

  void pass(std::uint64_t good, std::uint64_t refused, std::string_view policy = "burst") {
    counted.responses[1] += good;
    counted.responses[5] += refused;
    counted.latency[3] += good;
    sums.admitted += good;
    sums.refused += refused;
    now.steady += traffic_history::interval;
    now.wall += traffic_history::interval;
    std::vector<named_policy_sums> const policies = {{policy, sums}};
    history.add(now.steady, counted, policies);
  }
  [[nodiscard]] auto ask(std::string_view query) const -> admin_answer {
    return answer_history(history, make_request(get, "/api/v1/history" + std::string(query)), now);
  }
  /// How many elements the array of that name has.
  [[nodiscard]] static auto count_of(admin_answer const& answer, std::string_view name)
      -> std::size_t {
    auto const read = json::parse(answer.content, {.depth_max = 8});
    EXPECT_TRUE(read) << answer.content;
    auto const* const found = read ? read->find(name) : nullptr;
    return found == nullptr || found->if_array() == nullptr ? 0 : found->if_array()->size();
  }

  two_clocks now{instant(1h), std::chrono::system_clock::time_point(1'000'000s)};
  traffic_sums counted;
  policy_sums sums;
  traffic_history history;
};

TEST_F(admin_api_history, has_no_samples_at_the_start) {
  EXPECT_EQ(ask("").content,
            R"({"interval":5,"first":0,"at":[],"responses":{},"latency":{"p50":[],"p90":[],)"
            R"("p99":[]},"keys":{},"policies":[]})"
            "\n");
}

TEST_F(admin_api_history, has_one_array_for_each_series_and_leaves_out_those_of_zeros) {
  pass(0, 0);
  pass(4, 2);
  auto const answer = ask("");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.content_type, json_content);
  EXPECT_THAT(answer.content,
              AllOf(HasSubstr(R"("first":0,"at":[1000005000,1000010000],)"),
                    HasSubstr(R"("responses":{"2xx":[0,4],"429":[0,2]},)"),
                    HasSubstr(R"("latency":{"p50":[null,750],"p90":[null,950],"p99":[null,995]},)"),
                    HasSubstr(R"("policies":[{"name":"burst","admitted":[0,4],"refused":[0,2]}])"),
                    Not(HasSubstr("5xx")), Not(HasSubstr("shadow")), Not(HasSubstr("upstream"))));
}

TEST_F(admin_api_history, has_every_kind_of_series) {
  counted.responses = {1, 1, 1, 1, 1, 1};
  counted.keys = {1, 1, 1, 1, 1, 1};
  counted.upstream_failures = 3;
  sums.shadow_refused = 9;
  pass(0, 0);
  sums.shadow_refused = 11;
  pass(0, 0);
  auto const text = ask("").content;
  for (auto const name : traffic_sums::response_names) {
    EXPECT_THAT(text, HasSubstr("\"" + std::string(name) + "\":[1,0]"));
  }
  for (auto const name : traffic_sums::key_names) {
    EXPECT_THAT(text, HasSubstr("\"" + std::string(name) + "\":[1,0]"));
  }
  EXPECT_THAT(text, HasSubstr(R"("upstream-failures":[3,0])"));
  EXPECT_THAT(text, HasSubstr(R"("shadow-refused":[0,2])"));
}

TEST_F(admin_api_history, has_ten_minutes_of_load_in_full) {
  for (int i = 0; i < 120; ++i) {
    pass(100, 7);
  }
  struct row {
    std::string_view query;
    std::size_t samples;
  };
  for (auto const& [query, samples] : {
           row{"", 120},
           row{"?seconds=3600", 120},
           row{"?seconds=900", 120},
           row{"?seconds=300", 60},
           row{"?seconds=5", 1},
           row{"?seconds=1", 1},
       }) {
    EXPECT_EQ(count_of(ask(query), "at"), samples) << query;
  }
  EXPECT_THAT(ask("?seconds=300").content, HasSubstr("\"first\":60,"));
}

TEST_F(admin_api_history, numbers_samples_on_when_old_ones_are_gone) {
  for (std::size_t i = 0; i < traffic_history::samples_max + 5; ++i) {
    pass(1, 0);
  }
  EXPECT_THAT(ask("").content, HasSubstr("\"first\":5,"));
  EXPECT_EQ(count_of(ask(""), "at"), traffic_history::samples_max);
  EXPECT_LT(ask("").content.size(), 100'000U);
}

TEST_F(admin_api_history, keeps_the_order_of_samples_when_the_clock_of_the_system_is_set) {
  pass(1, 0);
  now.wall -= 1h;
  pass(1, 0);
  EXPECT_THAT(ask("").content, HasSubstr("\"at\":[996405000,996410000]"));
}

TEST_F(admin_api_history, escapes_the_names_of_policies) {
  pass(0, 0, "\"</script>\n");
  pass(1, 0, "\"</script>\n");
  EXPECT_THAT(ask("").content, HasSubstr(R"("name":"\"</script>\n")"));
}

TEST_F(admin_api_history, refuses_other_spans_than_those_that_are_kept) {
  for (auto const* const query :
       {"?seconds=0", "?seconds=3601", "?seconds=", "?seconds=-1", "?seconds=1x", "?seconds=1e3"}) {
    expect_problem(ask(query), 400, "seconds is a number from 1 to 3600.");
  }
}

}  // namespace
}  // namespace tidegate::gateway
