// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_redis/quota_store.hpp>

#include "protocol/callback_timer.hpp"
#include "protocol/client.hpp"
#include "protocol/cluster_slots.hpp"
#include "protocol/script.hpp"
#include "quotas/lease_size.hpp"
#include "quotas/lease_table.hpp"
#include "quotas/quota_script.hpp"
#include "quotas/verdict_cache.hpp"

#include <tidegate/base/sha256.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace tidegate::store_redis {

namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using store::charged;
using store::counting;
using store::shared_charge;
using store::store_error;
using store::store_fault;

/// Charges that one call of a script decides about: it has the server for itself meanwhile.
constexpr std::size_t call_charges_max = 64;
constexpr std::string_view gateways_key = "tidegate:gateways";
/// Tells concurrent requests from other units, beside the number of a policy.
constexpr std::uint64_t held_unit = std::uint64_t{1} << 32;

struct scripts {
  script spend{spend_script()};
  script settle{settle_script()};
  script take{take_script()};
  script hold{hold_script()};
  script gateways{gateways_script()};
};

auto all_scripts() -> scripts const& {
  static scripts const all;
  return all;
}

auto hex(std::span<std::byte const> octets) -> std::string {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (auto const octet : octets) {
    text += digits[std::to_integer<std::size_t>(octet >> 4)];
    text += digits[std::to_integer<std::size_t>(octet & std::byte{15})];
  }
  return text;
}

auto is_concurrent(ratelimit::policy const& policy) -> bool {
  return policy.unit() == ratelimit::quota_unit::concurrent_requests;
}

/// Partitions may be secrets, and of any length: keys have a digest. It is the hash tag, so that
/// what a partition has lies in one slot. What is held is kept in another way than what was spent,
/// so a policy whose unit changes has another key.
auto key_of(shared_charge const& charge) -> std::string {
  auto const digest = sha256::of(charge.of.partition);
  std::string key = "tidegate:{";
  key += hex(std::span(digest).first(16));
  key += is_concurrent(*charge.of.policy) ? "}:held:" : "}:spent:";
  key += charge.policy_name;
  return key;
}

/// A slice of gcra could be spent later than its units were there, so that is counted exactly.
auto is_leased(shared_charge const& charge) -> bool {
  auto const& policy = *charge.of.policy;
  return charge.how == counting::lease &&
         (is_concurrent(policy) || policy.algorithm() != ratelimit::algorithm::gcra);
}

auto make_seed() -> store::hash_seed {
  std::random_device random;
  std::array<std::uint64_t, 4> words{};
  for (auto& word : words) {
    word = std::uint64_t{random()} << 32 | random();
  }
  return store::hash_seed(words);
}

auto make_holder(std::string const& gateway) -> std::string {
  std::random_device random;
  std::array<std::byte, 8> octets{};
  std::ranges::generate(octets, [&] { return static_cast<std::byte>(random()); });
  return gateway + "/" + hex(octets);
}

auto stopped() -> store_error {
  return {store_fault::stopped, "the store is being closed"};
}

/// An answer of a script: whole numbers, as many as were awaited.
class numbers {
 public:
  static auto of(answer const& got, std::size_t count) -> result<numbers, store_error> {
    if (!got) {
      return failure(got.error());
    }
    if (got->is_error()) {
      return failure(store_error{store_fault::unavailable, got->text});
    }
    std::span<resp_value const> const items =
        got->is_integer() ? std::span<resp_value const>(&*got, 1) : got->items;
    if (items.size() != count || !std::ranges::all_of(items, is_sensible)) {
      return failure(store_error{store_fault::damaged, "a script answered senselessly"});
    }
    return numbers(items);
  }
  auto next() -> std::int64_t { return items_[at_++].integer; }

  /// What remains, reset, retry and their nanoseconds.
  auto next_verdict(bool admitted) -> ratelimit::verdict {
    auto const remaining = next();
    auto const reset = microseconds(next());
    auto const retry = microseconds(next());
    auto const ns = next();
    return {admitted, {remaining, reset + nanoseconds(ns / 1000)}, retry + nanoseconds(ns % 1000)};
  }

 private:
  /// Scripts know no larger numbers, and as microseconds they can be added.
  static auto is_sensible(resp_value const& item) -> bool {
    return item.is_integer() && item.integer >= 0 && item.integer < std::int64_t{1} << 53;
  }
  explicit numbers(std::span<resp_value const> items) : items_(items) {}
  std::span<resp_value const> items_;
  std::size_t at_ = 0;
};

