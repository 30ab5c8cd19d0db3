// SPDX-License-Identifier: Apache-2.0
#include "keyed_request.hpp"

#include "access_log_line.hpp"
#include "exchange.hpp"
#include "exchange_service.hpp"
#include "field_names.hpp"

#include <tidegate/base/fail_point.hpp>
#include <tidegate/http/date.hpp>
#include <tidegate/http/json_string.hpp>
#include <tidegate/idempotency/change.hpp>

#include <algorithm>
#include <utility>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;
using idempotency::exchange_end;
using idempotency::outcome;
using idempotency::problem_code;
using idempotency::verdict;
using wire::known_field;

/// What is given to the upstream at once.
constexpr std::size_t piece_octets = 128 * 1024;

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

[[nodiscard]] auto end_of(upstream_failure why, bool head_came) -> exchange_end {
  switch (why) {
    case upstream_failure::timeout:
    case upstream_failure::idle: return exchange_end::timed_out;
    default: return head_came ? exchange_end::cut_answer : exchange_end::no_answer;
  }
}

}  // namespace

keyed_request::keyed_request(worker& on, exchange& of, worker_route const& route, keyed_head head)
    : worker_(on), exchange_(&of), route_(route), head_(std::move(head)), decoder_(head_.framing) {}

keyed_request::~keyed_request() {
  auto& shared = *worker_.shared.idempotency;
  if (waits_for_record_) {
    shared.room.leave(head_.key, *this);
  }
  if (claimed_) {
    shared.running.remove(head_.key, mine_.token);
  }
}

auto keyed_request::settings() const -> idempotency_config const& {
  return *route_.settings->settings->idempotency;
}

void keyed_request::set_deadline(std::chrono::nanoseconds wait) {
  set(worker_.loop.timers(), worker_.loop.now() + wait);
}

auto keyed_request::leave_exchange() -> exchange& {
  stage_ = stage::over;
  cancel();
  return *std::exchange(exchange_, nullptr);
}

/// An answer of the store, wherever it comes from, taken on the thread of this request while it is there.
template <class Answer>
auto keyed_request::on_own_thread(void (keyed_request::*take)(Answer)) {
  return [loop = &worker_.loop, self = weak_from_this(), take](Answer answer) {
    auto task = [self, take, answer = std::move(answer)] {
      auto const there = self.lock();
      if (!there) {
        return;
      }
      auto* const client = there->exchange_ != nullptr ? there->exchange_->client() : nullptr;
      try {
        (there.get()->*take)(answer);
      } catch (std::bad_alloc const&) {
        // What was claimed stays so until its lease ends; then retries are told that nobody knows.
        if (client != nullptr) {
          client->give_up();
        }
        throw;
      }
    };
    if (loop->runs_here()) {
      task();
    } else {
      loop->post(std::move(task));
    }
  };
}

// ---- the content ----

void keyed_request::start() {
  if (decoder_.done()) {
    look_up();
  }
}

void keyed_request::content(std::string_view framed, bool last) {
  if (stage_ != stage::content) {
    return;
  }
  while (!framed.empty() && !decoder_.done()) {
    auto const fed = decoder_.feed(framed);
    if (content_.size() + fed.content.size() > static_cast<std::uint64_t>(settings().max_body)) {
      refuse({.code = problem_code::body_too_large}, 0s);
      return;
    }
    if (!content_.append(fed.content, worker_.shared.idempotency->folder)) {
      refuse({.code = problem_code::store_unavailable,
              .detail = "The content of the request could not be kept."},
             1s);
      return;
    }
    if (fed.consumed == 0 || fed.state == wire::body_state::refused) {
      break;  // what is broken was refused by whoever read it from the client
    }
    framed.remove_prefix(fed.consumed);
  }
  if (last) {
    look_up();
  } else {
    exchange_->count_held();
  }
}

