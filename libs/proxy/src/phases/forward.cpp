// SPDX-License-Identifier: Apache-2.0
#include "phases/forward.hpp"

#include "phases/exchange.hpp"

namespace tidegate::gateway {

namespace {

/// A body of this length is held until it is whole; a longer one passes through as it comes.
constexpr std::uint64_t held_body_octets_max = 64 * 1024;
/// What may be kept for the next request of the buffer that requests are written to.
constexpr std::size_t kept_octets_max = 16 * 1024;

/// Whether the body is waited for, of which `at_hand` octets have come.
[[nodiscard]] auto is_held(wire::request_head const& request, std::uint64_t at_hand) -> bool {
  auto const body = request.body();
  return body.kind == wire::body_kind::content_length && body.length > at_hand &&
         body.length <= held_body_octets_max && !request.has(wire::known_field::expect);
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
    case upstream_failure::no_descriptor: {
      auto reply = problem_reply(texts, reason_of(why), 503, "Service Unavailable",
                                 "This gateway has no free connection to the service behind it.");
      reply.retry_after = std::chrono::seconds(1);
      return reply;
    }
    default:
      return problem_reply(texts, reason_of(why), 502, "Bad Gateway",
                           "The service behind this gateway cannot be reached.");
  }
}

auto was_not_sent(upstream_failure why) noexcept -> bool {
  return why == upstream_failure::connect_refused || why == upstream_failure::connect_timeout ||
         why == upstream_failure::refused_stream;
}

auto is_worth_a_retry(upstream_failure why, bool may_repeat, std::int64_t tries,
                      std::int64_t retries) noexcept -> bool {
  bool const is_stale = why == upstream_failure::closed_unanswered;
  bool const may_help = was_not_sent(why) || is_stale || why == upstream_failure::closed;
  // A connection that the server had just closed costs no try; else only as often as allowed.
  return (may_repeat || was_not_sent(why)) && may_help && tries < retries + 1 + (is_stale ? 1 : 0);
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
  head_sent_ = false;
  tries_ = 0;
  octets_missing_ = 0;
}

void forward_phase::start(request_context const& context, std::uint64_t octets_at_hand) {
  auto const& request = *context.head;
  may_repeat_ = request.body().kind == wire::body_kind::none && is_idempotent(context.method);
  if (is_held(request, octets_at_hand) && worker_.may_hold_bodies()) {
    octets_missing_ = request.body().length;
    owner_.count_held();
    return;
  }
  send(false);
}

void forward_phase::start_whole() {
  send(false);
}

void forward_phase::send(bool fresh) {
  ++tries_;
  auto& pool = *owner_.context().route->pool;
  auto const taken = pool.take(fresh);
  if (!taken) {
    upstream_failed(taken.error(), {});
    return;
  }
  upstream_ = *taken;
  owner_.log().set_server(pool.target().servers[upstream_->server()].authority);
  upstream_->start(*this, owner_.context().method, request_);
  if (!may_repeat_ && request_.capacity() > kept_octets_max) {
    std::string().swap(request_);  // with its body, which the connection has now
  }
}

void forward_phase::body(std::string_view bytes, std::uint64_t content_octets, bool last) {
  if (octets_missing_ == 0) {
    upstream_->send(bytes);
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
  upstream_->resume();
}

void forward_phase::abandon() {
  if (upstream_ != nullptr) {
    std::exchange(upstream_, nullptr)->abandon();
  }
}

void forward_phase::end() noexcept {
  if (std::exchange(octets_missing_, 0) > 0) {  // it was never sent
    std::string().swap(request_);
  }
}

// ---- the answer ----

void forward_phase::prefetch() const noexcept {
  owner_.prefetch();
}

void forward_phase::upstream_interim(wire::response_head const& head) {
  owner_.client()->send_interim(head);
}

void forward_phase::upstream_head(wire::response_head const& head) {
  owner_.take_head(head);
}

auto forward_phase::upstream_upgraded(wire::response_head const& head) -> bool {
  auto* const from = std::exchange(upstream_, nullptr);
  if (owner_.take_upgrade(head, *from)) {
    return true;  // the exchange may serve another request by now
  }
  upstream_ = from;
  return false;
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
  if (is_there &&
      is_worth_a_retry(why, may_repeat_, tries_, context.route->pool->target().settings->retries)) {
    send(why == upstream_failure::closed_unanswered || why == upstream_failure::refused_stream);
    return;
  }
  if (why == upstream_failure::no_descriptor) {
    tries_ = 0;  // the service was not asked
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
