// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/connection.hpp"

#include <tidegate/base/result.hpp>
#include <tidegate/store_redis/resp.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace tidegate::store_redis {

/// What has to be said on a connection before commands: HELLO, and as the options ask for it AUTH,
/// SELECT and ROLE. No I/O.
class greeting {
 public:
  greeting() = default;
  explicit greeting(connection_options const& options);

  [[nodiscard]] auto unsent() const noexcept -> std::string_view {
    return std::string_view(octets_).substr(sent_);
  }
  void note_sent(std::size_t size) noexcept { sent_ += size; }

  /// Takes the next reply. True when it was the last one; the error is for people.
  [[nodiscard]] auto take_reply(resp_value const& value) -> result<bool, std::string>;

 private:
  enum class step : std::uint8_t { hello, select, role, ping };

  std::string octets_;
  std::size_t sent_ = 0;
  std::deque<step> steps_;  // whose replies are awaited
};

}  // namespace tidegate::store_redis
