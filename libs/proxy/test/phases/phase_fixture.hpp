// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "phases/quota.hpp"
#include "request/request_context.hpp"

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
    settings_ = *std::move(made);
    for (auto const& each : settings_->routes) {
      auto& route = routes_.emplace_back(&each, nullptr, &metrics.of_route(each.settings->name));
      for (auto const& limit : each.limits) {
        route.policies.push_back(&metrics.of_policy(limit.policy->name));
      }
    }
  }

  /// The context of a request with this head, on the first route.
  [[nodiscard]] auto ask(std::string_view head) -> request_context {
    head_text_ = head;
    EXPECT_EQ(wire::parse_request_head(head_text_, 0, {}, head_).state, wire::head_state::complete);
    return {.head = &head_,
            .path = head_.path(),
            .from = &from,
            .method = head_.method(),
            .active = settings_.get(),
            .route = &routes_.front(),
            .begun = now,
            .admitted_at = now};
  }
  [[nodiscard]] auto get(std::string_view field_lines = "") -> request_context {
    return ask("GET /a HTTP/1.1\r\nHost: h\r\n" + std::string(field_lines) + "\r\n");
  }
  [[nodiscard]] auto settings() const -> active_config const& { return *settings_; }

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
  jitter_source jitter{1};
  quota_service quotas{table, overrides, store, health, metrics, jitter, values, text};

 private:
  policy_ids ids_;
  upstream_loads loads_;
  std::shared_ptr<active_config const> settings_;
  std::vector<worker_route> routes_;
  std::string head_text_;
  wire::request_head head_;
};

}  // namespace tidegate::gateway
