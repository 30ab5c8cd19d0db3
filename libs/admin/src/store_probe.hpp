// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/proxy/control.hpp>

#include <tidegate/engine/loop.hpp>

#include <memory>
#include <vector>

namespace tidegate::gateway {

/// Asks the stores once a second whether they answer, a directory in a file every 15 s, so that
/// operators see a failure before clients report it. What failed, here or for a request, is in the
/// `store_health` of each.
///
/// While a store works, a probe changes nothing: it looks for a key that no request has, charges
/// nothing, opens a directory for reading. A store that fails has to take a change before it counts
/// as working: a record and a resource that are removed at once, a charge of one unit to no
/// partition. A store of keys that is full is asked for room with such a record. Of one thread,
/// that of the loop.
class store_probe final : private engine::timer {
 public:
  /// `seen`, whose configuration names the stores, outlives it.
  explicit store_probe(control& seen);

  /// Those that are in use.
  [[nodiscard]] auto figures() const -> std::vector<store_figures>;

 private:
  /// When one store was asked. Answers may come when the probe is gone.
  struct state {
    bool is_asked = false;
    instant asked_at{};
  };

  void expired() override;
  /// True when it is to be asked now; one that has been asked for too long is failing.
  [[nodiscard]] auto is_due(state& probed, store::store_health& health) const -> bool;
  void ask_quotas();
  void ask_keys();
  /// Whether the store takes a change; when `bounded`, whether it has room for a key.
  void try_keys(bool bounded);
  void ask_directory();

  control& control_;
  std::shared_ptr<state> quota_ = std::make_shared<state>();
  std::shared_ptr<state> idempotency_ = std::make_shared<state>();
  std::shared_ptr<state> directory_ = std::make_shared<state>();
};

}  // namespace tidegate::gateway
