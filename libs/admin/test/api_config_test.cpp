// SPDX-License-Identifier: Apache-2.0
#include "api/api_config.hpp"

#include "endpoint_fixture.hpp"

#include <tidegate/config/config.hpp>

#include <latch>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::gateway {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using enum wire::method;

constexpr std::string_view config_path = "/api/v1/config";
constexpr std::string_view reload_path = "/api/v1/config/reload";

class admin_api_config : public testing::Test {
 protected:
  auto ask(wire::method method, std::string_view path) -> admin_answer {
    return answer_of(*loop, [&](auto reply) {
      answer_config(*loop, settings, reloader, make_request(method, path), std::move(reply));
    });
  }

  std::unique_ptr<engine::loop> loop = make_loop();
  config settings;
  reload_outcome outcome;  // of any reload
  std::vector<reload_mode> asked;
  config_reloader reloader{[this](reload_mode mode) {
    asked.push_back(mode);
    return outcome;
  }};
};

TEST_F(admin_api_config, answers_each_method_that_a_path_has) {
  struct row {
    std::string_view name;
    wire::method method;
    std::string_view path;
  };
  for (auto const& [name, method, path] : {
           row{"options are read", get, config_path},
           row{"HEAD is a GET", head, config_path},
           row{"a preview is read", get, reload_path},
           row{"a preview by HEAD", head, reload_path},
           row{"a reload is posted", post, reload_path},
       }) {
    SCOPED_TRACE(name);
    auto const answer = ask(method, path);
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.content_type, json_content);
  }
  EXPECT_EQ(asked, (std::vector{reload_mode::preview, reload_mode::preview, reload_mode::apply}));
}

TEST_F(admin_api_config, shows_every_option_with_its_value_and_origin) {
  auto read = parse_config(
      "listen: 127.0.0.1:0\n"
      "policies: {p: {quota: 5, window: 1h}}\n"
      "routes: [{match: {path: /**}, service: echo, limits: [p]}]\n",
      "t.yaml");
  ASSERT_TRUE(read);
  settings = *std::move(read);
  EXPECT_THAT(ask(get, config_path).content,
              AllOf(StartsWith("{\"options\":[{\"path\":"),
                    HasSubstr(R"({"path":"policies.p.quota","value":"5","origin":"t.yaml:2:23"})"),
                    HasSubstr(R"({"path":"http.max-uri","value":"8KiB","origin":"default"})"),
                    EndsWith("],\"truncated\":false}\n")));
}

TEST_F(admin_api_config, shows_no_password_and_no_digest_of_a_token) {
  auto read = parse_config(
      "listen: 127.0.0.1:0\n"
      "admin: {address: \"127.0.0.1:0\", tokens: [{name: ops, sha256: "
      "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b}]}\n"
      "stores: {quota: \"redis://user:hunter2@127.0.0.1:6379\"}\n"
      "routes: [{match: {path: /**}, service: echo}]\n",
      "t.yaml");
  ASSERT_TRUE(read) << to_string(read.error().front());
  settings = *std::move(read);
  EXPECT_THAT(ask(get, config_path).content,
              AllOf(HasSubstr("stores.quota"), Not(HasSubstr("hunter2")),
                    Not(HasSubstr("2bb80d537b1da3e3"))));
}

TEST_F(admin_api_config, quotes_values_and_says_when_there_are_more_options_than_are_kept) {
  settings.effective.push_back({"a", "\"<\n", "default"});
  EXPECT_EQ(ask(get, config_path).content,
            "{\"options\":[{\"path\":\"a\",\"value\":\"\\\"<\\n\",\"origin\":\"default\"}],"
            "\"truncated\":false}\n");
  settings.effective.resize(effective_options_max);
  EXPECT_THAT(ask(get, config_path).content, EndsWith("],\"truncated\":true}\n"));
}

TEST_F(admin_api_config, tells_what_a_reload_would_do_and_what_it_did) {
  std::vector<config_change> const changes{
      {"a", "1", "2", false}, {"b", std::nullopt, "x", true}, {"c", "y", std::nullopt, false}};
  constexpr std::string_view changes_json =
      R"("changes":[{"path":"a","from":"1","to":"2","takes-effect":"on reload"},)"
      R"({"path":"b","from":null,"to":"x","takes-effect":"on restart"},)"
      R"({"path":"c","from":"y","to":null,"takes-effect":"on reload"}])";
  reload_refusal const has_faults{{{"t.yaml", 3, 7, "unknown option \"x\""}}, ""};
  reload_refusal const has_reason{{}, "another directory needs a restart"};
  struct row {
    std::string_view name;
    wire::method method;
    reload_outcome outcome;
    int status;
    std::string content;
  };
  for (auto const& [name, method, made, status, content] : std::vector<row>{
           {"a preview without changes", get, {}, 200, R"({"possible":true,"changes":[]})"},
           {"a preview", get, changes, 200,
            R"({"possible":true,)" + std::string(changes_json) + "}"},
           {"a preview with faults", get, failure(has_faults), 200,
            R"({"possible":false,"faults":[{"place":"t.yaml:3:7",)"
            R"("message":"unknown option \"x\""}],"reason":null})"},
           {"a preview that is refused", get, failure(has_reason), 200,
            R"({"possible":false,"faults":[],"reason":"another directory needs a restart"})"},
           {"a reload without changes", post, {}, 200, R"({"changes":[]})"},
           {"a reload", post, changes, 200, "{" + std::string(changes_json) + "}"},
           {"a reload with faults", post, failure(has_faults), 422,
            R"("faults":["t.yaml:3:7: unknown option \"x\""])"},
           {"a reload with faults says so", post, failure(has_faults), 422,
            "The configuration was not applied: it has faults."},
           {"a reload that is refused", post, failure(has_reason), 422,
            "The configuration was not applied: another directory needs a restart."},
       }) {
    SCOPED_TRACE(name);
    outcome = made;
    auto const answer = ask(method, reload_path);
    if (status == 200) {
      EXPECT_EQ(answer.status, 200);
      EXPECT_EQ(answer.content, content + "\n");
    } else {
      expect_problem(answer, status, content);
    }
  }
}

TEST_F(admin_api_config, refuses_a_reload_when_as_many_wait_as_may) {
  std::latch begun(1);
  std::latch may_end(1);
  bool is_first = true;
  config_reloader busy([&](reload_mode /*mode*/) -> reload_outcome {
    if (std::exchange(is_first, false)) {
      begun.count_down();
      may_end.wait();
    }
    return std::vector<config_change>{};
  });
  reply_log replies;
  auto const reload = [&] {
    answer_config(*loop, settings, busy, make_request(post, reload_path), replies.next());
  };
  reload();
  begun.wait();
  for (int i = 0; i < 8; ++i) {
    reload();
  }
  EXPECT_EQ(replies.size(), 0U);
  reload();
  ASSERT_EQ(replies.size(), 1U);
  expect_problem(replies.all().front(), 503, "try again later");
  may_end.count_down();
  turn_until(*loop, [&] { return replies.size() == 10; });
}

}  // namespace
}  // namespace tidegate::gateway
