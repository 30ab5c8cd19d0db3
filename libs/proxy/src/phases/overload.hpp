// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/request_context.hpp"

#include <tidegate/base/instant.hpp>

namespace tidegate::gateway {

/// Counts a request in what its upstream has to do, and refuses it when that is too much.
class overload_phase {
 public:
  /// For the next request.
  void reset() noexcept { load_ = nullptr; }
  /// False when the upstream has too much to do. A request that is counted already stays so.
  [[nodiscard]] auto admits(request_context& context, upstream_load* load, instant now) -> bool;
  /// The request is over: its answer says how the upstream is. `was_sent`: an upstream was asked.
  void leave(request_context const& context, bool was_sent, instant now);

 private:
  upstream_load* load_ = nullptr;  // in which this request is counted
};

}  // namespace tidegate::gateway
