// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/engine/loop.hpp>
#include <tidegate/engine/tls.hpp>
#include <tidegate/store/idempotency_store.hpp>
#include <tidegate/store_redis/resp.hpp>
#include <tidegate/store_redis/server_url.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace tidegate::store_redis {

/// What a server answered, which may be an error of its own; or why there is no answer. Then the
/// command may or may not have been carried out.
using answer = result<resp_value, store::store_error>;
using answer_function = std::move_only_function<void(answer)>;

struct connection_options {
  // NOLINTBEGIN(readability-redundant-member-init): so that they may be left out
  server_address server{};
  std::optional<engine::tls_context> tls{};
  credentials login{};
  // NOLINTEND(readability-redundant-member-init)
  std::uint32_t database = 0;
  bool must_be_master = false;                       ///< a server that is none is of no use
  std::chrono::milliseconds connect_timeout{2'000};  ///< until the server takes commands
  std::chrono::milliseconds command_timeout{1'000};
  std::chrono::milliseconds backoff_first{50};
  std::chrono::milliseconds backoff_max{2'000};
  /// How often a cluster is asked where keys live, and sentinels who the master is: while all is
  /// well, and while something is not.
  std::chrono::milliseconds refresh_interval{2'000};
  std::chrono::milliseconds recovery_interval{100};
  /// A server that has been silent for so long is asked whether it is there.
  std::chrono::milliseconds idle_check{10'000};
  std::size_t commands_max = 65'536;               ///< that wait for an answer of one server
  std::size_t octets_max = std::size_t{64} << 20;  ///< of commands that wait to be sent to it
  resp_limits limits{};                            // NOLINT(readability-redundant-member-init)
};

/// A connection to one server, which comes back when it was lost. All of it belongs to the thread
/// of one loop.
///
/// Commands of one turn of the loop go out in one write at its end, and are answered in their
/// order. When an answer is late or invalid, or says that the server is a replica, the connection
/// is given up, and with it whatever was sent on it; what was not yet sent goes with the next one.
/// That is tried at once, and when it fails again and again after a random part of a time that
/// doubles; until then whatever comes fails at once.
class connection {
 public:
  connection(engine::loop& on, connection_options options);
  /// Answers whatever waits with `stopped`.
  ~connection();
  connection(connection const&) = delete;
  auto operator=(connection const&) -> connection& = delete;

  /// Answers once: in a later turn, or, when it fails, perhaps before it returns. Several commands
  /// in one are answered by an array.
  void send(command const& request, answer_function answer);

  /// False while it is known that the server cannot be reached: commands fail at once.
  [[nodiscard]] auto is_up() const noexcept -> bool;
  /// True while the server takes commands.
  [[nodiscard]] auto is_connected() const noexcept -> bool;
  /// Why it was last not up; empty when it always was.
  [[nodiscard]] auto error_text() const noexcept -> std::string const&;
  /// Calls `changed` whenever `is_connected` has become another, and after each attempt that
  /// failed. It may destroy the connection.
  void on_change(std::move_only_function<void()> changed);

  struct counts {
    std::uint64_t commands = 0;
    std::uint64_t writes = 0;    ///< system calls that took commands
    std::uint64_t failed = 0;    ///< commands without an answer
    std::uint64_t connects = 0;  ///< times that the server began to take commands
  };
  [[nodiscard]] auto counted() const noexcept -> counts const&;

 private:
  class link;
  engine::loop& loop_;
  std::unique_ptr<link> link_;
};

/// How long to wait at most before the next attempt when `failures` of them failed one after the
/// other.
[[nodiscard]] auto backoff_limit(connection_options const& options, unsigned failures) noexcept
    -> std::chrono::milliseconds;

}  // namespace tidegate::store_redis
