// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/engine/loop.hpp>
#include <tidegate/store_postgres/idempotency_store.hpp>

#include "connection.hpp"
#include "keys/clock_offset.hpp"

#include <cstdint>
#include <functional>
#include <thread>

namespace tidegate::store_postgres {

/// A connection in pipeline mode that is ready for jobs.
struct key_connection {
  connection_handle handle;
  clock_offset clock;
  std::int64_t records = 0;
};

/// Connects, prepares the statements, compares the secret and the clocks. Waits for the server.
[[nodiscard]] auto open_key_connection(idempotency_options const& options,
                                       server_settings const& settings) -> outcome<key_connection>;

/// Connects in a thread of its own: names are looked up there, and a host that is silent is waited
/// for.
class key_connector {
 public:
  /// `done` is called on `loop`; all of these live as long as the connector.
  key_connector(engine::loop& loop, idempotency_options const& options,
                server_settings const& settings, std::function<void(outcome<key_connection>)> done);
  ~key_connector();
  key_connector(key_connector const&) = delete;
  auto operator=(key_connector const&) -> key_connector& = delete;

  /// On the thread of the loop, when no other attempt is under way.
  void start();
  [[nodiscard]] auto is_connecting() const noexcept -> bool { return is_connecting_; }

 private:
  engine::loop& loop_;
  idempotency_options const& options_;
  server_settings const& settings_;
  std::function<void(outcome<key_connection>)> done_;
  bool is_connecting_ = false;
  std::thread thread_;
};

}  // namespace tidegate::store_postgres