/// A charge of a request that waits for an answer.
struct waiting_charge {
  enum class state : std::uint8_t {
    here,     // spent of a share: the store is not asked
    waiting,  // to be asked about
    asked,
    answered,
  };

  store::key_hash id;
  std::string key;
  ratelimit::policy policy;
  std::int64_t cost = 0;
  bool enforced = true;
  counting how = counting::exact;
  state is = state::waiting;
  bool has_share = false;       // which knows that it asks
  std::int64_t window_end = 0;  // of the share that it was spent of
  bool is_spent = false;        // in the store
  std::int64_t spent_at = 0;    // by the store's clock
  charged result{};  // NOLINT(readability-redundant-member-init): so that it may be left out
};
using charge_state = waiting_charge::state;

struct waiting_request {
  std::vector<waiting_charge> charges;
  std::move_only_function<void(store::spend_answer)> answer;
  instant asked_at{};
  std::optional<store_error> error;  // it is not asked at all
};
using waiting_requests = std::vector<std::unique_ptr<waiting_request>>;

struct waiting_settlement {
  store::key_hash id;
  std::string key;
  std::string argument;
  std::int64_t admitted_at = 0;
};

class redis_quotas final : public store::quota_store {
 public:
  redis_quotas(engine::loop& on, std::unique_ptr<client> to, quota_store_options const& options,
               bool is_cluster)
      : loop_(on),
        options_(options),
        is_cluster_(is_cluster),
        seed_(make_seed()),
        holder_(make_holder(options.gateway)),
        heard_(options.heard_max),
        end_of_turn_(std::make_unique<end_of_turn>(*this)),
        beat_(on, [this] { beat(); }),
        idle_(on, [this] { give_back_idle(); }),
        client_(std::move(to)) {
    beat_.set_in(std::chrono::milliseconds(0));
  }

  ~redis_quotas() override {
    is_stopping_ = true;
    for (auto& of : shares_) {
      give_back(of, of.units);
    }
    send_settlements();
    client_.reset();
    for (auto& request : std::exchange(requests_, {})) {
      request->answer(failure(stopped()));
    }
    end_of_turn_->of = nullptr;
    loop_.dispose(std::move(end_of_turn_));
  }

  [[nodiscard]] auto spend_here(std::span<shared_charge const> charges, instant now,
                                std::span<charged> results)
      -> result<std::optional<bool>, store_error> override;
  void spend(std::span<shared_charge const> charges, instant now,
             std::move_only_function<void(store::spend_answer)> answer) override;
  void settle(shared_charge const& charge, instant admitted_at, instant now,
              std::int64_t units) override;
  void forget(shared_charge const& charge,
              std::move_only_function<void(result<void, store_error>)> answer) override;
  void forget_here(shared_charge const& charge) override;
  [[nodiscard]] auto look(shared_charge const& charge, instant now) const
      -> ratelimit::service override;
  [[nodiscard]] auto gateways() const -> std::size_t override { return gateways_; }
  [[nodiscard]] auto counted() const -> counts override { return counts_; }

 private:
  /// Lives until the loop has let go of it.
  struct end_of_turn final : engine::watched {
    explicit end_of_turn(redis_quotas& quotas) : of(&quotas) {}
    void ready(engine::readiness) override {}
    void turn_ends() override {
      if (of != nullptr) {
        of->send_all();
      }
    }
    redis_quotas* of;
  };

  [[nodiscard]] auto id_of(store::charge const& charge) const noexcept -> store::key_hash {
    // As a key in Redis: other units of the same policy are something else.
    auto const unit = is_concurrent(*charge.policy) ? held_unit : 0;
    return store::hash_key(seed_, charge.policy_id ^ unit, charge.partition);
  }
  [[nodiscard]] auto takers() const noexcept -> std::size_t { return gateways_ * options_.stores; }
  [[nodiscard]] auto argument(ratelimit::policy const& policy, std::int64_t cost,
                              bool enforced = true) const -> std::string {
    return charge_argument(policy, cost, enforced, holder_, options_.alive_for);
  }

  void ask_for_end_of_turn() {
    if (!std::exchange(is_end_asked_for_, true)) {
      loop_.at_end_of_turn(*end_of_turn_);
    }
  }

