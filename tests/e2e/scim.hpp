// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "keyed.hpp"

#include <tidegate/json/parse.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What the tests of the SCIM service share.
namespace tidegate::e2e {

inline constexpr std::string_view scim_base = "/scim/v2";

/// Tokens `alpha` (tenant acme), `beta` (tenant acme), `gamma` (tenant other) and `delta` (tenant
/// acme, for reading).
inline constexpr std::string_view scim_tokens =
    "{name: a, tenant: acme, sha256: "
    "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8}, "
    "{name: b, tenant: acme, sha256: "
    "f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753}, "
    "{name: g, tenant: other, sha256: "
    "be9d587defa1f0c09ef49eb17e206983a5f8f8289e4281860bd0ee5a19592c67}, "
    "{name: d, tenant: acme, read-only: true, sha256: "
    "4f4a9410ffcdf895c4adb880659e9b5c0dd1f23a30790684340b3eaacb045398}";

[[nodiscard]] inline auto scim_config(data_folder const& data, std::string const& options = "",
                                      std::string const& more = "") -> std::string {
  return "data: " + data.path() + "\n" + more +
         "routes:\n  - match: {path: /scim/v2/**}\n    service: scim\n    auth: {bearer-tokens: [" +
         std::string(scim_tokens) + "]}\n" + options;
}

/// An answer with its content as JSON; null when it is none.
struct scim_message {
  message raw;
  json::value body;

  [[nodiscard]] auto status() const -> int { return raw.status(); }
  [[nodiscard]] auto field(std::string_view name) const -> std::string { return raw.field(name); }
  /// `name.givenName`, `emails.0.value`: the value there as text, strings without their quotes;
  /// "(none)" where there is none.
  [[nodiscard]] auto at(std::string_view path) const -> std::string {
    json::value const* value = &body;
    while (value != nullptr && !path.empty()) {
      auto const dot = path.find('.');
      auto const name = path.substr(0, dot);
      path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
      if (auto const* const array = value->if_array()) {
        auto const number = static_cast<std::size_t>(std::stoul(std::string(name)));
        value = number < array->size() ? &(*array)[number] : nullptr;
      } else {
        value = value->find(name);
      }
    }
    if (value == nullptr) {
      return "(none)";
    }
    return value->if_string() != nullptr ? *value->if_string() : to_string(*value);
  }
  [[nodiscard]] auto id() const -> std::string { return at("id"); }
  /// How many values there are at `path`, 0 when there is no array.
  [[nodiscard]] auto count(std::string_view name) const -> std::size_t {
    auto const* const value = body.find(name);
    return value == nullptr || value->if_array() == nullptr ? 0 : value->if_array()->size();
  }
};

/// A client of the service with one token.
class scim_client {
 public:
  explicit scim_client(gateway const& with, std::string token = "alpha")
      : gateway_(&with), token_(std::move(token)) {}

  [[nodiscard]] auto ask(std::string_view method, std::string_view path, std::string_view body = "",
                         std::string_view lines = "") const -> scim_message {
    std::string request(method);
    request.append(" ").append(scim_base).append(path).append(" HTTP/1.1\r\nHost: a.example\r\n");
    if (!token_.empty()) {
      request.append("Authorization: Bearer ").append(token_).append("\r\n");
    }
    request.append(lines);
    if (!body.empty()) {
      request.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n");
      if (!lines.contains("Content-Type:")) {
        request.append("Content-Type: application/scim+json\r\n");
      }
    }
    request.append("\r\n").append(body);
    auto to = gateway_->connect();
    to.send(request);
    auto raw = to.read_response(method == "HEAD");
    auto read = json::parse(raw.body, {.octets_max = std::size_t{1} << 28});
    return {std::move(raw), read ? *std::move(read) : json::value()};
  }
  [[nodiscard]] auto get(std::string_view path, std::string_view lines = "") const -> scim_message {
    return ask("GET", path, "", lines);
  }
  [[nodiscard]] auto post(std::string_view path, std::string_view body,
                          std::string_view lines = "") const -> scim_message {
    return ask("POST", path, body, lines);
  }
  [[nodiscard]] auto put(std::string_view path, std::string_view body,
                         std::string_view lines = "") const -> scim_message {
    return ask("PUT", path, body, lines);
  }
  /// A PATCH with these operations, as JSON without brackets around them.
  [[nodiscard]] auto patch(std::string_view path, std::string_view operations,
                           std::string_view lines = "") const -> scim_message {
    return ask("PATCH", path,
               R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[)" +
                   std::string(operations) + "]}",
               lines);
  }
  [[nodiscard]] auto remove(std::string_view path, std::string_view lines = "") const
      -> scim_message {
    return ask("DELETE", path, "", lines);
  }

 private:
  gateway const* gateway_;
  std::string token_;
};

/// The text of a user, with more members.
[[nodiscard]] inline auto user(std::string_view name, std::string_view more = "") -> std::string {
  return R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":")" +
         std::string(name) + "\"" + (more.empty() ? "" : "," + std::string(more)) + "}";
}

/// The text of a group whose members have these ids.
[[nodiscard]] inline auto group(std::string_view name, std::vector<std::string> const& ids = {})
    -> std::string {
  std::string members;
  for (auto const& id : ids) {
    members += (members.empty() ? "" : ",") + std::string(R"({"value":")") + id + "\"}";
  }
  return R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],"displayName":")" +
         std::string(name) + R"(","members":[)" + members + "]}";
}

/// An error in the form of RFC 7644, section 3.12.
inline void expect_error(scim_message const& answer, int status, std::string_view type = "(none)") {
  EXPECT_EQ(answer.status(), status) << answer.raw.body;
  EXPECT_EQ(answer.field("Content-Type"), "application/scim+json");
  EXPECT_EQ(answer.at("schemas.0"), "urn:ietf:params:scim:api:messages:2.0:Error")
      << answer.raw.body;
  EXPECT_EQ(answer.at("status"), std::to_string(status));
  EXPECT_EQ(answer.at("scimType"), type) << answer.raw.body;
}

/// A gateway with a SCIM service, and a client with the token alpha.
class scim_test : public testing::Test {
 protected:
  explicit scim_test(std::string const& options = "", int workers = 1)
      : with_(scim_config(data_, options), workers), client_(with_) {}

  data_folder data_;
  gateway with_;
  scim_client client_;
};

}  // namespace tidegate::e2e
