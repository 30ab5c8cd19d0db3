// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "traffic_history.hpp"

#include <tidegate/engine/timer.hpp>

namespace tidegate::gateway {

/// Adds to the history what the data plane counts, by a timer of the admin address.
class history_sampler final : private engine::timer {
 public:
  /// `seen` outlives it.
  explicit history_sampler(control& seen);

  /// Ends a sample. The timer does it every `traffic_history::interval`.
  void sample(instant now);
  [[nodiscard]] auto has_begun() const noexcept -> bool { return has_begun_; }
  [[nodiscard]] auto history() const noexcept -> traffic_history const& { return history_; }

 private:
  void expired() override;

  control& control_;
  traffic_history history_;
  bool has_begun_ = false;
};

}  // namespace tidegate::gateway
