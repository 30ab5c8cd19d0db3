// SPDX-License-Identifier: Apache-2.0
#include "phases/scim/bridge.hpp"

#include "phases/phase_fixture.hpp"

#include <tidegate/json/parse.hpp>

#include <gmock/gmock.h>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr scim::wall_time noon{std::chrono::hours(500'000)};

/// A page of a server that has pages by index only.
[[nodiscard]] auto page_of(int total, int start, int items) -> std::string {
  std::string resources;
  for (int i = 0; i < items; ++i) {
    resources += (i == 0 ? "" : ",") + (R"({"id":")" + std::to_string(start + i) + R"("})");
  }
  return R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"],"totalResults":)" +
         std::to_string(total) + R"(,"startIndex":)" + std::to_string(start) +
         R"(,"itemsPerPage":)" + std::to_string(items) + R"(,"Resources":[)" + resources + "]}";
}

/// The content of a POST to `.search` with these members besides.
[[nodiscard]] auto search_of(std::string const& members) -> std::string {
  return R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:SearchRequest"],)" + members + "}";
}

[[nodiscard]] auto text_of(std::string const& document, std::string_view member) -> std::string {
  auto const read = json::parse(document);
  auto const* const found = read ? read->find(member) : nullptr;
  auto const* const text = found != nullptr ? found->if_string() : nullptr;
  return text != nullptr ? std::string(*text) : "(none)";
}

class proxy_bridge : public testing::Test {
 protected:
  explicit proxy_bridge(std::string const& options = "")
      : with_(
            "upstreams: {api: \"http://127.0.0.1:1\"}\n"
            "routes: [{match: {path: /**}, upstream: api, bridge: scim-cursor" +
            options + "}]\n") {}

  /// Begins a request.
  [[nodiscard]] auto begin(std::string const& head) -> bridge_phase& {
    context_ = with_.ask(head);
    phase_.emplace(context_, *bridge_subject_of(context_), sealer_);
    return *phase_;
  }
  [[nodiscard]] auto get(std::string const& target, std::string const& lines = "")
      -> bridge_phase& {
    return begin("GET " + target + " HTTP/1.1\r\nHost: h\r\n" + lines + "\r\n");
  }
  [[nodiscard]] auto search(std::string const& content) -> bridge_phase& {
    auto& phase = begin("POST /Users/.search HTTP/1.1\r\nHost: h\r\nContent-Length: " +
                        std::to_string(content.size()) + "\r\n\r\n");
    EXPECT_TRUE(phase.awaits_content());
    EXPECT_TRUE(phase.take_content(content));
    return phase;
  }
  [[nodiscard]] auto target() -> std::string {
    auto const made = phase_->make_target(context_, noon);
    return made ? *made : std::to_string(made.error().status) + " " + made.error().detail;
  }
  /// Has the upstream answer.
  [[nodiscard]] auto takes(std::string const& lines, int status = 200) -> bool {
    response_text_ = "HTTP/1.1 " + std::to_string(status) + " S\r\n" + lines + "\r\n";
    EXPECT_EQ(wire::parse_response_head(response_text_, 0, {}, context_.method, response_).state,
              wire::head_state::complete);
    return phase_->takes_answer(response_, {});
  }
  [[nodiscard]] auto answer(std::string_view content) -> scim_answer {
    EXPECT_TRUE(takes("Content-Type: application/scim+json\r\nContent-Length: 1\r\n"));
    EXPECT_TRUE(phase_->take_body(content));
    return phase_->finish(noon);
  }
  [[nodiscard]] auto field_names(scim_answer const& of) const -> std::vector<std::string> {
    std::vector<std::string> names;
    for (auto const& field : of.fields) {
      names.push_back(field.name);
    }
    return names;
  }

  phase_fixture with_;
  scim::cursor_key key_{.id = 1, .secret = {}};
  scim::cursor_sealer sealer_{std::span(&key_, 1)};
  request_context context_;
  std::optional<bridge_phase> phase_;
  std::string response_text_;
  wire::response_head response_;
};

