// SPDX-License-Identifier: Apache-2.0
#include <tidegate/lint/prober.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace tidegate::TIDEGATE_ABI::lint {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Field;
using enum probe;

/// Lets a prober talk to a server that is a function, and returns what it sent.
auto run(prober& with, std::function<exchange(planned_request const&)> const& server)
    -> std::vector<planned_request> {
  std::vector<planned_request> sent;
  for (auto group = with.next(); !group.empty(); group = with.next()) {
    for (auto const& request : group) {
      sent.push_back(request);
      auto answer = server(request);
      answer.request = request;
      with.record(std::move(answer));
    }
  }
  return sent;
}

auto purposes(std::vector<planned_request> const& sent) -> std::vector<probe> {
  std::vector<probe> all;
  for (auto const& each : sent) {
    all.push_back(each.purpose);
  }
  return all;
}

auto settings(std::string url) -> probe_settings {
  return {.url = std::move(url),
          .make_key = [number = 0]() mutable { return "key-" + std::to_string(++number); }};
}

auto ok(planned_request const& /*any*/) -> exchange {
  return {.request = {}, .status = 200};
}

TEST(lint_prober, sends_nothing_but_gets_by_default) {
  prober with(settings("http://a/orders?x=1"));
  auto const sent = run(with, ok);
  EXPECT_THAT(purposes(sent), ElementsAre(sample, missing_page, sample, sample));
  EXPECT_THAT(sent, Each(Field(&planned_request::method, "GET")));
  EXPECT_EQ(sent[1].url, "http://a/orders/tidegate-lint-no-such-page");
}

TEST(lint_prober, stops_at_the_first_refusal_by_quota) {
  auto wanted = settings("http://a/");
  wanted.samples = 100;
  prober with(wanted);
  int count = 0;
  auto const sent = run(with, [&](planned_request const&) {
    return exchange{.request = {}, .status = ++count < 5 ? 200 : 429};
  });
  EXPECT_EQ(sent.size(), 5);
}

TEST(lint_prober, stops_when_there_is_no_answer) {
  prober with(settings("http://a/"));
  EXPECT_EQ(run(with, [](planned_request const&) { return exchange{.request = {}}; }).size(), 1);
}

TEST(lint_prober, tries_keys_where_it_may_write) {
  auto wanted = settings("http://a/orders");
  wanted.write_method = "POST";
  wanted.content = R"({"amount":5})";
  wanted.is_key_required = true;
  wanted.samples = 1;
  prober with(wanted);
  auto const sent = run(with, ok);
  EXPECT_THAT(purposes(sent),
              ElementsAre(sample, missing_page, key_missing, key_first, key_retry, key_reused,
                          key_malformed, key_concurrent, key_concurrent));
  EXPECT_TRUE(sent[2].fields.empty());
  EXPECT_THAT(sent[3].fields, ElementsAre(http::field{"Idempotency-Key", "\"key-1\""}));
  EXPECT_EQ(sent[3].fields, sent[4].fields);
  EXPECT_EQ(sent[3].content, sent[4].content);
  EXPECT_EQ(sent[3].fields, sent[5].fields);
  EXPECT_EQ(sent[5].content, R"({"amount":1})");
  EXPECT_THAT(sent[6].fields, ElementsAre(http::field{"Idempotency-Key", "\"key-2"}));
  EXPECT_EQ(sent[7], sent[8]);
}

TEST(lint_prober, sees_scim_by_itself_and_walks_its_pages) {
  auto wanted = settings("http://a/scim/v2/Users");
  wanted.samples = 1;
  prober with(wanted);
  auto const sent = run(with, [](planned_request const& request) {
    exchange made{.request = {},
                  .status = 200,
                  .fields = {{"Content-Type", "application/scim+json"}},
                  .content = "{}"};
    if (request.purpose == scim_first_page) {
      made.content = R"({"nextCursor":"a b"})";
    } else if (request.purpose == scim_next_page) {
      made.content = R"({"previousCursor":"c"})";
    }
    return made;
  });
  EXPECT_TRUE(with.is_scim());
  EXPECT_THAT(purposes(sent),
              ElementsAre(sample, missing_page, scim_config, scim_first_page, scim_next_page,
                          scim_previous_page, scim_invalid_cursor, scim_count_zero,
                          scim_count_negative, scim_count_word, scim_default_page));
  EXPECT_EQ(sent[2].url, "http://a/scim/v2/ServiceProviderConfig");
  EXPECT_EQ(sent[3].url, "http://a/scim/v2/Users?cursor=&count=2");
  EXPECT_EQ(sent[4].url, "http://a/scim/v2/Users?cursor=a%20b&count=2");
  EXPECT_EQ(sent[5].url, "http://a/scim/v2/Users?cursor=c&count=2");
}

TEST(lint_prober, takes_the_base_of_a_scim_server_too) {
  auto wanted = settings("http://a/scim/v2/?x=1");
  wanted.scim = scim_choice::always;
  prober with(wanted);
  auto const sent = run(with, ok);
  EXPECT_EQ(sent[2].url, "http://a/scim/v2/ServiceProviderConfig");
  EXPECT_EQ(sent[3].url, "http://a/scim/v2/Users?x=1&cursor=&count=2");
}

TEST(lint_prober, leaves_scim_alone_when_told_so) {
  auto wanted = settings("http://a/Users");
  wanted.scim = scim_choice::never;
  wanted.samples = 1;
  prober with(wanted);
  auto const sent = run(with, [](planned_request const&) {
    return exchange{
        .request = {}, .status = 200, .fields = {{"Content-Type", "application/scim+json"}}};
  });
  EXPECT_THAT(purposes(sent), ElementsAre(sample, missing_page));
}

TEST(lint_prober, makes_content_that_asks_for_something_else) {
  EXPECT_EQ(altered(R"({"a":[],"b":"x"})"), R"({"a":[],"b":"x-2"})");
  EXPECT_EQ(altered(R"({"a":1})"), R"({"a":2})");
  EXPECT_EQ(altered(R"({"a":true})"), R"({"a":false})");
  EXPECT_EQ(altered("{}"), R"({"tidegate-lint":true})");
  EXPECT_EQ(altered("a=1"), "a=1x");
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::lint
