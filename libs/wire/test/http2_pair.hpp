// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire/http2_session.hpp>

#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::TIDEGATE_ABI::wire::test {

using field_texts = std::vector<std::pair<std::string, std::string>>;

inline field_texts const get_request = {
    {":method", "GET"}, {":scheme", "http"}, {":path", "/a?b=c"}, {":authority", "api.example"}};
inline field_texts const post_request = {
    {":method", "POST"}, {":scheme", "http"}, {":path", "/a"}, {":authority", "api.example"}};

inline auto with(field_texts fields, field_texts const& more) -> field_texts {
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

/// A client by nghttp2 that checks nothing of what it is told to send.
class test_client {
 public:
  struct response {
    field_texts fields;
    std::string content;
    bool complete = false;
    bool closed = false;
    std::uint32_t reset = 0;
    std::vector<std::string> interim;

    [[nodiscard]] auto field(std::string_view name) const -> std::string {
      for (auto const& [key, value] : fields) {
        if (key == name) {
          return value;
        }
      }
      return "(none)";
    }
  };

  explicit test_client(std::int32_t window = 0) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_option* option = nullptr;
    nghttp2_option_new(&option);
    nghttp2_option_set_no_http_messaging(option, 1);
    nghttp2_option_set_peer_max_concurrent_streams(option, 1000);
    if (window != 0) {
      nghttp2_option_set_no_auto_window_update(option, 1);
    }
    nghttp2_session_client_new2(&session, callbacks, this, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    std::vector<nghttp2_settings_entry> offered;
    if (window != 0) {
      offered.push_back({NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<std::uint32_t>(window)});
    }
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, offered.data(), offered.size());
  }
  test_client(test_client const&) = delete;
  auto operator=(test_client const&) -> test_client& = delete;
  ~test_client() { nghttp2_session_del(session); }

  /// Sends a request; the body waits for windows. Returns the number of the stream.
  auto ask(field_texts const& fields, std::string body = {}, bool ends = true) -> std::int32_t {
    std::vector<nghttp2_nv> list;
    for (auto const& [name, value] : asked.emplace_back(fields)) {
      // Or it would be put into lower case.
      list.push_back(
          {octets(name), octets(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NO_COPY_NAME});
    }
    nghttp2_data_provider provider{};
    provider.source.ptr = this;
    provider.read_callback = read_body;
    bool const has_body = !body.empty() || !ends;
    auto const id = nghttp2_submit_request(session, nullptr, list.data(), list.size(),
                                           has_body ? &provider : nullptr, nullptr);
    bodies[id] = {std::move(body), ends};
    return id;
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
  std::map<std::int32_t, response> responses;
  std::map<std::int32_t, std::pair<std::string, bool>> bodies;
  std::map<std::int32_t, std::uint32_t> settings;
  std::uint32_t goaway = 0;
  bool gone = false;
  std::string trailer_name;  // empty: there is none
  std::deque<field_texts> asked;
  std::int32_t last_stream = -1;

 private:
  static auto octets(std::string const& text) -> std::uint8_t* {
    return const_cast<std::uint8_t*>(reinterpret_cast<std::uint8_t const*>(text.data()));
  }
  static auto of(void* user) -> test_client& { return *static_cast<test_client*>(user); }

  static auto on_header(nghttp2_session* /*session*/, nghttp2_frame const* frame,
                        std::uint8_t const* name, std::size_t name_size, std::uint8_t const* value,
                        std::size_t value_size, std::uint8_t /*flags*/, void* user) -> int {
    std::string key(reinterpret_cast<char const*>(name), name_size);
    std::string text(reinterpret_cast<char const*>(value), value_size);
    auto& response = of(user).responses[frame->hd.stream_id];
    if (key == ":status" && text.starts_with('1')) {
      response.interim.push_back(text);
    } else {
      response.fields.emplace_back(std::move(key), std::move(text));
    }
    return 0;
  }
  static auto on_frame(nghttp2_session* /*session*/, nghttp2_frame const* frame, void* user)
      -> int {
    auto& self = of(user);
    if (frame->hd.type == NGHTTP2_GOAWAY) {
      self.gone = true;
      self.goaway = frame->goaway.error_code;
      self.last_stream = frame->goaway.last_stream_id;
    } else if (frame->hd.type == NGHTTP2_SETTINGS) {
      for (std::size_t i = 0; i < frame->settings.niv; ++i) {
        self.settings[frame->settings.iv[i].settings_id] = frame->settings.iv[i].value;
      }
    } else if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
      self.responses[frame->hd.stream_id].complete = true;
    }
    return 0;
  }
  static auto on_data(nghttp2_session* /*session*/, std::uint8_t /*flags*/, std::int32_t id,
                      std::uint8_t const* data, std::size_t size, void* user) -> int {
    of(user).responses[id].content.append(reinterpret_cast<char const*>(data), size);
    return 0;
  }
  static auto on_close(nghttp2_session* /*session*/, std::int32_t id, std::uint32_t code,
                       void* user) -> int {
    of(user).responses[id].closed = true;
    of(user).responses[id].reset = code;
    return 0;
  }
  static auto read_body(nghttp2_session* session, std::int32_t id, std::uint8_t* into,
                        std::size_t size, std::uint32_t* flags, nghttp2_data_source* source,
                        void* /*user*/) -> ssize_t {
    auto& [body, ends] = of(source->ptr).bodies[id];
    auto const count = std::min(size, body.size());
    std::copy_n(body.begin(), count, into);
    body.erase(0, count);
    if (body.empty() && ends) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
      if (auto const& name = of(source->ptr).trailer_name; !name.empty()) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_nv const trailer{octets(name), octets(name), name.size(), name.size(),
                                 NGHTTP2_NV_FLAG_NONE};
        nghttp2_submit_trailer(session, id, &trailer, 1);
      }
    } else if (count == 0) {
      return NGHTTP2_ERR_DEFERRED;
    }
    return static_cast<ssize_t>(count);
  }
};

