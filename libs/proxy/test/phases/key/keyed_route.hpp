// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "phases/exchange_fixture.hpp"

#include <tidegate/store/memory_idempotency_store.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tidegate::gateway {

/// What the tests of requests with keys send, and are answered.
inline constexpr std::string_view paid = "paid";
inline constexpr std::string_view created =
    "HTTP/1.1 201 Created\r\nX-Id: 1\r\nContent-Length: 4\r\n\r\ndone";

/// A configuration with one route, which has keys.
[[nodiscard]] inline auto keyed_route(scripted_upstream const& api, std::string const& options = "",
                                      std::string const& more = "",
                                      std::string const& upstream = "") -> std::string {
  return api.config(upstream) + "routes: [{match: {path: /**}, upstream: api" + more +
         ", idempotency: {mode: required" + options + "}}]\n";
}

/// The head of a request; an empty `key` or `owner` is left out.
[[nodiscard]] inline auto pay(std::string const& key = "\"k\"",
                              std::string const& owner = "Bearer x",
                              std::size_t length = paid.size(), std::string const& more = "",
                              std::string const& target = "/pay") -> std::string {
  return "POST " + target + " HTTP/1.1\r\nHost: h\r\n" +
         (owner.empty() ? "" : "Authorization: " + owner + "\r\n") +
         (key.empty() ? "" : "Idempotency-Key: " + key + "\r\n") + more +
         "Content-Length: " + std::to_string(length) + "\r\n\r\n";
}

/// Keeps records in memory, fails at one step, or loses them all.
class failing_store final : public store::idempotency_store {
 public:
  enum class when : std::uint8_t { never, finding, claiming, recording };
  /// Finds records without their responses from now on.
  void lose_responses() { has_responses_ = false; }
  explicit failing_store(when at = when::never) : at_(at) {}
  void recover() { at_ = when::never; }
  void lose_all() { kept_.emplace(store::memory_idempotency_store::options{}); }

  void find(idempotency::lookup_key const& key,
            std::move_only_function<void(store::find_answer)> answer) override {
    if (at_ == when::finding) {
      answer(failure(store::store_error{store::store_fault::unavailable, "down"}));
    } else {
      kept_->find(key, [this, to = std::move(answer)](store::find_answer found) mutable {
        if (found && *found && !has_responses_) {
          (*found)->response = nullptr;
        }
        to(std::move(found));
      });
    }
  }
  void apply(idempotency::change change,
             std::move_only_function<void(store::apply_answer)> answer) override {
    bool const is_claim =
        change.next && change.next->state == idempotency::record_state::dispatched;
    if (at_ == (is_claim ? when::claiming : when::recording)) {
      answer(failure(store::store_error{store::store_fault::unavailable, "down"}));
    } else {
      kept_->apply(std::move(change), std::move(answer));
    }
  }
  void list_unknown(std::size_t records,
                    std::move_only_function<void(store::list_answer)> answer) override {
    kept_->list_unknown(records, std::move(answer));
  }
  void sweep(idempotency::wall_time now, std::size_t records) override {
    kept_->sweep(now, records);
  }
  [[nodiscard]] auto used() const -> usage override { return kept_->used(); }

 private:
  when at_;
  bool has_responses_ = true;
  std::optional<store::memory_idempotency_store> kept_{store::memory_idempotency_store::options{}};
};

}  // namespace tidegate::gateway
