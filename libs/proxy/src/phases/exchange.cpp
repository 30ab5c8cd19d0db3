// SPDX-License-Identifier: Apache-2.0
#include "phases/exchange.hpp"

#include "phases/authorize.hpp"
#include "phases/echo.hpp"
#include "phases/edge/enter.hpp"
#include "phases/edge/redirect.hpp"
#include "phases/edge/respond.hpp"
#include "phases/max_forwards.hpp"
#include "phases/select.hpp"
#include "phases/tunnel/upgrade.hpp"
#include "request/key_replies.hpp"
#include "request/scim_request_of.hpp"
#include "request/websocket_handshake.hpp"
#include "services/wall_clock.hpp"

#include <tidegate/http/accept.hpp>

#include <new>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;
using wire::known_field;

/// What a request takes that waits for its client to read, with its stream, texts and tables.
constexpr std::size_t waiting_octets_of_one = sizeof(exchange) + 2048;
/// A turn of a loop that has lasted longer than this leaves reads of the directory to its threads.
constexpr std::chrono::milliseconds turn_time_max{4};

[[nodiscard]] auto repeated_reply(reply_texts texts, value_scratch const& values) -> local_reply {
  auto const detail = "The request has " + to_string(*values.repeated) +
                      " more than once, and servers do not agree on which one counts.";
  return problem_reply(texts, "value-repeated", 400, "Bad Request", detail);
}

/// Of the value by which a server is chosen; nothing when the request has none.
[[nodiscard]] auto hash_of(ratelimit::partition_source const& source,
                           request_context const& context, value_scratch& room)
    -> std::optional<std::uint64_t> {
  auto const field = source.kind == ratelimit::partition_source_kind::header
                         ? wire::find_known_field(source.name)
                         : known_field::other;
  auto const value = value_of(source, field, context, room);
  return value.empty() ? std::nullopt : std::optional(balance::hash_of(value));
}

}  // namespace

void exchange::begin(client_stream& client, wire::request_head const& request,
                     client_address const& from, std::uint64_t octets_at_hand) {
  client_ = &client;
  config_ = worker_.current;
  ++config_->users;
  context_ = {.head = &request,
              .from = &from,
              .method = request.method(),
              .active = config_->active.get(),
              .begun = worker_.loop.now(),
              .admitted_at = worker_.loop.now()};
  quota_.reset();
  overload_.reset();
  forward_.reset();
  early_ = {};
  scim_operation_ = scim_operation::none;
  request_.octets_at_hand = octets_at_hand;
  request_.is_done = request.body().kind == wire::body_kind::none;
  request_.is_connect = request.is_extended_connect();
  if (request.has(known_field::content_type) && !request_.is_connect) {
    context_.grpc = grpc_kind_of(request);
  }
  if (auto const& max_body = config_->active->config.http.max_body) {
    context_.terms.body_octets_max = static_cast<std::uint64_t>(*max_body);
  }
  log_.reset();
  if (worker_.log != nullptr) {
    log_.begin(context_, find_client(request, from, *config_->active, worker_.lines),
               client.protocol());
  }
  if (from.redirects_to_https && !is_secure(request, from, *config_->active, worker_.lines))
      [[unlikely]] {
    context_.reply = redirect_to_https(
        request, https_port_of(config_->active->config, worker_.shared.listeners), texts());
    respond();
    return;
  }
  advance(phase::select);
}

