// SPDX-License-Identifier: Apache-2.0
#include "model.hpp"

#include "execution_events.hpp"

#include <cstring>
#include <deque>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace tidegate::TIDEGATE_ABI::idempotency::model {

namespace {

constexpr std::size_t slots_max = 4;

/// Whether a gateway has a request. When it is done, things may still be on their way.
enum class presence : std::uint8_t { unused, live, done };

enum class at_store : std::uint8_t { nothing, on_its_way, done, refused, no_answer };
enum class at_upstream : std::uint8_t { nothing, on_its_way, executed, rejected };

/// One request of a client at a gateway. Numbers stand for values of `walk`.
struct slot {
  presence at = presence::unused;
  at_store store = at_store::nothing;
  at_upstream upstream = at_upstream::nothing;
  std::uint8_t client = 0;
  std::uint8_t gateway = 0;
  std::uint8_t listens = 0;  // the client still waits
  std::uint8_t late = 0;     // it began when an answer had been seen
  std::uint8_t waited = 0;   // for another request
  std::uint16_t found = 0;   // by the store, where it made no change
  std::uint16_t op = 0;
  std::uint16_t answer = 0;
  std::uint16_t run = 0;
};

struct world {
  std::array<slot, slots_max> slots{};
  std::uint16_t stored = 0;
  std::uint16_t seen = 0;      // the answer that some client saw
  std::uint8_t seen_body = 0;  // what that client had sent
  std::uint8_t effects = 0;
  std::uint8_t effect_body = 0;
  std::uint8_t now = 0;
  std::uint8_t crashes = 0;
  std::uint8_t store_failures = 0;
  std::array<std::uint8_t, 2> tries{};
};
static_assert(std::has_unique_object_representations_v<world>, "hashed by its octets");

enum class step : std::uint8_t {
  begins,
  leaves,
  crashes,
  time_passes,
  ages,
  store_does,
  store_is_silent,
  takes_answer_of_store,
  renews,
  looks_again,
  waits_no_longer,
  loses_connection,
  connects,
  does_not_reach_upstream,
  upstream_executes,
  upstream_rejects,
  takes_answer_of_upstream,
  loses_connection_to_upstream,
  tells_late,
};

[[nodiscard]] auto name_of(step s) -> std::string {
  switch (s) {
    case step::begins:
      return "a client sends the request, and the gateway reads the record and decides";
    case step::leaves: return "the client leaves";
    case step::crashes: return "a gateway crashes";
    case step::time_passes: return "time passes";
    case step::ages: return "the store cleans up";
    case step::store_does: return "the store makes the change if it may";
    case step::store_is_silent: return "the store gives no answer";
    case step::takes_answer_of_store: return "the gateway has the answer of the store";
    case step::renews: return "the gateway renews its lease";
    case step::looks_again: return "the gateway looks again for a request that waits";
    case step::waits_no_longer: return "the gateway lets a request wait no longer";
    case step::loses_connection: return "the connection to the upstream ends";
    case step::connects: return "the gateway connects to the upstream";
    case step::does_not_reach_upstream: return "the gateway finds no connection to the upstream";
    case step::upstream_executes: return "the upstream carries the request out";
    case step::upstream_rejects: return "the upstream answers 429";
    case step::takes_answer_of_upstream: return "the gateway has the answer of the upstream";
    case step::loses_connection_to_upstream:
      return "the gateway loses the connection before an answer";
    case step::tells_late: return "the gateway tells the client 504 and goes on";
  }
  return {};
}

auto const test_secret = secret(std::as_bytes(std::span(std::string_view("model"))));

[[nodiscard]] auto fingerprint_of(std::uint8_t body) -> fingerprint {
  fingerprint_rule const rule;
  fingerprinter maker(test_secret, rule, "POST", "/", "");
  maker.update(body == 0 ? "one" : "other");
  return maker.finish();
}

/// Numbers for values, so that a state of the world is a few octets. 0 stands for nothing. Values
/// that differ may have the same key.
template <class T>
class numbered {
 public:
  auto number(T const& value, std::uint64_t key) -> std::uint16_t {
    auto& bucket = numbers_[key];
    for (auto const each : bucket) {
      if ((*this)[each] == value) {
        return each;
      }
    }
    values_.push_back(value);
    bucket.push_back(static_cast<std::uint16_t>(values_.size()));
    if (values_.size() > std::numeric_limits<std::uint16_t>::max()) {
      throw std::length_error("too many values for the model");
    }
    return bucket.back();
  }
  [[nodiscard]] auto operator[](std::uint16_t number) const -> T const& {
    return values_[number - 1U];
  }

