// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as what a client of HTTP/2 sends behind the preface, answered in every way there is:
//
// - never a crash, and never a look outside of the bytes;
// - a request is shown only with a head that HTTP/1.1 would read the same, and at most once a
//   stream;
// - content comes only between a request and its end, and never more than its length says; that of
//   an extended CONNECT also behind the end of what was sent to it;
// - an extended CONNECT has no trailers;
// - every stream that was reported is reported to be over, or is there when the session is
//   destroyed;
// - what may be under way at once has a bound;
// - what is said is whole frames of the kinds that a server sends, none too large, and nothing
//   after the end.
#include "check.hpp"

#include <tidegate/wire/http1_body.hpp>
#include <tidegate/wire/http1_write.hpp>
#include <tidegate/wire/http2_session.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace {

using namespace tidegate::wire;
using tidegate::instant;
using tidegate::fuzz::check;

class answers final : public http2_events {
 public:
  explicit answers(http2_limits const& limits) : session(limits, *this, head_) {}

  /// Answers the streams that wait.
  void answer_waiting() {
    for (std::size_t i = 0; i < session.streams_count(); ++i) {
      auto& stream = session.stream_at(i);
      auto const found = streams_.find(stream.id());
      if (found == streams_.end() || found->second.answered) {
        continue;
      }
      session.let_send(stream);
      found->second.answered = true;
      switch (stream.id() / 2 % 5) {
        case 0: session.send_head(stream, 204, "Date: now\r\n", true); break;
        case 1:
          session.send_interim(stream, 103, "Link: a\r\n");
          session.send_head(stream, 200, "Content-Type: text/plain\r\n", false);
          session.send_content(stream, "hello");
          session.send_end(stream, stream.id() % 4 == 3 ? "X-Sum: 1\r\n" : "");
          break;
        case 2:
          session.send_head(stream, 200, "", false);
          session.send_content(stream, "cut");
          session.reset(stream, http2_error::internal_error);
          break;
        case 3:
          session.send_whole(stream, 429, "X-A: 1\r\n",
                             std::string(static_cast<std::size_t>(stream.id() % 64) * 1000, 'x'));
          break;
        default: session.reset(stream, http2_error::cancel);
      }
    }
  }

  void request(http2_stream& on, request_head const& head) override {
    check(!streams_.contains(on.id()), "once a stream");
    auto& state = streams_[on.id()];
    state.is_connect = head.is_extended_connect();
    if (state.is_connect) {
      check(head.upgrade_asked() && head.method() == method::get, "an upgrade");
    } else if (head.body().kind == body_kind::content_length) {
      state.content_max = head.body().length;
    } else if (head.body().kind == body_kind::none) {
      state.content_max = 0;
    }
    if (head.method() == method::connect) {
      return;  // is not sent on: it would make a tunnel
    }
    std::string text;
    append_request_head(text, head, {.body = head.body()});
    auto again = std::make_unique<request_head>();
    auto const judged = parse_request_head(text, 0, {.head_octets_max = 1U << 20U}, *again);
    check(judged.state == head_state::complete && judged.size == text.size(), "one request");
    check(again->body() == head.body(), "the same framing");
  }
  void refused_request(http2_stream& on, head_fault fault) override {
    check(streams_.emplace(on.id(), state{}).second, "once a stream");
    check(status_of(fault) >= 400);
  }
  auto content(http2_stream& on, std::string_view bytes) -> bool override {
    auto& state = streams_.at(on.id());
    check(!state.ended, "nothing behind the end");
    state.content += bytes.size();
    check(state.content <= state.content_max, "no more than its length");
    return state.content % 2 == 0;
  }
  void end_of_request(http2_stream& on, std::string_view trailers) override {
    check(!std::exchange(streams_.at(on.id()).ended, true), "one end");
    check(!streams_.at(on.id()).is_connect || trailers.empty(), "no trailers");
    body_decoder again(body_framing{.kind = body_kind::chunked});
    std::string text("0\r\n");
    text.append(trailers).append("\r\n");
    std::string rewritten;
    auto const passed = again.pass(text, rewritten, {4096, 1U << 20U, 1U << 20U});
    check(passed.state == body_state::done && passed.send == text, "trailers that go on");
  }
  void closed(http2_stream& on) override { streams_.erase(on.id()); }

 private:
  struct state {
    bool is_connect = false;
    bool answered = false;
    bool ended = false;
    std::uint64_t content = 0;
    std::uint64_t content_max = ~std::uint64_t{0};
  };

  request_head head_;
  std::map<std::int32_t, state> streams_;

 public:
  http2_session session;
};

/// What the session says, of any number of pieces. Its frames are whole when no more is said.
class listener {
 public:
  void take(std::string_view said) {
    check(!ended_ || said.empty(), "nothing behind the end");
    rest_.append(said);
    while (rest_.size() >= 9) {
      auto const octet = [this](std::size_t at) { return static_cast<unsigned char>(rest_[at]); };
      auto const length = std::size_t{octet(0)} << 16U | std::size_t{octet(1)} << 8U | octet(2);
      check(length <= 16'384, "not too large");
      if (rest_.size() < 9 + length) {
        return;
      }
      auto const type = octet(3);
      check(type <= 9 && type != 2 && type != 5, "of a server");
      ended_ = ended_ || (type == 7 && rest_[9 + 7] != 0);  // GOAWAY for an error
      rest_.erase(0, 9 + length);
    }
  }
  [[nodiscard]] auto is_between_frames() const -> bool { return rest_.empty(); }

 private:
  std::string rest_;
  bool ended_ = false;
};

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) -> int {
  std::string_view bytes(reinterpret_cast<char const*>(data), size);
  if (bytes.empty()) {
    return 0;
  }
  // The first octet says in what pieces the rest comes.
  auto const piece = static_cast<std::size_t>(data[0]) + 1;
  bytes.remove_prefix(1);
  http2_limits limits;
  limits.concurrent_streams_max = 8;
  limits.extended_connect = true;
  auto const all = std::make_unique<answers>(limits);
  instant now{std::chrono::hours(1)};
  bool alive = all->session.receive("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", now);
  std::string out;
  listener client;
  while (alive && !bytes.empty()) {
    // A copy of its own, so that a look behind it is seen.
    std::string const part(bytes.substr(0, piece));
    bytes.remove_prefix(part.size());
    alive = all->session.receive(part, now);
    check(all->session.streams_count() <= 8 + 1, "bounded");
    if (alive) {
      all->answer_waiting();
    }
    out.clear();
    alive = all->session.take_output(out, 64 * 1024) && alive;
    client.take(out);
    check(client.is_between_frames(), "whole frames");
    now += std::chrono::milliseconds(10);
  }
  return 0;
}
