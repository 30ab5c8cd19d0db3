// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/request_context.hpp"
#include "worker/worker.hpp"

#include <tidegate/engine/timer.hpp>

namespace tidegate::gateway {

class exchange;

/// A call of gRPC: what its client gives it of time. It costs nothing where a request is none.
class grpc_call final : private engine::timer {
 public:
  explicit grpc_call(exchange& owner) : owner_(owner) {}

  /// Counts the time of a call from its beginning on. Answers one whose time cannot be read, or is
  /// over already.
  [[nodiscard]] auto enter(request_context& context, worker& on) -> step;
  /// The exchange is over.
  void end() noexcept { cancel(); }

 private:
  void expired() override;

  exchange& owner_;
};

/// What a client is told whose call takes longer than that.
[[nodiscard]] auto deadline_reply(reply_texts texts) -> local_reply;

}  // namespace tidegate::gateway
