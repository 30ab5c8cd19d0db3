// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/instant.hpp>
#include <tidegate/base/result.hpp>
#include <tidegate/client/error.hpp>
#include <tidegate/client/message.hpp>
#include <tidegate/client/session.hpp>
#include <tidegate/idempotency/retry.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace tidegate::TIDEGATE_ABI::client {

struct lane;
struct transfer;

/// What `prepare` makes of a request: the same over all attempts.
struct prepared_request {
  request_id id = 0;
  request wanted;
  completion done;
  std::string key;        ///< without quotes; empty when there is none, or when `fields` have one
  std::string lane_name;  ///< origin, route and partition
  /// Where path and query begin in the URL, when they can be sent as they are; else 0.
  std::size_t target_begin = 0;
  idempotency::repeatability repeats;
  instant sent_at;
  instant deadline;
};

/// One request from `send` to its outcome, over all attempts.
struct exchange : prepared_request {
  enum class place : std::uint8_t {
    queued,     ///< in its lane
    waiting,    ///< to be sent again
    under_way,  ///< the transport has it
    finished,
  };

  place where = place::queued;
  lane* in = nullptr;
  exchange* before = nullptr;      ///< in the queue
  exchange* after = nullptr;       ///< in the queue
  bool is_fresh = false;           ///< its deadline has no timer yet
  instant timer = instant::max();  ///< when the scheduler looks at it, if nothing happens
  std::uint64_t ticket = 0;        ///< of the pacer, when `under_way`
  std::uint32_t attempts = 0;
  std::uint32_t retries = 0;  ///< those that count
  bool may_have_run = false;
  bool cancelled = false;
  instant began;           ///< the last attempt
  response answer;         ///< to the last attempt; the transport fills it
  transfer* on = nullptr;  ///< when `under_way`
};

/// Exchanges one after the other, linked by themselves: nothing is allocated.
class exchange_queue {
 public:
  [[nodiscard]] auto empty() const noexcept -> bool { return first_ == nullptr; }
  [[nodiscard]] auto front() noexcept -> exchange& { return *first_; }
  void push_front(exchange& each) noexcept { insert(each, first_); }
  void push_back(exchange& each) noexcept { insert(each, nullptr); }
  void remove(exchange& each) noexcept;

 private:
  void insert(exchange& each, exchange* after) noexcept;

  exchange* first_ = nullptr;
  exchange* last_ = nullptr;
};

/// Time and randomness of a new request.
struct origination {
  instant now;
  std::chrono::sys_time<std::chrono::milliseconds> wall_clock;
  std::span<std::uint8_t const, 10> randomness;
};

/// Judges a request and makes an exchange of it: the key, whether it may be sent twice, and its
/// lane. On error nothing can be sent; what is wrong is in `detail`.
[[nodiscard]] auto prepare(request wanted, session_options const& options, origination const& at)
    -> result<std::unique_ptr<exchange>, client_error>;

}  // namespace tidegate::TIDEGATE_ABI::client
