// SPDX-License-Identifier: Apache-2.0
#include "model.hpp"

#include <cstring>
#include <deque>
#include <map>
#include <type_traits>
#include <unordered_set>
#include <utility>

namespace tidegate::idempotency::model {

namespace {

constexpr std::size_t slots_max = 4;

/// Where a gateway is with one request.
enum class phase : std::uint8_t {
  unused,
  claiming,     // the claim is on its way
  claimed,      // it is stored
  sent,         // bytes went to the upstream
  completing,   // the answer is on its way to the store
  giving_back,  // so is this
  losing,       // and this
  done,         // nothing of it is left in the gateway; things may still be on their way
};

enum class at_store : std::uint8_t { nothing, on_its_way, done, refused, no_answer };
enum class at_upstream : std::uint8_t { nothing, on_its_way, executed, rejected };

/// One request of a client at a gateway. Numbers stand for records and changes of `walk`.
struct slot {
  phase at = phase::unused;
  at_store store = at_store::nothing;
  at_upstream upstream = at_upstream::nothing;
  std::uint8_t client = 0;
  std::uint8_t gateway = 0;
  std::uint8_t listens = 0;  // the client still waits
  std::uint8_t late = 0;     // it began when an answer had been seen
  std::uint8_t resent = 0;
  std::uint16_t found = 0;
  std::uint16_t mine = 0;
  std::uint16_t op = 0;
  std::uint16_t answer = 0;
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
  hears_of_store,
  sends,
  does_not_reach_upstream,
  upstream_executes,
  upstream_rejects,
  hears_of_upstream,
  hears_nothing,
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
    case step::hears_of_store: return "the gateway hears of the store";
    case step::sends: return "the gateway sends the request to the upstream";
    case step::does_not_reach_upstream: return "the gateway finds no connection to the upstream";
    case step::upstream_executes: return "the upstream carries the request out";
    case step::upstream_rejects: return "the upstream answers 429";
    case step::hears_of_upstream: return "the gateway hears of the upstream";
    case step::hears_nothing: return "the gateway gives up waiting for the upstream";
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

/// Numbers for values, so that a state of the world is a few octets. 0 stands for nothing.
template <class T, class Key>
class numbered {
 public:
  template <class KeyOf>
  auto number(T const& value, KeyOf key_of) -> std::uint16_t {
    auto const [at, added] = numbers_.try_emplace(key_of(value), values_.size() + 1);
    if (added) {
      values_.push_back(value);
    }
    return static_cast<std::uint16_t>(at->second);
  }
  [[nodiscard]] auto operator[](std::uint16_t number) const -> T const& {
    return values_[number - 1U];
  }

