// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/connection.hpp"

#include <tidegate/base/instant.hpp>
#include <tidegate/store_redis/resp.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace tidegate::store_redis {

/// The commands of a connection that wait to be sent or answered, in their order. No I/O.
class command_queue {
 public:
  struct entry {
    answer_function answer;
    instant deadline = instant::max();  ///< set at the end of the turn
    std::uint64_t begin = 0;            ///< of its octets, among all that ever were to be sent
    std::size_t replies_left = 1;
    resp_value value;  ///< what was answered; of several commands, one item for each
    bool is_array = false;

    /// The reply to the first of its commands.
    [[nodiscard]] auto first_reply() const -> resp_value const& {
      return is_array ? value.items.front() : value;
    }
  };
  using entries = std::deque<entry>;

  [[nodiscard]] auto size() const noexcept -> std::size_t { return entries_.size(); }
  [[nodiscard]] auto is_empty() const noexcept -> bool { return entries_.empty(); }

  void push(command const& request, answer_function answer);

  /// Octets that wait to be sent; good until the queue is changed.
  [[nodiscard]] auto unsent() const noexcept -> std::string_view {
    return std::string_view(octets_).substr(sent_);
  }
  /// The first `size` octets of `unsent` were sent.
  void note_sent(std::size_t size);

  /// Whether a command was sent, at least in part, and is not answered.
  [[nodiscard]] auto is_answer_due() const noexcept -> bool {
    return !entries_.empty() && entries_.front().begin < sent_end();
  }
  /// Takes one reply to the first command, which was sent. Returns the command when it was the
  /// last one that it needed: then `entry::value` is its answer.
  [[nodiscard]] auto take_reply(resp_value value) -> std::optional<entry>;

  /// Gives a deadline to the commands that have none yet. Returns whether there were any.
  auto set_deadlines(instant at) noexcept -> bool;
  /// Until when the first command may wait; the others may wait as long or longer.
  [[nodiscard]] auto first_deadline() const noexcept -> instant {
    return entries_.empty() ? instant::max() : entries_.front().deadline;
  }

  /// Takes out what was sent on a connection that is lost. A command of which a part was sent is
  /// among it; the others begin the next connection.
  [[nodiscard]] auto take_sent() -> entries;
  /// Takes out what has waited for too long, while nothing is sent.
  [[nodiscard]] auto take_expired(instant now) -> entries;
  [[nodiscard]] auto take_all() -> entries;

 private:
  [[nodiscard]] auto sent_end() const noexcept -> std::uint64_t { return begin_ + sent_; }
  template <class Condition>
  auto take_while(Condition condition) -> entries;

  entries entries_;
  std::string octets_;       // commands that wait to be sent
  std::size_t sent_ = 0;     // how much of them was
  std::uint64_t begin_ = 0;  // how much was sent or dropped before them
};

}  // namespace tidegate::store_redis