auto keyed_request::fingerprint_by(idempotency::fingerprint_rule const& rule)
    -> std::optional<idempotency::fingerprint> {
  idempotency::fingerprinter maker(worker_.shared.idempotency->secret, rule, head_.method_text,
                                   head_.path, head_.query, &worker_.fingerprint_parts);
  if (auto const whole = content_.in_memory()) {
    if (!rule.streams()) {
      return maker.finish(*whole);
    }
    maker.update(*whole);
    return maker.finish();
  }
  std::string piece;
  if (!rule.streams()) {
    return content_.read(0, content_.size(), piece) ? std::optional(maker.finish(piece))
                                                    : std::nullopt;
  }
  for (std::uint64_t at = 0; at < content_.size(); at += piece.size()) {
    piece.clear();
    if (!content_.read(at, piece_octets, piece)) {
      return std::nullopt;
    }
    maker.update(piece);
  }
  return maker.finish();
}

// ---- what is known of the key ----

/// Whether the content is what Content-Digest says; nothing when it cannot be read.
auto keyed_request::matches_digest() -> std::optional<bool> {
  sha256 hash;
  std::string piece;
  for (std::uint64_t at = 0; at < content_.size(); at += piece.size()) {
    piece.clear();
    if (!content_.read(at, piece_octets, piece)) {
      return std::nullopt;
    }
    hash.update(piece);
  }
  return hash.finish() == *head_.content_digest;
}

void keyed_request::look_up() {
  if (!exchange_->may_look_up()) {
    waits_to_look_ = true;
    exchange_->count_held();
    return;
  }
  fail_point("content_came");
  if (head_.content_digest) {
    auto const matches = matches_digest();
    if (!matches.value_or(false)) {
      refuse({.code = matches ? problem_code::digest_mismatch : problem_code::store_unavailable},
             matches ? 0s : 1s);
      return;
    }
  }
  auto made = fingerprint_by(settings().fingerprint);
  if (!made) {
    refuse({.code = problem_code::store_unavailable}, 1s);
    return;
  }
  request_.key = head_.key;
  request_.fingerprint = *std::move(made);
  request_.token = worker_.random();
  request_.prefers_wait = head_.wait.has_value();
  stage_ = stage::looking;
  worker_.shared.idempotency->store->find(head_.key, on_own_thread(&keyed_request::found));
}

void keyed_request::found(store::find_answer answer) {
  if (stage_ != stage::looking && stage_ != stage::waiting) {
    return;
  }
  if (!answer) {
    store_has_failed(answer.error());
    return;
  }
  decide(*answer);
}

void keyed_request::decide(std::optional<store::found_record> const& found) {
  auto const* record = found ? &found->record : nullptr;
  std::optional<idempotency::record> running;
  if (record == nullptr || !state_at(*record, worker_.key_time())) {
    // What this process has under way is so, whatever the store has lost.
    running = worker_.shared.idempotency->running.find(head_.key);
    if (running) {
      running->lease_until = worker_.key_time() + settings().policy.lease;
      record = &*running;
    }
  }
  request_.waiters = waits_for_record_ ? 0 : worker_.shared.idempotency->room.count(head_.key);
  auto what = idempotency::decide(record, request_, settings().policy, worker_.key_time());
  if (what.what == verdict::other_rule) {
    auto const rule = idempotency::fingerprint_rule::parse(record->fingerprint.rule);
    auto made = rule ? fingerprint_by(*rule) : std::nullopt;
    if (!made) {
      store_has_failed({store::store_fault::damaged, "a fingerprint by a rule that nobody knows"});
      return;
    }
    // By that rule it is compared; by ours it would be claimed.
    auto by_other_rule = request_;
    by_other_rule.fingerprint = *std::move(made);
    what = idempotency::decide(record, by_other_rule, settings().policy, worker_.key_time());
    if (what.claim && what.claim->next) {
      what.claim->next->fingerprint = request_.fingerprint;
    }
  }
  follow(what, found);
}