  // shares
  [[nodiscard]] auto usable(store::key_hash const& id, std::int64_t cost, instant now) -> share*;
  [[nodiscard]] auto share_for(shared_charge const& charge, instant now) -> share*;
  [[nodiscard]] auto wanted(share& of, instant now) const -> std::int64_t;
  void use_of(share& of, std::int64_t cost, instant now);
  void ask_for_more(share& of, instant now);
  void forget_known(store::key_hash const& id);
  void end_slice(share& of);
  void give_back(share& of, std::int64_t units);
  void give_back_idle();
  void settle_there(store::key_hash const& id, std::string key, ratelimit::policy const& policy,
                    std::int64_t units, std::int64_t admitted_at);
  [[nodiscard]] auto settle_here(share& of, instant admitted_at, instant now, std::int64_t units)
      -> std::int64_t;

  // questions
  [[nodiscard]] auto begin(shared_charge const& charge, instant now)
      -> result<waiting_charge, store_error>;
  void send_all();
  void send_settlements();
  void send_holds();
  void send_takes();
  void send_requests();
  void send(waiting_requests requests);

  // answers
  void answered(waiting_requests requests, instant sent, answer const& got);
  void spent(waiting_charge& charge, bool is_call_admitted, std::int64_t at, instant asked,
             instant sent);
  void finish(waiting_request& request, bool admitted);
  void fail(waiting_request& request, store_error const& error);
  void undo(waiting_charge& charge);
  void taken(store::key_hash const& id, instant sent, answer const& got);
  void remember(waiting_charge const& charge, instant asked, instant sent);
  void hear_time(std::int64_t store_time);

  // heartbeats
  void beat();

  engine::loop& loop_;
  quota_store_options options_;
  bool is_cluster_;
  store::hash_seed seed_;
  std::string holder_;
  heard_table heard_;
  share_table shares_;
  waiting_requests requests_;
  std::vector<waiting_settlement> settlements_;
  std::vector<store::key_hash> takes_;
  std::vector<store::key_hash> holds_;
  std::unique_ptr<end_of_turn> end_of_turn_;
  bool is_end_asked_for_ = false;
  bool is_stopping_ = false;
  alarm beat_;
  alarm idle_;
  std::size_t gateways_ = 1;
  std::int64_t ahead_ =
      0;  // microseconds that the clock of who answered last is ahead of ours at least
  bool has_heard_time_ = false;
  counts counts_;
  std::unique_ptr<client> client_;
};

// ---- decisions here ----

auto redis_quotas::spend_here(std::span<shared_charge const> charges, instant now,
                              std::span<charged> results)
    -> result<std::optional<bool>, store_error> {
  constexpr auto most = store::quota_table::charges_max;
  assert(charges.size() <= most && results.size() >= charges.size());
  std::array<share*, most> shares{};
  std::array<heard const*, most> refusals{};
  bool is_refused = false;
  bool is_known = true;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    auto const& of = charges[i].of;
    auto const id = id_of(of);
    auto const cost = std::max<std::int64_t>(of.cost, 0);
    if (is_leased(charges[i])) {
      shares[i] = usable(id, cost, now);
      if (shares[i] != nullptr) {
        continue;
      }
    }
    if (auto const* const known = heard_.find(id); known != nullptr && known->refuses(cost, now)) {
      refusals[i] = known;
      is_refused = is_refused || of.enforced;
      continue;
    }
    is_known = false;
  }
  if (!is_refused && !is_known) {
    auto const key = is_cluster_ ? key_of(charges[0]) : std::string();
    if (!client_->is_up(key)) {
      return failure(store_error{store_fault::unavailable, client_->trouble(key)});
    }
    return std::optional<bool>();
  }
  ++counts_.here;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    results[i] = {};
    auto& decision = results[i].decision;
    if (refusals[i] != nullptr) {
      decision = {false, refusals[i]->left_at(now),
                  std::max(refusals[i]->retry_at - now, nanoseconds(0))};
    } else if (is_refused) {
      decision = {true, look(charges[i], now), {}};
    } else {
      use_of(*shares[i], std::max<std::int64_t>(charges[i].of.cost, 0), now);
      decision = {true, shares[i]->left(now), {}};
    }
  }
  return std::optional(!is_refused);
}

auto redis_quotas::look(shared_charge const& charge, instant now) const -> ratelimit::service {
  auto const id = id_of(charge.of);
  if (auto const* const found = shares_.find(id);
      found != nullptr && (found->is_concurrent() || now < found->reset_at)) {
    return found->left(now);
  }
  auto const& policy = *charge.of.policy;
  auto const* const known = heard_.find(id);
  if (known == nullptr || now - known->at >= policy.window() ||
      (policy.algorithm() == ratelimit::algorithm::fixed && now - known->at >= known->left.reset)) {
    return ratelimit::look(policy, {}, now);
  }
  return known->left_at(now);
}

