// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/config.hpp>
#include <tidegate/proxy/data_plane.hpp>
#include <tidegate/store/memory_idempotency_store.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tidegate::test_support {

/// A data plane with one worker, quotas and idempotency keys in memory and a free port of the
/// loopback interface. Its thread does not run yet. `text` is the rest of the configuration.
inline auto make_memory_data_plane(std::string const& text)
    -> std::unique_ptr<gateway::data_plane> {
  auto read = gateway::parse_config(
      "listen: 127.0.0.1:0\nworkers: 1\nstores: {idempotency: memory}\n" + text, "t.yaml");
  EXPECT_TRUE(read) << (read ? "" : to_string(read.error().front()));
  gateway::store_openers open;
  open.idempotency = [](gateway::config const&,
                        auto const& /*clock*/) -> result<gateway::idempotency_parts, std::string> {
    return gateway::idempotency_parts{std::make_unique<store::memory_idempotency_store>(
                                          store::memory_idempotency_store::options{}),
                                      {}};
  };
  std::array<std::uint64_t, 4> const randomness{1, 2, 3, 4};
  auto made = gateway::data_plane::make(*std::move(read), randomness,
                                        std::make_shared<gateway::event_log>(), std::move(open));
  EXPECT_TRUE(made) << (made ? "" : made.error());
  return *std::move(made);
}

}  // namespace tidegate::test_support