/// The life of a request: each phase lets it pass, answers it, or suspends it until a store or an
/// upstream has answered. A suspended request goes on where it stopped.
void exchange::advance(phase from) {
  auto said = step::next;
  switch (from) {
    case phase::select:
      said = select_route(context_, *config_, worker_.path, texts());
      if (context_.route != nullptr && context_.route_settings().edge) [[unlikely]] {
        note_scheme(context_, worker_.lines);
        if (said == step::next) {
          said = enter_edge(context_, worker_.lines, texts());
        }
      }
      if (said != step::next) {
        break;
      }
      if (!context_.route->split.empty()) [[unlikely]] {
        context_.route = &context_.route->chosen_by(worker_.random());
      }
      [[fallthrough]];
    case phase::charges:
      if (!quota_.find_charges(context_, quotas_, worker_.loop.now())) [[unlikely]] {
        context_.reply = repeated_reply(texts(), values_);
        said = step::answered;
        break;
      }
      if (context_.grpc != grpc_kind::none) [[unlikely]] {
        said = call_.enter(context_, worker_);
        if (said != step::next) {
          break;
        }
      }
      [[fallthrough]];
    case phase::key:
      if (context_.route_settings().settings->idempotency) {
        said = enter_key();
        if (said != step::next) {
          break;
        }
      }
      [[fallthrough]];
    case phase::overload:
      if (auto* const pool = context_.route->pool;
          pool != nullptr && context_.handler != handler::unauthorized &&
          !overload_.admits(context_, pool->target().load.get(), worker_.loop.now())) [[unlikely]] {
        quota_.refuse_overloaded(context_, quotas_, worker_.loop.now());
        said = step::answered;
        break;
      }
      [[fallthrough]];
    case phase::quota:
      said = quota_.enter(context_, quotas_, worker_.loop.now());
      if (said == step::suspended) {
        ask_quotas();
      }
      if (said != step::next) {
        break;
      }
      [[fallthrough]];
    case phase::handle:
      if (auto const* const pool = context_.route->pool;
          pool != nullptr && pool->target().settings->hash_by) [[unlikely]] {
        context_.server_hash = hash_of(*pool->target().settings->hash_by, context_, values_);
      }
      handle();
      return;
  }
  if (said == step::answered) {
    respond();
  }
}

void exchange::look_at_quotas() {
  quota_.look(context_, quotas_, worker_.loop.now());
}

// ---- keys ----

auto exchange::enter_key() -> step {
  bool const is_handled = context_.handler == handler::forward || context_.handler == handler::scim;
  if (!is_handled || request_.is_connect) {
    return step::next;
  }
  auto& keys = *worker_.shared.idempotency;
  auto read =
      read_keyed_head(context_, {.keys = keys,
                                 .active = config_->active,
                                 .protocol = client_->protocol(),
                                 .values = values_,
                                 .texts = {worker_.field_lines, worker_.text, worker_.lines},
                                 .last_host = worker_.key_host,
                                 .now = worker_.key_time()});
  if (std::holds_alternative<no_key>(read)) {
    return step::next;
  }
  if (auto* const head = std::get_if<keyed_head>(&read)) {
    if (head->service) {
      scim_operation_ = scim_operation_of(head->service->method, head->service->path);
    }
    // Held here as well: each of the calls below may end it, and the exchange with it.
    auto const keyed = keyed_ =
        std::make_shared<key_phase>(worker_, *this, *context_.route, std::move(*head));
    send_continue();  // it is needed before a store is asked
    keyed->start();
    return step::suspended;
  }
  auto const* const fault = std::get_if<key_fault>(&read);
  bool const is_missing = fault != nullptr && fault->code == idempotency::problem_code::key_missing;
  auto const outcome = is_missing ? keyed_outcome::missing : keyed_outcome::malformed;
  context_.route->counts->of(outcome).add();
  log_.set_key({}, name_of(outcome));
  if (fault == nullptr) {
    context_.reply = repeated_reply(texts(), values_);
    return step::answered;
  }
  look_at_quotas();
  auto const& settings = *context_.route_settings().settings->idempotency;
  context_.reply = key_refusal(
      texts(),
      {.code = fault->code, .documentation = settings.documentation, .detail = fault->detail}, 0s);
  return step::answered;
}

