// SPDX-License-Identifier: Apache-2.0
#include "api/api_quotas.hpp"

#include "control_fixture.hpp"

#include <tidegate/json/parse.hpp>
#include <tidegate/json/writer.hpp>
#include <tidegate/ratelimit/partition.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using enum wire::method;

constexpr std::string_view settings = R"(policies:
  burst: {quota: 2, window: 1h, algorithm: fixed, partition: [header:x-api-key, method]}
  shown: {quota: 9, window: 1h, algorithm: fixed, partition: [header:x-team],
          partition-key: plain}
  slots: {quota: 5, unit: concurrent-requests, partition: []}
  unused: {quota: 5, window: 1h}
routes:
  - {name: first, match: {path: /a/**}, service: echo, limits: [burst, shown, slots]}
  - {name: second, match: {path: /b/**}, service: echo, limits: [slots]}
)";

class admin_api_quotas : public testing::Test {
 protected:
  auto ask(std::string_view target) -> admin_answer {
    with.loop->turn(std::chrono::milliseconds(0));
    return answer_quotas(with.seen(), shown, make_request(get, target), with.loop->now());
  }
  auto use() -> std::string { return with.get("/a/x", "X-Api-Key: swordfish\r\n"); }

  control_fixture with{std::string(settings)};
  partition_key_cache shown;
};

TEST_F(admin_api_quotas, tells_partitions_of_other_sources_apart) {
  auto const& burst = with.seen().active->config.policies.front().partition;
  struct row {
    std::string_view name;
    std::string_view partition;
    bool is_one;
  };
  for (auto const& [name, partition, is_one] : {
           row{"both sources", "header:x-api-key=a\nmethod=GET\n", true},
           row{"an empty value", "header:x-api-key=\nmethod=GET\n", true},
           row{"one source", "header:x-api-key=a\n", false},
           row{"another order", "method=GET\nheader:x-api-key=a\n", false},
           row{"one source more", "header:x-api-key=a\nmethod=GET\nhost=b\n", false},
           row{"another source", "client-ip=127.0.0.1\nmethod=GET\n", false},
           row{"no end", "header:x-api-key=a\nmethod=GET", false},
           row{"nothing", "", false},
       }) {
    EXPECT_EQ(is_partition_of(burst, partition), is_one) << name;
  }
  EXPECT_TRUE(is_partition_of(ratelimit::partition_rule{{}}, ""));
}

TEST_F(admin_api_quotas, shows_no_value_of_a_field_unless_clients_see_it) {
  auto const& policies = with.seen().active->config.policies;
  struct row {
    std::size_t policy;
    std::string_view partition;
    std::string_view shown;
  };
  for (auto const& [policy, partition, shown_as] : {
           row{0, "header:x-api-key=swordfish\nmethod=GET\n",
               R"("partition":[{"source":"header:x-api-key"},{"source":"method","value":"GET"}],)"
               R"("key":"150e641dbfa4728362cba4baad1a7196")"},
           row{1, "header:x-team=red\n",
               R"("partition":[{"source":"header:x-team","value":"red"}],"key":")"},
           row{2, "", R"("partition":[],"key":"e3b0c44298fc1c149afbf4c8996fb924")"},
           row{1, "cookie:session=swordfish\n", R"("partition":[],"key":")"},
       }) {
    SCOPED_TRACE(partition);
    std::string out;
    json::writer writer(out);
    append_partition(writer, policies[policy].partition, partition);
    EXPECT_THAT(out, StartsWith(shown_as));
  }
}

TEST_F(admin_api_quotas, lists_policies_with_their_routes_and_counts) {
  for (int i = 0; i < 3; ++i) {
    (void)use();
  }
  auto const answer = ask("/api/v1/policies");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.content_type, json_content);
  EXPECT_TRUE(json::parse(answer.content, {.depth_max = 16})) << answer.content;
  EXPECT_THAT(answer.content, StartsWith("{\"policies\":[{"));
  for (auto const* const part :
       {R"("routes":["first"],"admitted":2,"refused":1,"shadow-refused":0,"blocked":0},{)",
        R"("routes":["first","second"],)", R"("routes":[],"admitted":0,"refused":0,)"}) {
    EXPECT_THAT(answer.content, HasSubstr(part));
  }
}

TEST_F(admin_api_quotas, lists_the_hottest_partitions_and_remembers_what_it_showed) {
  EXPECT_EQ(ask("/api/v1/partitions").content, "{\"window\":10,\"partitions\":[]}\n");
  (void)use();
  auto const answer = ask("/api/v1/partitions?policy=burst");
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(json::parse(answer.content, {.depth_max = 16})) << answer.content;
  EXPECT_THAT(answer.content,
              AllOf(StartsWith(R"({"window":10,"partitions":[{"policy":"burst","partition":[)"),
                    HasSubstr(R"("requests":1.0,"refused":0.0,"quota":2,"remaining":1,"reset":)"),
                    Not(HasSubstr("swordfish")), Not(HasSubstr("usual-quota"))));
  EXPECT_NE(shown.find("150e641dbfa4728362cba4baad1a7196"), nullptr);
  EXPECT_THAT(ask("/api/v1/partitions?policy=slots").content, Not(HasSubstr("\"reset\"")));
}

TEST_F(admin_api_quotas, shows_a_temporary_quota_beside_the_usual_one) {
  (void)use();
  auto const& control = with.seen();
  auto const id = policy_id_of(*control.active, control.active->config.policies.front());
  ASSERT_TRUE(id);
  ASSERT_TRUE(control.overrides().set({*id, "header:x-api-key=swordfish\nmethod=GET\n", 50,
                                       with.loop->now() + std::chrono::hours(1)}));
  EXPECT_THAT(ask("/api/v1/partitions?policy=burst").content,
              AllOf(HasSubstr("\"quota\":50,"), HasSubstr(",\"usual-quota\":2}")));
}

TEST_F(admin_api_quotas, takes_a_policy_and_a_limit) {
  for (auto const* const key : {"a", "b", "c"}) {
    (void)with.get("/a/x", "X-Api-Key: " + std::string(key) + "\r\n");
  }
  struct row {
    std::string_view query;
    int status;
    std::size_t partitions;
  };
  for (auto const& [query, status, partitions] : {
           row{"", 200, 5},
           row{"policy=burst", 200, 3},
           row{"policy=slots", 200, 1},
           row{"policy=unused", 200, 0},
           row{"policy=none", 404, 0},
           row{"limit=1", 200, 1},
           row{"policy=burst&limit=2", 200, 2},
           row{"limit=64", 200, 5},
           row{"limit=65", 400, 0},
           row{"limit=0", 400, 0},
           row{"limit=", 400, 0},
           row{"limit=1x", 400, 0},
           row{"limit=-1", 400, 0},
       }) {
    SCOPED_TRACE(query);
    auto const answer = ask("/api/v1/partitions?" + std::string(query));
    EXPECT_EQ(answer.status, status) << answer.content;
    std::size_t count = 0;
    for (auto at = answer.content.find("\"policy\":"); at != std::string::npos;
         at = answer.content.find("\"policy\":", at + 1)) {
      ++count;
    }
    EXPECT_EQ(count, partitions);
  }
  expect_problem(ask("/api/v1/partitions?limit=65"), 400, "limit is a number from 1 to 64.");
  expect_problem(ask("/api/v1/partitions?policy=none"), 404, "There is no such policy.");
}

}  // namespace
}  // namespace tidegate::gateway
