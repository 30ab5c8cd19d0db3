// SPDX-License-Identifier: Apache-2.0
//
// A client session and a server by nghttp2 talk at random: requests with and without content,
// responses of every shape, windows, resets from both sides, settings, pings, output and input in
// pieces. Whatever the order, content arrives as it was sent, and both agree on which streams are
// over.
#include "http2_client_pair.hpp"

#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>

namespace {

using namespace tidegate;
using namespace tidegate::wire;
using namespace tidegate::wire::test;

/// Content that is different for every stream and at every place.
auto content_for(std::int32_t id, std::size_t size) -> std::string {
  std::string out(size, '\0');
  for (std::size_t i = 0; i < size; ++i) {
    auto const mixed = i * 2654435761U + static_cast<std::uint32_t>(id) * 40503U;
    out[i] = static_cast<char>(mixed >> 13U);
  }
  return out;
}

class conversation_as_client final : private http2_client_events {
 public:
  explicit conversation_as_client(unsigned seed)
      : random_(seed),
        server_({{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
                  static_cast<std::uint32_t>(1 + below(100'000))}}),
        session_(limits(), *this, head_) {}

  void run() {
    for (int step = 0; step < 400; ++step) {
      do_something();
      if (below(3) == 0) {
        exchange_bytes();
      }
    }
    finish();
    check();
  }

 private:
  struct expectation {
    http2_stream* stream = nullptr;  // while it is open
    std::string request;
    std::string response;  // what the server sends
    std::string received;  // what came of it here
    bool has_content = false;
    bool request_ended = false;
    bool answered = false;
    bool response_ended = false;
    bool ended = false;  // here
    bool reset = false;  // by either side
    bool has_trailers = false;
    http2_stream_end ended_by{};
  };

  static auto limits() -> http2_limits {
    http2_limits out;
    out.stream_window_octets = 40'000;
    out.connection_window_octets = 70'000;
    out.resets = {100'000, 1};
    out.control_frames = {100'000, 1};
    return out;
  }
  auto below(std::size_t bound) -> std::size_t {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_);
  }
  /// Mostly small, seldom large.
  auto size() -> std::size_t { return below(5) == 0 ? below(150'000) : below(300); }

  auto any() -> expectation* {
    std::erase_if(open_, [&](std::int32_t id) { return expected_[id].stream == nullptr; });
    return open_.empty() ? nullptr : &expected_[last_ = open_[below(open_.size())]];
  }

  void do_something() {
    auto* const one = any();
    switch (below(13)) {
      case 0:
      case 1:
      case 2: ask(); break;
      case 3:
      case 4:
        if (one != nullptr) {
          answer(last_);
        }
        break;
      case 5:
      case 6:
        if (one != nullptr) {
          send_rest(last_);
        }
        break;
      case 7:
        if (one != nullptr && below(4) == 0) {
          one->reset = true;
          session_.reset(*one->stream, http2_error::cancel);
        }
        break;
      case 8:
        if (one != nullptr && below(4) == 0 && server_.requests.contains(last_)) {
          one->reset = true;
          nghttp2_submit_rst_stream(server_.session, NGHTTP2_FLAG_NONE, last_,
                                    NGHTTP2_INTERNAL_ERROR);
        }
        break;
      case 9: {
        nghttp2_settings_entry const all[] = {
            {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<std::uint32_t>(below(100'000))},
            {NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, static_cast<std::uint32_t>(below(2000))}};
        nghttp2_submit_settings(server_.session, NGHTTP2_FLAG_NONE, all, 1 + below(2));
        break;
      }
      case 10:
        nghttp2_submit_ping(server_.session, NGHTTP2_FLAG_NONE, nullptr);
        session_.send_ping();
        break;
      case 11: takes_content_ = !takes_content_; break;
      default:
        for (auto& [id, each] : expected_) {
          if (each.stream != nullptr) {
            session_.let_send(*each.stream);
          }
        }
    }
  }

  void ask() {
    if (session_.streams_count() >= 20) {
      return;
    }
    bool const has_content = below(2) == 0;
    auto const lines = "X-" + std::to_string(below(50)) + ": " + std::string(below(200), 'v') +
                       "\r\n" + (has_content ? "Transfer-Encoding: chunked\r\n" : "");
    auto const [stream, body] = session_.open({.method = "POST",
                                               .scheme = "http",
                                               .authority = "a",
                                               .path = "/" + std::to_string(below(9)),
                                               .field_lines = lines},
                                              method::post, now_);
    auto& all = expected_[stream.id()];
    all.stream = &stream;
    all.has_content = has_content;
    all.request_ended = !has_content;
    open_.push_back(stream.id());
  }

  void send_rest(std::int32_t id) {
    auto& all = expected_[id];
    if (below(2) == 0) {
      if (all.request_ended || all.stream == nullptr || all.stream->is_over()) {
        return;
      }
      if (below(3) == 0) {
        all.request_ended = true;
        session_.send_end(*all.stream, below(2) == 0 ? "X-Sum: 1\r\n" : "");
        return;
      }
      auto const whole = content_for(-id, all.request.size() + size());
      session_.send_content(*all.stream, std::string_view(whole).substr(all.request.size()));
      all.request = whole;
    } else if (all.answered && !all.response_ended) {
      auto const whole = content_for(id, all.response.size() + size());
      all.response_ended = below(3) == 0;
      server_.send_more(id, std::string_view(whole).substr(all.response.size()),
                        all.response_ended);
      all.response = whole;
    }
  }

  void answer(std::int32_t id) {
    auto& all = expected_[id];
    if (!server_.requests.contains(id) || std::exchange(all.answered, true)) {
      return;
    }
    if (below(3) == 0) {
      server_.send_interim(id, {{":status", "103"}, {"link", "a"}});
    }
    field_texts const fields = {{":status", "200"},
                                {"x-" + std::to_string(below(9)), std::string(below(60), 'c')}};
    switch (below(3)) {
      case 0:
        all.response_ended = true;
        server_.answer(id, fields);
        break;
      case 1:
        all.response_ended = true;
        all.has_trailers = true;
        all.response = content_for(id, size());
        server_.answer(id, fields, {all.response, true, {{"x-sum", "1"}}});
        break;
      default: server_.answer(id, fields, {"", false, {}});
    }
  }

  /// False when neither had anything to say.
  auto exchange_bytes() -> bool {
    std::string out;
    EXPECT_TRUE(session_.take_output(out, 1 + below(80'000)));
    for (std::string_view rest = out; !rest.empty();) {
      auto const piece = rest.substr(0, std::max<std::size_t>(64, below(40'000)));
      rest.remove_prefix(piece.size());
      server_.input(piece);
    }
    auto const in = server_.output();
    for (std::string_view rest = in; !rest.empty();) {
      std::string const piece(rest.substr(0, 1 + below(40'000)));
      rest.remove_prefix(piece.size());
      EXPECT_TRUE(session_.receive(piece, now_));
    }
    return !in.empty() || !out.empty();
  }

  /// Everything is sent, answered and taken.
  void finish() {
    takes_content_ = true;
    nghttp2_settings_entry const large{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 50'000};
    nghttp2_submit_settings(server_.session, NGHTTP2_FLAG_NONE, &large, 1);
    for (int turn = 0; turn < 10'000; ++turn) {
      bool const talked = exchange_bytes();
      bool is_open = false;
      for (auto& [id, all] : expected_) {
        if (all.stream == nullptr) {
          continue;
        }
        is_open = true;
        session_.let_send(*all.stream);
        answer(id);
        send_rest(id);
      }
      if (!talked && !is_open && !session_.wants_output()) {
        return;
      }
    }
    FAIL() << "they talk for ever";
  }

  void check() {
    EXPECT_EQ(session_.streams_count(), 0U);
    int complete = 0;
    for (auto const& [id, all] : expected_) {
      SCOPED_TRACE(id);
      auto const& request = server_.requests[id];
      if (all.reset) {
        EXPECT_TRUE(all.response.starts_with(all.received));
        EXPECT_TRUE(all.request.starts_with(request.content));
        continue;
      }
      ++complete;
      EXPECT_TRUE(all.ended);
      EXPECT_EQ(all.ended_by, http2_stream_end::complete);
      EXPECT_TRUE(all.received == all.response) << all.received.size();
      EXPECT_TRUE(request.content == all.request) << request.content.size();
      EXPECT_TRUE(request.complete);
    }
    EXPECT_GT(complete, 0);
    EXPECT_FALSE(server_.gone);
  }

  void interim(http2_stream& on, response_head const& head) override {
    EXPECT_TRUE(expected_[on.id()].answered);
    EXPECT_EQ(head.status(), 103);
  }
  void response(http2_stream& on, response_head const& head) override {
    EXPECT_TRUE(expected_[on.id()].answered);
    EXPECT_EQ(head.status(), 200);
  }
  auto content(http2_stream& on, std::string_view bytes) -> bool override {
    auto& all = expected_[on.id()];
    EXPECT_FALSE(all.ended);
    all.received.append(bytes);
    return takes_content_;
  }
  void end_of_response(http2_stream& on, std::string_view trailers) override {
    auto& all = expected_[on.id()];
    EXPECT_FALSE(std::exchange(all.ended, true));
    EXPECT_EQ(trailers, all.has_trailers ? "x-sum: 1\r\n" : "");
  }
  void closed(http2_stream& on, http2_stream_end how) override {
    auto& all = expected_[on.id()];
    EXPECT_EQ(std::exchange(all.stream, nullptr), &on);
    all.ended_by = how;
  }

  std::mt19937 random_;
  test_server server_;
  response_head head_;
  http2_client_session session_;
  instant now_{std::chrono::hours(1)};
  bool takes_content_ = true;
  std::map<std::int32_t, expectation> expected_;
  std::vector<std::int32_t> open_;
  std::int32_t last_ = 0;
};

TEST(wire_http2_client_peers, agree_on_everything_whatever_the_order) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    conversation_as_client(seed).run();
    if (testing::Test::HasFailure()) {
      break;
    }
  }
}

}  // namespace
