// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "metrics.hpp"
#include "worker.hpp"

#include <tidegate/engine/loop.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace tidegate::gateway {

/// Asks the stores once a second whether they answer, a directory in a file every 15 s, so that people see it before clients
/// tell them.
///
/// What is asked changes nothing: a key that nobody has, a charge of nothing, a directory that is opened for reading. Of one
/// thread, that of the loop.
class store_watch final : private engine::timer {
 public:
  /// `on` is the loop of `first`, whose settings name the stores.
  store_watch(engine::loop& on, shared_state& shared, worker const& first);

  /// There are keys from now on.
  void use(std::shared_ptr<idempotency_state> keys) { keys_ = std::move(keys); }

  /// Those that are in use.
  [[nodiscard]] auto figures() const -> std::vector<store_figures>;

 private:
  /// What is known of one store. Answers that come when the watch is gone find it all the same.
  struct state {
    bool is_asked = false;
    instant asked_at{};
    std::optional<std::chrono::system_clock::time_point> failing_since;

    void note(bool is_well);
  };

  void expired() override;
  /// True when it is to be asked now; one that has been asked for too long is failing.
  [[nodiscard]] auto is_due(state& of) const -> bool;
  void ask_quotas();
  void ask_keys();
  void ask_directory();

  engine::loop& loop_;
  shared_state& shared_;
  worker const& first_;
  std::shared_ptr<idempotency_state> keys_;
  std::shared_ptr<state> quota_ = std::make_shared<state>();
  std::shared_ptr<state> idempotency_ = std::make_shared<state>();
  std::shared_ptr<state> directory_ = std::make_shared<state>();
};

}  // namespace tidegate::gateway
