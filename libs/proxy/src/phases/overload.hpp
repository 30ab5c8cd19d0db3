// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/request_context.hpp"

namespace tidegate::gateway {

/// Counts a request in what its upstream has to do, and refuses it when that is too much.
class overload_phase {
 public:
  /// For the next request.
  void reset() noexcept { load_ = nullptr; }
  /// False when the upstream has too much to do. A request that is counted already stays so.
  [[nodiscard]] auto admits(request_context& context, upstream_load* load, instant now) -> bool {
    return load == nullptr || load_ != nullptr || is_admitted(context, *load, now);
  }
  /// The request is over: its answer says how the upstream is. `was_sent`: an upstream was asked.
  void leave(request_context const& context, bool was_sent, instant now) {
    if (load_ != nullptr) {
      uncount(*std::exchange(load_, nullptr), context, was_sent, now);
    }
  }

 private:
  [[nodiscard]] auto is_admitted(request_context& context, upstream_load& load, instant now)
      -> bool;
  static void uncount(upstream_load& load, request_context const& context, bool was_sent,
                      instant now);

  upstream_load* load_ = nullptr;  // in which this request is counted
};

}  // namespace tidegate::gateway
