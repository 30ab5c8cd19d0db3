// SPDX-License-Identifier: Apache-2.0
#include "phases/key/key_phase.hpp"

#include "phases/exchange.hpp"
#include "request/key_replies.hpp"

#include <tidegate/base/fail_point.hpp>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;
using idempotency::action_kind;
using idempotency::problem_code;
using idempotency::stage;
using failure = idempotency::store_failure;

[[nodiscard]] auto outcome_of(problem_code code) -> keyed_outcome {
  switch (code) {
    case problem_code::key_missing: return keyed_outcome::missing;
    case problem_code::key_reused: return keyed_outcome::reused;
    case problem_code::in_flight: return keyed_outcome::conflict;
    case problem_code::outcome_unknown: return keyed_outcome::unknown_refused;
    case problem_code::result_expired: return keyed_outcome::expired;
    case problem_code::response_not_replayable: return keyed_outcome::not_replayable;
    case problem_code::too_many_keys: return keyed_outcome::too_many_keys;
    case problem_code::store_unavailable: return keyed_outcome::store_failed;
    default: return keyed_outcome::malformed;
  }
}

[[nodiscard]] auto failure_of(store::store_fault fault) -> failure {
  switch (fault) {
    case store::store_fault::full: return failure::full;
    case store::store_fault::no_space: return failure::no_space;
    case store::store_fault::scope_full: return failure::scope_full;
    case store::store_fault::damaged: return failure::damaged;
    default: return failure::unavailable;
  }
}

/// A request with a key is sent again only when it cannot have arrived.
[[nodiscard]] auto connection_tries_of(worker_route const& route) -> std::int64_t {
  auto const& retry = route.pool->target().settings->retry;
  return retry.has(balance::retry_cause::connect) ? retry.attempts + 1 : 1;
}

[[nodiscard]] auto options_of(worker_route const& route, keyed_head const& head)
    -> idempotency::execution_options {
  auto const& settings = *route.route->settings->idempotency;
  return {.bypasses_failed_store = settings.pass_on_store_failure,
          .connects = !head.service,
          .seals = settings.seal,
          .tries_max = head.service ? 1 : connection_tries_of(route),
          .body_max = static_cast<std::size_t>(settings.max_response)};
}

/// What an operator needs to find what the request was for.
[[nodiscard]] auto origin_of(keyed_head const& head, std::string_view route)
    -> idempotency::request_origin {
  auto const cut = [](std::string_view text) {
    return std::string(text.substr(0, idempotency::origin_text_max));
  };
  return {cut(route), cut(principal_of(head)), cut(head.method_text), cut(head.host),
          cut(head.path)};
}

[[nodiscard]] auto record_of(std::optional<store::found_record> const& found)
    -> store::found_record const* {
  return found ? &*found : nullptr;
}

[[nodiscard]] auto lookup_of(idempotency_service const& shared, idempotency::lookup_key const& key,
                             store::found_record const* found, idempotency::wall_time now)
    -> idempotency::lookup_result {
  idempotency::lookup_result known{.stored = found != nullptr ? &found->record : nullptr,
                                   .waiters = shared.waiters.count(key)};
  if (is_absent(known.stored, now)) {
    known.running = shared.running.find(key);
  }
  return known;
}

[[nodiscard]] auto fingerprint_of(keyed_head const& head, keyed_content const& content,
                                  idempotency::fingerprint_rule const& rule, worker& on)
    -> std::optional<idempotency::fingerprint> {
  idempotency::fingerprinter maker(on.shared.idempotency->secret, rule, head.method_text, head.path,
                                   head.query, &on.fingerprint_parts);
  return content.fingerprint_by(rule, maker);
}

void count_failure(worker& on, store::store_error const& error) {
  on.shared.idempotency->note(&error);
  on.metrics->idempotency_store_failures.add();
}

/// For operators, who have to find out what became of a request.
[[nodiscard]] auto unknown_text(keyed_head const& head, std::string_view route,
                                idempotency::unknown_reason reason) -> std::string {
  std::string text(name_of(reason));
  text.append(", ").append(head.method_text).append(" ");
  json::append_string(text, std::string_view(head.path).substr(0, logged_octets_max));
  text.append(" on route ");
  json::append_string(text, route);
  if (auto const who = principal_of(head); !who.empty()) {
    text.append(" by ");
    json::append_string(text, who);
  }
  return text.append("; look it up and resolve it at /api/v1/idempotency/")
      .append(to_string(head.key));
}

}  // namespace

