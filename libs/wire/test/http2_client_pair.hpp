// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "http2_pair.hpp"

#include <tidegate/wire/http2_client_session.hpp>

#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::TIDEGATE_ABI::wire::test {

/// What a server sends behind a head.
struct response_body {
  std::string content = {};
  bool ends = true;
  field_texts trailers = {};
};

/// A server by nghttp2 that checks nothing of what it is told to send.
class test_server {
 public:
  struct request {
    field_texts fields;  // trailers too, behind the others
    std::string content;
    bool complete = false;
    bool closed = false;
    std::uint32_t reset = 0;

    [[nodiscard]] auto field(std::string_view name) const -> std::string {
      for (auto const& [key, value] : fields) {
        if (key == name) {
          return value;
        }
      }
      return "(none)";
    }
  };

  explicit test_server(std::vector<nghttp2_settings_entry> const& offered = {},
                       bool opens_windows = true) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_option* option = nullptr;
    nghttp2_option_new(&option);
    nghttp2_option_set_no_http_messaging(option, 1);
    nghttp2_option_set_no_auto_window_update(option, opens_windows ? 0 : 1);
    nghttp2_session_server_new2(&session, callbacks, this, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, offered.data(), offered.size());
  }
  test_server(test_server const&) = delete;
  auto operator=(test_server const&) -> test_server& = delete;
  ~test_server() { nghttp2_session_del(session); }

  void send_interim(std::int32_t id, field_texts const& fields) {
    auto const list = list_of(fields);
    nghttp2_submit_headers(session, NGHTTP2_FLAG_NONE, id, nullptr, list.data(), list.size(),
                           nullptr);
  }
  void answer(std::int32_t id, field_texts const& fields, response_body content = {}) {
    auto const list = list_of(fields);
    nghttp2_data_provider provider{};
    provider.source.ptr = this;
    provider.read_callback = read_body;
    bool const has_body = !content.content.empty() || !content.ends || !content.trailers.empty();
    bodies[id] = std::move(content);
    nghttp2_submit_response(session, id, list.data(), list.size(), has_body ? &provider : nullptr);
  }
  /// More of a response that did not end.
  void send_more(std::int32_t id, std::string_view more, bool ends) {
    bodies[id].content.append(more);
    bodies[id].ends = ends;
    nghttp2_session_resume_data(session, id);
  }

  auto output() -> std::string {
    std::string out;
    for (;;) {
      std::uint8_t const* data = nullptr;
      auto const size = nghttp2_session_mem_send(session, &data);
      if (size <= 0) {
        return out;
      }
      out.append(reinterpret_cast<char const*>(data), static_cast<std::size_t>(size));
    }
  }
  void input(std::string_view bytes) {
    auto const size = nghttp2_session_mem_recv(
        session, reinterpret_cast<std::uint8_t const*>(bytes.data()), bytes.size());
    EXPECT_EQ(size, static_cast<ssize_t>(bytes.size()));
  }

  nghttp2_session* session = nullptr;
  std::map<std::int32_t, request> requests;
  std::map<std::int32_t, response_body> bodies;
  std::map<std::int32_t, std::uint32_t> settings;
  std::uint32_t goaway = 0;
  bool gone = false;
  int pings = 0;

 private:
  static auto octets(std::string const& text) -> std::uint8_t* {
    return const_cast<std::uint8_t*>(reinterpret_cast<std::uint8_t const*>(text.data()));
  }
  static auto list_of(field_texts const& fields) -> std::vector<nghttp2_nv> {
    std::vector<nghttp2_nv> list;
    for (auto const& [name, value] : fields) {
      list.push_back(
          {octets(name), octets(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
    }
    return list;
  }
  static auto of(void* user) -> test_server& { return *static_cast<test_server*>(user); }
  static auto on_header(nghttp2_session* /*session*/, nghttp2_frame const* frame,
                        std::uint8_t const* name, std::size_t name_size, std::uint8_t const* value,
                        std::size_t value_size, std::uint8_t /*flags*/, void* user) -> int {
    of(user).requests[frame->hd.stream_id].fields.emplace_back(
        std::string(reinterpret_cast<char const*>(name), name_size),
        std::string(reinterpret_cast<char const*>(value), value_size));
    return 0;
  }
  static auto on_frame(nghttp2_session* /*session*/, nghttp2_frame const* frame, void* user)
      -> int {
    auto& self = of(user);
    if (frame->hd.type == NGHTTP2_GOAWAY) {
      self.gone = true;
      self.goaway = frame->goaway.error_code;
    } else if (frame->hd.type == NGHTTP2_PING) {
      ++self.pings;
    } else if (frame->hd.type == NGHTTP2_SETTINGS) {
      for (std::size_t i = 0; i < frame->settings.niv; ++i) {
        self.settings[frame->settings.iv[i].settings_id] = frame->settings.iv[i].value;
      }
    } else if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 &&
               (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS)) {
      self.requests[frame->hd.stream_id].complete = true;
    }
    return 0;
  }
  static auto on_data(nghttp2_session* /*session*/, std::uint8_t /*flags*/, std::int32_t id,
                      std::uint8_t const* data, std::size_t size, void* user) -> int {
    of(user).requests[id].content.append(reinterpret_cast<char const*>(data), size);
    return 0;
  }
  static auto on_close(nghttp2_session* /*session*/, std::int32_t id, std::uint32_t code,
                       void* user) -> int {
    of(user).requests[id].closed = true;
    of(user).requests[id].reset = code;
    return 0;
  }
  static auto read_body(nghttp2_session* session, std::int32_t id, std::uint8_t* into,
                        std::size_t size, std::uint32_t* flags, nghttp2_data_source* source,
                        void* /*user*/) -> ssize_t {
    auto& from = of(source->ptr).bodies[id];
    auto const count = std::min(size, from.content.size());
    std::copy_n(from.content.begin(), count, into);
    from.content.erase(0, count);
    if (from.content.empty() && from.ends) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
      if (!from.trailers.empty()) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        auto const list = list_of(from.trailers);
        nghttp2_submit_trailer(session, id, list.data(), list.size());
      }
    } else if (count == 0) {
      return NGHTTP2_ERR_DEFERRED;
    }
    return static_cast<ssize_t>(count);
  }
};

