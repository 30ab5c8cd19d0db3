// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gateway.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

/// What the tests of requests with an Idempotency-Key share.
namespace tidegate::e2e {

/// A folder for what the gateway keeps, gone at the end.
class data_folder {
 public:
  data_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "tidegate_data_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  data_folder(data_folder const&) = delete;
  auto operator=(data_folder const&) -> data_folder& = delete;
  ~data_folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] auto path() const -> std::string const& { return path_; }

 private:
  std::string path_;
};

/// One route for all paths with `mode: required`, more of its `options`, and `more` at the end.
[[nodiscard]] inline auto keyed_config(std::string const& url, data_folder const& data,
                                       std::string const& options = "",
                                       std::string const& more = "") -> std::string {
  return "data: " + data.path() + "\nupstreams: {api: {servers: [" + url +
         "], timeout: 1s, connect-timeout: 1s}}\nroutes:\n"
         "  - match: {path: /**}\n    upstream: api\n    idempotency: {mode: required" +
         (options.empty() ? "" : ", " + options) + "}\n" + more;
}

[[nodiscard]] inline auto post(std::string_view key, std::string_view body = "{\"a\":1}",
                               std::string_view target = "/a", std::string_view lines = "")
    -> std::string {
  return "POST " + std::string(target) +
         " HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer x\r\n" +
         (key.empty() ? "" : "Idempotency-Key: " + std::string(key) + "\r\n") + std::string(lines) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

/// The `code` of a problem, or nothing.
[[nodiscard]] inline auto code_of(message const& answer) -> std::string {
  constexpr std::string_view name = "\"code\":\"";
  auto const at = answer.body.find(name);
  if (answer.field("Content-Type") != "application/problem+json" || at == std::string::npos) {
    return "";
  }
  auto const begin = at + name.size();
  return answer.body.substr(begin, answer.body.find('"', begin) - begin);
}

[[nodiscard]] inline auto unquoted_id(message const& record) -> std::string {
  constexpr std::string_view begin = "{\"id\":\"";
  auto const at = record.body.find(begin);
  return at == std::string::npos ? "" : record.body.substr(at + begin.size(), 64);
}

inline void expect_code(message const& answer, int status, std::string_view code) {
  EXPECT_EQ(answer.status(), status);
  EXPECT_EQ(answer.field("Content-Type"), "application/problem+json");
  EXPECT_EQ(code_of(answer), code) << answer.body;
  EXPECT_THAT(answer.body,
              testing::HasSubstr("\"type\":\"/.well-known/tidegate#" + std::string(code) + "\""));
  EXPECT_EQ(answer.field("Link"),
            "</.well-known/tidegate>; rel=\"describedby\"; type=\"text/html\"");
}

}  // namespace tidegate::e2e