// ---- shares ----

/// The share that a cost can be spent of now.
auto redis_quotas::usable(store::key_hash const& id, std::int64_t cost, instant now) -> share* {
  auto* const found = shares_.find(id);
  if (found == nullptr || !found->is_leased) {
    return nullptr;
  }
  if (now >= found->valid_until) {
    end_slice(*found);
    return nullptr;
  }
  return cost <= found->units ? found : nullptr;
}

/// The share of a charge that is leased or of concurrent requests, made if there is none; null for
/// want of room.
auto redis_quotas::share_for(shared_charge const& charge, instant now) -> share* {
  auto const id = id_of(charge.of);
  auto const& policy = *charge.of.policy;
  auto* found = shares_.find(id);
  if (found == nullptr) {
    if (shares_.size() >= options_.shares_max) {
      auto& oldest = shares_.oldest();
      if (!oldest.is_idle()) {
        return nullptr;
      }
      give_back(oldest, oldest.units);
      shares_.erase(oldest);
    }
    found = &shares_.add(
        {.id = id, .key = key_of(charge), .policy = policy, .left_there = policy.quota()});
    idle_.set_within(options_.lease_idle);
  }
  found->policy = policy;
  found->is_leased = is_leased(charge);
  shares_.touch(*found, now);
  return found;
}

auto redis_quotas::wanted(share& of, instant now) const -> std::int64_t {
  return of.is_concurrent() ? slots_ahead(of.held, of.left_there, takers())
                            : lease_size(of.rate.per_period(now), of.left_there, takers());
}

void redis_quotas::use_of(share& of, std::int64_t cost, instant now) {
  of.units -= cost;
  of.held += of.is_concurrent() ? cost : 0;
  of.rate.add(now, cost);
  if (of.last_used != now) {
    shares_.touch(of, now);
  }
  ask_for_more(of, now);
}

void redis_quotas::ask_for_more(share& of, instant now) {
  if (!of.is_taking && now >= of.no_more_until && is_low(of.units, wanted(of, now))) {
    of.is_taking = true;
    takes_.push_back(of.id);
    ask_for_end_of_turn();
  }
}

/// What is left of it when its window has ended. In a fixed window nobody can use that any more.
void redis_quotas::end_slice(share& of) {
  if (of.is_concurrent()) {
    // The store may have given them to others. What is held will be said by the next heartbeat.
    of.is_unsure = of.is_unsure || of.units > 0;
    of.units = 0;
  } else if (of.policy.algorithm() == ratelimit::algorithm::sliding) {
    give_back(of, of.units);
  } else {
    of.units = 0;
  }
}

void redis_quotas::give_back(share& of, std::int64_t units) {
  if (units > 0) {
    of.units -= units;
    settle_there(of.id, of.key, of.policy, -units, of.taken_at);
  }
}

void redis_quotas::settle_there(store::key_hash const& id, std::string key,
                                ratelimit::policy const& policy, std::int64_t units,
                                std::int64_t admitted_at) {
  if (auto* const of = shares_.find(id)) {
    of->unsent += units;
  }
  settlements_.push_back({id, std::move(key), argument(policy, units), admitted_at});
  ask_for_end_of_turn();
}

void redis_quotas::give_back_idle() {
  auto const now = loop_.now();
  for (auto left = shares_.size(); left > 0; --left) {
    auto& oldest = shares_.oldest();
    if (now - oldest.last_used < options_.lease_idle) {
      break;
    }
    if (!oldest.is_taking) {
      give_back(oldest, oldest.units);
    }
    if (oldest.is_idle()) {
      shares_.erase(oldest);
    } else {
      shares_.touch(oldest, now);
    }
  }
  if (shares_.size() > 0) {
    idle_.set_in(options_.lease_idle / 2);
  }
}

/// Corrects what was spent of a share. Returns the units that are the store's affair.
auto redis_quotas::settle_here(share& of, instant admitted_at, instant now, std::int64_t units)
    -> std::int64_t {
  if (of.is_concurrent()) {
    auto const change = std::max(units, -of.held);
    of.held += change;
    if (!of.is_leased || now >= of.valid_until || change > of.units) {
      return change;
    }
    of.units -= change;
    give_back(of, excess(of.units, wanted(of, now)));
    return 0;
  }
  bool const is_of_this_window = now < of.valid_until && (units > 0 || admitted_at >= of.since);
  if (!is_of_this_window || units > of.units) {
    return units;
  }
  of.units -= units;
  return 0;
}

