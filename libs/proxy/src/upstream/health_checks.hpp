// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/engine/timer.hpp>

#include <memory>
#include <vector>

namespace tidegate::gateway {

class health_check;
class upstream_pool;
class worker;

/// Asks the servers of an upstream how they are: one thread for all, from its first turn on until
/// another configuration is in use.
class health_checks final : private engine::timer {
 public:
  health_checks(worker& on, upstream_pool& pool);
  ~health_checks() override;

 private:
  void expired() override;
  /// Whether the servers are checked here.
  [[nodiscard]] auto is_in_charge() const -> bool;

  worker& worker_;
  upstream_pool& pool_;
  std::vector<std::unique_ptr<health_check>> checks_;  // one for each server
};

}  // namespace tidegate::gateway