 private:
  std::unordered_map<std::uint64_t, std::vector<std::uint16_t>> numbers_;
  std::deque<T> values_;
};

/// A few numbers as one.
template <class... Numbers>
[[nodiscard]] auto key_of(Numbers... numbers) noexcept -> std::uint64_t {
  std::uint64_t key = 0;
  ((key = (key ^ static_cast<std::uint64_t>(numbers)) * 0x9e3779b97f4a7c15), ...);
  return key;
}

/// Breaks one rule.
struct broken_rules {
  std::optional<rule> broken;
  [[nodiscard]] auto keeps(rule r) const noexcept -> bool { return broken != r; }
  auto operator==(broken_rules const&) const -> bool = default;
};

struct state_hash {
  std::uint64_t low;
  std::uint64_t high;
  auto operator==(state_hash const&) const -> bool = default;
};
struct take_low {
  auto operator()(state_hash const& h) const noexcept -> std::size_t { return h.low; }
};

/// 128 bits of a world: two multiplicative hashes of its octets.
[[nodiscard]] auto hash_of(world const& w) noexcept -> state_hash {
  std::array<unsigned char, sizeof(world)> octets{};
  std::memcpy(octets.data(), &w, sizeof w);
  state_hash h{0xcbf29ce484222325, 0x9e3779b97f4a7c15};
  for (auto octet : octets) {
    h.low = (h.low ^ octet) * 0x100000001b3;
    h.high = (h.high ^ octet) * 0xff51afd7ed558ccd;
    h.high ^= h.high >> 32;
  }
  return h;
}

template <class Execution>
class walk {
 public:
  walk(settings const& s, policy const& policy, Execution const& fresh)
      : settings_(s), policy_(policy), fresh_(fresh) {
    fingerprints_ = {fingerprint_of(0), fingerprint_of(1)};
  }

  auto run() -> report {
    world first;
    first.tries = settings_.tries;
    first.crashes = settings_.crashes;
    first.store_failures = settings_.store_failures;
    reach(first, step::begins, 0);
    while (!queue_.empty() && report_.breach.empty()) {
      auto const [w, number] = queue_.front();
      queue_.pop_front();
      from_ = number;
      walk_from(w);
    }
    report_.states = visited_.size();
    if (!report_.breach.empty()) {
      trace();
    }
    return report_;
  }

 private:
  struct reached {
    std::uint32_t from;
    step by;
    std::uint8_t slot;
  };

  // ---- the graph ----

  void reach(world w, step by, std::size_t slot_number) {
    for (auto& s : w.slots) {
      forget_what_cannot_matter(s);
    }
    if (traced_) {
      return;
    }
    ++report_.transitions;
    traced_ = !report_.breach.empty();
    if (!visited_.insert(hash_of(w)).second && !traced_) {
      return;
    }
    how_.push_back({from_, by, static_cast<std::uint8_t>(slot_number)});
    queue_.emplace_back(w, static_cast<std::uint32_t>(how_.size() - 1));
  }

  /// Two worlds that differ only in what nothing can look at any more are one.
  static void forget_what_cannot_matter(slot& s) {
    if (s.at != presence::done) {
      return;
    }
    auto const store = s.store == at_store::on_its_way ? s.store : at_store::nothing;
    auto const upstream = s.upstream == at_upstream::on_its_way ? s.upstream : at_upstream::nothing;
    auto const op = store == at_store::on_its_way ? s.op : std::uint16_t{0};
    auto const client = s.client;  // whose body the upstream would carry out
    s = slot{};
    s.at = presence::done;
    s.store = store;
    s.upstream = upstream;
    s.op = op;
    s.client = upstream == at_upstream::on_its_way ? client : std::uint8_t{0};
  }

  void trace() {
    std::vector<std::string> backwards;
    for (auto i = how_.size() - 1; i != 0; i = how_[i].from) {
      backwards.push_back(std::to_string(how_[i].slot) + ": " + name_of(how_[i].by));
    }
    report_.steps.assign(backwards.rbegin(), backwards.rend());
  }

  void breach(std::string what) {
    if (report_.breach.empty()) {
      report_.breach = std::move(what);
    }
  }

  // ---- records, changes and executions ----

