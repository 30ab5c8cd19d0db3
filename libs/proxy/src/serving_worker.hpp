// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "connection/listener.hpp"
#include "phases/exchange_pool.hpp"

namespace tidegate::gateway {

/// A worker with all that serves clients on its thread.
class serving_worker final : public worker {
 public:
  using worker::worker;
  serving_worker(serving_worker const&) = delete;
  auto operator=(serving_worker const&) -> serving_worker& = delete;
  ~serving_worker();

  /// From now on requests are served by these settings.
  void use(std::shared_ptr<active_config const> active);
  /// From now on these are let in.
  void use(std::shared_ptr<consumer_index const> const& consumers) {
    use_consumers(*current, consumers);
  }
  /// `address` is what the settings call it; `shared_socket` when it is the one of all workers.
  void add_listener(engine::descriptor socket, std::string address, bool shared_socket);
  /// Takes what waits to be accepted, accepts no more, and closes what is idle.
  void drain();

 private:
  static void use_consumers(worker_config& on,
                            std::shared_ptr<consumer_index const> const& consumers);

  exchange_pool exchanges_{*this};
  std::vector<std::unique_ptr<listener>> listeners_;
};

}  // namespace tidegate::gateway