key_phase::key_phase(worker& on, exchange& of, worker_route const& route, keyed_head&& head)
    : worker_(on),
      exchange_(&of),
      route_(route),
      head_(std::move(head)),
      content_(head_.framing),
      run_(settings().policy, options_of(route, head_)),
      dispatch_(*this, on, route, head_, content_) {}

key_phase::~key_phase() {
  auto& shared = *worker_.shared.idempotency;
  if (run_.at() == stage::waiting) {
    shared.waiters.leave(head_.key, *this);
  }
  if (run_.is_claimed()) {
    shared.running.remove(head_.key, run_.mine().token);
  }
}

auto key_phase::leave_exchange() -> exchange& {
  cancel();
  return *std::exchange(exchange_, nullptr);
}

/// An answer of the store, wherever it comes from, taken on the thread of this request while it is
/// there.
template <class Answer>
auto key_phase::on_own_thread(void (key_phase::*take)(Answer const&)) {
  auto const deliver = [take](std::weak_ptr<key_phase> const& to, Answer const& answer) {
    auto const there = to.lock();
    if (!there) {
      return;
    }
    auto* const client = there->exchange_ != nullptr ? there->exchange_->client() : nullptr;
    try {
      (there.get()->*take)(answer);
    } catch (std::bad_alloc const&) {
      // What was claimed stays so until its lease ends; then retries learn that it is unknown.
      if (client != nullptr) {
        client->give_up();
      }
      throw;
    }
  };
  return [loop = &worker_.loop, self = weak_from_this(), deliver](Answer answer) mutable {
    if (loop->runs_here()) {
      deliver(self, answer);
    } else {
      loop->post(
          [self = std::move(self), deliver, answer = std::move(answer)] { deliver(self, answer); });
    }
  };
}

// ---- events: the content and the client ----

void key_phase::start() {
  if (run_.at() == stage::content && content_.is_complete()) {
    look_up();
  }
}

void key_phase::content(std::string_view framed, bool last) {
  if (run_.at() != stage::content) {
    return;
  }
  switch (content_.append(framed, static_cast<std::uint64_t>(settings().max_body),
                          worker_.shared.idempotency->folder)) {
    case keyed_content::fault::none: break;
    case keyed_content::fault::too_large:
      perform(run_.content_refused(problem_code::body_too_large));
      return;
    case keyed_content::fault::not_kept:
      perform(run_.content_refused(problem_code::store_unavailable,
                                   "The body of the request could not be kept."));
      return;
  }
  if (last) {
    look_up();
  } else {
    exchange_->count_held();
  }
}

void key_phase::look_up() {
  if (auto* const client = exchange_->client(); client != nullptr && !client->takes_answers()) {
    waits_for_client_ = true;
    exchange_->count_held();
    return;
  }
  fail_point("content_came");
  if (head_.content_digest) {
    auto const matches = content_.matches(*head_.content_digest);
    if (!matches.value_or(false)) {
      perform(run_.content_refused(matches ? problem_code::digest_mismatch
                                           : problem_code::store_unavailable));
      return;
    }
  }
  auto made = fingerprint_of(head_, content_, settings().fingerprint, worker_);
  if (!made) {
    perform(run_.content_refused(problem_code::store_unavailable));
    return;
  }
  perform(run_.content_complete({.key = head_.key,
                                 .fingerprint = *std::move(made),
                                 .token = worker_.random(),
                                 .prefers_wait = head_.wait.has_value()}));
}

void key_phase::client_resumed() {
  if (std::exchange(waits_for_client_, false)) {
    look_up();
  } else if (run_.at() == stage::streaming) {
    dispatch_.resume();
  }
}

auto key_phase::client_has_gone() -> bool {
  auto const next = run_.client_gone(worker_.key_time());
  prepare(next);
  if (next.kind == action_kind::detach) {
    return false;
  }
  cancel();
  exchange_ = nullptr;
  return true;
}

void key_phase::expired() {
  perform(run_.timer(worker_.loop.now() >= wait_until_));
}

