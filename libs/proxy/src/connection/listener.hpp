// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/worker.hpp"

namespace tidegate::gateway {

/// Accepts connections for one worker.
class listener final : public engine::watched, private engine::timer {
 public:
  listener(worker& on, engine::descriptor socket, std::string address);
  ~listener() override;

  /// `shared`: the socket is the one of all workers.
  [[nodiscard]] auto start(bool shared) -> bool;
  /// Takes what the settings say of its address; what was said before stays when they do not name
  /// it.
  void use(active_config const& active);
  /// Takes what waits in the queue of the socket, which is about to be closed.
  void accept_last();

 private:
  void ready(engine::readiness what) override;
  void out_of_memory() override;
  void expired() override;
  [[nodiscard]] auto watch() -> bool;
  void pause();
  void accept(std::size_t count_max);
  void take(engine::descriptor socket, http::ip_address const& peer);
  void begin(worker::client_place at, engine::descriptor socket, http::ip_address const& peer);

  worker& worker_;
  engine::descriptor socket_;
  std::string address_;  // as it is configured
  bool shared_ = false;
  instant told_at_{instant::min()};  // that a connection waits
  std::optional<engine::tls_context> tls_;
  bool http2_ = true;
  bool proxy_protocol_ = false;
  bool redirects_to_https_ = false;
};

}  // namespace tidegate::gateway
