// SPDX-License-Identifier: Apache-2.0
#include "router.hpp"

#include "control_fixture.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::gateway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using enum admin_role;
using enum wire::method;

class admin_routes : public testing::Test {
 protected:
  admin_routes() {
    auto made = with.make_control();
    EXPECT_TRUE(made) << (made ? "" : made.error());
    router.emplace(*std::move(made), settings, reloader, about);
  }

  auto ask(wire::method method, std::string_view target, std::string_view content = "")
      -> admin_answer {
    auto const request = make_request(method, target, content);
    return answer_of(*with.loop, [&](auto reply) {
      router->answer({request, caller, cookie,
                      [this](std::string_view words, int status) {
                        notes.push_back(std::string(words) + ": " + std::to_string(status));
                      },
                      std::move(reply)});
    });
  }

  control_fixture with{
      "policies: {p: {quota: 5, window: 1h}}\n"
      "routes: [{match: {path: /**}, service: echo, limits: [p]}]\n"};
  admin_config settings{"127.0.0.1:0"};
  config_reloader reloader{[](reload_mode) { return reload_outcome{}; }};
  program_facts about{.version = "1.2.3"};
  admin_caller caller;
  session_cookie cookie{"session"};
  std::vector<std::string> notes;
  std::optional<admin_router> router;
};

TEST_F(admin_routes, knows_who_may_use_a_path) {
  struct row {
    std::string_view path;
    admin_role role;
  };
  for (auto const& [path, role] : {
           row{"/healthz", anyone},
           row{"/readyz", anyone},
           row{"/healthz/", writer},
           row{"/api/v1/session", reader},
           row{"/api/v1/explain", reader},
           row{"/api/v1/partitions/lookup", reader},
           row{"/api/v1/idempotency/lookup", reader},
           row{"/api/v1/partitions/reset", writer},
           row{"/api/v1/idempotency/lookup/resolve", writer},
           row{"/api/v1/idempotency/0/resolve", writer},
           row{"/api/v1/config/reload", writer},
           row{"/api/v1/try", writer},
           row{"/", writer},
           row{"/nothing", writer},
           row{"", writer},
       }) {
    EXPECT_EQ(admin_router::role_of(path), role) << path;
  }
}

TEST_F(admin_routes, has_an_answer_for_each_path_and_method) {
  struct row {
    wire::method method;
    std::string_view target;
    int status;
    std::string_view allow;
  };
  for (auto const& [method, target, status, allow] : {
           row{get, "/", 200, ""},
           row{head, "/", 200, ""},
           row{post, "/", 405, "GET, HEAD"},
           row{get, "/metrics", 200, ""},
           row{put, "/metrics", 405, "GET, HEAD"},
           row{get, "/metrics/", 404, ""},
           row{get, "/healthz", 200, ""},
           row{delete_, "/healthz", 405, "GET, HEAD"},
           row{get, "/readyz", 200, ""},
           row{other, "/readyz", 405, "GET, HEAD"},
           row{get, "/api/v1/about", 200, ""},
           row{post, "/api/v1/about", 405, "GET, HEAD"},
           row{get, "/api/v1/history", 200, ""},
           row{get, "/api/v1/history?seconds=0", 400, ""},
           row{delete_, "/api/v1/history", 405, "GET, HEAD"},
           row{get, "/api/v1/events", 200, ""},
           row{post, "/api/v1/events", 405, "GET, HEAD"},
           row{get, "/api/v1/policies", 200, ""},
           row{post, "/api/v1/policies", 405, "GET, HEAD"},
           row{get, "/api/v1/policies/", 404, ""},
           row{get, "/api/v1/partitions", 200, ""},
           row{post, "/api/v1/partitions", 405, "GET, HEAD"},
           row{get, "/api/v1/partitions/", 404, ""},
           row{post, "/api/v1/partitions/", 404, ""},
           row{post, "/api/v1/partitions/other", 404, ""},
           row{post, "/api/v1/partitions/lookup/", 404, ""},
           row{post, "/api/v1/partitions/overrides/x", 404, ""},
           row{get, "/api/v1/partitions/overrides", 200, ""},
           row{head, "/api/v1/partitions/overrides", 200, ""},
           row{post, "/api/v1/partitions/overrides", 405, "GET, HEAD, DELETE"},
           row{patch, "/api/v1/partitions/overrides", 405, "GET, HEAD, DELETE"},
           row{get, "/api/v1/partitions/lookup", 405, "POST"},
           row{head, "/api/v1/partitions/reset", 405, "POST"},
           row{put, "/api/v1/partitions/quota", 405, "POST"},
           row{get, "/api/v1/idempotency", 404, ""},
           row{post, "/api/v1/idempotency", 405, "GET, HEAD"},
           row{get, "/api/v1/idempotency/lookup", 405, "POST"},
           row{delete_, "/api/v1/idempotency/unknown", 405, "GET, HEAD"},
           row{get, "/api/v1/idempotency/unknown", 404, ""},
           row{put, "/api/v1/idempotency/unknown", 405, "GET, HEAD"},
           row{put, "/api/v1/idempotencyx", 404, ""},
           row{get, "/api/v1/directory", 200, ""},
           row{post, "/api/v1/directory", 405, "GET, HEAD"},
           row{post, "/api/v1/directoryx", 404, ""},
           row{get, "/api/v1/config", 200, ""},
           row{post, "/api/v1/config", 405, "GET, HEAD"},
           row{put, "/api/v1/config", 405, "GET, HEAD"},
           row{get, "/api/v1/config/", 404, ""},
           row{get, "/api/v1/config/reload", 200, ""},
           row{delete_, "/api/v1/config/reload", 405, "GET, HEAD, POST"},
           row{other, "/api/v1/config/reload", 405, "GET, HEAD, POST"},
           row{get, "/api/v1/session", 200, ""},
           row{patch, "/api/v1/session", 405, "GET, HEAD, POST, DELETE"},
           row{post, "/api/v1/explain", 200, ""},
           row{get, "/api/v1/explain", 405, "POST"},
           row{get, "/api/v1/try", 405, "POST"},
           row{head, "/api/v1/try", 405, "POST"},
           row{put, "/api/v1/try", 405, "POST"},
           row{delete_, "/api/v1/try", 405, "POST"},
           row{patch, "/api/v1/try", 405, "POST"},
           row{other, "/api/v1/try", 405, "POST"},
           row{get, "/api/v1", 404, ""},
           row{get, "/nothing", 404, ""},
           row{post, "", 404, ""},
       }) {
    SCOPED_TRACE(target);
    auto const answer = ask(method, target);
    EXPECT_EQ(answer.status, status) << answer.content;
    EXPECT_EQ(answer.allow, allow);
    if (status == 405) {
      expect_not_allowed(answer, allow);
    }
  }
  expect_problem(ask(get, "/nothing"), 404, "There is nothing at this path.");
}