/// A client and a session, and what the session told.
class http2_pair final : private http2_events {
 public:
  explicit http2_pair(http2_limits const& limits = {}, std::int32_t client_window = 0)
      : client(client_window), session(limits, *this, head_) {}

  /// Lets both talk until neither has more to say.
  void talk() {
    for (int i = 0; i < 1000; ++i) {
      auto const in = client.output();
      if (!in.empty()) {
        alive = session.receive(in, now) && alive;
      }
      std::string out;
      alive = session.take_output(out, 1U << 20U) && alive;
      if (!out.empty()) {
        client.input(out);
      }
      if (in.empty() && out.empty()) {
        return;
      }
    }
    FAIL() << "they talk for ever";
  }

  auto stream(std::int32_t id) -> http2_stream& {
    for (std::size_t i = 0; i < session.streams_count(); ++i) {
      if (session.stream_at(i).id() == id) {
        return session.stream_at(i);
      }
    }
    throw std::runtime_error("no such stream");
  }

  test_client client;
  instant now{std::chrono::hours(1)};
  bool alive = true;
  bool takes_content = true;
  std::vector<std::string> log;
  std::map<std::int32_t, std::string> content_of;
  std::map<std::int32_t, std::string> head_of;  // as it would be sent on
  std::map<std::int32_t, body_framing> body_of;
  std::map<std::int32_t, std::string> trailers_of;

 private:
  void request(http2_stream& on, request_head const& head) override {
    log.push_back("request " + std::to_string(on.id()));
    auto& text = head_of[on.id()];
    text.append(head.method_text()).append(" ").append(head.target()).append("\n");
    for (auto const& field : head.fields()) {
      text.append(field.name).append(": ").append(field.value).append("\n");
    }
    body_of[on.id()] = head.body();
  }
  void refused_request(http2_stream& on, head_fault fault) override {
    log.push_back("refused " + std::to_string(on.id()) + " " + std::string(to_string(fault)));
  }
  auto content(http2_stream& on, std::string_view bytes) -> bool override {
    content_of[on.id()].append(bytes);
    return takes_content;
  }
  void end_of_request(http2_stream& on, std::string_view trailers) override {
    log.push_back("end " + std::to_string(on.id()));
    trailers_of[on.id()] = trailers;
  }
  void closed(http2_stream& on) override { log.push_back("closed " + std::to_string(on.id())); }

  request_head head_;

 public:
  http2_session session;
};

}  // namespace tidegate::TIDEGATE_ABI::wire::test