void keyed_request::follow(idempotency::decision const& what,
                           std::optional<store::found_record> const& found) {
  if (what.what == verdict::wait) {
    wait_for_answer();
    return;
  }
  if (std::exchange(waits_for_record_, false)) {
    worker_.shared.idempotency->room.leave(head_.key, *this);
  }
  switch (what.what) {
    case verdict::run:
      claim_ = *what.claim;
      run();
      break;
    case verdict::replay:
      note(keyed_outcome::replayed);
      leave_exchange().replay(found->response, settings().replay_cost);
      break;
    default: {
      idempotency::problem_details problem{.code = what.code, .differs = what.differs};
      if (what.code == problem_code::result_expired && found) {
        problem.first_status = found->record.status;
        problem.first_completed = found->record.changed;
      }
      std::string lines;
      if (what.code == problem_code::response_not_replayable && found && found->response) {
        // Where to look for what the answer was about.
        for (auto const& field : found->response->fields) {
          if (equal_names(field.name, "location") || equal_names(field.name, "etag")) {
            wire::append_field(lines, field.name, std::string_view(field.value));
          }
        }
      }
      refuse(problem, what.retry_after, lines);
    }
  }
}

/// The record is looked at once more after the room was entered: what changed before is seen, and what
/// changes later wakes.
void keyed_request::wait_for_answer() {
  stage_ = stage::waiting;
  if (std::exchange(waits_for_record_, true)) {
    set_wait();
    return;
  }
  if (wait_until_ == instant::max()) {
    auto const bound = settings().max_execution;
    auto const wait = head_.wait ? std::min<std::chrono::nanoseconds>(*head_.wait, bound) : bound;
    wait_until_ = worker_.loop.now() + wait;
  }
  set_wait();
  worker_.shared.idempotency->room.enter(head_.key, worker_.loop, weak_from_this());
  worker_.shared.idempotency->store->find(head_.key, on_own_thread(&keyed_request::found));
}

/// Nobody wakes this one when another gateway answers: it looks again, less and less often.
void keyed_request::set_wait() {
  constexpr std::chrono::milliseconds longest{1000};
  auto until = wait_until_;
  if (worker_.shared.idempotency->store->is_shared()) {
    until = std::min(until, worker_.loop.now() + look_after_);
    look_after_ = std::min(2 * look_after_, longest);
  }
  set(worker_.loop.timers(), until);
}

void keyed_request::look_again() {
  if (stage_ != stage::waiting) {
    return;
  }
  // Whoever was woken is in the room no more; if there is still nothing, it enters again.
  waits_for_record_ = false;
  worker_.shared.idempotency->store->find(head_.key, on_own_thread(&keyed_request::found));
}

void keyed_request::store_has_failed(store::store_error const& error) {
  if (error.fault == store::store_fault::scope_full) {  // it works, and nothing was claimed
    if (std::exchange(charged_, false)) {
      exchange_->give_charges_back();
    }
    refuse({.code = problem_code::too_many_keys}, settings().policy.retry_unknown_outcome);
    return;
  }
  worker_.shared.idempotency->health.note(&error);
  worker_.metrics->idempotency_store_failures.add();
  bool const is_full = error.fault == store::store_fault::full;
  if (settings().pass_on_store_failure && error.fault != store::store_fault::damaged && !claimed_) {
    bool const is_heard = exchange_->has_client();
    let_upstream_go();
    forget_claim(is_heard);
    claim_ = {};
    if (!is_heard) {
      leave_exchange().end_unheard();
      return;
    }
    note(keyed_outcome::bypassed);
    run();
    return;
  }
  forget_claim(false);
  if (std::exchange(charged_, false)) {
    exchange_->give_charges_back();
  }
  refuse({.code = problem_code::store_unavailable,
          .detail = is_full ? "The request was not run, because there is no room for another "
                              "Idempotency-Key: send it again later."
                            : ""},
         is_full ? settings().policy.retry_unknown_outcome : 1s);
}

