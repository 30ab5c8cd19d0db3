// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a stored response that is replayed, as the gateway does it:
//
// - by HTTP/1.1 it is one response, of which nothing is left over, with the same status, the same
//   fields in the same order, and the same content;
// - by HTTP/2 a client gets the same, with names in lower case.
#include "check.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/http/field.hpp>
#include <tidegate/idempotency/record.hpp>
#include <tidegate/wire/http1_write.hpp>
#include <tidegate/wire/http2_session.hpp>

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace tidegate;
using fuzz::check;
using idempotency::stored_response;

constexpr std::string_view marker = "Idempotent-Replayed";

/// What a client has got.
struct received {
  int status = 0;
  std::vector<http::field> fields;
  std::string content;
  bool is_complete = false;
};

auto has_content(stored_response const& response) -> bool {
  return response.status != 204 && response.status != 304;
}

/// False for what is never stored: fields of a connection, of the framing, and content where there
/// is none.
auto is_stored(stored_response const& response) -> bool {
  return response.body_kept && (has_content(response) || response.body.empty()) &&
         std::ranges::all_of(response.fields, [](http::field const& field) {
           auto const is_trimmed =
               field.value.empty() || (field.value.front() > ' ' && field.value.back() > ' ');
           return idempotency::is_kept_field(field.name, {}) && is_trimmed &&
                  lower_case(field.name) != "content-length";
         });
}

auto field_lines(stored_response const& response) -> std::string {
  std::string out;
  for (auto const& field : response.fields) {
    wire::append_field(out, field.name, std::string_view(field.value));
  }
  wire::append_field(out, marker, std::string_view("true"));
  return out;
}

void compare(stored_response const& stored, received got) {
  check(got.is_complete, "it has an end");
  check(got.status == stored.status, "the same status");
  check(got.content == stored.body, "the same content");
  check(!got.fields.empty() && lower_case(got.fields.back().name) == lower_case(marker),
        "it is marked");
  got.fields.pop_back();
  std::erase_if(got.fields,
                [](http::field const& f) { return lower_case(f.name) == "content-length"; });
  check(std::ranges::equal(got.fields, stored.fields,
                           [](http::field const& a, http::field const& b) {
                             return lower_case(a.name) == lower_case(b.name) && a.value == b.value;
                           }),
        "the same fields in the same order");
}

// ---- HTTP/1.1 ----

void check_http1(stored_response const& stored) {
  std::string text;
  wire::append_whole_response(text, stored.status, field_lines(stored), "", stored.body);
  auto const head = std::make_unique<wire::response_head>();
  auto const read = wire::parse_response_head(
      text, 0, {.head_octets_max = 1U << 20U, .fields_max = 2000}, wire::method::post, *head);
  check(read.state == wire::head_state::complete, "one head");
  received got;
  got.status = head->status();
  got.content = text.substr(read.size);
  for (auto const& field : head->fields()) {
    got.fields.push_back({std::string(field.name), std::string(field.value)});
  }
  auto const& body = head->body();
  got.is_complete = has_content(stored) ? body.kind == wire::body_kind::content_length &&
                                              body.length == stored.body.size()
                                        : body.kind == wire::body_kind::none;
  // An empty body of length 0 may be shown as none.
  got.is_complete = got.is_complete || (stored.body.empty() && body.kind == wire::body_kind::none);
  for (auto const& field : stored.fields) {
    check(
        std::ranges::any_of(got.fields, [&](auto const& each) { return each.name == field.name; }),
        "names are as they were");
  }
  compare(stored, std::move(got));
}

// ---- HTTP/2 ----

class server final : public wire::http2_events {
 public:
  explicit server(stored_response const& stored) : stored_(stored) {}

  void request(wire::http2_stream& on, wire::request_head const& /*head*/) override {
    std::string lines;
    if (has_content(stored_)) {
      wire::append_field(lines, "content-length", stored_.body.size());
    }
    lines.append(field_lines(stored_));
    session.send_head(on, stored_.status, lines, stored_.body.empty());
    if (!stored_.body.empty()) {
      session.send_content(on, stored_.body);
      session.send_end(on);
    }
  }
  void refused_request(wire::http2_stream& /*on*/, wire::head_fault /*fault*/) override {
    check(false, "the request is right");
  }
  auto content(wire::http2_stream& /*on*/, std::string_view /*bytes*/) -> bool override {
    return true;
  }
  void end_of_request(wire::http2_stream& /*on*/, std::string_view /*trailers*/) override {}
  void closed(wire::http2_stream& /*on*/) override {}

