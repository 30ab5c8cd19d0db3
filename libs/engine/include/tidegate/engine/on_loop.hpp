// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/engine/loop.hpp>

#include <memory>
#include <utility>

namespace tidegate::engine {

/// Has `take(answer)` called on the thread of `to`, wherever the answer comes from. `to` outlives
/// the call.
template <class Take>
[[nodiscard]] auto on_loop(loop& to, Take take) {
  return [&to, take = std::move(take)]<class Answer>(Answer answer) {
    if (to.runs_here()) {
      take(std::move(answer));
      return;
    }
    auto const carried = std::make_shared<Answer>(std::move(answer));
    to.post([take, carried] { take(std::move(*carried)); });
  };
}

}  // namespace tidegate::engine