/// A claim that failed may have been made all the same. It is given back, since nothing was sent; or, when the
/// request goes on without protection, nobody will know what became of it.
void keyed_request::forget_claim(bool is_sent) {
  if (stage_ == stage::claiming) {
    auto const now = worker_.key_time();
    worker_.record_later(is_sent ? idempotency::lose(head_.key, *claim_.next,
                                                     idempotency::unknown_reason::no_answer, now)
                                 : idempotency::give_back(head_.key, *claim_.next, now));
  }
}

void keyed_request::refuse(idempotency::problem_details problem, std::chrono::seconds retry_after,
                           std::string_view field_lines) {
  let_upstream_go();
  if (claimed_ && problem.code == problem_code::outcome_unknown) {  // it ran, and was overtaken
    note_unknown(idempotency::unknown_reason::no_answer);
  } else {
    note(outcome_of(problem.code));
  }
  problem.documentation = settings().documentation;
  leave_exchange().refuse_key(problem, retry_after, field_lines);
}

// ---- the run ----

void keyed_request::run() {
  if (charged_) {
    run_admitted();
    return;
  }
  stage_ = stage::admitting;
  switch (exchange_->admit_run()) {
    case exchange::admission::admitted:
      charged_ = true;
      run_admitted();
      break;
    case exchange::admission::over:  // it has said why
      stage_ = stage::over;
      cancel();
      exchange_ = nullptr;
      break;
    case exchange::admission::waiting: break;
  }
}

void keyed_request::quotas_decided() {
  if (stage_ == stage::admitting) {
    run();
  }
}

void keyed_request::run_admitted() {
  if (!head_.service) {
    connect(false);
  } else if (claim_.next) {
    claim();
  } else {
    send();
  }
}

void keyed_request::connect(bool fresh) {
  stage_ = stage::connecting;
  ++tries_;
  upstream_ = route_.pool->take(fresh);
  if (upstream_ == nullptr) {
    upstream_failed(upstream_failure::connect_refused, {});
    return;
  }
  exchange_->log_server(route_.pool->settings().servers[upstream_->server()].authority);
  upstream_->start(*this, head_.method, {});
  if (upstream_ != nullptr && upstream_->is_connected()) {
    upstream_connected();
  }
}

void keyed_request::upstream_connected() {
  if (stage_ != stage::connecting) {
    return;
  }
  if (claimed_ || !claim_.next) {  // claimed before a connection broke, or never to be
    send();
  } else {
    claim();
  }
}

void keyed_request::claim() {
  fail_point("connected");
  stage_ = stage::claiming;
  // The connection may have taken its time: the lease begins now.
  auto const now = worker_.key_time();
  auto& next = *claim_.next;
  next.created = next.attempt == 1 ? now : next.created;
  next.changed = now;
  next.lease_until = now + settings().policy.lease;
  next.origin = origin();
  worker_.shared.idempotency->store->apply(claim_, on_own_thread(&keyed_request::claimed));
  fail_point("claim_asked_for");
}

/// What an operator needs to find what the request was for.
auto keyed_request::origin() const -> idempotency::request_origin {
  auto const cut = [](std::string_view text) {
    return std::string(text.substr(0, idempotency::origin_text_max));
  };
  return {cut(route_.settings->settings->name), cut(head_.principal), cut(head_.method_text),
          cut(head_.host), cut(head_.path)};
}

void keyed_request::claimed(store::apply_answer answer) {
  if (stage_ != stage::claiming) {
    return;
  }
  if (!answer) {
    store_has_failed(answer.error());
    return;
  }
  worker_.shared.idempotency->health.note(nullptr);
  if (!answer->made) {  // somebody was faster
    let_upstream_go();
    if (std::exchange(charged_, false)) {
      exchange_->give_charges_back();
    }
    if (!exchange_->has_client()) {
      leave_exchange().end_unheard();
      return;
    }
    request_.token = worker_.random();
    stage_ = stage::looking;
    decide(answer->found);
    return;
  }
  fail_point("claim_durable");
  claimed_ = true;
  mine_ = *claim_.next;
  worker_.shared.idempotency->running.add(head_.key, mine_);
  set_deadline(settings().policy.lease / 3);
  if (upstream_ == nullptr && !head_.service) {  // it went while nothing was sent
    connect(true);
  } else {
    send();
  }
}