// ---- events: the store ----

void key_phase::found(store::find_answer const& answer) {
  if (run_.at() != stage::lookup && run_.at() != stage::waiting) {
    return;
  }
  if (!answer) {
    store_failed(answer.error());
    return;
  }
  auto const* const found = record_of(*answer);
  auto known = lookup_of(*worker_.shared.idempotency, head_.key, found, worker_.key_time());
  perform(run_.found(known, worker_.key_time()), &known, found);
}

void key_phase::compare_by(std::string_view rule_text, idempotency::lookup_result& known,
                           store::found_record const* found) {
  auto const rule = idempotency::fingerprint_rule::parse(rule_text);
  auto const made = rule ? fingerprint_of(head_, content_, *rule, worker_) : std::nullopt;
  if (!made) {
    store_failed({store::store_fault::damaged, "a fingerprint by an unknown rule"});
    return;
  }
  perform(run_.found(known, worker_.key_time(), &*made), &known, found);
}

void key_phase::claimed(store::apply_answer const& answer) {
  if (run_.at() != stage::claiming) {
    return;
  }
  if (!answer) {
    store_failed(answer.error());
    return;
  }
  auto& shared = *worker_.shared.idempotency;
  shared.note(nullptr);
  if (!answer->made) {
    auto const* const found = record_of(answer->found);
    auto known = lookup_of(*worker_.shared.idempotency, head_.key, found, worker_.key_time());
    perform(run_.claim_applied(false, known, worker_.random(), worker_.key_time()), &known, found);
    return;
  }
  fail_point("claim_durable");
  if (adds_key_ && shared.is_full.load(std::memory_order_relaxed)) {
    shared.is_full.store(false, std::memory_order_relaxed);
  }
  idempotency::lookup_result none;
  auto const next = run_.claim_applied(true, none, 0, worker_.key_time());
  shared.running.add(head_.key, run_.mine());
  set(worker_.loop.timers(), worker_.loop.now() + settings().policy.lease / 3);
  perform(next);
}

void key_phase::recorded(store::apply_answer const& answer) {
  fail_point("record_durable");
  auto& shared = *worker_.shared.idempotency;
  shared.waiters.wake(head_.key);
  if (!answer) {
    count_failure(worker_, answer.error());
    perform(run_.store_failed(failure::unavailable, worker_.key_time()));
    return;
  }
  shared.note(nullptr);
  auto const* const found = record_of(answer->found);
  idempotency::lookup_result known{.stored = found != nullptr ? &found->record : nullptr};
  if (!answer->made && found == nullptr) {
    known.running = shared.running.find(head_.key);
  }
  auto const next = run_.record_applied(answer->made, known, worker_.key_time());
  if (answer->made) {
    shared.running.remove(head_.key, run_.mine().token);
  }
  perform(next, &known, found);
}

/// In place of `found` or `claimed`.
void key_phase::store_failed(store::store_error const& error) {
  auto const why = failure_of(error.fault);
  if (why == failure::full) {
    worker_.shared.idempotency->note(&error);
    worker_.shared.events->write_limited(
        "keys full", log_level::warning,
        "the store of idempotency keys is full (" + error.text +
            "): new keys are handled as on-store-failure says until others expire",
        std::chrono::minutes(1));
  } else if (why != failure::scope_full) {  // with that it works
    count_failure(worker_, error);
  }
  perform(run_.store_failed(why, worker_.key_time()));
}

// ---- actions ----

/// What comes before every action.
void key_phase::prepare(idempotency::action const& next) {
  if (next.drops_connection) {
    dispatch_.drop();
  }
  if (next.leaves_waiters) {
    worker_.shared.idempotency->waiters.leave(head_.key, *this);
  }
  if (next.refunds) {
    exchange_->settle(true);
  }
  if (next.settles) {
    exchange_->settle(false);
  }
  if (next.bypasses) {
    note(keyed_outcome::bypassed, exchange_);
  }
  if (next.unknown && !outcome_) {
    note(keyed_outcome::unknown, exchange_);
    worker_.note_unknown(unknown_text(head_, route_.route->settings->name, *next.unknown));
  }
  if (next.queued != nullptr) {
    worker_.retry_later(std::move(*next.queued));
  }
}

