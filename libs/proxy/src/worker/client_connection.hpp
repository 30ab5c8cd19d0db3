// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>

#include <cstddef>

namespace tidegate::gateway {

/// How a client takes what waits for it.
class reading_pace {
 public:
  /// It took `taken` octets, and `waiting` wait now. Progress is at least an eighth of those: a
  /// client that takes an octet now and then is as slow as one that takes nothing.
  void note(std::size_t taken, std::size_t waiting, instant now) noexcept {
    taken_ += taken;
    if (!waits_ || taken_ >= waiting / 8) {
      since_ = now;
      taken_ = 0;
    }
    waits_ = waiting > 0;
  }
  /// When it last made progress, or something began to wait.
  [[nodiscard]] auto since() const noexcept -> instant { return since_; }

 private:
  instant since_{};
  std::size_t taken_ = 0;
  bool waits_ = false;
};

/// A connection of a client, whatever it speaks.
class client_connection {
 public:
  /// Closes when nothing is under way; else after what is.
  virtual void drain() = 0;
  /// Closes at once.
  virtual void drop() = 0;
  /// What is in memory because the client does not take or give the rest.
  [[nodiscard]] virtual auto waiting_octets() const -> std::size_t { return 0; }
  /// Since when it has been waited for to take or give some of that; `now` when it is not.
  [[nodiscard]] virtual auto waiting_since(instant now) const -> instant { return now; }

 protected:
  ~client_connection() = default;
};

}  // namespace tidegate::gateway
