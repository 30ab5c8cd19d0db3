// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime.hpp"

#include <tidegate/base/instant.hpp>
#include <tidegate/store/quota_store.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace tidegate::gateway {

class exchange;
struct client_address;
struct worker_runtime;

/// A question to the store of quotas, and the request that waits for its answer. It outlives its exchange,
/// so that what was spent for a client that has gone is given back.
struct quota_call {
  exchange* of = nullptr;             ///< null when nobody waits any more
  worker_runtime* runtime = nullptr;  ///< whose policies the charges point to
  std::string partitions;             ///< what the charges point into
  std::array<store::shared_charge, limits_max> charges{};
  std::size_t charges_count = 0;
  instant asked_at{};

  // Of a request that goes on from its head when the answer is there.
  std::string head;  ///< as HTTP/1.1 writes it
  client_address const* from = nullptr;
  bool waits = false;  ///< its body is kept here
  std::string body;    ///< framed as it came
  std::uint64_t content_octets = 0;
  std::optional<bool> body_is_last;  ///< nothing: none of it came
};

}  // namespace tidegate::gateway
