// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "phases/quota.hpp"
#include "request/request_context.hpp"
#include "worker/worker_config.hpp"

#include <tidegate/config/config.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {

/// A configuration and a request to it, without sockets: what a phase is given.
class phase_fixture {
 public:
  explicit phase_fixture(std::string const& text) {
    auto read = parse_config("listen: 127.0.0.1:0\n" + text, "t.yaml");
    EXPECT_TRUE(read) << (read ? "" : read.error().front().message);
    auto made = active_config::make(*std::move(read), ids_, loads_);
    EXPECT_TRUE(made) << (made ? "" : made.error());
    config.active = *std::move(made);
    for (auto const& each : config.active->routes) {
      auto& route = config.routes.emplace_back(
          worker_route{&each, nullptr, 0, &metrics.of_route(each.settings->name), {}});
      for (auto const& limit : each.limits) {
        route.policies.push_back(&metrics.of_policy(limit.policy->name));
      }
    }
  }

  /// The context of a request with this head, on the first route.
  [[nodiscard]] auto ask(std::string_view head) -> request_context {
    head_text_ = head;
    EXPECT_EQ(wire::parse_request_head(head_text_, 0, {}, head_).state, wire::head_state::complete);
    request_context context{.head = &head_,
                            .path = head_.path(),
                            .from = &from,
                            .method = head_.method(),
                            .active = config.active.get(),
                            .route = &config.routes.front(),
                            .begun = now,
                            .admitted_at = now};
    if (auto const& max_body = config.active->config.http.max_body) {
      context.terms.body_octets_max = static_cast<std::uint64_t>(*max_body);
    }
    return context;
  }
  [[nodiscard]] auto get(std::string_view field_lines = "") -> request_context {
    return ask("GET /a HTTP/1.1\r\nHost: h\r\n" + std::string(field_lines) + "\r\n");
  }
  [[nodiscard]] auto settings() const -> active_config const& { return *config.active; }
  [[nodiscard]] auto texts() -> reply_texts { return {text, reply_lines}; }

  worker_config config;
  instant now{std::chrono::hours(1000)};
  worker_metrics metrics;
  client_address from{*http::parse_ip_address("192.0.2.1"), "http"};

  store::quota_table table{{.partitions_max = 1000}};
  store::quota_overrides overrides;
  std::unique_ptr<store::quota_store> store;
  store::store_health health{{"fails", "works"}};
  std::vector<std::string_view> lines;
  value_scratch values{lines};
  std::string text;
  std::string reply_lines;
  jitter_source jitter{1};
  quota_service quotas{table, overrides, store, health, metrics, jitter, values, text};

 private:
  policy_ids ids_;
  upstream_states loads_;
  std::string head_text_;
  wire::request_head head_;
};

/// Of a route: `alpha` may do anything, `beta` may only read. Both by their SHA-256.
inline constexpr std::string_view auth_of_alpha_and_beta =
    "auth: {bearer-tokens: [{name: a, sha256: "
    "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8}, {name: b, sha256: "
    "f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753, read-only: true}]}";

}  // namespace tidegate::gateway