void keyed_request::send() {
  stage_ = stage::running;
  head_sent_ = true;
  if (head_.service) {
    ask_service();
    return;
  }
  if (claimed_) {
    head_.lines.append("Idempotency-Attempt: ")
        .append(std::to_string(mine_.attempt))
        .append("\r\n\r\n");
  } else {
    head_.lines.append("\r\n");
  }
  upstream_->await_answer();
  send_content();
  fail_point("request_sent");
}

void keyed_request::ask_service() {
  auto& request = *head_.service;
  if (!content_.read(0, content_.size(), request.content)) {
    record_end(exchange_end::no_answer);
    return;
  }
  worker_.shared.scim->handle(
      std::move(request), false,
      answered_on(worker_.loop, [self = weak_from_this()](scim_answer answer) {
        if (auto const there = self.lock()) {
          there->service_answered(std::move(answer));
        }
      }));
  fail_point("request_sent");
}

void keyed_request::send_content() {
  std::string piece;
  while (upstream_ != nullptr && !sent_all_ && !upstream_->is_clogged()) {
    piece.clear();
    if (!content_.read(content_sent_, piece_octets, piece)) {
      // The disk does not give back what it took: the request cannot be completed.
      let_upstream_go();
      if (stage_ == stage::running) {
        record_end(exchange_end::no_answer);
      } else if (stage_ == stage::streaming) {
        leave_exchange().cut_stream();
      } else {
        upstream_is_done_ = true;
        upstream_was_cut_ = true;
      }
      return;
    }
    content_sent_ += piece.size();
    sent_all_ = content_sent_ == content_.size();
    auto bytes = std::exchange(head_.lines, {});  // in one write with the first piece
    if (head_.framing.kind != wire::body_kind::chunked) {
      bytes.append(piece);
    } else {
      if (!piece.empty()) {
        wire::append_chunk_size(bytes, piece.size());
        bytes.append(piece).append(wire::chunk_end);
      }
      bytes.append(sent_all_ ? wire::last_chunk_and_end : std::string_view());
    }
    upstream_->send(bytes);
    fail_point("request_begun");
  }
}

void keyed_request::upstream_takes_more() {
  bool const is_sending =
      stage_ == stage::running || stage_ == stage::recording || stage_ == stage::streaming;
  if (is_sending && !sent_all_) {
    send_content();
  }
}

void keyed_request::expired() {
  if (stage_ == stage::waiting) {
    if (worker_.loop.now() < wait_until_) {
      worker_.shared.idempotency->store->find(head_.key, on_own_thread(&keyed_request::found));
      return;
    }
    worker_.shared.idempotency->room.leave(head_.key, *this);
    waits_for_record_ = false;
    refuse({.code = problem_code::in_flight}, settings().policy.retry_in_flight);
  } else if (claimed_) {
    // R6: whoever is not heard of any more counts as dead.
    worker_.shared.idempotency->store->apply(
        idempotency::renew(head_.key, mine_, settings().policy, worker_.key_time()),
        [](store::apply_answer const&) {});
    set_deadline(settings().policy.lease / 3);
  }
}

/// A client that waited long enough is told so; the answer is still waited for (R5).
auto keyed_request::upstream_is_late() -> std::optional<std::chrono::nanoseconds> {
  if (!claimed_) {
    return std::nullopt;
  }
  auto const now = worker_.loop.now();
  if (!std::exchange(is_late_, true)) {
    late_until_ = now + settings().max_execution;
    note_unknown(idempotency::unknown_reason::timed_out);
    exchange_->tell_unknown(504, settings());
  }
  return now < late_until_ ? std::optional(late_until_ - now) : std::nullopt;
}

void keyed_request::let_upstream_go() {
  if (upstream_ != nullptr) {
    std::exchange(upstream_, nullptr)->abandon();
  }
}

// ---- the answer ----