/// A client session and a server, and what the session told.
class http2_client_pair final : private http2_client_events {
 public:
  explicit http2_client_pair(http2_limits const& limits = {},
                             std::vector<nghttp2_settings_entry> const& offered = {},
                             bool opens_windows = true)
      : server(offered, opens_windows), session(limits, *this, head_) {}

  /// Lets both talk until neither has more to say.
  void talk() {
    for (int i = 0; i < 1000; ++i) {
      std::string out;
      alive = session.take_output(out, 1U << 20U) && alive;
      if (!out.empty()) {
        server.input(out);
      }
      auto const in = server.output();
      if (!in.empty()) {
        alive = session.receive(in, now) && alive;
      }
      if (in.empty() && out.empty()) {
        return;
      }
    }
    FAIL() << "they talk for ever";
  }

  /// Opens a stream. Returns its number.
  auto ask(std::string_view method, std::string_view lines = {}, std::string_view path = "/a")
      -> std::int32_t {
    auto const [stream, body] = session.open({.method = method,
                                              .scheme = "http",
                                              .authority = "api",
                                              .path = path,
                                              .field_lines = lines},
                                             find_method(method), now);
    streams[stream.id()] = &stream;
    body_of[stream.id()] = body;
    return stream.id();
  }
  auto stream(std::int32_t id) -> http2_stream& { return *streams.at(id); }

  test_server server;
  instant now{std::chrono::hours(1)};
  bool alive = true;
  bool takes_content = true;
  std::vector<std::string> log;
  std::map<std::int32_t, http2_stream*> streams;  // that are open
  std::map<std::int32_t, body_framing> body_of;
  std::map<std::int32_t, std::string> head_of;  // as HTTP/1.1 would have it
  std::map<std::int32_t, body_framing> response_body_of;
  std::map<std::int32_t, std::string> content_of;
  std::map<std::int32_t, std::string> trailers_of;

 private:
  void interim(http2_stream& on, response_head const& head) override {
    log.push_back("interim " + std::to_string(on.id()) + " " + std::to_string(head.status()));
  }
  void response(http2_stream& on, response_head const& head) override {
    log.push_back("response " + std::to_string(on.id()) + " " + std::to_string(head.status()));
    for (auto const& field : head.fields()) {
      head_of[on.id()].append(field.name).append(": ").append(field.value).append("\n");
    }
    response_body_of[on.id()] = head.body();
  }
  auto content(http2_stream& on, std::string_view bytes) -> bool override {
    content_of[on.id()].append(bytes);
    return takes_content;
  }
  void end_of_response(http2_stream& on, std::string_view trailers) override {
    log.push_back("end " + std::to_string(on.id()));
    trailers_of[on.id()] = trailers;
  }
  void closed(http2_stream& on, http2_stream_end how) override {
    constexpr std::string_view names[] = {"complete", "refused", "reset", "malformed", "cancelled"};
    log.push_back("closed " + std::to_string(on.id()) + " " +
                  std::string(names[static_cast<std::size_t>(how)]));
    streams.erase(on.id());
  }

  response_head head_;

 public:
  http2_client_session session;
};

}  // namespace tidegate::TIDEGATE_ABI::wire::test