void exchange::admit(std::optional<std::int64_t> replay_cost) {
  context_.handler = handler::keyed;
  if (!replay_cost) {
    context_.admitted_at = worker_.loop.now();
    advance(phase::overload);
  } else if (*replay_cost > 0 && !context_.route_settings().limits.empty()) {
    quota_.charge_replay(context_, *replay_cost);
    advance(phase::quota);  // an upstream is not asked
  } else {
    look_at_quotas();
    advance(phase::handle);  // where it costs nothing, the quota may be gone
  }
}

void exchange::settle(bool refund) {
  auto const now = worker_.loop.now();
  if (refund) {
    overload_.leave(context_, forward_.tries() > 0, now);
    quota_.release(context_, quotas_, now);
  } else {
    quota_.settle(context_, quotas_, now);
    overload_.leave(context_, forward_.tries() > 0, now);
  }
}

// ---- quotas that gateways share ----

void exchange::ask_quotas() {
  question_ = std::make_shared<quota_question>();
  auto& asked = *question_;
  asked.owner = this;
  asked.asked_at = worker_.loop.now();
  asked.charges_count =
      quota_.copy_charges(context_, asked.partitions, asked.policies, asked.charges);
  if (!keyed_) {  // which has what it needs of the head
    held_ = std::make_unique<held_request>(*context_.head, context_.path);
    context_.head = &held_->head.head();
    context_.path = held_->path;
  }
  asked.config = config_;
  ++config_->users;  // until the answer is there
  worker_.quotas->spend({asked.charges.data(), asked.charges_count}, asked.asked_at,
                        [&on = worker_, question = question_](store::spend_answer const& answer) {
                          auto* const config = question->config;
                          if (!on.quotas) {  // the store is being closed
                            on.release(*config);
                            return;
                          }
                          on.count_round_trips();
                          if (question->owner != nullptr) {
                            question->owner->quotas_answered(answer);
                          } else if (answer) {
                            question->release(*on.quotas, *answer, on.loop.now());
                          }
                          on.release(*config);
                        });
}

void exchange::quotas_answered(store::spend_answer const& answer) {
  auto const question = question_;
  auto const held = std::exchange(held_, nullptr);  // the context points into it
  auto const said = quota_.resume(context_, quotas_, answer, worker_.loop.now());
  if (held) {
    request_.octets_at_hand = held->content_octets;
  } else {
    question_.reset();  // the key phase may have to ask again
  }
  if (said == step::answered) {
    respond();
  } else {
    advance(phase::handle);
  }
  // When the exchange is over it may serve another request by now.
  auto const is_over = [&] { return !held || question->owner == nullptr; };
  if (!is_over() && held->body_is_last) {
    body(held->body, held->content_octets, *held->body_is_last);
  }
  if (!is_over()) {
    question_.reset();
    count_held();
    client_->resume();
  }
}

// ---- handlers ----

void exchange::handle() {
  switch (context_.handler) {
    case handler::forward: begin_forward(); break;
    case handler::scim: begin_scim(); break;
    case handler::bridge: begin_bridge(); break;
    case handler::keyed: {
      auto const keyed = keyed_;  // it may end in this call
      keyed->admitted();
      break;
    }
    case handler::echo:
      context_.reply = echo(context_, texts());
      respond();
      break;
    case handler::redirect:
      context_.reply = redirect(context_, texts());
      respond();
      break;
    case handler::respond:
      context_.reply = respond_fixed(context_, config_->active);
      respond();
      break;
    case handler::unauthorized:
      if (context_.route_settings().settings->service != route_service::scim ||
          context_.token != nullptr) {
        context_.reply = refuse_unauthorized(context_, texts());
        respond();
        break;
      }
      auto const why = auth_refusal_of(context_);
      context_.reason = why.reason;
      auto answer = scim_error_answer({why.status, scim::scim_type::none, std::string(why.detail)});
      answer.fields.push_back({"WWW-Authenticate", std::string(why.challenge)});
      set_accepted_type(answer, context_.head->value_of(known_field::accept));
      respond(std::move(answer));
      break;
  }
}