void keyed_request::upstream_interim(wire::response_head const& head) {
  if (head.status() != 100) {
    exchange_->pass_interim(head);
  }
}

void keyed_request::upstream_head(wire::response_head const& head) {
  auto const self = shared_from_this();  // the exchange may let go of it
  if (stage_ != stage::running) {        // nobody asked
    let_upstream_go();
    return;
  }
  fail_point("answer_begun");
  status_ = static_cast<std::uint16_t>(head.status());
  // Of the answer its content is passed on and kept, without trailers.
  auto const drop = route_.settings->fields_made_anew | wire::field_set{known_field::trailer};
  std::vector<std::string_view> connection_options;
  for (auto const& field : head.fields()) {
    if (field.known == known_field::connection) {
      connection_options.push_back(field.value);
    }
  }
  for (auto const& field : head.fields()) {
    bool const is_framing =
        field.known == known_field::content_length || wire::is_of_connection(head, field);
    if (!is_framing && !drop.contains(field.known)) {
      fields_.push_back({std::string(field.name), std::string(field.value)});
    }
  }
  if (!head.has(known_field::date)) {
    std::string date;
    http::append_http_date(date, worker_.wall_clock());
    fields_.push_back({"Date", std::move(date)});
  }
  if (head.body().kind == wire::body_kind::content_length) {
    declared_length_ = head.body().length;
  }
  exchange_->head_came(status_);
  exchange_->append_limit_lines(limit_lines_, &head);
  begin_recording(connection_options);
}

void keyed_request::begin_recording(std::span<std::string_view const> connection_options) {
  std::vector<idempotency::response_field> kept;
  for (auto const& field : fields_) {
    if (idempotency::is_kept_field(field.name, connection_options)) {
      kept.push_back(field);
    }
  }
  recorder_.emplace(status_, kept, static_cast<std::size_t>(settings().max_response));
}

void keyed_request::service_answered(scim_answer answer) {
  auto const self = shared_from_this();  // the exchange may let go of it
  if (stage_ != stage::running) {
    return;
  }
  fail_point("answer_begun");
  status_ = static_cast<std::uint16_t>(answer.status);
  fields_ = std::move(answer.fields);
  std::string date;
  http::append_http_date(date, worker_.wall_clock());
  fields_.push_back({"Date", std::move(date)});
  declared_length_ = answer.content_begin.size() + answer.content.size();
  exchange_->head_came(status_);
  exchange_->append_limit_lines(limit_lines_, nullptr);
  begin_recording({});
  body_ = std::move(answer.content_begin);
  body_.append(answer.content);
  recorder_->add(body_);
  upstream_is_done_ = true;
  fail_point("answer_complete");
  if (recorder_->keeps_body()) {
    record_end(exchange_end::answered);
    return;
  }
  stage_ = stage::recording;
  if (claimed_) {
    record(change_by(exchange_end::answered));
  } else {
    begin_stream();
  }
}

void keyed_request::upstream_body(std::string_view bytes, std::uint64_t /*content_octets*/) {
  auto const self = shared_from_this();
  if (stage_ == stage::streaming) {
    exchange_->stream(bytes);
    return;
  }
  body_.append(bytes);
  exchange_->count_held();
  if (stage_ != stage::running) {
    return;  // it is being written down that there will be no body
  }
  recorder_->add(bytes);
  if (!recorder_->keeps_body()) {  // from here on it passes through
    stage_ = stage::recording;
    if (claimed_) {
      record(change_by(exchange_end::answered));
    } else {
      begin_stream();
    }
  }
}

auto keyed_request::client_is_clogged() const -> bool {
  return stage_ == stage::recording ||
         (stage_ == stage::streaming && exchange_->stream_is_clogged());
}

void keyed_request::client_takes_more() {
  if (std::exchange(waits_to_look_, false)) {
    look_up();
  } else if (stage_ == stage::streaming && upstream_ != nullptr) {
    upstream_->resume();
  }
}

void keyed_request::flush_client() {
  if (stage_ == stage::streaming) {
    exchange_->flush_stream();
  }
}

