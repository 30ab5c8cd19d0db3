// SPDX-License-Identifier: Apache-2.0
#include "phases/forward.hpp"

#include "phases/exchange.hpp"
#include "request/forwarded_head.hpp"
#include "request/reply_edits.hpp"

namespace tidegate::gateway {

namespace {

/// What may be kept for the next request of the buffer that requests are written to.
constexpr std::size_t kept_octets_max = 16 * 1024;

/// Whether a body is held until it is whole. `at_hand` of it has come.
[[nodiscard]] auto is_held(worker const& on, wire::request_head const& request,
                           std::uint64_t at_hand) -> bool {
  auto const body = request.body();
  return body.kind == wire::body_kind::content_length && body.length > at_hand &&
         body.length <= held_body_octets_max && !request.has(wire::known_field::expect) &&
         on.may_hold_bodies();
}

}  // namespace

auto reason_of(upstream_failure why) noexcept -> std::string_view {
  switch (why) {
    case upstream_failure::connect_refused: return "upstream-refused";
    case upstream_failure::connect_timeout: return "upstream-connect-timeout";
    case upstream_failure::closed_unanswered:
    case upstream_failure::closed: return "upstream-closed";
    case upstream_failure::malformed: return "upstream-malformed";
    case upstream_failure::timeout: return "upstream-timeout";
    case upstream_failure::idle: return "upstream-idle";
    case upstream_failure::no_descriptor: return "no-descriptor";
    case upstream_failure::refused_stream: return "upstream-refused-stream";
    case upstream_failure::busy: return "upstream-busy";
    case upstream_failure::no_server: return "no-server";
    case upstream_failure::no_websocket: return "upstream-no-websocket";
  }
  return "";
}

auto failure_reply(upstream_failure why, reply_texts texts) -> local_reply {
  switch (why) {
    case upstream_failure::timeout:
    case upstream_failure::connect_timeout:
    case upstream_failure::idle:
      return problem_reply(texts, reason_of(why), 504, "Gateway Timeout",
                           "The service behind this gateway did not respond in time.");
    case upstream_failure::malformed:
      return problem_reply(
          texts, reason_of(why), 502, "Bad Gateway",
          "The service behind this gateway sent a response that is not valid HTTP.");
    case upstream_failure::busy:
    case upstream_failure::no_descriptor: {
      auto reply = problem_reply(texts, reason_of(why), 503, "Service Unavailable",
                                 "This gateway has no free connection to the service behind it.");
      reply.retry_after = std::chrono::seconds(1);
      return reply;
    }
    case upstream_failure::no_server: {
      auto reply = problem_reply(texts, reason_of(why), 503, "Service Unavailable",
                                 "This gateway knows no address of the service behind it.");
      reply.retry_after = std::chrono::seconds(1);
      return reply;
    }
    case upstream_failure::no_websocket:
      return problem_reply(texts, reason_of(why), 502, "Bad Gateway",
                           "The service behind this gateway takes no WebSocket over HTTP/2.");
    default:
      return problem_reply(texts, reason_of(why), 502, "Bad Gateway",
                           "The service behind this gateway cannot be reached.");
  }
}

auto was_not_sent(upstream_failure why) noexcept -> bool {
  return why == upstream_failure::connect_refused || why == upstream_failure::connect_timeout ||
         why == upstream_failure::refused_stream;
}

auto was_not_asked(upstream_failure why) noexcept -> bool {
  return why == upstream_failure::no_descriptor || why == upstream_failure::busy ||
         why == upstream_failure::no_server;
}

auto cause_of(upstream_failure why) noexcept -> std::optional<balance::retry_cause> {
  switch (why) {
    case upstream_failure::connect_refused:
    case upstream_failure::connect_timeout: return balance::retry_cause::connect;
    case upstream_failure::closed_unanswered:
    case upstream_failure::closed: return balance::retry_cause::reset;
    case upstream_failure::timeout: return balance::retry_cause::timeout;
    case upstream_failure::refused_stream: return balance::retry_cause::refused_stream;
    default: return std::nullopt;
  }
}

auto is_worth_a_retry(balance::retry_cause what, bool may_repeat, std::int64_t retries,
                      balance::retry_settings const& settings) noexcept -> bool {
  return settings.has(what) && (may_repeat || balance::cannot_have_arrived(what)) &&
         retries < settings.attempts;
}

auto is_idempotent(wire::method method) noexcept -> bool {
  switch (method) {
    case wire::method::get:
    case wire::method::head:
    case wire::method::put:
    case wire::method::delete_:
    case wire::method::options:
    case wire::method::trace: return true;
    default: return false;
  }
}

void forward_phase::reset() noexcept {
  upstream_ = nullptr;
  may_repeat_ = false;
  keeps_body_ = false;
  head_sent_ = false;
  was_stale_ = false;
  was_refused_ = false;
  wait_until_.reset();
  tries_ = 0;
  octets_missing_ = 0;
  base_path_octets_ = 0;
  failed_.clear();
}

void forward_phase::start(request_context const& context, std::uint64_t octets_at_hand) {
  auto const& request = *context.head;
  may_repeat_ = is_idempotent(context.method);
  if (request.body().kind == wire::body_kind::none) [[likely]] {
    send(false);
    return;
  }
  keeps_body_ = may_repeat_ = may_repeat_ && worker_.may_hold_bodies();
  if (is_held(worker_, request, octets_at_hand)) {
    octets_missing_ = request.body().length;
    owner_.count_held();
    return;
  }
  send(false);
}

void forward_phase::send(bool fresh) {
  auto& context = owner_.context();
  auto& pool = *context.route->pool;
  if (++tries_ == 1) {
    pool.count_request();
  }
  connection_options options{.fresh = fresh};
  if (tries_ > 1 || wait_until_ || context.server_hash) [[unlikely]] {
    options.has_waited = wait_until_.has_value();
    options.server = {.hash = context.server_hash, .avoid = failed_.ids()};
  }
  auto const taken = pool.take(options);
  server_ = pool.last_server();
  if (!taken && taken.error() == upstream_failure::busy) [[unlikely]] {
    bool const is_next = wait_until_.has_value();  // it has waited before
    if (!is_next) {
      wait_until_ = pool.limit().may_wait_until();
    }
    if (wait_until_ && worker_.loop.now() < *wait_until_) {
      --tries_;
      wait_for(pool.limit(), *wait_until_, is_next);
      owner_.count_held();
      return;
    }
  }
  if (!taken) {
    upstream_failed(taken.error(), {});
    return;
  }
  upstream_ = *taken;
  auto const& server = upstream_->server().server->identity;
  if (!server.base_path.empty() || base_path_octets_ != 0) [[unlikely]] {
    put_base_path(request_, server.base_path, base_path_octets_);
  }
  owner_.log().set_server(server.authority);
  upstream_->start(*this, context.method, request_);
  if (!may_repeat_ && request_.capacity() > kept_octets_max) {
    std::string().swap(request_);  // with its body, which the connection has now
  }
}

void forward_phase::body(std::string_view bytes, std::uint64_t content_octets, bool last) {
  if (octets_missing_ == 0) {
    if (keeps_body_ || is_paused()) {
      request_.append(bytes);
      if (keeps_body_ && owner_.context().request_octets > held_body_octets_max && !is_paused()) {
        keeps_body_ = may_repeat_ = false;  // too long to be sent again
        std::string().swap(request_);
      }
      owner_.count_held();
    }
    if (upstream_ != nullptr) {
      upstream_->send(bytes);
    }
    return;
  }
  request_.append(bytes);
  octets_missing_ -= std::min(octets_missing_, content_octets);
  if (octets_missing_ > 0 && !last) {
    owner_.count_held();
    if (worker_.may_hold_bodies()) {
      return;
    }
  }
  octets_missing_ = 0;
  owner_.count_held();
  send(false);
}

void forward_phase::resume() {
  if (upstream_ != nullptr) {
    upstream_->resume();
  }
}

void forward_phase::abandon() {
  end_pause();
  if (upstream_ != nullptr) {
    std::exchange(upstream_, nullptr)->abandon();
  }
}

void forward_phase::end() noexcept {
  if (octets_missing_ == 0 && !keeps_body_ && !is_paused()) [[likely]] {
    return;
  }
  octets_missing_ = 0;  // it was never sent
  keeps_body_ = false;
  end_pause();
  std::string().swap(request_);
}

// ---- the answer ----

void forward_phase::prefetch() const noexcept {
  owner_.prefetch();
}

auto forward_phase::answer_timeout(std::chrono::nanoseconds of_upstream) const
    -> std::chrono::nanoseconds {
  return owner_.context().route_settings().settings->timeout.value_or(of_upstream);
}

void forward_phase::upstream_interim(wire::response_head const& head) {
  auto const& context = owner_.context();
  owner_.client()->send_interim(head,
                                dropped_of(context, context.route_settings().fields_made_anew));
}

void forward_phase::upstream_head(wire::response_head const& head) {
  if (head.status() >= 502 && head.status() <= 504 && asks_again(head.status())) [[unlikely]] {
    return;
  }
  owner_.take_head(head);
}

auto forward_phase::wants_upgrade() const -> bool {
  return owner_.context().terms.upgrades;
}

auto forward_phase::upstream_upgraded(wire::response_head const& head) -> bool {
  auto* const from = std::exchange(upstream_, nullptr);
  if (owner_.take_upgrade(head, *from)) {
    return true;  // the exchange may serve another request by now
  }
  upstream_ = from;
  return false;
}

auto forward_phase::asks_again(int status) -> bool {
  auto const& retry = owner_.context().route->pool->target().settings->retry;
  if (!retry.has(status)) {
    return false;
  }
  auto const what = status == 502   ? balance::retry_cause::status_502
                    : status == 503 ? balance::retry_cause::status_503
                                    : balance::retry_cause::status_504;
  auto* const answered = std::exchange(upstream_, nullptr);
  failed_.add(server_);
  if (try_again(what)) {
    answered->abandon();
    return true;
  }
  upstream_ = answered;
  return false;
}

auto forward_phase::try_again(balance::retry_cause what) -> bool {
  auto& pool = *owner_.context().route->pool;
  auto const& settings = pool.target().settings->retry;
  auto const retries = tries_ - 1 - (was_stale_ ? 1 : 0);
  if (!is_worth_a_retry(what, may_repeat_, retries, settings) || !pool.may_retry()) {
    return false;
  }
  was_refused_ = what == balance::retry_cause::refused_stream;
  if (balance::cannot_have_arrived(what) && pool.has_server_besides(failed_.ids())) {
    send(false);  // another one may take it at once
    return true;
  }
  pause_for(balance::backoff_before(retries + 1, settings.backoff, worker_.random()));
  owner_.count_held();
  return true;
}

void forward_phase::pause_ended(bool is_late) {
  if (is_late) {
    upstream_failed(upstream_failure::busy, {});
    return;
  }
  bool const was_full = request_.size() > held_body_octets_max;
  send(was_refused_);  // not on the connection that did so
  if (was_full && upstream_ != nullptr) {
    owner_.client()->resume();
  }
}

void forward_phase::upstream_body(std::string_view bytes, std::uint64_t content_octets) {
  owner_.take_body(bytes, content_octets);
}

void forward_phase::upstream_done(std::string_view trailers) {
  upstream_ = nullptr;
  owner_.take_end(trailers);
}

void forward_phase::upstream_failed(upstream_failure why, std::string unsent) {
  bool const was_started = std::exchange(upstream_, nullptr) != nullptr;
  if (why == upstream_failure::busy && was_started) {
    // The server takes fewer requests by that connection than were thought: it was not sent.
    --tries_;
    request_ = std::move(unsent);
    send(false);
    return;
  }
  auto& context = owner_.context();
  context.reason = reason_of(why);
  if (head_sent_) {
    owner_.finish({.is_cut = true});
    return;
  }
  owner_.drop_answer();
  // What was given to a connection is not here any more, unless there is no body.
  bool const is_there = may_repeat_ || !was_started || !unsent.empty();
  if (was_not_sent(why) && !unsent.empty()) {
    request_ = std::move(unsent);
  }
  if (is_there) {
    if (why == upstream_failure::closed_unanswered && may_repeat_ &&
        !std::exchange(was_stale_, true)) {
      send(true);  // the server had just closed a connection that rested, which costs no retry
      return;
    }
    if (auto const what = cause_of(why)) {
      failed_.add(server_);
      if (try_again(*what)) {
        return;
      }
    }
  }
  if (was_not_asked(why)) {
    tries_ = 0;
  }
  context.reply = failure_reply(why, owner_.texts());
  owner_.respond();
}

void forward_phase::upstream_resumed() {
  owner_.client()->resume();
}

void forward_phase::flush_client() {
  owner_.client()->flush();
}

auto forward_phase::wants_framing() const -> bool {
  return owner_.wants_framing();
}

auto forward_phase::request_done() const -> bool {
  return owner_.request_done();
}

auto forward_phase::client_is_full() const -> bool {
  return owner_.client()->is_above_high_watermark();
}

}  // namespace tidegate::gateway