 private:
  stored_response const& stored_;
  wire::request_head head_;

 public:
  wire::http2_session session{{}, *this, head_};
};

auto text_of(std::uint8_t const* data, std::size_t size) -> std::string {
  return {reinterpret_cast<char const*>(data), size};
}

auto on_header(nghttp2_session* /*session*/, nghttp2_frame const* /*frame*/,
               std::uint8_t const* name, std::size_t name_size, std::uint8_t const* value,
               std::size_t value_size, std::uint8_t /*flags*/, void* user) -> int {
  auto& got = *static_cast<received*>(user);
  auto field = http::field{text_of(name, name_size), text_of(value, value_size)};
  if (field.name == ":status") {
    got.status = std::stoi(field.value);
  } else {
    got.fields.push_back(std::move(field));
  }
  return 0;
}

auto on_data(nghttp2_session* /*session*/, std::uint8_t /*flags*/, std::int32_t /*stream*/,
             std::uint8_t const* data, std::size_t size, void* user) -> int {
  static_cast<received*>(user)->content.append(text_of(data, size));
  return 0;
}

auto on_close(nghttp2_session* /*session*/, std::int32_t /*stream*/, std::uint32_t error,
              void* user) -> int {
  static_cast<received*>(user)->is_complete = error == NGHTTP2_NO_ERROR;
  return 0;
}

void check_http2(stored_response const& stored) {
  nghttp2_session_callbacks* made = nullptr;
  nghttp2_session_callbacks_new(&made);
  std::unique_ptr<nghttp2_session_callbacks, void (*)(nghttp2_session_callbacks*)> const callbacks(
      made, nghttp2_session_callbacks_del);
  nghttp2_session_callbacks_set_on_header_callback(made, on_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, on_data);
  nghttp2_session_callbacks_set_on_stream_close_callback(made, on_close);
  received got;
  nghttp2_session* opened = nullptr;
  nghttp2_session_client_new(&opened, made, &got);
  std::unique_ptr<nghttp2_session, void (*)(nghttp2_session*)> const client(opened,
                                                                            nghttp2_session_del);
  std::vector<std::string> texts{":method", "GET", ":scheme",    "http",
                                 ":path",   "/",   ":authority", "a"};
  std::vector<nghttp2_nv> fields;
  for (std::size_t i = 0; i < texts.size(); i += 2) {
    fields.push_back({reinterpret_cast<std::uint8_t*>(texts[i].data()),
                      reinterpret_cast<std::uint8_t*>(texts[i + 1].data()), texts[i].size(),
                      texts[i + 1].size(), NGHTTP2_NV_FLAG_NONE});
  }
  nghttp2_submit_settings(opened, NGHTTP2_FLAG_NONE, nullptr, 0);
  nghttp2_submit_request(opened, nullptr, fields.data(), fields.size(), nullptr, nullptr);

  auto const answering = std::make_unique<server>(stored);
  instant const now{std::chrono::hours(1)};
  for (;;) {
    std::uint8_t const* data = nullptr;
    auto const size = nghttp2_session_mem_send(opened, &data);
    if (size > 0) {
      check(answering->session.receive(text_of(data, static_cast<std::size_t>(size)), now));
      continue;
    }
    std::string out;
    check(answering->session.take_output(out, 64 * 1024));
    if (out.empty()) {
      break;
    }
    check(nghttp2_session_mem_recv(opened, reinterpret_cast<std::uint8_t const*>(out.data()),
                                   out.size()) == static_cast<ssize_t>(out.size()),
          "a client takes all of it");
  }
  compare(stored, std::move(got));
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) -> int {
  constexpr std::size_t size_max = 32 * 1024;  // below what a client of HTTP/2 takes as a head
  if (size > size_max) {
    return 0;
  }
  auto const stored = idempotency::read_response({reinterpret_cast<char const*>(data), size});
  if (stored && is_stored(*stored)) {
    check_http1(*stored);
    check_http2(*stored);
  }
  return 0;
}
