// SPDX-License-Identifier: Apache-2.0
//
// What an exchange sends to its client, and how it ends.
#include "phases/edge/cors.hpp"
#include "phases/exchange_pool.hpp"
#include "phases/tunnel/tunnel.hpp"
#include "phases/tunnel/upgrade.hpp"
#include "request/key_replies.hpp"
#include "request/reply_edits.hpp"
#include "request/websocket_handshake.hpp"
#include "services/wall_clock.hpp"

#include <tidegate/proxy/route_edge.hpp>

#include <new>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;
using wire::known_field;

/// `Trailer` of a response without the names of those that do not go on.
void append_trailer_names(std::string& lines, std::span<std::string_view const> values) {
  std::string names;
  for (auto rest : values) {
    while (!rest.empty()) {
      auto const name = http::take_element(rest);
      if (!name.empty() && wire::is_forwarded_trailer({{name, ""}, wire::find_known_field(name)})) {
        names.append(names.empty() ? "" : ", ").append(name);
      }
    }
  }
  if (!names.empty()) {
    wire::append_field(lines, "Trailer", names);
  }
}

}  // namespace

// ---- the answer of an upstream ----

void exchange::answer_began(int status, wire::response_head const* head, std::string& limit_lines) {
  context_.status = status;
  context_.reason = {};
  context_.answered_at = worker_.loop.now();
  quota_.append_fields(limit_lines, context_, quotas_, head, status);
}

void exchange::take_head(wire::response_head const& head) {
  auto const& made_again = context_.route_settings().fields_made_anew;
  if (bridge_) [[unlikely]] {
    if (bridge_->takes_answer(head, made_again)) {
      answer_began(head.status(), &head, bridge_->limit_lines());
      return;
    }
    bridge_.reset();
  }
  if (request_.is_connect && head.status() < 300) [[unlikely]] {
    // To an extended CONNECT it would say that the tunnel is open.
    forward_.abandon();
    context_.reply = problem_reply(texts(), "upstream-no-upgrade", 502, "Bad Gateway",
                                   "The service behind this gateway answered a request for a "
                                   "WebSocket with a plain response.");
    respond();
    return;
  }
  context_.status = head.status();
  context_.reason = {};
  context_.answered_at = worker_.loop.now();
  auto drop = made_again;
  auto& trailers = worker_.reply_lines;
  trailers.clear();
  if (head.has(known_field::trailer)) [[unlikely]] {
    drop |= {known_field::trailer};
    if (client_->protocol() != "HTTP/1.0") {  // which has no trailers
      append_trailer_names(trailers, lines_of(head, known_field::trailer, worker_.lines));
    }
  }
  if (!context_.terms.cors.empty() && has_access_control(head)) [[unlikely]] {
    drop |= {known_field::other};
    append_others_without_cors(trailers, head);
  }
  auto& lines = worker_.field_lines;
  write_lines(lines, context_.status, {.upstream = &head, .more = trailers});
  forward_.head_is_sent();
  client_->send_head(head, dropped_of(context_, drop), lines);
}

void exchange::take_body(std::string_view bytes, std::uint64_t content_octets) {
  if (bridge_) {
    if (auto const taken = bridge_->take_body(bytes); !taken) {
      forward_.abandon();
      bridge_->drop_answer();
      respond(scim_error_answer(taken.error()));
    } else {
      count_held();
    }
    return;
  }
  context_.response_octets += content_octets;
  if (client_ != nullptr) {
    client_->send_body(bytes);
  }
}

void exchange::take_end(std::string_view trailers) {
  if (!bridge_) {
    finish({.trailers = trailers});
    return;
  }
  respond(bridge_->finish(wall_clock_now()));
}

auto exchange::take_upgrade(wire::response_head const& head, upstream_stream& from) -> bool {
  if (!context_.terms.upgrades || !is_websocket(head)) {
    return false;
  }
  if (request_.is_connect &&
      only_value_of(head, "sec-websocket-accept") != websocket_accept_of(request_.websocket_key)) {
    return false;
  }
  auto const now = worker_.loop.now();
  context_.status = head.status();
  context_.reason = {};
  context_.answered_at = now;
  context_.terms.cors = {};  // browsers take a WebSocket for what its server says
  auto& lines = worker_.field_lines;
  write_lines(lines, context_.status, {.upstream = &head});
  auto made = std::make_unique<tunnel>(worker_, *client_, from);
  if (log_.is_on()) {
    quota_.append_decision(log_.line(), context_);
  }
  auto charges = quota_.detach_charges(context_);
  made->start(
      {std::exchange(config_, nullptr), context_, std::move(charges), std::exchange(log_, {})});
  overload_.leave(context_, true, now);
  context_.route->counts->count(context_.status, now - context_.begun);
  std::exchange(client_, nullptr)
      ->begin_tunnel(std::move(made), head,
                     dropped_of(context_, context_.route_settings().fields_made_anew), lines);
  return true;
}

