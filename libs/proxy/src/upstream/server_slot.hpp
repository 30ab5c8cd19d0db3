// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "observe/metrics.hpp"
#include "observe/upstream_reports.hpp"

#include <tidegate/balance/picker.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <span>
#include <vector>

namespace tidegate::gateway {

class http2_upstream_connection;
class upstream_connection;

/// One server as one thread knows it. It stays while there are connections to it, also when the
/// server is listed no more.
struct server_slot final : balance::candidate {
  std::shared_ptr<shared_server> server;
  std::shared_ptr<server_set> servers;  ///< that it is one of
  std::shared_ptr<server_metrics> counts;
  std::shared_ptr<server_report> report;
  latency_counts* latency = nullptr;  ///< of the upstream
  std::vector<upstream_connection*> idle;
  std::vector<http2_upstream_connection*> http2;
  bool speaks_http2 = false;  ///< as far as is known
  /// How many requests at once it took on the last new connection.
  std::size_t http2_streams_max = std::numeric_limits<std::size_t>::max();
  bool is_listed = true;
  std::size_t connections = 0;

  /// An exchange with it begins, and is over.
  void enter() {
    ++in_flight;
    counts->in_flight.add();
  }
  void leave() {
    --in_flight;
    counts->in_flight.subtract();
  }

  /// The head of a response came, after so long. False when its status is a failure.
  [[nodiscard]] auto note_head(int status, std::chrono::nanoseconds took, instant now) -> bool {
    latency->count(took);
    counts->by_status.add(static_cast<std::size_t>(std::min(status, 599)));
    if (!balance::is_failure(status)) [[likely]] {
      return true;
    }
    note_failed(status, now);
    return false;
  }
  /// A whole response came, with a status that counts as none.
  void note_answer(instant now) {
    if (server->failures_in_a_row() != 0) [[unlikely]] {
      servers->answered(*server);
    }
    if (report->awaits_answer()) [[unlikely]] {
      report->answered(now);
    }
  }
  /// No whole response came. `what` went wrong, for people.
  void note_failure(std::string_view what, instant now);
  /// The status of a response is a failure.
  void note_failed(int status, instant now);
};

/// What a request says of the connection that it wants.
struct connection_options {
  bool fresh = false;       ///< not one that rests, nor one that has refused a request
  bool has_waited = false;  ///< others do not come before it
  balance::pick_options server{};
};

/// The servers that failed one request.
class failed_servers {
 public:
  void clear() noexcept { count_ = 0; }
  void add(std::uint32_t server) noexcept {
    ids_[count_ % ids_.size()] = server;
    ++count_;
  }
  [[nodiscard]] auto ids() const noexcept -> std::span<std::uint32_t const> {
    return {ids_.data(), std::min(count_, ids_.size())};
  }

 private:
  std::array<std::uint32_t, 4> ids_{};
  std::size_t count_ = 0;
};

}  // namespace tidegate::gateway