void redis_quotas::settle(shared_charge const& charge, instant admitted_at, instant now,
                          std::int64_t units) {
  if (is_stopping_ || units == 0) {
    return;
  }
  auto const id = id_of(charge.of);
  bool const concurrent = is_concurrent(*charge.of.policy);
  if (concurrent || is_leased(charge)) {
    // What was never asked about is held as well.
    auto* const of = concurrent && units > 0 ? share_for(charge, now) : shares_.find(id);
    if (of != nullptr) {
      units = settle_here(*of, admitted_at, now, units);
    }
  }
  // Without a time of the store nothing was spent there that could be given back.
  if (units == 0 || (units < 0 && !has_heard_time_)) {
    return;
  }
  auto const* const known = heard_.find(id);
  auto at = std::chrono::floor<microseconds>(admitted_at.time_since_epoch()).count() +
            (known != nullptr ? known->ahead : ahead_);
  if (known != nullptr && admitted_at >= known->first_asked) {
    at = std::max(at, known->first_at);
  }
  settle_there(id, key_of(charge), *charge.of.policy, units, at);
}

void redis_quotas::forget_here(shared_charge const& charge) {
  if (!is_concurrent(*charge.of.policy)) {
    forget_known(id_of(charge.of));
  }
}

void redis_quotas::forget_known(store::key_hash const& id) {
  heard_.forget(id);
  if (auto* const of = shares_.find(id)) {
    // Units that are left were counted in what is forgotten.
    of->units = 0;
    of->no_more_until = {};
    of->left_there = of->policy.quota();
  }
}

void redis_quotas::forget(shared_charge const& charge,
                          std::move_only_function<void(result<void, store_error>)> answer) {
  if (is_concurrent(*charge.of.policy)) {
    answer({});
    return;
  }
  auto const key = key_of(charge);
  client_->send(key, command{"DEL", key},
                [this, id = id_of(charge.of),
                 answer = std::move(answer)](store_redis::answer const& got) mutable {
                  forget_known(id);  // and what was heard of it meanwhile
                  if (!got) {
                    answer(failure(got.error()));
                  } else if (got->is_error()) {
                    answer(failure(store_error{store_fault::unavailable, got->text}));
                  } else {
                    answer({});
                  }
                });
}

// ---- questions ----

auto redis_quotas::begin(shared_charge const& charge, instant now)
    -> result<waiting_charge, store_error> {
  waiting_charge made{.id = id_of(charge.of),
                      .key = key_of(charge),
                      .policy = *charge.of.policy,
                      .cost = std::max<std::int64_t>(charge.of.cost, 0),
                      .enforced = charge.of.enforced,
                      .how = is_leased(charge) ? counting::lease : counting::exact};
  bool const concurrent = is_concurrent(made.policy);
  bool const leased = made.how == counting::lease;
  if (!concurrent && !leased) {
    return made;
  }
  if (auto* const of = leased ? usable(made.id, made.cost, now) : nullptr) {
    made.is = charge_state::here;
    made.window_end = of->window_end;
    use_of(*of, made.cost, now);
    made.result.decision = {true, of->left(now), {}};
    return made;
  }
  auto* const of = share_for(charge, now);
  if (of == nullptr && concurrent) {
    // Nobody would tell the store that it is still held.
    return failure(store_error{store_fault::full, "too many partitions have concurrent requests"});
  }
  if (of != nullptr) {
    made.has_share = true;
    ++of->asking;
    of->rate.add(now, made.cost);
    if (leased) {
      ask_for_more(*of, now);
    }
  }
  return made;
}

void redis_quotas::spend(std::span<shared_charge const> charges, instant now,
                         std::move_only_function<void(store::spend_answer)> answer) {
  ++counts_.asked;
  auto request = std::make_unique<waiting_request>();
  request->answer = std::move(answer);
  request->asked_at = now;
  request->charges.reserve(charges.size());
  for (auto const& charge : charges) {
    auto made = begin(charge, now);
    if (!made) {
      request->error = made.error();
      break;
    }
    request->charges.push_back(*std::move(made));
  }
  requests_.push_back(std::move(request));
  ask_for_end_of_turn();
}

/// In this order: what is held is said before something changes it, and what is given back is there
/// for those that ask.
void redis_quotas::send_all() {
  is_end_asked_for_ = false;
  bool const is_any =
      !settlements_.empty() || !holds_.empty() || !takes_.empty() || !requests_.empty();
  counts_.round_trips += is_any ? 1 : 0;
  send_holds();
  send_settlements();
  send_takes();
  send_requests();
}