/// Only HTTP/1.1 has keys: an extended CONNECT gets one of ours, and that of a client is checked
/// where the upstream may speak HTTP/2, whose servers see none (RFC 6455, section 4.2.1). False
/// when the request is answered.
auto exchange::begin_upgrade() -> bool {
  request_.websocket_key.clear();
  if (request_.is_connect) {
    request_.websocket_key = make_websocket_key();
    if (request_.websocket_key.empty()) {
      context_.reply = problem_reply(texts(), "no-random-octets", 500, "Internal Server Error",
                                     "The gateway cannot make a key for the WebSocket.");
      respond();
      return false;
    }
  } else if (context_.route->pool->target().settings->http2 != upstream_http2::never &&
             !is_websocket_key(only_value_of(*context_.head, "sec-websocket-key"))) {
    context_.reply = problem_reply(texts(), "websocket-key", 400, "Bad Request",
                                   "The request has no valid Sec-WebSocket-Key.");
    respond();
    return false;
  }
  return true;
}

void exchange::begin_forward() {
  auto const& route = *context_.route_settings().settings;
  context_.terms.upgrades = route.upgrades_websocket && asks_for_websocket(*context_.head);
  if (context_.head->upgrade_asked() && !route.upgrades_websocket) [[unlikely]] {
    worker_.shared.note_upgrade(route.name);
  }
  std::string_view key;
  if (context_.terms.upgrades) [[unlikely]] {
    if (!begin_upgrade()) {
      return;
    }
    key = request_.websocket_key;
  }
  auto& text = forward_.text();
  text.clear();
  append_forwarded_head(text, context_, client_->protocol(),
                        {.upgrade = context_.terms.upgrades, .websocket_key = key},
                        {worker_.field_lines, worker_.text, worker_.lines});
  if (context_.method == wire::method::options) [[unlikely]] {
    auto const left = max_forwards_of(context_, texts());
    if (auto const* const reply = std::get_if<local_reply>(&left)) {
      context_.reply = *reply;
      respond();
      return;
    }
    if (auto const count = std::get<std::optional<std::uint64_t>>(left)) {
      replace_max_forwards(text, *count);
    }
  }
  forward_.start(context_, request_.octets_at_hand);
}

void exchange::begin_bridge() {
  bridge_ = std::make_unique<bridge_phase>(context_, *bridge_subject_of(context_),
                                           *worker_.shared.bridge_cursors);
  // The answer has to be read, and is written again.
  forwarding how{.drop = {known_field::accept_encoding, known_field::if_none_match,
                          known_field::if_modified_since, known_field::range, known_field::expect}};
  auto& text = forward_.text();
  text.clear();
  if (bridge_->awaits_content()) {
    how.body = wire::body_framing{};
    append_forwarded_head(text, context_, client_->protocol(), how,
                          {worker_.field_lines, worker_.text, worker_.lines});
    open_head(text);  // how long the content will be is not known yet
    send_continue();
    if (request_.is_done) {
      bridge_content({}, true);
    }
    return;
  }
  auto const target = bridge_->make_target(context_, wall_clock_now());
  if (!target) {
    respond(scim_error_answer(target.error()));
    return;
  }
  how.target = *target;
  append_forwarded_head(text, context_, client_->protocol(), how,
                        {worker_.field_lines, worker_.text, worker_.lines});
  forward_.start(context_, request_.octets_at_hand);
}

void exchange::bridge_content(std::string_view framed, bool last) {
  if (auto const taken = bridge_->take_content(framed); !taken) {
    respond(scim_error_answer(taken.error()));
    return;
  }
  if (!last) {
    count_held();
    return;
  }
  auto const content = bridge_->make_search(wall_clock_now());
  if (!content) {
    respond(scim_error_answer(content.error()));
    return;
  }
  forward_.text()
      .append("Content-Length: ")
      .append(std::to_string(content->size()))
      .append("\r\n\r\n")
      .append(*content);
  forward_.send();
}