class proxy_bridge_by_default : public proxy_bridge {
 protected:
  proxy_bridge_by_default() : proxy_bridge(", scim: {default-method: cursor}") {}
};

TEST_F(proxy_bridge, asks_for_a_page_by_index_in_place_of_one_by_cursor) {
  (void)get("/Users?cursor&count=2&filter=a%20pr");
  EXPECT_EQ(target(), "/Users?filter=a%20pr&startIndex=1&count=2");
  (void)get("/Users?cursor=");
  EXPECT_EQ(target(), "/Users?startIndex=1&count=100");
  (void)get("/Users?cursor&count=9999");
  EXPECT_EQ(target(), "/Users?startIndex=1&count=500") << "max-page-size";
}

TEST_F(proxy_bridge, walks_from_page_to_page_by_sealed_cursors) {
  (void)get("/Users?cursor&count=2");
  EXPECT_EQ(target(), "/Users?startIndex=1&count=2");
  auto const first = answer(page_of(3, 1, 2));
  EXPECT_EQ(first.status, 200);
  EXPECT_THAT(first.content, Not(HasSubstr("startIndex")));
  EXPECT_EQ(text_of(first.content, "previousCursor"), "(none)");
  auto const next = text_of(first.content, "nextCursor");
  ASSERT_NE(next, "(none)");

  (void)get("/Users?count=2&cursor=" + next);
  EXPECT_EQ(target(), "/Users?startIndex=3&count=2");
  auto const last = answer(page_of(3, 3, 1));
  EXPECT_EQ(text_of(last.content, "nextCursor"), "(none)");
  (void)get("/Users?count=2&cursor=" + text_of(last.content, "previousCursor"));
  EXPECT_EQ(target(), "/Users?startIndex=1&count=2");
}

TEST_F(proxy_bridge, takes_a_cursor_only_from_who_got_it_for_what_it_was_made) {
  std::string const by_acme = "Authorization: Bearer acme\r\n";
  (void)get("/Users?cursor&count=2&filter=userName%20pr", by_acme);
  (void)target();
  auto const next = text_of(answer(page_of(3, 1, 2)).content, "nextCursor");
  struct row {
    std::string_view name;
    std::string target;
    std::string lines;
    std::string_view begins;
  };
  for (auto const& [name, asked, lines, begins] : std::vector<row>{
           {"the same", "/Users?filter=userName%20pr&cursor=" + next, by_acme, "/Users?filter"},
           {"another spelling", "/Users?filter=username%20PR&cursor=" + next, by_acme,
            "/Users?filter"},
           {"another filter", "/Users?filter=x%20pr&cursor=" + next, by_acme, "400"},
           {"no filter", "/Users?cursor=" + next, by_acme, "400"},
           {"another endpoint", "/Groups?filter=userName%20pr&cursor=" + next, by_acme, "400"},
           {"another order", "/Users?sortBy=x&filter=userName%20pr&cursor=" + next, by_acme, "400"},
           {"another client", "/Users?filter=userName%20pr&cursor=" + next,
            "Authorization: Bearer beta\r\n", "400"},
           {"no client", "/Users?filter=userName%20pr&cursor=" + next, "", "400"},
           {"nonsense", "/Users?cursor=nonsense", by_acme, "400"},
       }) {
    (void)get(asked, lines);
    EXPECT_THAT(target(), testing::StartsWith(std::string(begins))) << name;
  }
}

TEST_F(proxy_bridge, refuses_a_cursor_that_has_expired) {
  (void)get("/Users?cursor&count=2");
  (void)target();
  auto const next = text_of(answer(page_of(3, 1, 2)).content, "nextCursor");
  auto& phase = get("/Users?cursor=" + next);
  EXPECT_TRUE(phase.make_target(context_, noon + 10min));
  auto const late = get("/Users?cursor=" + next).make_target(context_, noon + 10min + 1ms);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().type, scim::scim_type::expired_cursor);
}