void redis_quotas::send_settlements() {
  auto const all = std::exchange(settlements_, {});
  auto const step = is_cluster_ ? 1 : call_charges_max;
  for (std::size_t i = 0; i < all.size(); i += step) {
    word_list keys;
    word_list arguments;
    std::vector<store::key_hash> ids;
    for (auto const& each : std::span(all).subspan(i, std::min(step, all.size() - i))) {
      keys.add(each.key);
      arguments.add(each.argument);
      arguments.add(std::to_string(each.admitted_at));
      if (auto* const of = shares_.find(each.id)) {  // it stays until that is answered
        of->unsent = 0;
        ++of->sent;
        ids.push_back(each.id);
      }
    }
    run(*client_, all_scripts().settle, std::move(keys), std::move(arguments),
        [this, ids = std::move(ids)](answer const& got) {
          auto heard = numbers::of(got, 1);
          if (heard) {
            hear_time(heard->next());
          }
          for (auto const& id : ids) {
            auto& of = *shares_.find(id);
            --of.sent;
            of.is_unsure = of.is_unsure || (!heard && of.is_concurrent());
          }
        });
  }
}

void redis_quotas::send_holds() {
  for (auto const& request : requests_) {
    for (auto const& charge : request->charges) {
      if (auto* const of = charge.has_share ? shares_.find(charge.id) : nullptr;
          of != nullptr && of->is_unsure && of->sent == 0) {
        holds_.push_back(charge.id);
      }
    }
  }
  struct said {
    store::key_hash id;
    bool is_known;  // else what is on its way may change it
  };
  auto const sent = loop_.now();
  auto const all = std::exchange(holds_, {});
  auto const step = is_cluster_ ? 1 : call_charges_max;
  for (std::size_t i = 0; i < all.size(); i += step) {
    word_list keys;
    word_list arguments;
    std::vector<said> what;
    for (auto const& id : std::span(all).subspan(i, std::min(step, all.size() - i))) {
      if (auto const* const of = shares_.find(id)) {
        what.push_back({id, of->sent == 0});
        keys.add(of->key);
        arguments.add(argument(of->policy, of->sent == 0 ? of->held_there() : -1));
      }
    }
    if (what.empty()) {
      continue;
    }
    run_in_order(*client_, all_scripts().hold, keys, arguments,
                 [this, what = std::move(what), sent](answer const& got) {
                   auto heard = numbers::of(got, 1);
                   if (!heard) {
                     return;
                   }
                   hear_time(heard->next());
                   for (auto const& [id, is_known] : what) {
                     if (auto* const of = shares_.find(id)) {
                       of->is_unsure = of->is_unsure && !is_known;
                       of->valid_until = std::max(of->valid_until, sent + options_.alive_for);
                     }
                   }
                 });
  }
}

void redis_quotas::send_takes() {
  auto const sent = loop_.now();
  for (auto const& id : std::exchange(takes_, {})) {
    auto& of = *shares_.find(id);  // it is kept while it takes
    ++of.sent;
    word_list keys;
    keys.add(of.key);
    word_list arguments;
    arguments.add(argument(of.policy, wanted(of, sent)));
    arguments.add("1");
    arguments.add(std::to_string(lease_parts(takers())));
    run(*client_, all_scripts().take, std::move(keys), std::move(arguments),
        [this, id, sent](answer const& got) { taken(id, sent, got); });
  }
}

void redis_quotas::send_requests() {
  waiting_requests batch;
  std::size_t charges = 0;
  auto requests = std::exchange(requests_, {});
  for (auto& request : requests) {
    if (request->error) {
      fail(*request, *request->error);
      continue;
    }
    auto const waiting = static_cast<std::size_t>(
        std::ranges::count(request->charges, charge_state::waiting, &waiting_charge::is));
    if (waiting == 0) {
      finish(*request, true);
      continue;
    }
    if (!batch.empty() && (is_cluster_ || charges + waiting > call_charges_max)) {
      send(std::exchange(batch, {}));
      charges = 0;
    }
    charges += waiting;
    batch.push_back(std::move(request));
  }
  if (!batch.empty()) {
    send(std::move(batch));
  }
}

