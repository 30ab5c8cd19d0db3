// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gateway.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace tidegate::e2e {

/// What stands between a client and the gateway and spoils every other exchange, each in its own
/// way: resets before, within and behind the answer, answers that are lost or never come, 503 with
/// Retry-After.
class faulty_way {
 public:
  explicit faulty_way(gateway const& to);
  faulty_way(faulty_way const&) = delete;
  auto operator=(faulty_way const&) -> faulty_way& = delete;
  ~faulty_way();
  [[nodiscard]] auto url() const -> std::string { return listening_.url(); }
  [[nodiscard]] auto port() const -> std::uint16_t { return listening_.port(); }
  /// How many requests came.
  [[nodiscard]] auto requests() const -> std::size_t { return requests_; }

 private:
  void accept_all();
  /// One exchange; true when the connection stays.
  [[nodiscard]] auto serve(connection& client) -> bool;
  [[nodiscard]] auto ask(message const& request) const -> std::string;

  gateway const& to_;
  origin listening_;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::size_t> requests_ = 0;
  std::vector<std::thread> threads_;
  std::thread thread_;
};

}  // namespace tidegate::e2e