void key_phase::perform(idempotency::action const& next, idempotency::lookup_result* known,
                        store::found_record const* found) {
  prepare(next);
  auto& store = *worker_.shared.idempotency->store;
  switch (next.kind) {
    case action_kind::none:
    case action_kind::detach: break;
    case action_kind::fingerprint: compare_by(next.rule_text, *known, found); break;
    case action_kind::join:
      // The record is looked at once more after joining: what changed before is seen, and what
      // changes later wakes.
      set_wait();
      worker_.shared.idempotency->waiters.enter(head_.key, worker_.loop, weak_from_this());
      [[fallthrough]];
    case action_kind::find: store.find(head_.key, on_own_thread(&key_phase::found)); break;
    case action_kind::wait: set_wait(); break;
    case action_kind::admit: exchange_->admit(std::nullopt); break;
    case action_kind::connect: dispatch_.connect(next.fresh); break;
    case action_kind::claim:
      fail_point("connected");
      adds_key_ = next.change->when == idempotency::condition{};
      store.apply(*next.change, on_own_thread(&key_phase::claimed));
      fail_point("claim_asked_for");
      break;
    case action_kind::send: dispatch_.send(run_.is_claimed() ? run_.mine().attempt : 0); break;
    case action_kind::record:
      store.apply(*next.change, on_own_thread(&key_phase::recorded));
      fail_point("record_asked_for");
      break;
    case action_kind::renew:
      store.apply(idempotency::renew(head_.key, run_.mine(), settings().policy, worker_.key_time()),
                  [](store::apply_answer const&) {});
      set(worker_.loop.timers(), worker_.loop.now() + settings().policy.lease / 3);
      break;
    case action_kind::report_late:
      exchange_->context().reply =
          unknown_reply(exchange_->texts(), 504, reason_of(upstream_failure::timeout), settings());
      exchange_->respond_early();
      break;
    case action_kind::stream: begin_stream(next.stream); break;
    case action_kind::end_stream:
      leave_exchange().finish({.trailers = dispatch_.answer().trailers});
      fail_point("client_answered");
      break;
    case action_kind::abort_stream: leave_exchange().finish({.is_cut = true}); break;
    case action_kind::answer:
    case action_kind::answer_unknown:
    case action_kind::answer_unreachable: answer(next); break;
    case action_kind::replay: replay(*found); break;
    case action_kind::refuse: refuse(next, found); break;
    case action_kind::finish: leave_exchange().finish({}); break;
  }
}

/// No one wakes this one when another gateway answers: it looks again, less and less often.
void key_phase::set_wait() {
  constexpr std::chrono::milliseconds longest{1000};
  if (wait_until_ == instant::max()) {
    std::chrono::nanoseconds const bound = settings().max_execution;
    wait_until_ = worker_.loop.now() +
                  (head_.wait ? std::min<std::chrono::nanoseconds>(*head_.wait, bound) : bound);
  }
  auto until = wait_until_;
  if (worker_.shared.idempotency->store->is_shared()) {
    until = std::min(until, worker_.loop.now() + look_after_);
    look_after_ = std::min(2 * look_after_, longest);
  }
  set(worker_.loop.timers(), until);
}

void key_phase::admitted() {
  if (replayed_) {
    auto const stored = std::exchange(replayed_, nullptr);
    note(keyed_outcome::replayed, exchange_);
    std::string trailers;
    for (auto const& field : stored->trailers) {
      wire::append_field(trailers, field.name, std::string_view(field.value));
    }
    auto& to = leave_exchange();
    to.keep_charge();
    to.respond(
        kept_response{.status = stored->status,
                      .lines = {.fields = stored->fields, .has_date = true, .is_replay = true},
                      .content = stored->body,
                      .owner = stored,
                      .trailers = trailers});
    return;
  }
  if (run_.at() == stage::admission) {
    exchange_->forward().set_tries(1);
    perform(run_.admitted(origin_of(head_, route_.route->settings->name), worker_.key_time()));
  }
}

void key_phase::refused() {
  if (exchange_ == nullptr) {
    return;  // the answer is its own
  }
  note(keyed_outcome::refused, exchange_);
  if (run_.at() == stage::admission) {
    run_.refused();
  }
  cancel();
  exchange_ = nullptr;
}