TEST_F(proxy_bridge, changes_a_search_as_it_does_a_query) {
  auto& phase = search(search_of(R"("filter":"a pr","cursor":"","count":2)"));
  auto const made = phase.make_search(noon);
  ASSERT_TRUE(made);
  EXPECT_EQ(*made, search_of(R"("filter":"a pr","startIndex":1,"count":2)"));
  EXPECT_EQ(phase.held_octets(), 0U) << "the content is sent by now";
  auto const next = text_of(answer(page_of(3, 1, 2)).content, "nextCursor");
  // GET and POST of the same are one walk.
  (void)get("/Users?filter=a%20pr&cursor=" + next);
  EXPECT_EQ(target(), "/Users?filter=a%20pr&startIndex=3&count=2");
}

TEST_F(proxy_bridge, lets_a_search_through_that_is_not_by_cursor) {
  for (std::string const& content :
       {search_of(R"("filter":"a pr","startIndex":2)"), search_of(R"("count":1)"),
        std::string("no JSON"), std::string()}) {
    auto& phase = search(content);
    auto const made = phase.make_search(noon);
    ASSERT_TRUE(made) << content;
    EXPECT_EQ(*made, content);
    EXPECT_FALSE(takes("Content-Type: application/scim+json\r\n")) << content;
  }
}

TEST_F(proxy_bridge, refuses_a_search_whose_cursor_is_wrong) {
  auto const made = search(search_of(R"("cursor":"nonsense")")).make_search(noon);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().status, 400);
  EXPECT_EQ(made.error().type, scim::scim_type::invalid_cursor);
}

TEST_F(proxy_bridge, reads_the_content_of_a_search_in_chunks) {
  auto& phase =
      begin("POST /Users/.search HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_TRUE(phase.take_content("9\r\n{\"count\""));
  EXPECT_EQ(phase.held_octets(), 8U);
  EXPECT_TRUE(phase.take_content(":\r\n2\r\n1}\r\n0\r\n\r\n"));
  EXPECT_EQ(*phase.make_search(noon), "{\"count\":1}");
}

TEST_F(proxy_bridge, bounds_the_content_of_a_search) {
  auto const head = [](std::size_t octets) {
    return "POST /.search HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(octets) +
           "\r\n\r\n";
  };
  constexpr auto most = bridge_phase::search_octets_max;
  EXPECT_TRUE(begin(head(most)).take_content(std::string(most, ' ')));
  auto& phase = begin(head(most + 1));
  EXPECT_TRUE(phase.take_content(std::string(most, ' ')));
  auto const more = phase.take_content(" ");
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().status, 413);
}

TEST_F(proxy_bridge, changes_only_answers_that_it_can_read) {
  struct row {
    std::string lines;
    int status;
    bool taken;
  };
  for (auto const& [lines, status, taken] : std::vector<row>{
           {"Content-Type: application/scim+json\r\n", 200, true},
           {"Content-Type: application/json\r\n", 200, true},
           {"Content-Type: Application/SCIM+JSON ; charset=utf-8\r\n", 200, true},
           {"Content-Type: text/html\r\n", 200, false},
           {"", 200, false},
           {"Content-Type: application/scim+json\r\nContent-Encoding: gzip\r\n", 200, false},
           {"Content-Type: application/scim+json\r\n", 401, false},
           {"Content-Type: application/scim+json\r\n", 404, false},
           {"Content-Type: application/scim+json\r\n", 201, false},
       }) {
    (void)get("/Users?cursor");
    EXPECT_EQ(takes(lines, status), taken) << status << " " << lines;
  }
}

TEST_F(proxy_bridge, keeps_fields_that_are_true_of_what_the_client_gets) {
  (void)get("/Users?cursor");
  (void)target();
  ASSERT_TRUE(
      takes("Content-Type: application/json\r\nContent-Length: 5\r\nDate: x\r\nETag: \"a\"\r\n"
            "Accept-Ranges: bytes\r\nX-Id: 1\r\nConnection: X-Hop\r\nX-Hop: 1\r\n"
            "Set-Cookie: a=b\r\nSet-Cookie: c=d\r\n"));
  ASSERT_TRUE(phase_->take_body(page_of(0, 1, 0)));
  EXPECT_THAT(field_names(phase_->finish(noon)),
              ElementsAre("Content-Type", "X-Id", "Set-Cookie", "Set-Cookie"));
}

