// SPDX-License-Identifier: Apache-2.0
#include "api/api_try.hpp"

#include "control_fixture.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using enum wire::method;

constexpr std::string_view settings =
    "policies: {p: {quota: 2, window: 1h, algorithm: fixed, partition: [header:x-api-key]}}\n"
    "routes:\n"
    "  - {match: {path: /limited}, service: echo, limits: [p]}\n"
    "  - {match: {path: /**}, service: echo}\n";

class admin_api_try : public testing::Test {
 protected:
  void begin(std::string_view content, reply_log& replies, wire::method method = post,
             std::string_view content_type = json_content) {
    api->answer(
        make_request(method, "/api/v1/try", content, content_type),
        [this](std::string_view words, int status) {
          notes.push_back(std::string(words) + ": " + std::to_string(status));
        },
        replies.next());
  }
  auto send(std::string_view content, wire::method method = post,
            std::string_view content_type = json_content) -> admin_answer {
    with.loop->turn(0ms);
    reply_log replies;
    begin(content, replies, method, content_type);
    turn_until(*with.loop, [&] { return replies.size() == 1; });
    return replies.size() == 1 ? replies.all().front() : admin_answer{};
  }

  control_fixture with{std::string(settings)};
  std::optional<try_api> api{std::in_place, with.seen()};
  std::vector<std::string> notes;
};

TEST_F(admin_api_try, is_asked_with_json) {
  expect_problem(send(R"({"path":"/"})", post, "text/plain"), 415, "application/json");
  EXPECT_EQ(send(R"({"path":"/"})", post, "").status, 200);
}

TEST_F(admin_api_try, lets_no_caller_write_more_than_a_request) {
  struct row {
    std::string_view content;
    std::string_view part;
  };
  for (auto const& [content, part] : {
           row{"{", "The body is not JSON: "},
           row{"", "The body is not JSON: "},
           row{"[]", "JSON object"},
           row{"{}", "path must begin"},
           row{R"({"path":"a"})", "path must begin"},
           row{R"({"path":"http://evil.example/"})", "path must begin"},
           row{R"({"path":"/a b"})", "path must begin"},
           row{R"({"path":"/a\r\nX: y"})", "path must begin"},
           row{R"({"path":"/a#b"})", "path must begin"},
           row{R"({"path":7})", "path must be a string"},
           row{R"({"path":"/a","method":"GET /x"})", "method must be"},
           row{R"({"path":"/a","method":"CONNECT"})", "method must be"},
           row{R"({"path":"/a","method":""})", "method must be"},
           row{R"({"path":"/a","method":"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG"})", "method must be"},
           row{R"({"path":"/a","method":7})", "method must be a string"},
           row{R"({"path":"/a","body":7})", "body must be a string"},
           row{R"({"path":"/a","host":"a\r\nb"})", "host must be"},
           row{R"({"path":"/a","host":""})", "host must be"},
           row{R"({"path":"/a","fields":{}})", "array of at most 100"},
           row{R"({"path":"/a","fields":[["a"]]})", "array of at most 100"},
           row{R"({"path":"/a","fields":[["a",1]]})", "array of at most 100"},
           row{R"({"path":"/a","fields":[["a b","1"]]})", "name of a header"},
           row{R"({"path":"/a","fields":[["","1"]]})", "name of a header"},
           row{R"({"path":"/a","fields":[["a","1\r\nb: 2"]]})", "value of a"},
           row{R"({"path":"/a","fields":[["a","\u0000"]]})", "value of a"},
           row{R"({"path":"/a","fields":[["Host","b"]]})", "use host"},
           row{R"({"path":"/a","fields":[["content-length","1"]]})", "set by the gateway"},
           row{R"({"path":"/a","fields":[["Transfer-Encoding","chunked"]]})", "set by the gateway"},
           row{R"({"path":"/a","fields":[["Connection","x"]]})", "set by the gateway"},
           row{R"({"path":"/a","address":"10.0.0.1:80"})", "nknown member"},
       }) {
    SCOPED_TRACE(content);
    expect_problem(send(content), 400, part);
  }
  EXPECT_THAT(notes, IsEmpty());
}

TEST_F(admin_api_try, bounds_the_path_the_host_and_the_fields) {
  auto const path_of = [](std::size_t octets) {
    return R"({"path":"/)" + std::string(octets - 1, 'a') + "\"}";
  };
  EXPECT_EQ(send(path_of(8192)).status, 200);
  expect_problem(send(path_of(8193)), 400, "path must begin");
  auto const host_of_size = [](std::size_t octets) {
    return R"({"path":"/","host":")" + std::string(octets, 'a') + "\"}";
  };
  EXPECT_EQ(send(host_of_size(255)).status, 200);
  expect_problem(send(host_of_size(256)), 400, "host must be");
  auto const with_fields = [](int count) {
    std::string content = R"({"path":"/","fields":[)";
    for (int i = 0; i < count; ++i) {
      content += (i == 0 ? "" : ",") + std::string(R"(["X","1"])");
    }
    return content + "]}";
  };
  EXPECT_EQ(send(with_fields(100)).status, 200);
  expect_problem(send(with_fields(101)), 400, "array of at most 100");
}

