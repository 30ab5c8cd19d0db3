// SPDX-License-Identifier: Apache-2.0
#include <tidegate/client/session.hpp>

#include "faulty_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

namespace tidegate::TIDEGATE_ABI::client {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

/// Retries at once, so that no test waits.
auto quick() -> session_options {
  return {.pacing = {.interval_min = 0ns},
          .retries = {.backoff_first = 1ms, .backoff_max = 1ms},
          .time_max = 20s};
}

auto opened(session_options options = quick()) -> std::unique_ptr<session> {
  auto made = session::open(std::move(options));
  EXPECT_TRUE(made);
  return *std::move(made);
}

/// What `request` says in a field, which is there once at most.
auto field_of(std::string const& request, std::string const& name) -> std::string {
  auto const at = request.find("\r\n" + name + ": ");
  if (at == std::string::npos) {
    return "(none)";
  }
  auto const begin = at + name.size() + 4;
  return request.substr(begin, request.find("\r\n", begin) - begin);
}

TEST(client_session, sends_what_it_is_given_and_returns_what_comes) {
  faulty_server server([](auto const&) {
    return reaction{response_bytes("201 Created", "done", "X-One: 1\r\nx-one:  2 \r\n")};
  });
  auto const client = opened();
  auto const got = client
                       ->send({.method = "POST",
                               .url = server.url("/a?b"),
                               .fields = {{"X-Two", "2"}, {"X-Empty", ""}},
                               .body = "content"})
                       .get();
  ASSERT_TRUE(got) << to_string(got.error());
  EXPECT_EQ(got->status, 201);
  EXPECT_EQ(got->body, "done");
  EXPECT_EQ(got->fields.size(), 3U);
  EXPECT_EQ(got->fields.find("X-ONE"), "1");
  EXPECT_EQ(got->fields[1].value, "2");
  EXPECT_EQ(got->attempts, 1U);
  auto const request = server.requests().at(0);
  EXPECT_THAT(request, testing::StartsWith("POST /a?b HTTP/1.1\r\n"));
  EXPECT_THAT(request, testing::EndsWith("\r\n\r\ncontent"));
  EXPECT_EQ(field_of(request, "X-Two"), "2");
  EXPECT_THAT(request, HasSubstr("\r\nX-Empty:\r\n"));
  EXPECT_EQ(field_of(request, "User-Agent"), "tidegate");
  EXPECT_EQ(field_of(request, "Idempotency-Key"), "(none)");
  EXPECT_THAT(request, Not(HasSubstr("Content-Type"))) << "the caller has not said what it is";
}

TEST(client_session, sends_targets_one_after_the_other_over_one_connection) {
  faulty_server server([](auto const&) { return reaction{response_bytes("200 OK")}; });
  auto const client = opened();
  auto const root = server.url("");
  std::vector<std::string> lines;
  for (auto const* const rest :
       {"/a?b=/c", "", "?d=/e", "/f/../g", "/h", "/i//j", "/%7Ek", "/l?", "/l"}) {
    ASSERT_TRUE(client->send({.url = root + rest}).get()) << rest;
    lines.push_back(server.requests().back());
    lines.back().resize(lines.back().find(" HTTP/1.1\r\n"));
    EXPECT_EQ("http://" + field_of(server.requests().back(), "Host"), root);
  }
  EXPECT_THAT(lines, testing::ElementsAre("GET /a?b=/c", "GET /", "GET /?d=/e", "GET /g", "GET /h",
                                          "GET /i//j", testing::AnyOf("GET /%7Ek", "GET /~k"),
                                          testing::AnyOf("GET /l?", "GET /l"), "GET /l"));
  EXPECT_EQ(server.connections(), 1U);
}

TEST(client_session, sends_every_method_as_it_is) {
  faulty_server server([](auto const& request) {
    return reaction{request.starts_with("HEAD") ? "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
                                                : response_bytes("200 OK")};
  });
  // One after the other over one connection and one handle, so that none leaves anything for the
  // next.
  auto const client = opened();
  struct row {
    std::string method;
    std::string body;
    std::string length;
  };
  for (auto const& each : std::vector<row>{{"PUT", "x", "1"},
                                           {"HEAD", "", "(none)"},
                                           {"GET", "", "(none)"},
                                           {"PATCH", "", "0"},
                                           {"DELETE", "", "(none)"},
                                           {"POST", "", "0"},
                                           {"DELETE", "xy", "2"},
                                           {"OPTIONS", "", "(none)"},
                                           {"PURGE", "", "(none)"},
                                           {"GET", "", "(none)"}}) {
    auto const got =
        client->send({.method = each.method, .url = server.url(), .body = each.body}).get();
    ASSERT_TRUE(got) << each.method << to_string(got.error());
    auto const request = server.requests().back();
    EXPECT_THAT(request, testing::StartsWith(each.method + " / HTTP/1.1\r\n"));
    EXPECT_EQ(field_of(request, "Content-Length"), each.length) << each.method;
    EXPECT_THAT(request, testing::EndsWith("\r\n\r\n" + each.body));
  }
  EXPECT_EQ(server.connections(), 1U);
}

TEST(client_session, skips_interim_answers_and_trailers) {
  faulty_server server([](auto const&) {
    return reaction{
        "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n"
        "HTTP/1.1 200 OK\r\nX: y\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3\r\nabc\r\n0\r\nX-Trailer: z\r\n\r\n"};
  });
  auto const got = opened()->send({.url = server.url()}).get();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->status, 200);
  EXPECT_EQ(got->body, "abc");
  EXPECT_EQ(got->fields.find("link"), std::nullopt);
  EXPECT_EQ(got->fields.find("x-trailer"), std::nullopt);
  EXPECT_EQ(got->fields.find("x"), "y");
}