/// The stored answer is sent when it may cost what it does.
void key_phase::replay(store::found_record const& found) {
  cancel();
  if (exchange_->client() == nullptr) {
    note(keyed_outcome::replayed, exchange_);
    exchange_->keep_charge();
    leave_exchange().finish({});
    return;
  }
  if (!found.response) {
    count_failure(worker_, {store::store_fault::damaged, "a record without its response"});
    refuse(
        {.kind = action_kind::refuse, .code = problem_code::store_unavailable, .retry_after = 1s},
        nullptr);
    return;
  }
  replayed_ = found.response;
  exchange_->admit(settings().replay_cost);
}

void key_phase::answer(idempotency::action const& how) {
  bool const is_unsent = how.kind == action_kind::answer_unreachable;
  note(is_unsent ? keyed_outcome::not_sent : keyed_outcome::first, exchange_);
  auto const& settings = this->settings();
  bool const is_protected = run_.is_claimed();
  auto& kept = dispatch_.answer();
  std::shared_ptr<std::string const> large;
  if (how.kind == action_kind::answer && exchange_->client() != nullptr &&
      kept.body.size() >= large_octets_min) {
    large = std::make_shared<std::string const>(std::move(kept.body));
  }
  auto& to = leave_exchange();
  if (how.kind == action_kind::answer) {
    to.respond(kept_response{.status = kept.status,
                             .lines = kept.lines(is_protected),
                             .content = large ? *large : kept.body,
                             .owner = large,
                             .trailers = kept.trailers});
    fail_point("client_answered");
    return;
  }
  auto& context = to.context();
  if (is_unsent) {
    auto const why = dispatch_.failure();
    if (was_not_asked(why)) {
      to.forward().set_tries(0);
    }
    context.reply =
        failure_reply(was_not_asked(why) ? why : upstream_failure::connect_refused, to.texts());
    context.reply->retry_after = 1s;
  } else {
    context.reply =
        unknown_reply(to.texts(), idempotency::first_status(how.end), context.reason, settings);
  }
  to.respond();
}

void key_phase::begin_stream(idempotency::stream_end end) {
  note(keyed_outcome::first, exchange_);
  cancel();
  auto& kept = dispatch_.answer();
  exchange_->send_own_head(kept.status, kept.lines(run_.is_claimed()), kept.declared_length);
  auto const body = std::exchange(kept.body, {});
  exchange_->take_body(body, body.size());
  exchange_->count_held();
  if (end != idempotency::stream_end::open) {
    leave_exchange().finish(
        {.is_cut = end == idempotency::stream_end::cut, .trailers = kept.trailers});
    fail_point("client_answered");
    return;
  }
  if (auto* const client = exchange_->client()) {
    client->flush();  // it may turn out to be gone, and this to be over
  }
  fail_point("stream_begun");
  if (run_.at() == stage::streaming) {
    dispatch_.resume();
  }
}

void key_phase::refuse(idempotency::action const& why, store::found_record const* found) {
  note(outcome_of(why.code), exchange_);
  idempotency::problem_details problem{.code = why.code,
                                       .documentation = settings().documentation,
                                       .detail = why.detail,
                                       .differs = why.differs};
  if (why.code == problem_code::result_expired && found != nullptr) {
    problem.first_status = found->record.status;
    problem.first_completed = found->record.changed;
  }
  std::string lines;
  if (why.code == problem_code::response_not_replayable && found != nullptr && found->response) {
    // Where to look for what the answer was about.
    for (auto const& field : found->response->fields) {
      if (equal_ignoring_case(field.name, "location") || equal_ignoring_case(field.name, "etag")) {
        wire::append_field(lines, field.name, std::string_view(field.value));
      }
    }
  }
  auto& to = leave_exchange();
  to.look_at_quotas();
  to.context().reply = key_refusal(to.texts(), problem, why.retry_after, lines);
  to.respond();
}

// ---- metrics and logs ----

void key_phase::note(keyed_outcome outcome, exchange* in) {
  if (!outcome_) {
    outcome_ = outcome;
    route_.counts->of(outcome).add();
    if (in != nullptr && in->log().is_on()) {
      in->log().set_key(to_string(head_.key), name_of(outcome));
    }
  }
}

}  // namespace tidegate::gateway
