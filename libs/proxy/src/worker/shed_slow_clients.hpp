// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>

#include <cstddef>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tidegate::gateway {

class worker;

/// Counts what waits in memory for the slow clients of one thread. When all threads together have
/// more than `http.max-buffered`, clients are dropped in a later turn: of all threads, those for
/// which most has waited for longest.
class slow_client_shedder {
 public:
  explicit slow_client_shedder(worker& on) : worker_(on) {}

  /// `counted` is what was counted before of something that waits, and becomes `octets`.
  void recount(std::size_t& counted, std::size_t octets);
  /// Drops the clients for which most waits, without memory: all with at least half of the most.
  void shed_largest();

  /// Keeps a text that waits for a client counted.
  class held_text {
   public:
    held_text() = default;
    held_text(slow_client_shedder& by, void const* text) : by_(&by), text_(text) {}
    held_text(held_text&& other) noexcept
        : by_(std::exchange(other.by_, nullptr)), text_(other.text_) {}
    auto operator=(held_text&& other) noexcept -> held_text& {
      std::swap(by_, other.by_);
      std::swap(text_, other.text_);
      return *this;
    }
    ~held_text() { reset(); }
    void reset() noexcept {
      if (by_ != nullptr) {
        std::exchange(by_, nullptr)->let_text_go(text_);
      }
    }

   private:
    slow_client_shedder* by_ = nullptr;
    void const* text_ = nullptr;
  };
  /// Counts a text that several clients may wait for once.
  [[nodiscard]] auto hold_text(std::string_view text) -> held_text;

 private:
  struct shed_round;
  struct slow_client;
  struct text_count {
    std::size_t holders = 0;
    std::size_t counted = 0;
  };

  void let_text_go(void const* text) noexcept;
  void begin_to_shed();
  void start(std::shared_ptr<shed_round> const& round);
  void rank_clients(std::shared_ptr<shed_round> const& round, std::size_t at);
  void drop_slowest(std::shared_ptr<shed_round> const& round, std::size_t at);
  void end_or_repeat(std::shared_ptr<shed_round> const& round);
  [[nodiscard]] auto find_slow(instant now) const -> std::vector<slow_client>;
  [[nodiscard]] auto has_too_much() const -> bool;

  worker& worker_;
  std::unordered_map<void const*, text_count> texts_;  // that wait for clients
};

}  // namespace tidegate::gateway