void exchange::begin_scim() {
  auto request = scim_request_of(context_, config_->active, worker_.lines);
  scim_operation_ = scim_operation_of(request.method, request.path);
  auto const framing = context_.head->body();
  scim_ = std::make_shared<scim_phase>(*this, std::move(request), framing);
  if (auto refusal = scim_->refusal_by_length(framing)) {
    context_.reason = "body-too-large";
    respond(*std::move(refusal));
    return;
  }
  send_continue();
  if (request_.is_done) {
    ask_scim();
  }
}

void exchange::ask_scim() {
  if (!client_->may_ask_directory()) {
    scim_->wait();
    count_held();
    return;
  }
  auto const now = std::chrono::steady_clock::now().time_since_epoch();
  bool const has_time = !client_->is_above_high_watermark() &&
                        now - worker_.loop.now().time_since_epoch() < turn_time_max;
  auto const scim = scim_;  // it may end in this call
  scim_phase::ask(scim, *worker_.shared.scim, worker_.loop, has_time);
}

void exchange::send_continue() {
  if (!context_.head->has(known_field::expect) || request_.is_done) {
    return;
  }
  constexpr std::string_view interim = "HTTP/1.1 100 Continue\r\n\r\n";
  if (wire::parse_response_head(interim, 0, {}, context_.method, worker_.response).state ==
      wire::head_state::complete) {
    client_->send_interim(worker_.response, {});
  }
}

// ---- what comes from the client ----

void exchange::body(std::string_view bytes, std::uint64_t content_octets, bool last) {
  if (held_) {
    held_->append(bytes, content_octets, last);
    count_held();
    return;
  }
  context_.request_octets += content_octets;
  request_.is_done = last;
  if (forward_.takes_body()) {
    forward_.body(bytes, content_octets, last);
  } else if (keyed_) {
    auto const keyed = keyed_;  // it may end in this call
    keyed->content(bytes, last);
  } else if (scim_) {
    if (auto refusal = scim_->take_content(bytes)) {
      context_.reason = "body-too-large";
      respond(*std::move(refusal));
    } else if (last) {
      ask_scim();
    } else {
      count_held();
    }
  } else if (bridge_) {
    bridge_content(bytes, last);
  }
}

void exchange::client_resumed() {
  if (forward_.is_active()) {
    forward_.resume();
  } else if (keyed_) {
    auto const keyed = keyed_;  // it may end in this call
    keyed->client_resumed();
  } else if (scim_ && scim_->stop_waiting()) {
    ask_scim();
  }
}

void exchange::abandon(int status) {
  if (config_ == nullptr) {
    return;  // it is over, though the client could not be told
  }
  auto const reason = status == status_client_closed ? "client-gone" : reason_of_unreadable(status);
  if (keyed_) {
    client_ = nullptr;
    if (!keyed_->client_has_gone()) {
      if (early_.status == 0) {  // what comes of it goes to no client
        early_ = {.status = status, .reason = reason};
      }
      return;
    }
    keyed_.reset();
  }
  if (scim_) {
    scim_->detach();
    scim_.reset();
  }
  forward_.abandon();
  if (context_.status == 0) {
    context_.status = status;
  }
  context_.reason = reason;
  (void)close();
}

auto exchange::held_octets() const -> std::size_t {
  std::size_t octets = forward_.held_octets();
  // One that waits for its client to read is not over soon, so that it counts itself.
  if (keyed_) {
    octets += keyed_->held_octets() + (keyed_->waits_for_client() ? waiting_octets_of_one : 0);
  }
  if (scim_) {
    octets += scim_->held_octets() + (scim_->is_waiting() ? waiting_octets_of_one : 0);
  }
  if (bridge_) {
    octets += bridge_->held_octets();
  }
  if (held_) {
    octets += held_->octets();
  }
  return octets;
}

auto exchange::waiting_octets() const -> std::size_t {
  return held_octets() + forward_.waiting_octets() + (keyed_ ? keyed_->upstream_octets() : 0);
}

}  // namespace tidegate::gateway
