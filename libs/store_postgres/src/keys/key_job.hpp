// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>
#include <tidegate/idempotency/change.hpp>
#include <tidegate/idempotency/lookup.hpp>
#include <tidegate/idempotency/wall_time.hpp>
#include <tidegate/store/idempotency_store.hpp>

#include "connection.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tidegate::store_postgres {

struct find_job {
  store::find_callback answer;
};
struct change_job {
  idempotency::change change;  ///< in our time; without its response
  std::string response;        ///< sealed; empty: none
  store::apply_callback answer;
};
/// Looks for what time has made something of; what is found becomes `expire_job`s.
struct sweep_job {
  idempotency::wall_time now;
  std::size_t records;
};
struct expire_job {
  idempotency::change change;  ///< in the time of the server
  idempotency::wall_time due_max;
};
struct count_job {};
struct count_unknown_job {};
struct list_job {
  std::size_t records;
  store::list_callback answer;
};

/// One thing to ask the server, until it is answered.
struct key_job {
  idempotency::lookup_key key{};
  std::variant<find_job, change_job, sweep_job, expire_job, count_job, count_unknown_job, list_job>
      request;
  instant deadline{};
  std::size_t octets = 0;
  bool is_alone = false;  ///< it failed, or others did with it
  int attempts = 0;
  rows found{};
};

/// Jobs that are one transaction of the server.
struct flight {
  std::vector<key_job> jobs;
  bool is_checking = false;  ///< what it says of the secret comes next
  std::size_t at = 0;        ///< whose result comes next
  idempotency::wall_time asked{};
  instant deadline{};
  std::optional<store::store_error> error{};
  std::string sqlstate{};
};

}  // namespace tidegate::store_postgres
