// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/proxy/active_config.hpp>
#include <tidegate/proxy/consumers.hpp>

namespace tidegate::gateway {

/// The connections of one thread to one upstream, as far as a worker knows them.
class idle_connections {
 public:
  virtual ~idle_connections() = default;
  /// Closes one that rests. False when none does.
  virtual auto close_idle() -> bool = 0;
  /// Another connection to these servers may be made, or is wanted by a request.
  virtual void connection_freed(server_set const& servers) = 0;
};

/// A configuration as one thread uses it: with its own connections to upstreams and its own
/// counters.
struct worker_config {
  std::shared_ptr<active_config const> active;
  std::vector<std::unique_ptr<idle_connections>> pools;  // one for each upstream
  std::vector<worker_route> routes;
  /// Those of the last content of their file; counted by this thread alone.
  std::shared_ptr<consumer_index const> consumers = std::make_shared<consumer_index const>();
  std::size_t users = 0;  // exchanges under way
  bool retired = false;   // a newer one has taken its place
};

}  // namespace tidegate::gateway
