// SPDX-License-Identifier: Apache-2.0
#include "phases/key/key_dispatch.hpp"

#include "phases/exchange.hpp"
#include "request/forwarded_head.hpp"
#include "request/reply_edits.hpp"

#include <tidegate/base/fail_point.hpp>
#include <tidegate/http/date.hpp>
#include <tidegate/proxy/route_edge.hpp>

namespace tidegate::gateway {

namespace {

using idempotency::body_part;
using idempotency::stage;
using idempotency::upstream_fault;
using wire::known_field;

[[nodiscard]] auto fault_of(upstream_failure why) -> upstream_fault {
  switch (why) {
    case upstream_failure::connect_refused:
    case upstream_failure::connect_timeout: return upstream_fault::not_connected;
    case upstream_failure::no_descriptor:
    case upstream_failure::busy:
    case upstream_failure::no_server: return upstream_fault::no_connection;
    case upstream_failure::refused_stream: return upstream_fault::refused;
    case upstream_failure::closed_unanswered: return upstream_fault::stale;
    case upstream_failure::timeout:
    case upstream_failure::idle: return upstream_fault::timed_out;
    default: return upstream_fault::closed;
  }
}

/// Complete lines, each `name: value`.
[[nodiscard]] auto fields_of(std::string_view lines) -> std::vector<http::field> {
  std::vector<http::field> fields;
  while (!lines.empty()) {
    auto const line = lines.substr(0, lines.find("\r\n"));
    auto const colon = line.find(": ");
    fields.push_back({std::string(line.substr(0, colon)), std::string(line.substr(colon + 2))});
    lines.remove_prefix(line.size() + 2);
  }
  return fields;
}

}  // namespace

auto kept_answer::lines(bool is_protected) const -> response_lines {
  return {.fields = fields,
          .has_date = true,
          .limit_lines = limit_lines,
          .more = is_protected ? "" : "Idempotency-Status: bypassed\r\n"};
}

void key_dispatch::connect(bool fresh) {
  auto& pool = *route_.pool;
  auto const retry = connects_++;
  if (retry == 0) {
    pool.count_request();
  } else if (failure_ != upstream_failure::closed_unanswered) {
    if (!pool.may_retry()) {
      phase_.perform(
          phase_.run().upstream_failed(upstream_fault::no_connection, worker_.key_time()));
      return;
    }
    if (!pool.has_server_besides(failed_.ids())) {
      pause_for(
          balance::backoff_before(retry, pool.target().settings->retry.backoff, worker_.random()));
      return;
    }
  }
  take_connection(fresh);
}

void key_dispatch::take_connection(bool fresh) {
  auto const taken = route_.pool->take(
      {.fresh = fresh,
       .has_waited = wait_until_.has_value(),
       .server = {.hash = phase_.owner()->context().server_hash, .avoid = failed_.ids()}});
  server_ = route_.pool->last_server();
  if (!taken && taken.error() == upstream_failure::busy) {
    bool const is_next = wait_until_.has_value();  // it has waited before
    if (!is_next) {
      wait_until_ = route_.pool->limit().may_wait_until();
    }
    if (wait_until_ && worker_.loop.now() < *wait_until_) {
      wait_for(route_.pool->limit(), *wait_until_, is_next);
      return;
    }
  }
  if (!taken) {
    upstream_failed(taken.error(), {});
    return;
  }
  upstream_ = *taken;
  phase_.owner()->log().set_server(upstream_->server().server->identity.authority);
  upstream_->start(*this, head_.method, {});
  if (upstream_ != nullptr && upstream_->is_connected()) {
    upstream_connected();
  }
}

void key_dispatch::pause_ended(bool is_late) {
  auto const self = phase_.shared_from_this();  // it may end in this call
  if (is_late || phase_.owner() == nullptr) {
    upstream_failed(upstream_failure::busy, {});
  } else {
    take_connection(false);
  }
}

void key_dispatch::upstream_connected() {
  phase_.perform(phase_.run().connected(worker_.key_time()));
}

void key_dispatch::send(std::uint32_t attempt) {
  if (head_.service) {
    ask_service();
    return;
  }
  if (attempt != 0) {
    head_.lines.append("Idempotency-Attempt: ").append(std::to_string(attempt)).append("\r\n");
  }
  head_.lines.append("\r\n");
  if (auto const& path = upstream_->server().server->identity.base_path; !path.empty()) {
    std::size_t none = 0;
    put_base_path(head_.lines, path, none);
  }
  upstream_->await_answer();
  send_content();
  fail_point("request_sent");
}

void key_dispatch::send_content() {
  while (upstream_ != nullptr && !content_.is_taken() && !upstream_->is_above_high_watermark()) {
    auto bytes = std::exchange(head_.lines, {});  // in one write with the first piece
    if (!content_.take_piece(bytes)) {
      // The disk does not give back what it took: the request cannot be completed.
      drop();
      phase_.perform(
          phase_.run().upstream_failed(upstream_fault::content_lost, worker_.key_time()));
      return;
    }
    upstream_->send(bytes);
    fail_point("request_begun");
  }
}

void key_dispatch::upstream_resumed() {
  auto const at = phase_.run().at();
  if (at == stage::running || at == stage::recording || at == stage::streaming) {
    send_content();
  }
}

void key_dispatch::resume() {
  send_content();
  if (phase_.run().at() == stage::streaming && upstream_ != nullptr) {
    upstream_->resume();
  }
}

void key_dispatch::drop() {
  end_pause();
  if (upstream_ != nullptr) {
    std::exchange(upstream_, nullptr)->abandon();
  }
}

void key_dispatch::upstream_failed(upstream_failure why, std::string /*unsent*/) {
  auto const self = phase_.shared_from_this();  // it may end in this call
  bool const was_started = std::exchange(upstream_, nullptr) != nullptr;
  if (why == upstream_failure::busy && was_started) {
    // The server takes fewer requests by that connection than were thought: it was not sent.
    take_connection(false);
    return;
  }
  failure_ = why;
  if (was_not_sent(why)) {
    failed_.add(server_);
  }
  if (phase_.owner() != nullptr) {
    phase_.owner()->context().reason = reason_of(why);
  }
  phase_.perform(phase_.run().upstream_failed(fault_of(why), worker_.key_time()));
}

/// A client that waited long enough has its answer; that of the upstream is still waited for (R5).
auto key_dispatch::upstream_is_late() -> std::optional<std::chrono::nanoseconds> {
  auto const now = worker_.loop.now();
  if (auto const late = phase_.run().answer_late();
      late.kind == idempotency::action_kind::report_late) {
    late_until_ = now + phase_.settings().max_execution;
    phase_.perform(late);
  }
  return now < late_until_ ? std::optional(late_until_ - now) : std::nullopt;
}

// ---- the answer ----

void key_dispatch::upstream_interim(wire::response_head const& head) {
  if (head.status() != 100) {
    // A client that does not take them loses some: the request runs whatever the client does.
    auto* const client = phase_.owner()->client();
    if (client != nullptr && !client->is_above_high_watermark()) {
      client->send_interim(head,
                           dropped_of(phase_.owner()->context(), route_.route->fields_made_anew));
    }
  }
}

void key_dispatch::upstream_head(wire::response_head const& head) {
  auto const self = phase_.shared_from_this();  // the exchange may let go of it
  if (phase_.run().at() != stage::running) {    // nothing was sent
    drop();
    phase_.perform(phase_.run().upstream_failed(upstream_fault::closed, worker_.key_time()));
    return;
  }
  answer_.status = static_cast<std::uint16_t>(head.status());
  // Of the answer its content is passed on and kept, with the trailers that come.
  auto const drop = route_.route->fields_made_anew | wire::field_set{known_field::trailer};
  // What pages may read is said to each client by its own origin, to those of a replay too.
  bool const has_cors = route_.route->edge && route_.route->edge->cors;
  for (auto const& field : head.fields()) {
    bool const is_framing =
        field.known == known_field::content_length || wire::is_of_connection(head, field);
    bool const is_ours = has_cors && is_access_control(field.name);
    if (!is_framing && !is_ours && !drop.contains(field.known)) {
      answer_.fields.push_back({std::string(field.name), std::string(field.value)});
    }
  }
  if (head.body().kind == wire::body_kind::content_length) {
    answer_.declared_length = head.body().length;
  }
  begin_answer(&head);
}

/// `head` is null for an answer of our own.
void key_dispatch::begin_answer(wire::response_head const* head) {
  fail_point("answer_begun");
  if (head == nullptr || !head->has(known_field::date)) {
    std::string date;
    http::append_http_date(date, worker_.wall_clock());
    answer_.fields.push_back({"Date", std::move(date)});
  }
  phase_.owner()->answer_began(answer_.status, head, answer_.limit_lines);
  auto const passed_on = answer_.fields.size();
  for (auto const& field : head != nullptr ? head->fields() : std::span<wire::field_view const>()) {
    if (field.known == known_field::connection) {  // what it names is not kept
      answer_.fields.push_back({std::string(field.name), std::string(field.value)});
    }
  }
  phase_.run().answer_head(answer_.status, answer_.fields);
  answer_.fields.resize(passed_on);
}

void key_dispatch::upstream_body(std::string_view bytes, std::uint64_t /*content_octets*/) {
  auto const self = phase_.shared_from_this();
  if (phase_.run().at() == stage::streaming) {
    phase_.owner()->take_body(bytes, bytes.size());
    return;
  }
  answer_.body.append(bytes);
  phase_.owner()->count_held();
  phase_.perform(phase_.run().answer_body(bytes, body_part::more, worker_.key_time()));
}

void key_dispatch::upstream_done(std::string_view trailers) {
  auto const self = phase_.shared_from_this();
  upstream_ = nullptr;
  if (!trailers.empty()) {
    answer_.trailers = trailers;
    phase_.run().answer_trailers(fields_of(trailers));
  }
  if (phase_.run().at() == stage::running) {
    fail_point("answer_complete");
  }
  phase_.perform(phase_.run().answer_body({}, body_part::last, worker_.key_time()));
}

auto key_dispatch::client_is_full() const -> bool {
  auto const at = phase_.run().at();
  if (at != stage::streaming) {
    return at == stage::recording;
  }
  auto const* const client = phase_.owner()->client();
  return client != nullptr && client->is_above_high_watermark();
}

void key_dispatch::flush_client() {
  if (phase_.run().at() == stage::streaming) {
    if (auto* const client = phase_.owner()->client()) {
      client->flush();
    }
  }
}

// ---- a service of our own ----

void key_dispatch::ask_service() {
  auto& request = *head_.service;
  if (!content_.read_all(request.content)) {
    phase_.perform(phase_.run().upstream_failed(upstream_fault::content_lost, worker_.key_time()));
    return;
  }
  worker_.shared.scim->handle(
      std::move(request), false,
      engine::on_loop(worker_.loop, [this, phase = phase_.weak_from_this()](scim_answer answer) {
        if (auto const self = phase.lock()) {  // of which this is a part
          service_answered(std::move(answer));
        }
      }));
  fail_point("request_sent");
}

void key_dispatch::service_answered(scim_answer answer) {
  if (phase_.run().at() != stage::running) {
    return;
  }
  answer_.status = static_cast<std::uint16_t>(answer.status);
  answer_.fields = std::move(answer.fields);
  answer_.declared_length = answer.content_begin.size() + answer.content.size();
  begin_answer(nullptr);
  answer_.body = std::move(answer.content_begin);
  answer_.body.append(answer.content);
  fail_point("answer_complete");
  phase_.perform(phase_.run().answer_body(
      answer_.body, answer.was_not_run ? body_part::last_not_run : body_part::last,
      worker_.key_time()));
}

}  // namespace tidegate::gateway