 private:
  std::map<Key, std::size_t> numbers_;
  std::deque<T> values_;
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

class walk {
 public:
  explicit walk(settings const& s) : settings_(s) {
    policy_.lease = std::chrono::milliseconds(1);
    policy_.upstream_deduplicates = s.deduplicates;
    policy_.retry_unknown = s.deduplicates;
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
    if (s.at != phase::done) {
      return;
    }
    auto const store = s.store == at_store::on_its_way ? s.store : at_store::nothing;
    auto const upstream = s.upstream == at_upstream::on_its_way ? s.upstream : at_upstream::nothing;
    auto const op = store == at_store::on_its_way ? s.op : std::uint16_t{0};
    auto const client = s.client;  // whose body the upstream would carry out
    s = slot{};
    s.at = phase::done;
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

  // ---- records and changes ----

  [[nodiscard]] auto number(record const& r) -> std::uint16_t {
    return records_.number(r, [](record const& value) {
      std::string octets;
      append_record(octets, value);
      return octets;
    });
  }
  [[nodiscard]] auto number(change const& c) -> std::uint16_t {
    return changes_.number(c, [this](change const& value) {
      return std::pair(condition_text(value.when), value.next ? int{number(*value.next)} : 0);
    });
  }
  [[nodiscard]] static auto condition_text(condition const& when) -> std::string {
    std::string text = when.token ? std::to_string(*when.token) : "absent";
    for (auto state : {record_state::dispatched, record_state::completed, record_state::unknown,
                       record_state::tombstone}) {
      text += when.states.contains(state) ? '1' : '0';
    }
    return text;
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
  [[nodiscard]] auto is_broken(broken_rule rule) const -> bool { return settings_.broken == rule; }

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
      if (auto const aged = age({}, *stored, time(w))) {
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
      if (s.at == phase::unused) {
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
      s.at = phase::claiming;
      s.client = client;
      s.gateway = gateway;
      s.listens = 1;
      s.late = w.seen != 0 && w.seen_body == settings_.bodies[client] ? 1 : 0;
      // Reading and deciding is one step: what could come between changes nothing but the age of what was
      // read, which the way of the claim to the store has as well.
      s.found = w.stored;
      decide_on(next, unused);
      reach(next, step::begins, unused);
    }
  }

  void crash(world const& w, std::uint8_t gateway) {
    auto next = w;
    --next.crashes;
    for (auto& s : next.slots) {
      if (s.at != phase::unused && s.gateway == gateway) {
        s.at = phase::done;
        s.listens = 0;
      }
    }
    reach(next, step::crashes, gateway);
  }

  void walk_slot(world const& w, std::size_t i) {
    auto const& s = w.slots[i];
    if (s.listens != 0 && w.tries[s.client] > 0) {  // to come back; else leaving only hides things
      auto next = w;
      leave(next, i);
      reach(next, step::leaves, i);
    }
    if (s.store == at_store::on_its_way) {
      auto next = w;
      apply(next, next.slots[i]);
      reach(next, step::store_does, i);
      if (w.store_failures > 0 && s.at != phase::done) {
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
    switch (s.at) {
      case phase::unused:
      case phase::done: break;
      case phase::claimed: claimed(w, i); break;
      case phase::sent: wait_for_upstream(w, i); break;
      case phase::claiming:
        if (is_broken(broken_rule::r1_sends_before_the_claim_is_stored) &&
            s.upstream == at_upstream::nothing) {
          auto next = w;
          next.slots[i].upstream = at_upstream::on_its_way;
          reach(next, step::sends, i);
        }
        [[fallthrough]];
      case phase::completing:
      case phase::giving_back:
      case phase::losing:
        if (s.store != at_store::on_its_way) {
          auto next = w;
          hear_of_store(next, i);
          reach(next, step::hears_of_store, i);
        }
        break;
    }
  }

  // ---- the store and the upstream ----

  void apply(world& w, slot& s) {
    auto const& c = changes_[s.op];
    auto const* stored = record_of(w.stored);
    bool may = holds(c.when, stored);
    if (is_broken(broken_rule::r3_ignores_the_fencing_token) && c.when.token && stored != nullptr) {
      may = c.when.states.contains(stored->state);
    }
    if (!may) {
      s.store = at_store::refused;
      s.found = w.stored;
      return;
    }
    s.store = at_store::done;
    if (stored != nullptr && stored->state == record_state::unknown && c.next &&
        c.next->state == record_state::completed) {
      ++report_.resolved_late;
    }
    w.stored = c.next ? number(*c.next) : std::uint16_t{0};
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

  void leave(world& w, std::size_t i) {
    auto& s = w.slots[i];
    s.listens = 0;
    if (is_broken(broken_rule::r5_gives_back_when_the_client_leaves) && s.at == phase::sent) {
      submit(s, phase::giving_back, give_back({}, records_[s.mine], time(w)));
    }
  }

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
    s.at = phase::done;
    s.listens = 0;
  }

  void client_is_refused(slot& s, bool store_failed = false) {
    // Once the store has failed, an answer may have been seen that is not stored yet.
    if (s.listens != 0 && s.late != 0 && !store_failed && settings_.store_failures == 0) {
      breach("a retry was refused although the answer had been seen");
    }
    s.at = phase::done;
    s.listens = 0;
  }

  // ---- the gateway ----

  void submit(slot& s, phase at, change const& c) {
    s.at = at;
    s.op = number(c);
    s.store = at_store::on_its_way;
  }

  [[nodiscard]] auto request_of(slot const& s, std::size_t i) const -> keyed_request {
    return {.key = {}, .fingerprint = fingerprints_[body_of(s)], .token = i + 1};
  }

  void decide_on(world& w, std::size_t i) {
    auto& s = w.slots[i];
    auto request = request_of(s, i);
    auto const* found = record_of(s.found);
    if (found != nullptr && is_broken(broken_rule::r7_compares_no_fingerprints)) {
      request.fingerprint = found->fingerprint;
    }
    if (found != nullptr && is_broken(broken_rule::r6_takes_an_ended_lease_for_absent) &&
        state_at(*found, time(w)) == record_state::unknown) {
      auto run = decide(nullptr, request, policy_, time(w));
      run.claim->when = {found->token, {found->state}};
      follow(w, i, run);
      return;
    }
    follow(w, i, decide(found, request, policy_, time(w)));
  }

  void follow(world& w, std::size_t i, decision const& d) {
    auto& s = w.slots[i];
    switch (d.what) {
      case verdict::run:
        report_.second_attempts += d.claim->next->attempt > 1 ? 1U : 0U;
        s.mine = number(*d.claim->next);
        submit(s, phase::claiming, *d.claim);
        break;
      case verdict::replay:
        ++report_.replays;
        client_sees_answer(w, s, record_of(s.found)->status);
        break;
      case verdict::refuse:
        report_.in_flight += d.code == problem_code::in_flight ? 1U : 0U;
        report_.unknown += d.code == problem_code::outcome_unknown ? 1U : 0U;
        report_.reused += d.code == problem_code::key_reused ? 1U : 0U;
        client_is_refused(s);
        break;
      case verdict::wait:
      case verdict::other_rule: breach("a verdict that no request here can have"); break;
    }
  }

  void claimed(world const& w, std::size_t i) {
    auto next = w;
    next.slots[i].at = phase::sent;
    next.slots[i].upstream = at_upstream::on_its_way;
    reach(next, step::sends, i);
    next = w;
    judged(next, i, exchange_end::not_sent, 0);
    reach(next, step::does_not_reach_upstream, i);
  }

  void wait_for_upstream(world const& w, std::size_t i) {
    auto const& s = w.slots[i];
    if (s.upstream == at_upstream::executed || s.upstream == at_upstream::rejected) {
      auto next = w;
      bool const executed = s.upstream == at_upstream::executed;
      judged(next, i, exchange_end::answered, executed ? s.answer : 429);
      reach(next, step::hears_of_upstream, i);
    }
    auto next = w;
    if (is_broken(broken_rule::r8_sends_again_after_no_answer) && s.resent == 0 &&
        s.upstream == at_upstream::executed) {
      next.slots[i].resent = 1;
      next.slots[i].upstream = at_upstream::on_its_way;
    } else {
      judged(next, i, exchange_end::no_answer, 0);
    }
    reach(next, step::hears_nothing, i);
  }

  void judged(world& w, std::size_t i, exchange_end end, int status) {
    auto& s = w.slots[i];
    auto const& mine = records_[s.mine];
    auto j = judge(end, status, policy_);
    if (is_broken(broken_rule::r4_gives_back_without_proof) && j.what == outcome::unknown) {
      j = {outcome::given_back};
    }
    switch (j.what) {
      case outcome::completed:
        if (is_broken(broken_rule::r2_replies_before_the_answer_is_stored)) {
          client_sees_answer(w, s, s.answer);
        }
        submit(s, phase::completing,
               complete({}, mine, {static_cast<std::uint16_t>(status), {}, "", 0, true}, time(w)));
        break;
      case outcome::given_back:
        ++report_.given_back;
        submit(s, phase::giving_back, give_back({}, mine, time(w)));
        break;
      case outcome::unknown: submit(s, phase::losing, lose({}, mine, j.reason, time(w))); break;
    }
  }

  void hear_of_store(world& w, std::size_t i) {
    auto& s = w.slots[i];
    auto const heard = std::exchange(s.store, at_store::nothing);
    bool const silent = heard == at_store::no_answer;
    auto const was = s;
    switch (s.at) {
      case phase::claiming:
        if (heard == at_store::done) {
          s.at = s.upstream == at_upstream::nothing ? phase::claimed : phase::sent;
        } else if (heard == at_store::refused) {
          decide_on(w, i);
        } else {
          client_is_refused(
              s, true);  // nothing was sent; the record, if there is one, ends as unknown
        }
        break;
      case phase::completing:
        if (silent) {
          // The work is done: the client gets the answer, and the record is finished later.
          client_sees_answer(w, s, s.answer);
          s.at = was.at;
          s.store = at_store::on_its_way;
        } else if (heard == at_store::done) {
          client_sees_answer(w, s, s.answer);
        } else {
          ++report_.overtaken;
          follow(w, i, decide_overtaken(record_of(s.found), request_of(s, i), policy_, time(w)));
        }
        break;
      default:
        client_is_refused(s, silent);
        if (silent) {  // told again, until it is heard
          s.at = was.at;
          s.store = at_store::on_its_way;
        }
        break;
    }
  }

  settings settings_;
  policy policy_;
  std::array<fingerprint, 2> fingerprints_;
  numbered<record, std::string> records_;
  numbered<change, std::pair<std::string, int>> changes_;
  std::unordered_set<state_hash, take_low> visited_;
  std::vector<reached> how_;
  std::deque<std::pair<world, std::uint32_t>> queue_;
  std::uint32_t from_ = 0;
  bool traced_ = false;  // the last of `how_` is the breach
  report report_;
};

}  // namespace

auto check(settings const& settings) -> report {
  return walk(settings).run();
}

}  // namespace tidegate::idempotency::model