  [[nodiscard]] auto number(record const& r) -> std::uint16_t {
    return records_.number(r, key_of(r.state, r.token, r.changed.time_since_epoch().count()));
  }
  [[nodiscard]] auto number(change const& c) -> std::uint16_t {
    return changes_.number(c, key_of(c.when.token.value_or(0), c.next ? number(*c.next) : 0));
  }
  [[nodiscard]] auto number(Execution const& e) -> std::uint16_t {
    return runs_.number(e, key_of(e.at(), e.mine().token, e.is_claimed(),
                                  e.mine().changed.time_since_epoch().count()));
  }
  [[nodiscard]] auto record_of(std::uint16_t number) const -> record const* {
    return number == 0 ? nullptr : &records_[number];
  }
  [[nodiscard]] static auto time(world const& w) -> wall_time {
    return wall_time(std::chrono::milliseconds(w.now));
  }
  [[nodiscard]] auto body_of(slot const& s) const -> std::uint8_t {
    return settings_.bodies[s.client];
  }

  // ---- what can happen ----

  void walk_from(world const& w) {
    for (std::uint8_t client = 0; client < 2; ++client) {
      begin(w, client);
    }
    if (w.now < settings_.ticks) {
      auto next = w;
      ++next.now;
      reach(next, step::time_passes, 0);
    }
    if (auto const* stored = record_of(w.stored)) {
      if (auto const aged = expire({}, *stored, time(w))) {
        auto next = w;
        next.stored = aged->next ? number(*aged->next) : std::uint16_t{0};
        reach(next, step::ages, 0);
      }
    }
    for (std::uint8_t gateway = 0; gateway < 2 && w.crashes > 0; ++gateway) {
      crash(w, gateway);
    }
    for (std::size_t i = 0; i < w.slots.size() && report_.breach.empty(); ++i) {
      walk_slot(w, i);
    }
  }

  void begin(world const& w, std::uint8_t client) {
    if (w.tries[client] == 0) {
      return;
    }
    std::size_t unused = w.slots.size();
    for (std::size_t i = 0; i < w.slots.size(); ++i) {
      auto const& s = w.slots[i];
      if (s.at == presence::unused) {
        unused = std::min(unused, i);
      } else if (s.client == client && s.listens != 0) {
        return;  // it waits for an answer
      }
    }
    // The gateways are alike, so the first request may as well go to the first.
    std::uint8_t const gateways = unused == 0 ? 1 : 2;
    for (std::uint8_t gateway = 0; gateway < gateways; ++gateway) {
      auto next = w;
      --next.tries[client];
      auto& s = next.slots.at(unused);
      s.at = presence::live;
      s.client = client;
      s.gateway = gateway;
      s.listens = 1;
      s.late = w.seen != 0 && w.seen_body == settings_.bodies[client] ? 1 : 0;
      // Reading, deciding and connecting is one step: what could come between changes nothing
      // but the age of what was read, which the way of the claim to the store has as well.
      auto run = fresh_;
      perform(next, unused, run,
              run.content_complete({.key = {},
                                    .fingerprint = fingerprints_[settings_.bodies[client]],
                                    .token = unused + 1}));
      keep(next.slots[unused], run);
      reach(next, step::begins, unused);
    }
  }

  void crash(world const& w, std::uint8_t gateway) {
    auto next = w;
    --next.crashes;
    for (auto& s : next.slots) {
      if (s.at != presence::unused && s.gateway == gateway) {
        s.at = presence::done;
        s.listens = 0;
      }
    }
    reach(next, step::crashes, gateway);
  }

  void walk_slot(world const& w, std::size_t i) {
    auto const& s = w.slots[i];
    if (s.listens != 0 && w.tries[s.client] > 0) {  // to come back; else leaving only hides things
      happen(w, i, step::leaves, [&](world& next, Execution& run) {
        next.slots[i].listens = 0;
        return run.client_gone(time(w));
      });
    }
    if (s.store == at_store::on_its_way) {
      auto next = w;
      apply(next, next.slots[i]);
      reach(next, step::store_does, i);
      if (w.store_failures > 0 && s.at == presence::live) {
        for (bool const made : {false, true}) {
          next = w;
          --next.store_failures;
          if (made) {
            apply(next, next.slots[i]);
          }
          next.slots[i].store = at_store::no_answer;
          reach(next, step::store_is_silent, i);
        }
      }
    }
    if (s.upstream == at_upstream::on_its_way) {
      auto next = w;
      execute(next, next.slots[i]);
      reach(next, step::upstream_executes, i);
      next = w;
      next.slots[i].upstream = at_upstream::rejected;
      reach(next, step::upstream_rejects, i);
    }
    if (s.at == presence::live) {
      walk_live(w, i, runs_[s.run]);
    }
  }