TEST_F(admin_routes, tells_whether_it_is_ready) {
  EXPECT_EQ(ask(get, "/healthz").content, "ok\n");
  EXPECT_EQ(ask(get, "/readyz").content, "ready\n");
  with.begin_drain();
  auto const draining = ask(get, "/readyz");
  EXPECT_EQ(draining.status, 503);
  EXPECT_EQ(draining.content, "draining\n");
  EXPECT_EQ(ask(get, "/healthz").status, 200);
}

TEST_F(admin_routes, has_metrics_of_the_program) {
  auto const answer = ask(get, "/metrics");
  EXPECT_EQ(answer.content_type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(answer.content, HasSubstr("version=\"1.2.3\""));
  EXPECT_THAT(router->figures(), StartsWith("{\"at\":"));
  EXPECT_THAT(router->figures(), HasSubstr("\"history\":{\"interval\":5,\"first\":0,\"at\":["));
}

TEST_F(admin_routes, streams_events_to_so_many_consoles_and_no_more) {
  for (std::size_t i = 0; i < admin_router::streams_max; ++i) {
    EXPECT_TRUE(ask(get, "/api/v1/events").streams);
    router->begin_stream();
  }
  expect_problem(ask(get, "/api/v1/events"), 503, "Too many consoles are open");
  EXPECT_TRUE(ask(head, "/api/v1/events").streams);
  router->end_stream();
  EXPECT_TRUE(ask(get, "/api/v1/events").streams);
}

TEST_F(admin_routes, notes_changes_and_nothing_else) {
  (void)ask(get, "/api/v1/config/reload");
  (void)ask(post, "/api/v1/explain", "RateLimit: 1");
  (void)ask(post, "/api/v1/idempotency/lookup", "{}");
  (void)ask(get, "/api/v1/session");
  (void)ask(post, "/api/v1/session");  // without a token there is nothing to log in with
  EXPECT_THAT(notes, IsEmpty());
  (void)ask(post, "/api/v1/config/reload");
  (void)ask(delete_, "/api/v1/session");
  EXPECT_THAT(notes, ElementsAre("POST /api/v1/config/reload: 200", "DELETE /api/v1/session: 204"));
}

TEST(admin_change_in_words, has_no_content_that_may_be_secret) {
  struct row {
    wire::method method;
    std::string_view target;
    std::string_view content;
    std::optional<std::string> words;
  };
  for (auto const& [method, target, content, words] : std::vector<row>{
           {get, "/a", "", std::nullopt},
           {head, "/a", "", std::nullopt},
           {put, "/a", "", std::nullopt},
           {post, "/a?token=hush", "hush", "POST /a"},
           {delete_, "/a?token=hush", "", "DELETE /a"},
           {post, "/a/lookup", "hush", std::nullopt},
           {post, "/a/resolve", R"({"outcome":"executed"})",
            R"(POST /a/resolve {"outcome":"executed"})"},
           {patch, "/a", R"({"Operations":[{"op":"add","path":"title","value":"hush"}]})",
            "PATCH /a (add title)"},
           {patch, "/a", "hush", "PATCH /a"},
       }) {
    EXPECT_EQ(change_in_words(make_request(method, target, content)), words) << target;
  }
}

}  // namespace
}  // namespace tidegate::gateway
