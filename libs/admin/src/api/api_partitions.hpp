// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/proxy/control.hpp>
#include "api/partition_key_cache.hpp"
#include "http.hpp"

#include <tidegate/engine/loop.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tidegate::gateway {

/// The admin API for single partitions:
///
///     POST   /api/v1/partitions/lookup                    what is left, and whether it is blocked
///     POST   /api/v1/partitions/reset                     forgets what it has spent, and the block
///     POST   /api/v1/partitions/quota                     gives it another quota for a while
///     GET    /api/v1/partitions/overrides                 all that have one
///     DELETE /api/v1/partitions/overrides?policy=P&key=K  takes it back
///
/// The content says which one: `policy`, and `values`, one for each source, or `key`, by which it
/// was shown. Secrets are in no URL and in no log.
class partition_api final : private engine::timer {
 public:
  /// `seen` outlives it.
  explicit partition_api(control& seen) : control_(seen), loop_(seen.loop) {}

  /// `reply` is called once, on the thread of the loop, perhaps before this returns, and never when
  /// the gateway ends before the store of quotas has answered.
  void answer(admin_request const& request, admin_note note, admin_reply reply);

  /// Those that operators were shown.
  [[nodiscard]] auto shown() noexcept -> partition_key_cache& { return shown_; }

 private:
  struct partition_command;
  void expired() override;
  [[nodiscard]] auto read_command(admin_request const& request)
      -> result<partition_command, admin_answer>;
  [[nodiscard]] auto find_partition(partition_command const& command, std::string_view key,
                                    instant now) const -> std::optional<std::string>;
  void look_up(partition_command command, bool was_changed, admin_reply reply);
  void reset(partition_command command, admin_reply reply);
  void give_quota(partition_command command, admin_reply reply);
  [[nodiscard]] auto list() const -> admin_answer;
  void take_back(admin_request const& request, admin_note note, admin_reply reply);
  [[nodiscard]] auto describe(partition_command const& command,
                              ratelimit::service const& left) const -> admin_answer;
  void forgive(store::quota_overrides::entry const& ended) const;
  void await_end();

  control& control_;
  engine::loop& loop_;
  partition_key_cache shown_;
  std::map<std::uint32_t, std::string> policies_;  // that have, or had, other quotas: their names
};

}  // namespace tidegate::gateway