void exchange::drop_answer() {
  if (bridge_) {
    bridge_->drop_answer();
  }
}

// ---- responses ----

void exchange::write_lines(std::string& out, int status, response_lines const& of) {
  out.clear();
  bool const has_date =
      of.has_date || (of.upstream != nullptr && of.upstream->has(known_field::date));
  if (!has_date) {
    wire::append_parts(out, worker_.date_line());
  }
  bool const has_cors = !context_.terms.cors.empty();
  for (auto const& field : of.fields) {
    bool const is_left_out =
        (of.is_replay && is_stale(field)) || (has_cors && is_access_control(field.name));
    if (!is_left_out) {
      wire::append_field(out, field.name, std::string_view(field.value));
    }
  }
  if (of.limit_lines) {
    out.append(*of.limit_lines);
  } else {
    quota_.append_fields(out, context_, quotas_, of.upstream, status, of.has_resets);
  }
  if (of.retry_after > 0ns) {
    wire::append_parts(
        out, "Retry-After: ", static_cast<std::uint64_t>(ratelimit::seconds_until(of.retry_after)),
        "\r\n");
  }
  if (of.is_replay) {
    out.append("Idempotent-Replayed: true\r\n");
  }
  if (!of.more.empty()) {
    out.append(of.more);
  }
  if (auto const* const edge = edge_of(context_)) [[unlikely]] {
    edge->response_to(context_.terms.is_https).apply(out);
  }
  if (has_cors) [[unlikely]] {
    wire::append_parts(out, context_.terms.cors.origin, context_.terms.cors.rest);
  }
}

void exchange::send_own_head(int status, response_lines const& of,
                             std::optional<std::uint64_t> length) {
  if (client_ != nullptr) {
    write_lines(worker_.field_lines, status, of);
    client_->send_own_head(status, worker_.field_lines, length);
  }
}

namespace {

[[nodiscard]] auto lines_of(local_reply const& reply) -> response_lines {
  return {
      .has_resets = reply.has_resets, .retry_after = reply.retry_after, .more = reply.field_lines};
}

}  // namespace

/// A refusal of ours is told to clients of gRPC as they understand it.
void exchange::write_reply(std::string& out, local_reply& reply) {
  auto const status = reply.status;
  if (context_.grpc != grpc_kind::none && !reply.is_service) [[unlikely]] {
    become_grpc(reply, context_.grpc, worker_.grpc_lines);
  }
  if (auto const* const edge = edge_of(context_)) [[unlikely]] {
    leave_type_to(edge->response, reply);
  }
  write_lines(out, status, lines_of(reply));
}

/// A call of gRPC ends by trailers, where its head was sent.
void exchange::deadline_passed() {
  bool const is_begun =
      keyed_ ? keyed_->run().at() == idempotency::stage::streaming : forward_.has_sent_head();
  if (!is_begun) {
    context_.reply = deadline_reply(texts());
    if (!keyed_) {
      forward_.abandon();
      respond();
      return;
    }
    respond_early();
  } else if (!keyed_) {
    forward_.abandon();
    context_.reason = "deadline";
    auto& trailers = worker_.reply_lines;
    trailers.clear();
    append_grpc_end(trailers, grpc_status_of(504), "The call took longer than its grpc-timeout.");
    finish({.is_cut = client_->protocol() != "HTTP/2", .trailers = trailers});
    return;
  } else if (client_ != nullptr) {
    std::exchange(client_, nullptr)->send_end({.is_cut = true});
  }
  // What has a key goes on without its client.
  if (auto const keyed = keyed_; keyed && keyed->client_has_gone()) {
    finish({});
  }
}

void exchange::respond() {
  auto& reply = *context_.reply;
  context_.status = reply.status;
  context_.reason = reply.reason;
  auto const keyed = std::exchange(keyed_, nullptr);
  if (keyed) {
    keyed->refused();
  }
  if (client_ == nullptr) {
    finish({});
    return;
  }
  reply.closes = reply.status == 413;  // the rest of the content is not waited for
  auto& lines = worker_.field_lines;
  write_reply(lines, reply);
  if (reply.is_service) {
    context_.response_octets = reply.content.size();
  }
  auto* const client = close(reply.is_service ? 0 : reply.content.size());
  if (reply.owner) [[unlikely]] {  // an exchange that rests keeps no configuration
    client->send_whole(local_reply(std::move(reply)), lines);
  } else {
    client->send_whole(reply, lines);
  }
}