/// Asks about what waits, in a cluster only as far as it has the same key as the first, but for the
/// policy.
void redis_quotas::send(waiting_requests requests) {
  word_list keys;
  std::string sizes;
  std::vector<waiting_charge*> asked;
  for (auto const& request : requests) {
    auto const before = asked.size();
    for (auto& charge : request->charges) {
      if (charge.is != charge_state::waiting ||
          (is_cluster_ && !asked.empty() && slot_of(charge.key) != slot_of(asked[0]->key))) {
        continue;
      }
      charge.is = charge_state::asked;
      asked.push_back(&charge);
      keys.add(charge.key);
      if (auto* const of = charge.has_share ? shares_.find(charge.id) : nullptr) {
        ++of->sent;
      }
    }
    sizes += static_cast<char>(asked.size() - before);
  }
  word_list arguments;
  arguments.add(sizes);
  for (auto const* const charge : asked) {
    arguments.add(argument(charge->policy, charge->cost, charge->enforced));
  }
  run(*client_, all_scripts().spend, std::move(keys), std::move(arguments),
      [this, requests = std::move(requests), sent = loop_.now()](answer const& got) mutable {
        answered(std::move(requests), sent, got);
      });
}

// ---- answers ----

void redis_quotas::answered(waiting_requests requests, instant sent, answer const& got) {
  std::size_t count = 1;
  for (auto const& request : requests) {
    count += 1;
    for (auto const& charge : request->charges) {
      count += charge.is == charge_state::asked ? 5 : 0;
    }
  }
  auto heard = numbers::of(got, count);
  if (!heard) {
    for (auto const& request : requests) {
      fail(*request, heard.error());
    }
    return;
  }
  auto const at = heard->next();
  hear_time(at);
  for (auto& request : requests) {
    bool const admitted = heard->next() == 1;
    bool is_waiting = false;
    for (auto& charge : request->charges) {
      if (charge.is == charge_state::asked) {
        bool const is_charge_admitted = heard->next() == 1;
        charge.result.decision = heard->next_verdict(is_charge_admitted);
        spent(charge, admitted, at, request->asked_at, sent);
      }
      is_waiting = is_waiting || charge.is == charge_state::waiting;
    }
    if (admitted && is_waiting) {  // in another slot
      requests_.push_back(std::move(request));
      ask_for_end_of_turn();
    } else {
      finish(*request, admitted);
    }
  }
}

void redis_quotas::spent(waiting_charge& charge, bool is_call_admitted, std::int64_t at,
                         instant asked, instant sent) {
  auto const& decision = charge.result.decision;
  charge.is = charge_state::answered;
  charge.is_spent = is_call_admitted && decision.admitted;
  charge.spent_at = at;
  if (auto* const of = charge.has_share ? shares_.find(charge.id) : nullptr) {
    --of->asking;
    --of->sent;
    of->left_there = decision.left.remaining;
    of->reset_at = sent + decision.left.reset;
    of->held += of->is_concurrent() && charge.is_spent ? charge.cost : 0;
  }
  if (!is_concurrent(charge.policy)) {
    remember(charge, asked, sent);
  }
}

void redis_quotas::finish(waiting_request& request, bool admitted) {
  store::spent spent;
  spent.admitted = admitted;
  for (std::size_t i = 0; i < request.charges.size(); ++i) {
    if (!admitted) {
      undo(request.charges[i]);
    }
    spent.results[i] = request.charges[i].result;
  }
  request.answer(std::move(spent));
}

void redis_quotas::fail(waiting_request& request, store_error const& error) {
  ++counts_.failed;
  for (auto& charge : request.charges) {
    undo(charge);
  }
  request.answer(failure(error));
}

/// The request was not admitted after all; what is left is said as it stands.
void redis_quotas::undo(waiting_charge& charge) {
  auto const now = loop_.now();
  auto* const of = shares_.find(charge.id);
  auto& decision = charge.result.decision;
  switch (charge.is) {
    case charge_state::here:
      if (of != nullptr && of->window_end == charge.window_end) {
        of->units += charge.cost;
        of->held -= of->is_concurrent() ? charge.cost : 0;
        decision.left = of->left(now);
      }
      break;
    case charge_state::waiting: {
      if (of != nullptr && charge.has_share) {
        --of->asking;
      }
      auto const* const known = heard_.find(charge.id);
      decision = {true,
                  known != nullptr ? known->left_at(now) : ratelimit::look(charge.policy, {}, now),
                  {}};
      break;
    }
    case charge_state::asked:  // and not answered
      if (of != nullptr && charge.has_share) {
        --of->asking;
        --of->sent;
        of->is_unsure = of->is_unsure || of->is_concurrent();
      }
      break;
    case charge_state::answered:
      if (charge.is_spent) {  // in a cluster, before another slot refused
        decision.left.remaining += charge.cost;
        if (of != nullptr && of->is_concurrent()) {
          of->held -= charge.cost;
        }
        settle_there(charge.id, charge.key, charge.policy, -charge.cost, charge.spent_at);
      }
      break;
  }
}