  void walk_live(world const& w, std::size_t i, Execution const& run) {
    auto const& s = w.slots[i];
    switch (run.at()) {
      case stage::waiting:
        happen(w, i, step::looks_again, [](world&, Execution& e) { return e.woken(); });
        happen(w, i, step::waits_no_longer, [](world&, Execution& e) { return e.timer(true); });
        break;
      case stage::connecting:
        happen(w, i, step::connects, [&](world&, Execution& e) { return e.connected(time(w)); });
        happen(w, i, step::does_not_reach_upstream, [&](world&, Execution& e) {
          return e.upstream_failed(upstream_fault::not_connected, time(w));
        });
        break;
      case stage::claiming:
        if (settings_.rare_events) {
          happen(w, i, step::loses_connection, [&](world&, Execution& e) {
            return e.upstream_failed(upstream_fault::closed, time(w));
          });
        }
        [[fallthrough]];
      case stage::recording:
        if (s.store != at_store::on_its_way) {
          happen(w, i, step::takes_answer_of_store,
                 [&](world& next, Execution& e) { return answer_of_store(next, i, e); });
        }
        break;
      case stage::running: wait_for_upstream(w, i); break;
      default: breach("a stage that no request here can rest in"); break;
    }
    if (run.is_claimed() && settings_.rare_events) {
      happen(w, i, step::renews, [](world&, Execution& e) { return e.timer(false); });
    }
  }

  void wait_for_upstream(world const& w, std::size_t i) {
    auto const& s = w.slots[i];
    if (s.upstream == at_upstream::executed || s.upstream == at_upstream::rejected) {
      happen(w, i, step::takes_answer_of_upstream, [&](world&, Execution& e) {
        e.answer_head(s.upstream == at_upstream::executed ? s.answer : 429, {});
        return e.answer_body("", body_part::last, time(w));
      });
    }
    happen(w, i, step::loses_connection_to_upstream, [&](world&, Execution& e) {
      return e.upstream_failed(upstream_fault::closed, time(w));
    });
    if (s.listens != 0 && settings_.rare_events) {
      happen(w, i, step::tells_late, [](world&, Execution& e) { return e.answer_late(); });
    }
  }

  /// What comes of an event of one request.
  template <class Event>
  void happen(world const& w, std::size_t i, step by, Event const& event) {
    auto next = w;
    auto run = runs_[w.slots[i].run];
    perform(next, i, run, event(next, run));
    keep(next.slots[i], run);
    reach(next, by, i);
  }

  void keep(slot& s, Execution const& run) { s.run = number(run); }

  // ---- the store and the upstream ----

  void apply(world& w, slot& s) {
    s.store = apply(w, changes_[s.op]) ? at_store::done : at_store::refused;
    s.found = s.store == at_store::refused ? w.stored : std::uint16_t{0};
  }

  auto apply(world& w, change const& c) -> bool {
    auto const* stored = record_of(w.stored);
    if (!holds(c.when, stored)) {
      return false;
    }
    report_.resolved_late += stored != nullptr && stored->state == record_state::unknown &&
                                     c.next && c.next->state == record_state::completed
                                 ? 1U
                                 : 0U;
    w.stored = c.next ? number(*c.next) : std::uint16_t{0};
    return true;
  }

  /// The answer tells one execution from another.
  void execute(world& w, slot& s) {
    s.upstream = at_upstream::executed;
    if (!settings_.deduplicates || w.effects == 0) {
      ++w.effects;
      w.effect_body = body_of(s);
    }
    s.answer = static_cast<std::uint16_t>(200 + w.effects);
    if (w.effects > 1) {
      breach("a key had two effects");
    }
  }

  // ---- the client ----

  void client_sees_answer(world& w, slot& s, std::uint16_t answer) {
    if (s.listens != 0) {
      ++report_.answers;
      if (w.seen != 0 && w.seen != answer) {
        breach("a client saw another answer than the one before it");
      }
      if (body_of(s) != w.effect_body) {
        breach("a client saw the answer to a request that it did not send");
      }
      w.seen = answer;
      w.seen_body = body_of(s);
    }
    s.listens = 0;
  }

  void client_is_refused(slot& s, bool store_failed = false) {
    // Once the store has failed, an answer may have been seen that is not stored yet.
    if (s.listens != 0 && s.late != 0 && !store_failed && settings_.store_failures == 0) {
      breach("a retry was refused although the answer had been seen");
    }
    s.listens = 0;
  }

  // ---- the gateway ----

  void submit(slot& s, change const& c) {
    s.op = number(c);
    s.store = at_store::on_its_way;
  }

  [[nodiscard]] auto known_to(world const& w, slot const& s, std::uint16_t stored)
      -> lookup_result {
    lookup_result known{.stored = record_of(stored)};
    if (is_absent(known.stored, time(w))) {
      for (auto const& each : w.slots) {
        if (each.at == presence::live && each.gateway == s.gateway && each.run != 0 &&
            runs_[each.run].is_claimed()) {
          known.running = runs_[each.run].mine();
        }
      }
    }
    return known;
  }