TEST_F(proxy_bridge, leaves_out_the_fields_that_the_gateway_makes) {
  (void)get("/Users?cursor");
  (void)target();
  response_text_ = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nRateLimit: x\r\n\r\n";
  ASSERT_EQ(wire::parse_response_head(response_text_, 0, {}, context_.method, response_).state,
            wire::head_state::complete);
  ASSERT_TRUE(phase_->takes_answer(response_, {wire::known_field::ratelimit}));
  ASSERT_TRUE(phase_->take_body(page_of(0, 1, 0)));
  EXPECT_THAT(field_names(phase_->finish(noon)), ElementsAre("Content-Type"));
}

TEST_F(proxy_bridge, answers_502_where_the_server_gives_no_page) {
  struct row {
    std::string_view name;
    std::string content;
  };
  for (auto const& [name, content] : std::vector<row>{
           {"no JSON", "<html>"},
           {"nothing", ""},
           {"one resource", R"({"id":"1"})"},
           {"more than was asked for", page_of(9, 1, 3)},
       }) {
    (void)get("/Users?cursor&count=2");
    (void)target();
    phase_->limit_lines() = "RateLimit: x\r\n";
    auto const said = answer(content);
    EXPECT_EQ(said.status, 502) << name;
    EXPECT_THAT(said.content, HasSubstr("urn:ietf:params:scim:api:messages:2.0:Error")) << name;
    EXPECT_EQ(phase_->limit_lines(), "") << name << ": they were of the answer";
  }
}

TEST_F(proxy_bridge, bounds_a_page) {
  (void)get("/Users?cursor");
  std::string const half(bridged_octets_max / 2, ' ');
  ASSERT_TRUE(phase_->take_body(half));
  ASSERT_TRUE(phase_->take_body(half));
  EXPECT_EQ(phase_->held_octets(), bridged_octets_max);
  auto const more = phase_->take_body(" ");
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().status, 502);
  EXPECT_EQ(scim_error_answer(more.error()).status, 502);
}

TEST_F(proxy_bridge, forgets_an_answer_that_broke_off) {
  (void)get("/Users?cursor&count=2");
  (void)target();
  ASSERT_TRUE(takes("Content-Type: application/json\r\nX-Try: 1\r\n"));
  ASSERT_TRUE(phase_->take_body("{\"broken"));
  phase_->limit_lines() = "RateLimit: x\r\n";
  phase_->drop_answer();
  EXPECT_EQ(phase_->held_octets(), 0U);
  EXPECT_EQ(phase_->limit_lines(), "");
  auto const said = answer(page_of(0, 1, 0));
  EXPECT_EQ(said.status, 200);
  EXPECT_THAT(field_names(said), ElementsAre("Content-Type"));
}

TEST_F(proxy_bridge, says_what_it_can_do_and_leaves_the_rest) {
  auto& phase = get("/ServiceProviderConfig?x=1");
  EXPECT_FALSE(phase.awaits_content());
  EXPECT_EQ(target(), "/ServiceProviderConfig?x=1");
  auto const said = answer(R"({"patch":{"supported":true},"pagination":{"cursor":false}})");
  EXPECT_EQ(said.status, 200);
  EXPECT_THAT(said.content, HasSubstr(R"("patch":{"supported":true})"));
  EXPECT_THAT(said.content, HasSubstr(R"("cursor":true)"));
  EXPECT_THAT(said.content, Not(HasSubstr(R"("cursor":false)")));
}

TEST_F(proxy_bridge_by_default, gives_one_resource_as_it_is) {
  (void)get("/Users/1");
  EXPECT_EQ(target(), "/Users/1?startIndex=1&count=100");
  auto const one = answer(R"({"id":"1"})");
  EXPECT_EQ(one.status, 200);
  EXPECT_EQ(one.content, R"({"id":"1"})");
  (void)get("/Users");
  (void)target();
  EXPECT_NE(text_of(answer(page_of(200, 1, 100)).content, "nextCursor"), "(none)");
}

}  // namespace
}  // namespace tidegate::gateway