void redis_quotas::taken(store::key_hash const& id, instant sent, answer const& got) {
  auto& of = *shares_.find(id);
  of.is_taking = false;
  --of.sent;
  auto heard = numbers::of(got, 7);
  if (!heard) {
    of.is_unsure = of.is_unsure || of.is_concurrent();
    of.no_more_until = sent + options_.lease_refusals_believed;
    return;
  }
  auto const at = heard->next();
  hear_time(at);
  auto const granted = heard->next();
  auto const lasts = microseconds(heard->next());
  auto const verdict = heard->next_verdict(granted > 0);
  of.left_there = verdict.left.remaining;
  of.reset_at = sent + verdict.left.reset;
  if (granted == 0) {
    of.no_more_until =
        sent + std::min<nanoseconds>(verdict.retry, options_.lease_refusals_believed);
    return;
  }
  if (auto const end = at + lasts.count(); !of.is_concurrent() && end != of.window_end) {
    end_slice(of);
    of.window_end = end;
    of.taken_at = at;
    of.since = loop_.now();
    of.valid_until = {};
  }
  of.units += granted;
  // It was taken when it was sent or later, so that it lasts longer rather than shorter.
  of.valid_until = std::max(of.valid_until, sent + lasts);
}

void redis_quotas::remember(waiting_charge const& charge, instant asked, instant sent) {
  auto const& verdict = charge.result.decision;
  auto& entry = heard_.entry(charge.id);
  entry.at = sent;
  entry.ahead = ahead_;
  entry.left = verdict.left;
  entry.refused_until = {};
  if (!verdict.admitted) {
    auto const believed = charge.how == counting::lease ? options_.lease_refusals_believed
                                                        : options_.refusals_believed;
    entry.refused_cost = charge.cost;
    entry.retry_at = sent + verdict.retry;
    entry.refused_until = std::min(entry.retry_at, sent + believed);
  }
  if (charge.is_spent && charge.spent_at >= entry.window_end) {
    // One that was asked in the same moment may have been decided in the window before.
    entry.first_asked = asked == entry.last_asked ? asked + nanoseconds(1) : asked;
    entry.first_at = charge.spent_at;
    entry.window_end =
        charge.spent_at + std::chrono::duration_cast<microseconds>(verdict.left.reset).count();
  }
  entry.last_asked = asked;
}

/// What was answered is over, so that the store's clock is now ahead at least as far as this.
void redis_quotas::hear_time(std::int64_t store_time) {
  auto const now = std::chrono::steady_clock::now().time_since_epoch();
  ahead_ = store_time - std::chrono::ceil<microseconds>(now).count();
  has_heard_time_ = true;
}

// ---- heartbeats ----

void redis_quotas::beat() {
  for (auto& of : shares_) {
    if (of.is_concurrent() && (of.held > 0 || of.units > 0 || of.is_unsure)) {
      holds_.push_back(of.id);
    }
  }
  if (!holds_.empty()) {
    ask_for_end_of_turn();
  }
  word_list keys;
  keys.add(gateways_key);
  word_list arguments;
  arguments.add(options_.gateway);
  arguments.add(std::to_string(microseconds(options_.alive_for).count()));
  run(*client_, all_scripts().gateways, std::move(keys), std::move(arguments),
      [this](answer const& got) {
        if (auto heard = numbers::of(got, 2)) {
          hear_time(heard->next());
          gateways_ = static_cast<std::size_t>(std::max<std::int64_t>(heard->next(), 1));
        }
      });
  beat_.set_in(options_.alive_for / 3);
}

}  // namespace

auto open_quota_store(engine::loop& on, server_url const& url, quota_store_options const& options)
    -> result<std::unique_ptr<store::quota_store>, std::string> {
  client_options connections;
  connections.command_timeout = options.command_timeout;
  connections.connect_timeout = 2 * options.command_timeout;
  TIDEGATE_TRY(auto client, client::make(on, url, connections));
  return std::make_unique<redis_quotas>(on, std::move(client), options,
                                        url.kind == topology::cluster);
}

}  // namespace tidegate::store_redis