  auto answer_of_store(world& w, std::size_t i, Execution& run) -> action {
    auto& s = w.slots[i];
    auto const answer = std::exchange(s.store, at_store::nothing);
    if (answer == at_store::no_answer) {
      s.found = 0;
      return run.store_failed(store_failure::unavailable, time(w));
    }
    bool const made = answer == at_store::done;
    shown_ = std::exchange(s.found, std::uint16_t{0});
    auto known = known_to(w, s, shown_);
    return run.at() == stage::claiming ? run.claim_applied(made, known, i + 1, time(w))
                                       : run.record_applied(made, known, time(w));
  }

  void perform(world& w, std::size_t i, Execution& run, action const& a) {
    auto& s = w.slots[i];
    bool const store_failed = a.queued != nullptr;
    if (store_failed) {
      submit(s, *a.queued);
    }
    report_.overtaken += a.settles ? 1U : 0U;
    switch (a.kind) {
      case action_kind::none:
      case action_kind::detach:
      case action_kind::wait: break;
      case action_kind::join: s.waited = 1; [[fallthrough]];
      case action_kind::find: {
        shown_ = w.stored;
        auto known = known_to(w, s, shown_);
        perform(w, i, run, run.found(known, time(w)));
        break;
      }
      case action_kind::admit: perform(w, i, run, run.admitted({}, time(w))); break;
      case action_kind::connect:
        if (!run.is_claimed()) {
          perform(w, i, run, run.connected(time(w)));
        }
        break;
      case action_kind::claim:
        report_.second_attempts += a.change->next->attempt > 1 ? 1U : 0U;
        submit(s, *a.change);
        break;
      case action_kind::send: s.upstream = at_upstream::on_its_way; break;
      case action_kind::record:
        report_.given_back += a.change->next ? 0U : 1U;
        submit(s, *a.change);
        break;
      case action_kind::renew:
        report_.renewed += apply(w, renew({}, run.mine(), policy_, time(w))) ? 1U : 0U;
        break;
      case action_kind::report_late:
        ++report_.told_late;
        client_is_refused(s);
        break;
      case action_kind::answer:
        if (s.upstream == at_upstream::executed) {
          client_sees_answer(w, s, s.answer);
        } else {
          client_is_refused(s, store_failed);
        }
        s.at = presence::done;
        break;
      case action_kind::replay:
        ++report_.replays;
        report_.waited += s.waited;
        client_sees_answer(w, s, record_of(shown_)->status);
        s.at = presence::done;
        break;
      case action_kind::refuse:
        report_.in_flight += a.code == problem_code::in_flight ? 1U : 0U;
        report_.unknown += a.code == problem_code::outcome_unknown ? 1U : 0U;
        report_.reused += a.code == problem_code::key_reused ? 1U : 0U;
        [[fallthrough]];
      case action_kind::answer_unknown:
      case action_kind::answer_unreachable:
      case action_kind::finish:
        client_is_refused(s, store_failed);
        s.at = presence::done;
        break;
      case action_kind::fingerprint:
      case action_kind::stream:
      case action_kind::end_stream:
      case action_kind::abort_stream: breach("an action that no request here can need"); break;
    }
  }

  settings settings_;
  policy const& policy_;
  std::array<fingerprint, 2> fingerprints_;
  Execution fresh_;
  numbered<record> records_;
  numbered<change> changes_;
  numbered<Execution> runs_;
  std::uint16_t shown_ = 0;  // the record that the gateway was last shown
  std::unordered_set<state_hash, take_low> visited_;
  std::vector<reached> how_;
  std::deque<std::pair<world, std::uint32_t>> queue_;
  std::uint32_t from_ = 0;
  bool traced_ = false;  // the last of `how_` is the breach
  report report_;
};

}  // namespace

auto check(settings const& settings) -> report {
  policy policy;
  policy.lease = std::chrono::milliseconds(1);
  policy.upstream_deduplicates = settings.deduplicates;
  policy.retry_unknown = settings.deduplicates;
  policy.wait_in_flight = settings.waits;
  // As many connections as one that a claim has lost needs.
  execution_options const options{.tries_max = 2, .body_max = 1};
  if (!settings.broken) {
    return walk(settings, policy, execution(policy, options)).run();
  }
  return walk(settings, policy, basic_execution(policy, options, broken_rules{settings.broken}))
      .run();
}

}  // namespace tidegate::TIDEGATE_ABI::idempotency::model
