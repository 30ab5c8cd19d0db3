// SPDX-License-Identifier: Apache-2.0
#include "request/grpc.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

auto kind_by(std::string_view line) -> grpc_kind {
  wire::request_head head;
  auto const text = "POST / HTTP/1.1\r\nHost: h\r\n" + std::string(line) + "\r\n";
  EXPECT_EQ(wire::parse_request_head(text, 0, {}, head).state, wire::head_state::complete);
  return grpc_kind_of(head);
}

TEST(proxy_grpc, is_known_by_its_content_type) {
  EXPECT_EQ(kind_by(""), grpc_kind::none);
  EXPECT_EQ(kind_by("Content-Type: application/json\r\n"), grpc_kind::none);
  EXPECT_EQ(kind_by("Content-Type: text/plain; a=application/grpc\r\n"), grpc_kind::none);
  EXPECT_EQ(kind_by("Content-Type: application/grpc\r\n"), grpc_kind::grpc);
  EXPECT_EQ(kind_by("Content-Type: Application/GRPC+proto\r\n"), grpc_kind::grpc);
  EXPECT_EQ(kind_by("Content-Type: application/grpc-web+proto\r\n"), grpc_kind::web);
  EXPECT_EQ(kind_by("Content-Type: application/grpc-web-text\r\n"), grpc_kind::web_text);
}

TEST(proxy_grpc, has_a_code_for_each_refusal) {
  for (auto const& [status, code] : std::vector<std::pair<int, int>>{{400, 3},
                                                                     {401, 16},
                                                                     {403, 7},
                                                                     {404, 12},
                                                                     {405, 12},
                                                                     {408, 4},
                                                                     {409, 10},
                                                                     {413, 8},
                                                                     {414, 3},
                                                                     {422, 3},
                                                                     {429, 8},
                                                                     {431, 3},
                                                                     {500, 13},
                                                                     {501, 12},
                                                                     {502, 14},
                                                                     {503, 14},
                                                                     {504, 4},
                                                                     {505, 13},
                                                                     {200, 2}}) {
    EXPECT_EQ(grpc_status_of(status), code) << status;
  }
}

TEST(proxy_grpc, reads_how_long_a_call_may_take) {
  using time = std::optional<std::chrono::nanoseconds>;
  for (auto const& [value, expected] : std::vector<std::pair<std::string_view, time>>{
           {"1H", 1h},
           {"2M", 2min},
           {"10S", 10s},
           {"100m", 100ms},
           {"7u", 7us},
           {"99999999n", 99'999'999ns},
           {"0S", 0s},
           {"99999999H", 24h * 365},
           {"", std::nullopt},
           {"S", std::nullopt},
           {"1", std::nullopt},
           {"1s", std::nullopt},
           {"-1S", std::nullopt},
           {"+1S", std::nullopt},
           {"1.5S", std::nullopt},
           {"1 S", std::nullopt},
           {"123456789S", std::nullopt},
           {"1SS", std::nullopt},
       }) {
    EXPECT_EQ(parse_grpc_timeout(value), expected) << value;
  }
}

TEST(proxy_grpc, escapes_messages) {
  std::string out;
  append_grpc_message(out, "50% \"caf\xc3\xa9\"\r\n~");
  EXPECT_EQ(out, "50%25 \"caf%C3%A9\"%0D%0A~");
}

TEST(proxy_grpc, says_a_refusal_in_the_head) {
  local_reply reply{.status = 429,
                    .content = R"({"title":"Too Many Requests","detail":"Come back later."})",
                    .field_lines = "X-A: 1\r\n",
                    .retry_after = 1500ms};
  std::string lines;
  become_grpc(reply, grpc_kind::grpc, lines);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.content, "");
  EXPECT_EQ(reply.field_lines,
            "X-A: 1\r\nContent-Type: application/grpc\r\ngrpc-status: 8\r\n"
            "grpc-message: Come back later.\r\ngrpc-retry-pushback-ms: 2000\r\n");
  local_reply plain{.status = 404, .content = "no problem"};
  become_grpc(plain, grpc_kind::web, lines);
  EXPECT_EQ(plain.field_lines,
            "Content-Type: application/grpc-web\r\ngrpc-status: 12\r\n"
            "grpc-message: Not Found\r\n");
}

}  // namespace
}  // namespace tidegate::gateway