void keyed_request::upstream_done() {
  auto const self = shared_from_this();
  upstream_ = nullptr;
  upstream_is_done_ = true;
  if (stage_ == stage::streaming) {
    leave_exchange().end_stream();
    fail_point("client_answered");
  } else if (stage_ == stage::running) {
    fail_point("answer_complete");
    record_end(exchange_end::answered);
  }
}

void keyed_request::upstream_failed(upstream_failure why, std::string /*unsent*/) {
  auto const self = shared_from_this();
  upstream_ = nullptr;
  if (exchange_ != nullptr) {
    exchange_->note_failure(why);
  }
  if (stage_ == stage::claiming) {
    return;  // nothing was sent; another connection is taken when the claim is made
  }
  if (stage_ == stage::streaming) {
    leave_exchange().cut_stream();
    return;
  }
  if (stage_ == stage::recording) {
    upstream_is_done_ = true;
    upstream_was_cut_ = true;
    return;
  }
  if (!head_sent_) {
    auto const tries_max = route_.pool->settings().settings->retries + 1;
    if (tries_ < tries_max || why == upstream_failure::closed_unanswered) {
      connect(true);
      return;
    }
    end_ = exchange_end::not_sent;
    if (claimed_) {
      stage_ = stage::recording;
      record(idempotency::give_back(head_.key, mine_, worker_.key_time()));
    } else {
      answer();
    }
    return;
  }
  record_end(end_of(why, recorder_.has_value()));
}

void keyed_request::record_end(exchange_end end) {
  end_ = end;
  stage_ = stage::recording;
  if (!claimed_) {
    answer();
    return;
  }
  record(change_by(end));
}

auto keyed_request::change_by(exchange_end end) -> idempotency::change {
  auto const judged = idempotency::judge(end, status_, settings().policy);
  auto const now = worker_.key_time();
  switch (judged.what) {
    case outcome::completed:
      return idempotency::complete(head_.key, mine_, recorder_->finish(), now);
    case outcome::given_back: return idempotency::give_back(head_.key, mine_, now);
    case outcome::unknown: break;
  }
  return idempotency::lose(head_.key, mine_, judged.reason, now);
}

/// Whether the store has nothing of a claim that is under way, and no operator has said that it may go.
auto keyed_request::was_lost_by_store(store::applied const& answer) const -> bool {
  if (answer.made || answer.found || !last_change_.next || !last_change_.when.token) {
    return false;
  }
  auto const running = worker_.shared.idempotency->running.find(head_.key);
  return running && running->token == mine_.token;
}

void keyed_request::record(idempotency::change change) {
  change.seal = settings().seal;
  last_change_ = change;
  worker_.shared.idempotency->store->apply(std::move(change),
                                           on_own_thread(&keyed_request::recorded));
  fail_point("record_asked_for");
}

void keyed_request::recorded(store::apply_answer answered) {
  fail_point("record_durable");
  auto& shared = *worker_.shared.idempotency;
  shared.room.wake(head_.key);
  shared.health.note(answered ? nullptr : &answered.error());
  if (!answered) {
    // The work is done, so the client gets its answer; what became of it is written down when the store
    // is back.
    worker_.metrics->idempotency_store_failures.add();
    note_end();
    worker_.record_later(std::move(last_change_));
    if (end_) {
      answer();
    } else {
      begin_stream();
    }
    return;
  }
  if (was_lost_by_store(*answered)) {
    // It ran, so a retry must not run it again: what became of it is written down as if the claim were there.
    auto again = std::move(last_change_);
    again.when = {};
    record(std::move(again));
    return;
  }
  if (answered->made) {
    shared.running.remove(head_.key, mine_.token);
  }
  bool const is_answer =
      last_change_.next && last_change_.next->state == idempotency::record_state::completed;
  if (!answered->made && is_answer) {
    auto const* const record = answered->found ? &answered->found->record : nullptr;
    let_upstream_go();
    exchange_->close_charges();
    auto what =
        idempotency::decide_overtaken(record, request_, settings().policy, worker_.key_time());
    // It ran, so it never waits for another one to run it again (R8).
    if (what.what == verdict::wait || what.what == verdict::other_rule) {
      bool const is_running = what.what == verdict::wait;
      what = {};
      what.what = verdict::refuse;
      what.code = is_running ? problem_code::in_flight : problem_code::outcome_unknown;
      what.retry_after =
          is_running ? settings().policy.retry_in_flight : settings().policy.retry_unknown_outcome;
    }
    follow(what, answered->found);
    return;
  }
  if (end_) {
    answer();
  } else {
    begin_stream();
  }
}

