// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "upstream/upstream_pool.hpp"

#include <tidegate/proxy/active_config.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace tidegate::gateway {

/// A configuration as one thread uses it: with its own connections to upstreams and its own
/// counters.
struct worker_config {
  std::shared_ptr<active_config const> active;
  std::vector<std::unique_ptr<upstream_pool>> pools;  // one for each upstream
  std::vector<worker_route> routes;
  std::size_t users = 0;  // exchanges under way
  bool retired = false;   // a newer one has taken its place
};

}  // namespace tidegate::gateway