TEST_F(admin_api_try, sends_a_request_and_tells_what_came_back) {
  for (int left = 1; left >= 0; --left) {
    auto const answer =
        send(R"({"path":"/limited?b=c","fields":[["X-Api-Key","k"]],"host":"a.example"})");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.content_type, json_content);
    EXPECT_THAT(answer.content,
                AllOf(StartsWith(R"({"status":200,"reason":"OK","fields":[[)"),
                      HasSubstr(R"(["RateLimit","\"p\";r=)" + std::to_string(left) + ";t="),
                      HasSubstr(R"("body":"{\"method\":\"GET\",\"path\":\"/limited\",)"),
                      HasSubstr(R"([\"Host\",\"a.example\"],[\"X-Api-Key\",\"k\"])"),
                      ContainsRegex(R"("body-octets":[0-9]+,"whole":true,)"
                                    R"("milliseconds":[0-9]+\.[0-9][0-9],"findings":\[\{)")));
  }
  EXPECT_THAT(send(R"({"path":"/limited","fields":[["X-Api-Key","k"]]})").content,
              AllOf(StartsWith(R"({"status":429,"reason":"Too Many Requests",)"),
                    HasSubstr("Retry-After")));
  EXPECT_THAT(send(R"({"path":"/limited","method":"HEAD","fields":[["X-Api-Key","h"]]})").content,
              HasSubstr(R"("body":"","body-octets":0,"whole":true)"));
}

TEST_F(admin_api_try, names_the_listener_where_no_host_is_said) {
  auto const address = with.seen().listeners().front().address.to_string();
  EXPECT_THAT(send(R"({"path":"/a"})").content, HasSubstr(R"([\"Host\",\")" + address + R"(\"])"));
}

TEST_F(admin_api_try, notes_what_may_change_something_without_its_query) {
  struct row {
    std::string_view content;
    std::string_view note;  // empty: there is none
  };
  for (auto const& [content, note] : {
           row{R"({"path":"/a?token=swordfish"})", ""},
           row{R"({"path":"/a","method":"HEAD"})", ""},
           row{R"({"path":"/a?token=swordfish","method":"POST","body":"swordfish"})",
               "send POST /a: 200"},
           row{R"({"path":"/b","method":"DELETE"})", "send DELETE /b: 200"},
           row{R"({"path":"/c","method":"PUT","fields":[["X-Api-Key","swordfish"]]})",
               "send PUT /c: 200"},
       }) {
    SCOPED_TRACE(content);
    notes.clear();
    EXPECT_EQ(send(content).status, 200);
    if (note.empty()) {
      EXPECT_THAT(notes, IsEmpty());
    } else {
      EXPECT_THAT(notes, ElementsAre(note));
    }
  }
}

TEST_F(admin_api_try, sends_so_many_at_a_time_and_no_more) {
  reply_log replies;
  for (int i = 0; i < 16; ++i) {
    begin(R"({"path":"/"})", replies);
  }
  EXPECT_EQ(replies.size(), 0U);
  begin(R"({"path":"/"})", replies);
  ASSERT_EQ(replies.size(), 1U);
  expect_problem(replies.all().front(), 503, "Too many requests are in flight");
  turn_until(*with.loop, [&] { return replies.size() == 17; });
  for (std::size_t i = 1; i < 17; ++i) {
    EXPECT_EQ(replies.all()[i].status, 200);
  }
}

TEST_F(admin_api_try, replies_to_nothing_once_it_is_gone) {
  reply_log replies;
  begin(R"({"path":"/"})", replies);
  api.reset();
  for (int i = 0; i < 5; ++i) {
    with.loop->turn(1ms);
  }
  EXPECT_EQ(replies.size(), 0U);
}

TEST(admin_api_try_listeners, says_that_no_listener_takes_requests) {
  control_fixture with(std::string(settings), control_fixture::listening::no);
  try_api api(with.seen());
  expect_problem(answer_of(*with.loop,
                           [&](auto reply) {
                             api.answer(
                                 make_request(post, "/api/v1/try", R"({"path":"/"})"),
                                 [](std::string_view, int) {}, std::move(reply));
                           }),
                 409, "PROXY protocol");
}

}  // namespace
}  // namespace tidegate::gateway