void exchange::respond_early() {
  auto reply = *std::exchange(context_.reply, std::nullopt);
  context_.status = reply.status;
  context_.reason = reply.reason;
  if (client_ == nullptr) {
    return;
  }
  early_ = {reply.status, reply.content.size(), reply.reason};
  reply.closes = reply.status == 413;
  auto& lines = worker_.field_lines;
  write_reply(lines, reply);
  std::exchange(client_, nullptr)->send_whole(reply, lines);
}

void exchange::respond(kept_response const& response) {
  context_.status = response.status;
  auto const size = response.content_begin.size() + response.content.size();
  context_.response_octets = size;
  auto const keyed = std::exchange(keyed_, nullptr);
  if (client_ == nullptr) {
    finish({});
    return;
  }
  auto& lines = worker_.field_lines;
  write_lines(lines, response.status, response.lines);
  if (context_.method == wire::method::head) {
    context_.response_octets = 0;
    auto* const client = close();
    client->send_own_head(response.status, lines, size);
    client->send_end({});
    return;
  }
  auto* const client = close();
  if (!response.trailers.empty()) {
    client->send_own_head(response.status, lines, std::nullopt);
    client->send_body(response.content_begin);
    client->send_body(response.content);
    client->send_end({.trailers = response.trailers});
    return;
  }
  client->send_whole({.status = response.status,
                      .content_type = {},
                      .content_begin = response.content_begin,
                      .content = response.content,
                      .closes = response.closes,
                      .owner = response.owner},
                     lines);
}

void exchange::respond(scim_answer answer) {
  std::shared_ptr<std::string const> kept;
  if (answer.content.size() >= large_octets_min) {
    kept = std::make_shared<std::string const>(std::move(answer.content));
  }
  auto const bridge = std::exchange(bridge_, nullptr);
  scim_.reset();
  kept_response response{.status = answer.status,
                         .lines = {.fields = answer.fields},
                         .content_begin = answer.content_begin,
                         .content = kept ? *kept : answer.content,
                         .owner = kept,
                         .closes = answer.status == 413};
  if (bridge && !bridge->limit_lines().empty()) {
    response.lines.limit_lines = bridge->limit_lines();
  }
  respond(response);
}

void exchange::finish(response_end const& how) {
  auto& on = worker_;
  auto const keyed = std::exchange(keyed_, nullptr);
  if (client_ == nullptr && context_.status == 0) {
    context_.status = status_client_closed;
    context_.reason = "client-gone";
  }
  if (auto* const client = close()) {
    client->send_end(how);
  } else {
    on.exchanges->reclaim(*this);
  }
}

auto exchange::close(std::size_t local_octets) -> client_stream* {
  if (log_.is_on()) {
    try {
      quota_.append_decision(log_.line(), context_);
      worker_.write_log(log_.finish(context_, early_, local_octets));
    } catch (std::bad_alloc const&) {  // the client must still be let go
    }
    log_.reset();
  }
  context_.terms.cors = {};  // it is of the configuration that is released
  context_.consumer.reset();
  bridge_.reset();
  scim_.reset();
  held_.reset();
  if (question_) {
    std::exchange(question_, nullptr)->owner = nullptr;  // what is spent meanwhile is released
  }
  forward_.end();
  call_.end();
  worker_.count_buffered(counted_, 0);
  try {
    quota_.settle(context_, quotas_, worker_.loop.now());
  } catch (std::bad_alloc const&) {  // a store of quotas is not told what is released
  }
  overload_.leave(context_, forward_.tries() > 0, worker_.loop.now());
  if (context_.route != nullptr) {
    context_.route->counts->count(early_.status != 0 ? early_.status : context_.status,
                                  worker_.loop.now() - context_.begun);
  }
  if (scim_operation_ != scim_operation::none) {
    worker_.metrics->scim[static_cast<std::size_t>(scim_operation_)].add(
        static_cast<std::size_t>(std::clamp(context_.status, 0, 599)));
  }
  worker_.release(*std::exchange(config_, nullptr));
  return std::exchange(client_, nullptr);
}

}  // namespace tidegate::gateway
