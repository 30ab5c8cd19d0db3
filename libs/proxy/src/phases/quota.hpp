// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "phases/quota_fields.hpp"
#include "phases/tunnel/held_charges.hpp"
#include "request/request_fields.hpp"
#include "services/jitter_source.hpp"

#include <tidegate/ratelimit/problems.hpp>
#include <tidegate/store/quota_overrides.hpp>
#include <tidegate/store/store_health.hpp>

namespace tidegate::gateway {

/// What decides about quotas, and what the phase uses of its thread.
struct quota_service {
  store::quota_table& table;
  store::quota_overrides const& overrides;           ///< of what is in `table`
  std::unique_ptr<store::quota_store> const& store;  ///< null where quotas are in memory
  store::store_health& health;                       ///< of `store`
  worker_metrics& metrics;
  jitter_source& jitter;
  value_scratch& values;
  std::string& text;  ///< for the content of a refusal
};

/// What a request costs, whether it may spend that, and what is told of it.
class quota_phase {
 public:
  /// For the next request.
  void reset() noexcept;
  /// Finds partitions and costs of a request that has a route. False when it has a value more than
  /// once that a partition needs once: `values.repeated` says which.
  [[nodiscard]] auto find_charges(request_context const& context, quota_service& service,
                                  instant now) -> bool;

  /// Spends the cost. When it is `suspended`, the store is to be asked about `copy_charges`.
  [[nodiscard]] auto enter(request_context& context, quota_service& service, instant now) -> step;
  /// The store has answered.
  [[nodiscard]] auto resume(request_context& context, quota_service& service,
                            store::spend_answer const& answer, instant now) -> step;
  /// Copies the charges, which point into `partitions` and `policies` then; how many there are.
  [[nodiscard]] auto copy_charges(request_context const& context, std::string& partitions,
                                  std::unique_ptr<overridden_policies>& policies,
                                  std::span<store::shared_charge, limits_max> out) const
      -> std::size_t;

  /// Tells how the policies stand, for an answer that none of them is the reason of.
  void look(request_context const& context, quota_service& service, instant now);
  /// Answers 503: the upstream of the request has too much to do. Nothing is spent.
  void refuse_overloaded(request_context& context, quota_service& service, instant now);

  /// Appends the RateLimit fields of a response; `upstream` is null for one of our own.
  void append_fields(std::string& out, request_context const& context, quota_service& service,
                     wire::response_head const* upstream, int status, bool has_resets = true);

  /// What was charged is corrected by what became of the request. Once: it does nothing after that.
  void settle(request_context const& context, quota_service& service, instant now) {
    if (std::exchange(charged_, false) && context.route_settings().gives_back) {
      correct_charges(context, service, now);
    }
  }
  /// All that was charged is given back.
  void release(request_context const& context, quota_service& service, instant now);
  /// From now on it costs `cost`, as a replay does.
  void charge_replay(request_context const& context, std::int64_t cost);
  /// What was charged stays so.
  void keep_charge() noexcept { charged_ = false; }
  /// What is to be corrected when the tunnel ends that takes the place of the exchange, by which it
  /// is settled then; null when nothing is.
  [[nodiscard]] auto detach_charges(request_context const& context)
      -> std::unique_ptr<held_charges>;

  /// Appends to a line of the access log what policies said.
  void append_decision(std::string& line, request_context const& context) const;
  /// What the access log says of the decision; empty when there was none.
  [[nodiscard]] auto decision() const noexcept -> std::string_view {
    return decision_.empty() && charged_ ? std::string_view("admitted") : decision_;
  }
  /// The positions of the limits that did not let the request pass.
  [[nodiscard]] auto refused() const noexcept -> std::span<std::size_t const> {
    return {refused_.data(), refused_count_};
  }
  void prefetch() const noexcept { fields_.prefetch(); }

 private:
  static_assert(limits_max <= store::quota_table::charges_max);

  void find_costs(request_context const& context);
  void use_overrides(request_context const& context, quota_service& service, instant now);
  void look_at_each(request_context const& context, quota_service& service, instant now);
  void make_fields(request_context const& context, quota_service& service, bool admitted,
                   bool given_back = false);
  [[nodiscard]] auto is_blocked(request_context& context, quota_service& service, instant now)
      -> bool;
  /// Nothing: the store has to be asked.
  [[nodiscard]] auto decide_shared(request_context& context, quota_service& service, instant now)
      -> std::optional<bool>;
  [[nodiscard]] auto decide_without_store(request_context const& context, quota_service& service,
                                          store::store_error const& why, instant now) -> bool;
  [[nodiscard]] auto decided(request_context& context, quota_service& service, bool admitted,
                             instant now) -> step;
  void count_refusals(request_context const& context, quota_service& service, instant now);
  void refuse_by_quota(request_context& context, quota_service& service, instant now);
  void refuse(request_context& context, ratelimit::problem_type type, std::string_view reason,
              std::string_view content, std::chrono::nanoseconds retry_after,
              std::string_view content_head = {}) const;
  void correct_charges(request_context const& context, quota_service& service, instant now);
  [[nodiscard]] auto charge_at(request_context const& context, std::size_t i) const -> made_charge {
    return {&context.route_settings().limits[i], charges_[i], results_[i], without_store_,
            context.admitted_at};
  }

  bool charged_ = false;
  bool without_store_ = false;  // which did not answer
  bool denied_ = false;         // for that reason
  std::string_view decision_;   // a literal
  std::size_t refused_count_ = 0;
  std::array<std::size_t, limits_max> refused_;
  std::string partitions_;  // of all limits, one after the other
  std::array<store::charge, limits_max> charges_;
  std::array<store::charged, limits_max> results_;
  other_quotas others_;
  quota_fields fields_;
};

}  // namespace tidegate::gateway
