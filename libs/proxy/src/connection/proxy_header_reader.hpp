// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/worker.hpp"

namespace tidegate::gateway {

/// A connection of a trusted proxy whose PROXY header has not come yet. When it has, the connection
/// goes on as a `http1_connection` of whom the header names.
class proxy_header_reader final : public engine::watched,
                                  public client_connection,
                                  private engine::timer {
 public:
  /// How the connection goes on.
  struct next_options {
    std::optional<engine::tls_context> tls;
    bool http2;
    bool redirects_to_https;
  };

  proxy_header_reader(worker& on, worker::client_place at, engine::descriptor socket,
                      http::ip_address const& peer, next_options next);

  /// Begins to wait for the header; false when the system does not let it.
  [[nodiscard]] auto start() -> bool;
  /// The header has a little more time: who has sent it has connected for a request.
  void drain() override;
  void drop() override { close(); }

 private:
  void ready(engine::readiness what) override;
  void out_of_memory() override { close(); }
  void expired() override { refuse(); }
  void read_header(bool is_last);
  void hand_over();
  void refuse();
  void close();

  worker& worker_;
  worker::client_place place_;  // behind the last when the connection has another owner
  engine::descriptor socket_;
  http::ip_address peer_;
  next_options next_;
  bool may_name_others_ = true;
  bool closed_ = false;
};

}  // namespace tidegate::gateway
