// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as what a server of HTTP/2 sends, while requests of every kind are under way:
//
// - never a crash, and never a look outside of the bytes;
// - a response is shown only with a head that HTTP/1.1 would read the same, and once a stream;
// - content comes only between a head and its end, and never more than its length says; a tunnel by
//   extended CONNECT has no trailers;
// - every stream that was opened is reported to be over, or is there when the session is destroyed;
// - what is said is whole frames of the kinds that a client sends, none too large, and nothing
//   after the end.
#include "check.hpp"

#include <tidegate/wire/http1_body.hpp>
#include <tidegate/wire/http1_write.hpp>
#include <tidegate/wire/http2_client_session.hpp>

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

class client final : public http2_client_events {
 public:
  explicit client(http2_limits const& limits) : session(limits, *this, head_) {}

  void ask(instant now) {
    while (session.takes_requests() &&
           session.streams_count() < std::min<std::size_t>(4, session.streams_max())) {
      auto const kind = asked_++ % 5;
      bool const has_body = kind == 2 || kind == 3;
      auto const asked = kind == 0   ? method::head
                         : kind == 1 ? method::get
                         : has_body  ? method::post
                                     : method::connect;
      auto const [stream, body] =
          session.open({.method = kind == 0   ? "HEAD"
                                  : kind == 1 ? "GET"
                                  : has_body  ? "POST"
                                              : "CONNECT",
                        .scheme = "http",
                        .authority = "a",
                        .path = "/",
                        .protocol = kind == 4 ? "websocket" : "",
                        .field_lines = has_body ? "Transfer-Encoding: chunked\r\n" : "A: b\r\n"},
                       asked, now);
      streams_[stream.id()] = {.stream = &stream, .asked = asked};
      if (has_body) {
        session.send_content(stream, std::string(kind == 2 ? 5 : 100'000, 'x'));
      }
      if (kind == 2) {
        session.send_end(stream, "X-Sum: 1\r\n");
      }
    }
  }
  void take_more() {
    for (auto& [id, each] : streams_) {
      session.let_send(*each.stream);
    }
  }

  void interim(http2_stream& on, response_head const& head) override {
    check(!streams_.at(on.id()).answered && head.interim(), "before the head");
  }
  void response(http2_stream& on, response_head const& head) override {
    auto& state = streams_.at(on.id());
    check(!std::exchange(state.answered, true), "once a stream");
    state.is_tunnel = state.asked == method::connect && head.status() < 300;
    if (state.is_tunnel) {
      session.send_content(on, "hello");
    } else if (head.body().kind != body_kind::until_close) {
      state.content_max = head.body().length;
    }
    std::string text;
    append_response_head(text, head,
                         {.body = head.body().kind == body_kind::until_close
                                      ? body_framing{.kind = body_kind::chunked}
                                      : head.body()});
    auto again = std::make_unique<response_head>();
    auto const judged =
        parse_response_head(text, 0, {.head_octets_max = 1U << 20U}, state.asked, *again);
    check(judged.state == head_state::complete && judged.size == text.size(), "one response");
  }
  auto content(http2_stream& on, std::string_view bytes) -> bool override {
    auto& state = streams_.at(on.id());
    check(state.answered && !state.ended, "between head and end");
    state.content += bytes.size();
    check(state.content <= state.content_max, "no more than its length");
    return state.content % 2 == 0;
  }
  void end_of_response(http2_stream& on, std::string_view trailers) override {
    auto& state = streams_.at(on.id());
    check(state.answered && !std::exchange(state.ended, true), "one end");
    check(!state.is_tunnel || trailers.empty(), "no trailers");
    body_decoder again(body_framing{.kind = body_kind::chunked});
    std::string text("0\r\n");
    text.append(trailers).append("\r\n");
    std::string rewritten;
    auto const passed = again.pass(text, rewritten, {4096, 1U << 20U, 1U << 20U});
    check(passed.state == body_state::done && passed.send == text, "trailers that go on");
    if (on.id() % 3 == 0) {
      session.reset(on, http2_error::cancel);
    }
  }
  void closed(http2_stream& on, http2_stream_end how) override {
    check(how != http2_stream_end::complete || streams_.at(on.id()).ended, "complete at its end");
    check(streams_.erase(on.id()) == 1, "once");
  }

 private:
  struct state {
    http2_stream* stream = nullptr;
    method asked = method::get;
    bool is_tunnel = false;
    bool answered = false;
    bool ended = false;
    std::uint64_t content = 0;
    std::uint64_t content_max = ~std::uint64_t{0};
  };

  response_head head_;
  unsigned asked_ = 0;
  std::map<std::int32_t, state> streams_;

 public:
  http2_client_session session;
};

/// What the session says, of any number of pieces.
class listener {
 public:
  void take(std::string_view said) {
    check(!ended_ || said.empty(), "nothing behind the end");
    if (!std::exchange(began_, true)) {
      constexpr std::string_view preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
      check(said.starts_with(preface), "the preface");
      said.remove_prefix(preface.size());
    }
    while (!said.empty()) {
      check(said.size() >= 9, "whole frames");
      auto const octet = [said](std::size_t at) { return static_cast<unsigned char>(said[at]); };
      auto const length = std::size_t{octet(0)} << 16U | std::size_t{octet(1)} << 8U | octet(2);
      check(length <= 16'384 && said.size() >= 9 + length, "not too large");
      auto const type = octet(3);
      check(type <= 9 && type != 2 && type != 5, "of a client");
      ended_ = ended_ || (type == 7 && said[9 + 7] != 0);  // GOAWAY for an error
      said.remove_prefix(9 + length);
    }
  }

 private:
  bool began_ = false;
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
  auto const all = std::make_unique<client>(http2_limits{});
  instant now{std::chrono::hours(1)};
  bool alive = true;
  std::string out;
  listener server;
  while (alive && !bytes.empty()) {
    all->ask(now);
    // A copy of its own, so that a look behind it is seen.
    std::string const part(bytes.substr(0, piece));
    bytes.remove_prefix(part.size());
    alive = all->session.receive(part, now);
    if (part.size() % 2 == 0) {
      all->take_more();
    }
    out.clear();
    alive = all->session.take_output(out, 64 * 1024) && alive;
    server.take(out);
    now += std::chrono::milliseconds(10);
  }
  return 0;
}