void keyed_request::note(keyed_outcome outcome) {
  if (!outcome_) {
    outcome_ = outcome;
    route_.counts->of(outcome).add();
    if (exchange_ != nullptr) {
      exchange_->log_key(to_string(head_.key), name_of(outcome));
    }
  }
}

void keyed_request::note_unknown(idempotency::unknown_reason reason) {
  if (outcome_) {
    return;
  }
  note(keyed_outcome::unknown);
  std::string text(name_of(reason));
  text.append(", ").append(head_.method_text).append(" ");
  http::append_json_string(text, std::string_view(head_.path).substr(0, logged_octets_max));
  text.append(" on route ");
  http::append_json_string(text, route_.settings->settings->name);
  if (!head_.principal.empty()) {
    text.append(" by ");
    http::append_json_string(text, head_.principal);
  }
  text.append("; look it up and resolve it by /api/v1/idempotency/").append(to_string(head_.key));
  worker_.note_unknown(text);
}

/// What the record says of a request that has run.
void keyed_request::note_end() {
  if (end_ == exchange_end::not_sent) {
    note(keyed_outcome::not_sent);
  } else if (last_change_.next && last_change_.next->state == idempotency::record_state::unknown) {
    note_unknown(last_change_.next->reason);
  } else {
    note(keyed_outcome::first);
  }
}

void keyed_request::answer() {
  note_end();
  auto const end = *end_;
  auto const& how = settings();
  bool const is_protected = claimed_;
  auto& to = leave_exchange();
  if (end == exchange_end::answered) {
    to.answer_first(status_, fields_, limit_lines_, std::move(body_), is_protected);
    fail_point("client_answered");
  } else if (end == exchange_end::not_sent) {
    to.answer_unreachable();
  } else {
    to.end_unknown(idempotency::first_status(end), how);
  }
}

void keyed_request::begin_stream() {
  note_end();
  stage_ = stage::streaming;
  cancel();
  exchange_->begin_stream(status_, fields_, limit_lines_, declared_length_, claimed_);
  exchange_->stream(std::exchange(body_, {}));
  if (upstream_is_done_) {
    auto& to = leave_exchange();
    if (upstream_was_cut_) {
      to.cut_stream();
    } else {
      to.end_stream();
    }
    fail_point("client_answered");
    return;
  }
  exchange_->flush_stream();  // the client may turn out to be gone, and this to be over
  fail_point("stream_begun");
  if (stage_ == stage::streaming) {
    send_content();
  }
  if (stage_ == stage::streaming && upstream_ != nullptr) {
    upstream_->resume();
  }
}

auto keyed_request::client_has_gone() -> bool {
  switch (stage_) {
    case stage::content:
    case stage::looking:
    case stage::waiting:
    case stage::admitting:
    case stage::connecting:
      if (claimed_) {
        return false;
      }
      break;
    case stage::over:
    case stage::streaming: break;
    default: return false;  // claiming, running, recording: it goes on
  }
  if (stage_ != stage::streaming && exchange_ != nullptr && std::exchange(charged_, false)) {
    exchange_->give_charges_back();
  }
  let_upstream_go();
  if (std::exchange(waits_for_record_, false)) {
    worker_.shared.idempotency->room.leave(head_.key, *this);
  }
  stage_ = stage::over;
  cancel();
  exchange_ = nullptr;
  return true;
}

}  // namespace tidegate::gateway