TEST(client_session, tries_again_with_one_key_until_an_answer_comes_through) {
  // Before, within and after the answer; too late; and not now.
  int number = 0;
  faulty_server server([&](auto const&) {
    switch (++number) {
      case 1: return reaction{"", reaction::then::reset};
      case 2: return reaction{"HTTP/1.1 201 Created\r\nContent-", reaction::then::reset};
      case 3:
        return reaction{"HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\nhalf",
                        reaction::then::close};
      case 4: return reaction{"", reaction::then::hang};
      case 5: return reaction{response_bytes("503 Busy", "", "Retry-After: 0\r\n")};
      case 6: return reaction{response_bytes("201 Created", "whole"), reaction::then::reset};
      default: return reaction{response_bytes("200 OK", "another")};
    }
  });
  auto options = quick();
  options.retries.retries_max = 10;
  options.attempt_time_max = 300ms;
  auto const client = opened(options);
  auto const got =
      client->send({.method = "POST", .url = server.url(), .body = "x", .idempotent = true}).get();
  ASSERT_TRUE(got) << to_string(got.error());
  EXPECT_EQ(got->status, 201);
  EXPECT_EQ(got->body, "whole");
  EXPECT_EQ(got->attempts, 6U);
  EXPECT_EQ(client->activity().retries, 5U);
  auto const next =
      client->send({.method = "POST", .url = server.url(), .body = "x", .idempotent = true}).get();
  ASSERT_TRUE(next);
  EXPECT_NE(next->key, got->key);
  std::set<std::string> keys;
  for (auto const& request : server.requests()) {
    keys.insert(field_of(request, "Idempotency-Key"));
  }
  EXPECT_EQ(keys, (std::set{'"' + got->key + '"', '"' + next->key + '"'}));
}

TEST(client_session, never_sends_a_request_twice_that_may_not_run_twice) {
  // The second request finds its connection closed at the very moment; curl alone would send it
  // again.
  int number = 0;
  faulty_server server([&](auto const&) {
    return ++number == 1 ? reaction{response_bytes("200 OK")} : reaction{"", reaction::then::close};
  });
  auto const client = opened();
  ASSERT_TRUE(client->send({.url = server.url()}).get());
  auto const got = client->send({.method = "POST", .url = server.url(), .body = "pay"}).get();
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().fault, client_fault::connection_lost);
  EXPECT_TRUE(got.error().may_have_run);
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST(client_session, says_that_no_server_listens) {
  std::string url;
  {
    faulty_server const gone([](auto const&) { return reaction{}; });
    url = gone.url();
  }
  auto options = quick();
  options.retries.retries_max = 2;
  auto const got = opened(options)->send({.method = "POST", .url = url}).get();
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().fault, client_fault::cannot_connect);
  EXPECT_EQ(got.error().attempts, 3U) << "what no server has seen may be sent again";
  EXPECT_FALSE(got.error().may_have_run);
}

