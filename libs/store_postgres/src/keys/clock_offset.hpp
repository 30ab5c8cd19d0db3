// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/idempotency/record.hpp>
#include <tidegate/idempotency/wall_time.hpp>

#include <algorithm>
#include <chrono>

namespace tidegate::store_postgres {

/// How far the clock of the server is ahead of ours.
///
/// What the server says it is came between a question and its answer, so each answer says between
/// which bounds the offset is. It moves only as far as it must to be within them: it is steady
/// while both clocks are, and zero where they may be the same.
class clock_offset {
 public:
  using wall_time = idempotency::wall_time;
  using milliseconds = std::chrono::milliseconds;

  /// The server said that it is `server_time` when it was asked at `asked`, and its answer came at
  /// `answered`. A clock of ours that was set back in between says nothing.
  void update(wall_time asked, wall_time server_time, wall_time answered) noexcept {
    if (answered < asked) {
      return;
    }
    // All of them were rounded down.
    auto const least = server_time - answered - milliseconds(1);
    auto const most = server_time - asked + milliseconds(1);
    offset_ = std::clamp(offset_, least, most);
  }

  [[nodiscard]] auto get() const noexcept -> milliseconds { return offset_; }

  [[nodiscard]] auto to_server(wall_time ours) const noexcept -> wall_time {
    return ours + offset_;
  }
  /// With its times by the clock of the server, and back.
  [[nodiscard]] auto to_server(idempotency::record record) const noexcept -> idempotency::record {
    return moved(std::move(record), offset_);
  }
  [[nodiscard]] auto to_ours(idempotency::record record) const noexcept -> idempotency::record {
    return moved(std::move(record), -offset_);
  }

 private:
  [[nodiscard]] static auto moved(idempotency::record record, milliseconds by) noexcept
      -> idempotency::record {
    for (auto* const time : {&record.created, &record.changed, &record.lease_until}) {
      // What is not there is not moved.
      *time = *time == wall_time() ? *time : *time + by;
    }
    return record;
  }

  milliseconds offset_{0};
};

}  // namespace tidegate::store_postgres
