// SPDX-License-Identifier: Apache-2.0
//
// Our session and a client by nghttp2 talk at random: requests with and without content, responses
// of every shape, windows, priorities, resets from both sides, settings, pings, output and input in
// pieces. Whatever the order, content arrives as it was sent, and both agree on which streams are
// over.
#include "http2_pair.hpp"

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
#include <vector>

namespace {

using namespace tidegate;
using namespace tidegate::wire;
using namespace tidegate::wire::test;

/// Content that is different for every stream and at every place.
auto text_of(std::int32_t id, std::size_t size) -> std::string {
  std::string out(size, '\0');
  for (std::size_t i = 0; i < size; ++i) {
    auto const mixed = i * 2654435761U + static_cast<std::uint32_t>(id) * 40503U;
    out[i] = static_cast<char>(mixed >> 13U);
  }
  return out;
}

class conversation final : private http2_events {
 public:
  explicit conversation(unsigned seed)
      : random_(seed),
        client_(static_cast<std::int32_t>(1 + below(100'000))),
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
    std::string request;   // what the client sends
    std::string received;  // what came of it here
    std::string response;  // what we send
    bool asked = false;    // the request came
    bool request_ended = false;
    bool answered = false;
    bool response_ended = false;
    bool reset = false;  // by either side
    bool closed = false;
  };

  static auto limits() -> http2_limits {
    http2_limits out;
    out.concurrent_streams_max = 20;
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

  /// Of the streams that are open here.
  auto any_stream() -> http2_stream* {
    auto const count = session_.streams_count();
    return count == 0 ? nullptr : &session_.stream_at(below(count));
  }

  void do_something() {
    auto* const stream = any_stream();
    auto const known = stream != nullptr && expected_[stream->id()].asked;
    switch (below(13)) {
      case 0:
      case 1:
      case 2: ask(); break;
      case 3:
      case 4:
        if (known) {
          answer(*stream);
        }
        break;
      case 5:
      case 6:
        if (known) {
          send_rest(*stream);
        }
        break;
      case 7:
        if (known && below(4) == 0) {
          expected_[stream->id()].reset = true;
          session_.reset(*stream, http2_error::cancel);
        }
        break;
      case 8:
        if (stream != nullptr && below(4) == 0) {
          expected_[stream->id()].reset = true;
          nghttp2_submit_rst_stream(client_.session, NGHTTP2_FLAG_NONE, stream->id(),
                                    NGHTTP2_CANCEL);
        }
        break;
      case 9: {
        nghttp2_settings_entry const all[] = {
            {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<std::uint32_t>(below(100'000))},
            {NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, static_cast<std::uint32_t>(below(2000))}};
        nghttp2_submit_settings(client_.session, NGHTTP2_FLAG_NONE, all, 1 + below(2));
        break;
      }
      case 10: nghttp2_submit_ping(client_.session, NGHTTP2_FLAG_NONE, nullptr); break;
      case 11: takes_content_ = !takes_content_; break;
      default:
        for (std::size_t i = 0; i < session_.streams_count(); ++i) {
          session_.let_send(session_.stream_at(i));
        }
    }
  }

  void ask() {
    field_texts fields = get_request;
    if (below(3) == 0) {
      fields.emplace_back("priority",
                          "u=" + std::to_string(below(8)) + (below(2) == 0 ? ", i" : ""));
    }
    if (below(3) == 0) {
      fields.emplace_back("x-" + std::to_string(below(50)), std::string(below(200), 'v'));
    }
    auto const next =
        static_cast<std::int32_t>(nghttp2_session_get_next_stream_id(client_.session));
    auto const body = below(2) == 0 ? std::string() : text_of(-next, size());
    auto const id = client_.ask(fields, body);
    ASSERT_EQ(id, next);
    expected_[id].request = body;
  }

  /// Begins a response, and ends it perhaps.
  void answer(http2_stream& on) {
    auto& all = expected_[on.id()];
    if (std::exchange(all.answered, true) || all.reset) {
      return;
    }
    auto const lines = below(2) == 0 ? std::string("x-a: same\r\nx-b: same\r\n")
                                     : "x-a: " + std::to_string(below(9)) +
                                           "\r\nX-C: " + std::string(below(60), 'c') + "\r\n";
    switch (below(4)) {
      case 0:
        all.response = text_of(on.id(), size());
        all.response_ended = true;
        session_.send_whole(on, 429, lines, all.response);
        break;
      case 1:
        all.response_ended = true;
        session_.send_head(on, 204, lines, true);
        break;
      case 2: session_.send_interim(on, 103, lines); [[fallthrough]];
      default: session_.send_head(on, 200, lines, false);
    }
  }

  void send_rest(http2_stream& on) {
    auto& all = expected_[on.id()];
    if (!all.answered || all.response_ended || all.reset) {
      return;
    }
    if (below(3) == 0) {
      all.response_ended = true;
      session_.send_end(on);
    } else {
      auto const whole = text_of(on.id(), all.response.size() + size());
      session_.send_content(on, std::string_view(whole).substr(all.response.size()));
      all.response = whole;
    }
  }

  /// False when neither had anything to say.
  auto exchange_bytes() -> bool {
    auto const in = client_.output();
    for (std::string_view rest = in; !rest.empty();) {
      std::string const piece(rest.substr(0, 1 + below(40'000)));
      rest.remove_prefix(piece.size());
      EXPECT_TRUE(session_.receive(piece, now_));
    }
    std::string out;
    EXPECT_TRUE(session_.take_output(out, 1 + below(80'000)));
    for (std::string_view rest = out; !rest.empty();) {
      auto const piece = rest.substr(0, std::max<std::size_t>(64, below(40'000)));
      rest.remove_prefix(piece.size());
      client_.input(piece);
    }
    // The client takes some of what came.
    bool took = false;
    for (auto& [id, response] : client_.responses) {
      auto& taken = taken_[id];
      if (auto const more = response.content.size() - taken; more > 0) {
        auto const count = finishing_ ? more : below(more + 1);
        nghttp2_session_consume(client_.session, id, count);
        taken += count;
        took = took || count > 0;
      }
    }
    return !in.empty() || !out.empty() || took;
  }

  /// Everything is answered, taken and ended.
  void finish() {
    finishing_ = true;
    takes_content_ = true;
    nghttp2_settings_entry const large{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 50'000};
    nghttp2_submit_settings(client_.session, NGHTTP2_FLAG_NONE, &large, 1);
    for (int turn = 0; turn < 10'000; ++turn) {
      bool const talked = exchange_bytes();
      bool ended = false;
      for (std::size_t i = 0; i < session_.streams_count(); ++i) {
        auto& on = session_.stream_at(i);
        session_.let_send(on);
        if (expected_[on.id()].asked && !expected_[on.id()].response_ended) {
          answer(on);
          send_rest(on);
          ended = true;
        }
      }
      if (!talked && !ended && !session_.wants_output()) {
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
      auto const& response = client_.responses[id];
      EXPECT_TRUE(response.closed);
      EXPECT_EQ(all.asked, all.closed);
      if (all.reset || response.reset != NGHTTP2_NO_ERROR) {
        EXPECT_TRUE(all.response.starts_with(response.content));
        EXPECT_TRUE(all.request.starts_with(all.received));
        EXPECT_TRUE(all.reset || response.reset == NGHTTP2_REFUSED_STREAM) << response.reset;
        continue;
      }
      ++complete;
      EXPECT_TRUE(response.complete);
      EXPECT_TRUE(response.content == all.response) << response.content.size();
      // A long body is stopped once it is answered, so what came is a part of it.
      EXPECT_TRUE(all.received == all.request || all.request.starts_with(all.received));
    }
    EXPECT_GT(complete, 0);
    EXPECT_FALSE(client_.gone);
  }

  void request(http2_stream& on, request_head const& /*head*/) override {
    auto& all = expected_[on.id()];
    EXPECT_FALSE(std::exchange(all.asked, true));
    all.request_ended = on.is_received();
    if (below(3) == 0) {
      answer(on);
    }
  }
  void refused_request(http2_stream& on, head_fault fault) override {
    FAIL() << on.id() << " " << to_string(fault);
  }
  auto content(http2_stream& on, std::string_view bytes) -> bool override {
    auto& all = expected_[on.id()];
    EXPECT_FALSE(all.request_ended);
    all.received.append(bytes);
    return takes_content_;
  }
  void end_of_request(http2_stream& on, std::string_view /*trailers*/) override {
    auto& all = expected_[on.id()];
    EXPECT_FALSE(std::exchange(all.request_ended, true));
    EXPECT_TRUE(all.received == all.request) << on.id();
  }
  void closed(http2_stream& on) override {
    EXPECT_FALSE(std::exchange(expected_[on.id()].closed, true));
  }

  std::mt19937 random_;
  test_client client_;
  request_head head_;
  http2_session session_;
  instant now_{std::chrono::hours(1)};
  bool takes_content_ = true;
  bool finishing_ = false;
  std::map<std::int32_t, expectation> expected_;
  std::map<std::int32_t, std::size_t> taken_;
};

TEST(wire_http2_peers, agree_on_everything_whatever_the_order) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    conversation(seed).run();
    if (testing::Test::HasFailure()) {
      break;
    }
  }
}

// ---- field blocks ----

TEST(wire_http2_peers, read_the_same_fields_whatever_was_sent_before) {
  http2_pair pair;
  std::vector<std::pair<int, std::string>> const responses = {
      {429, "x-a: 1\r\nContent-Length: 5\r\n"},
      {429, "x-a: 1\r\nContent-Length: 5\r\n"},
      {429, "x-a: 1\r\nContent-Length: 5\r\n"},
      {429, "x-a: 2\r\nContent-Length: 5\r\n"},
      {429, "x-a: 1\r\nContent-Length: 5\r\n"},
      {503, "x-a: 1\r\nContent-Length: 5\r\n"},
      {503, "x-a: 1\r\nContent-Length: 5\r\n"},
      {200, "RateLimit: \"p\";r=4;t=1\r\n"},
      {200, "RateLimit: \"p\";r=4;t=1\r\n"},
      {429, "x-a: 1\r\nContent-Length: 5\r\n"},
      {429, "x-large: " + std::string(2000, 'x') + "\r\n"},
      {429, "x-large: " + std::string(2000, 'x') + "\r\n"},
      {429, "x-a: 1\r\nContent-Length: 5\r\n"},
  };
  for (std::uint32_t const table : {4096U, 0U, 100U, 4096U}) {
    nghttp2_settings_entry const size{NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, table};
    nghttp2_submit_settings(pair.client.session, NGHTTP2_FLAG_NONE, &size, 1);
    for (auto const& [status, lines] : responses) {
      auto const id = pair.client.ask(get_request);
      pair.talk();
      pair.session.send_whole(pair.stream(id), status, lines, "hello");
      pair.talk();
      auto const& got = pair.client.responses[id];
      EXPECT_EQ(got.field(":status"), std::to_string(status));
      ASSERT_EQ(got.fields.size(), 1U + static_cast<std::size_t>(std::ranges::count(lines, '\n')));
      auto const value = lines.substr(lines.find(": ") + 2);
      EXPECT_EQ(got.fields[1].second, value.substr(0, value.find('\r')));
      EXPECT_EQ(got.content, "hello");
    }
  }
}

}  // namespace