TEST(client_session, bounds_what_an_answer_may_have) {
  faulty_server server([](auto const& request) {
    return request.starts_with("GET /body") ? reaction{response_bytes("200 OK", "12345678901")}
           : request.starts_with("GET /head")
               ? reaction{response_bytes("200 OK", "", "X: " + std::string(200, 'x') + "\r\n")}
               : reaction{response_bytes("200 OK", "1234567890")};
  });
  auto options = quick();
  options.response_body_octets_max = 10;
  options.response_head_octets_max = 100;
  auto const client = opened(options);
  EXPECT_TRUE(client->send({.url = server.url("/")}).get());
  for (auto const* const path : {"/body", "/head"}) {
    auto const got = client->send({.url = server.url(path)}).get();
    ASSERT_FALSE(got) << path;
    EXPECT_EQ(got.error().fault, client_fault::response_too_large);
    EXPECT_EQ(got.error().attempts, 1U);
  }
}

TEST(client_session, bounds_how_many_requests_wait) {
  faulty_server server([](auto const&) { return reaction{"", reaction::then::hang}; });
  auto options = quick();
  options.requests_max = 2;
  auto const client = opened(options);
  auto const first = client->send({.url = server.url()}, [](auto const&) {});
  auto const second = client->send({.url = server.url()}, [](auto const&) {});
  auto const third = client->send({.url = server.url()}, [](auto const&) { ADD_FAILURE(); });
  EXPECT_TRUE(first);
  EXPECT_TRUE(second);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().fault, client_fault::too_many_requests);
}

TEST(client_session, ends_at_the_deadline_and_on_cancel) {
  faulty_server server([](auto const&) { return reaction{"", reaction::then::hang}; });
  auto const client = opened();
  auto const late = client->send({.url = server.url(), .time_max = 50ms}).get();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().fault, client_fault::deadline_exceeded);
  EXPECT_TRUE(late.error().may_have_run);

  std::promise<client_fault> fault;
  auto const id = client->send({.url = server.url()}, [&](result<response, client_error> what) {
    fault.set_value(what.error().fault);
  });
  ASSERT_TRUE(id);
  client->cancel(*id);
  client->cancel(*id + 100);
  EXPECT_EQ(fault.get_future().get(), client_fault::cancelled);
}

TEST(client_session, gives_every_request_an_outcome_when_it_ends) {
  faulty_server server([](auto const&) { return reaction{"", reaction::then::hang}; });
  std::atomic<int> outcomes = 0;
  {
    auto const client = opened();
    for (int i = 0; i < 100; ++i) {
      auto const sent = client->send({.url = server.url()}, [&, raw = client.get()](auto what) {
        EXPECT_EQ(what.error().fault, client_fault::cancelled);
        EXPECT_FALSE(raw->send({.url = server.url()}, [](auto const&) { ADD_FAILURE(); }));
        ++outcomes;
      });
      ASSERT_TRUE(sent);
    }
  }
  EXPECT_EQ(outcomes, 100);
}

TEST(client_session, is_shared_by_threads) {
  faulty_server server([](auto const&) { return reaction{response_bytes("200 OK", "x")}; });
  auto const client = opened();
  std::atomic<int> ok = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        auto const got = client->send({.url = server.url()}).get();
        ok += got && got->status == 200 ? 1 : 0;
      }
    });
  }
  for (auto& each : threads) {
    each.join();
  }
  EXPECT_EQ(ok, 200);
  EXPECT_EQ(server.requests().size(), 200U);
}

TEST(client_session, sends_the_next_request_from_a_completion) {
  faulty_server server([](auto const&) { return reaction{response_bytes("200 OK")}; });
  auto const client = opened();
  std::promise<void> finished;
  int left = 20;
  std::function<void()> send_one = [&] {
    auto const sent = client->send({.url = server.url()}, [&](auto const& got) {
      EXPECT_TRUE(got);
      if (--left == 0) {
        finished.set_value();
      } else {
        send_one();
      }
    });
    EXPECT_TRUE(sent);
  };
  send_one();
  finished.get_future().get();
  EXPECT_EQ(server.connections(), 1U);
}

TEST(client_session, refuses_what_cannot_be_sent) {
  auto const got = opened()->send({.url = "ftp://a/"}).get();
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().fault, client_fault::invalid_request);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::client
