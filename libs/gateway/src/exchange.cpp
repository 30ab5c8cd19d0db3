// SPDX-License-Identifier: Apache-2.0
#include "exchange.hpp"

#include <tidegate/http/accept.hpp>
#include "admin/admin_quotas.hpp"
#include "observe/access_log_line.hpp"
#include "request/bearer.hpp"
#include "request/field_names.hpp"
#include "request/request_values.hpp"

#include <tidegate/http/forwarded.hpp>
#include <tidegate/http/path_readings.hpp>
#include <tidegate/http/problem.hpp>
#include <tidegate/http/target.hpp>
#include <tidegate/json/string.hpp>

#include <algorithm>
#include <charconv>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;
using wire::known_field;

/// The fields that only we write for an upstream.
constexpr wire::field_set forwarding_fields = {known_field::x_forwarded_for,
                                               known_field::x_forwarded_proto,
                                               known_field::x_forwarded_host,
                                               known_field::forwarded,
                                               known_field::via,
                                               known_field::idempotency_attempt};

/// What a resource may be asked for where the route does not say.
constexpr std::string_view usual_methods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// A body of this length is held until it is whole; one that is longer passes through as it comes.
constexpr std::uint64_t held_body_octets_max = 64 * 1024;
/// What an exchange may keep for the next request of the buffer that requests are written to.
constexpr std::size_t kept_octets_max = 16 * 1024;

/// What a request takes that waits for its client to read, with its stream, texts and tables.
constexpr std::size_t waiting_octets_of_one = sizeof(exchange) + 2048;

constexpr std::string_view description_path = "/.well-known/tidegate";
constexpr std::string_view well_known = "/.well-known/";

/// Methods that may be sent again when it is not known whether they arrived (RFC 9110, section 9.2.2).
[[nodiscard]] auto is_idempotent(wire::method method) -> bool {
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

/// `Trailer` of a response without the names of those that do not go on.
void append_trailer_names(std::string& lines, std::span<std::string_view const> values) {
  std::string names;
  for (auto rest : values) {
    while (!rest.empty()) {
      auto const comma = std::min(rest.find(','), rest.size());
      auto name = rest.substr(0, comma);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      name.remove_prefix(std::min(name.find_first_not_of(" \t"), name.size()));
      name = name.substr(0, name.find_last_not_of(" \t") + 1);
      if (!name.empty() && wire::use_of_trailer({name, "", wire::find_known_field(name)}) ==
                               wire::trailer_use::forwarded) {
        names.append(names.empty() ? "" : ", ").append(name);
      }
    }
  }
  if (!names.empty()) {
    wire::append_field(lines, "Trailer", names);
  }
}

}  // namespace

void exchange::begin(client_stream& client, wire::request_head const& request,
                     client_address const& from, std::uint64_t octets_at_hand) {
  client_ = &client;
  runtime_ = worker_.current;
  ++runtime_->users;
  upstream_ = nullptr;
  context_ = {.head = &request,
              .from = &from,
              .method = request.method(),
              .settings = runtime_->settings.get(),
              .begun = worker_.loop.now(),
              .admitted_at = worker_.loop.now()};
  quota_.reset();
  scim_operation_ = scim_operation::none;
  told_status_ = 0;
  told_octets_ = 0;
  told_reason_ = {};
  head_sent_ = false;
  resumed_.reset();
  load_ = nullptr;
  may_retry_ = false;
  tries_ = 0;
  octets_at_hand_ = octets_at_hand;
  octets_missing_ = 0;
  request_done_ = request.body().kind == wire::body_kind::none;
  if (worker_.log != nullptr) {
    begin_log_line(request, from);
  }

  auto const& settings = *runtime_->settings;
  auto const path =
      request.path() == "*"
          ? std::string_view("*")
          : http::normal_path(request.path(), worker_.path).value_or(std::string_view());
  if (path.empty()) {
    context_.reason = "path-invalid";
    answer_problem(400, "Bad Request", "The path of the request is not valid.");
    return;
  }
  if (path == "*") {
    answer_options(usual_methods);
    return;
  }
  if (context_.method == wire::method::trace) {
    // Its answer has all that the upstream was sent, credentials too.
    context_.reason = "method-not-allowed";
    answer_problem(405, "Method Not Allowed", "This gateway does not take TRACE.",
                   "Allow: " + std::string(usual_methods) + "\r\n");
    return;
  }
  auto const found =
      settings.routes_by_request.find(request.method_text(), request.authority(), path);
  if (settings.settings.http.refuses_ambiguous_paths && http::may_be_read_otherwise(path) &&
      is_ambiguous(request, path, found)) {
    context_.reason = "path-ambiguous";
    answer_problem(
        400, "Bad Request",
        "The path of the request can be read as another one: slashes in a row, semicolons, "
        "escaped slashes and other escapes without need do not mean the same to every server.");
    return;
  }
  // Problems lead to the description, so a route of everything does not hide it.
  if (path == description_path &&
      !(found && settings.settings.routes[*found].match.path.starts_with(well_known))) {
    answer_description(request);
    return;
  }
  if (!found) {
    context_.reason = "no-route";
    answer_problem(404, "Not Found", "No route of this gateway matches the request.");
    return;
  }
  context_.route = &runtime_->routes[*found];
  auto const& max_body = settings.settings.http.max_body;
  if (max_body && request.body().kind == wire::body_kind::content_length &&
      request.body().length > static_cast<std::uint64_t>(*max_body)) {
    context_.reason = "body-too-large";
    answer_problem(413, "Content Too Large", "The content of the request is larger than allowed.");
    return;
  }
  auto const& auth = route_of().settings->auth;
  context_.token = auth ? find_token(auth->tokens, bearer_token_of(request)) : nullptr;
  context_.path = path;
  if (!quota_.find_charges(context_, quota_service_, worker_.loop.now())) {
    answer_repeated();
    return;
  }
  begin_on_route(request, path, from);
}

auto exchange::is_ambiguous(wire::request_head const& request, std::string_view path,
                            std::optional<std::size_t> found) const -> bool {
  auto const& settings = *runtime_->settings;
  auto const* const route = found ? &settings.routes[*found] : nullptr;
  if (route != nullptr && route->tells_paths_apart) {
    // Escapes without need make no other partition, since its path is without them.
    std::string plain;
    http::append_plain_path(plain, path);
    if (http::may_be_read_otherwise(plain)) {
      return true;
    }
  }
  auto const method = request.method_text();
  auto const cost = [&](std::string_view of) {
    return route == nullptr || route->limits.empty() ? 0 : route->costs.cost(method, of);
  };
  auto const cost_here = cost(path);
  return http::find_other_reading(path, [&](std::string_view reading) {
    return settings.routes_by_request.find(method, request.authority(), reading) != found ||
           cost(reading) != cost_here;
  });
}

void exchange::begin_on_route(wire::request_head const& request, std::string_view path,
                              client_address const& from) {
  if (route_of().settings->auth && !is_let_in(request, path, from)) {
    return;
  }
  if (route_of().settings->bridge && begin_bridge(request, path, from)) {
    return;
  }
  if (route_of().settings->idempotency && begin_keyed(request, path, from)) {
    return;
  }
  holdable const held{request, from};
  if (is_overloaded()) {
    respond();
    return;
  }
  if (admit(&held) != admission::admitted) {
    return;
  }
  switch (route_of().settings->service) {
    case route_service::upstream: forward(request, path, from); break;
    case route_service::echo: answer_echo(request, path); break;
    case route_service::scim: begin_service(request, path, from); break;
  }
}

auto exchange::is_overloaded() -> bool {
  auto* const load =
      context_.route->pool == nullptr ? nullptr : context_.route->pool->settings().load.get();
  if (load == nullptr || load_ != nullptr) {
    return false;
  }
  auto const now = worker_.loop.now();
  {
    std::lock_guard const lock(load->mutex);
    bool const is_admitted = load->guard.admits(load->in_flight, now);
    context_.capacity = load->guard.capacity(now);
    if (is_admitted) {
      ++load->in_flight;
      load_ = load;
      return false;
    }
  }
  quota_.refuse_overloaded(context_, quota_service_, now);
  return true;
}

// ---- answers of the gateway itself ----

void exchange::answer_problem(int status, std::string_view title, std::string_view detail,
                              std::string_view more_lines) {
  auto& lines = worker_.field_lines;
  lines.clear();
  context_.status = status;
  append_limit_fields(lines, nullptr, status);
  lines.append(more_lines);
  worker_.text.clear();
  http::problem_writer(worker_.text, {.title = title, .status = status, .detail = detail});
  auto* const client = end(worker_.text.size());
  // Content that is too large is not waited for.
  client->send_local({status, "application/problem+json", lines, worker_.text, status == 413});
}

void exchange::answer_repeated() {
  auto const detail = "The request has " + to_string(*values_.repeated) +
                      " more than once, and not every server would take the same one.";
  context_.reason = "value-repeated";
  answer_problem(400, "Bad Request", detail);
}

void exchange::respond() {
  auto const& reply = *context_.reply;
  auto& lines = worker_.field_lines;
  lines.clear();
  context_.status = reply.status;
  context_.reason = reply.reason;
  quota_.append_fields(lines, context_, quota_service_, nullptr, reply.status, reply.has_resets);
  if (reply.retry_after > 0ns) {
    wire::append_parts(lines, "Retry-After: ",
                       static_cast<std::uint64_t>(ratelimit::seconds_until(reply.retry_after)),
                       "\r\n");
  }
  auto* const client = end(reply.content.size());
  client->send_local({.status = reply.status,
                      .field_lines = lines,
                      .content = reply.content,
                      .content_head = reply.content_head});
}

auto exchange::is_let_in(wire::request_head const& request, std::string_view path,
                         client_address const& from) -> bool {
  bool const is_safe =
      context_.method == wire::method::get || context_.method == wire::method::head ||
      context_.method == wire::method::options || context_.method == wire::method::trace;
  bool const is_scim = route_of().settings->service == route_service::scim;
  // What reads only, SCIM knows better: a POST may be a search.
  if (context_.token != nullptr && (is_safe || is_scim || !context_.token->read_only)) {
    return true;
  }
  // How to authenticate is told to everybody (RFC 7643, section 5).
  if (is_scim && is_safe && path_below_base(path) == "/ServiceProviderConfig") {
    return true;
  }
  holdable const held{request, from};
  if (admit(&held) != admission::admitted) {  // guessing is limited as everything else is
    return false;
  }
  if (context_.token != nullptr) {
    context_.reason = "token-read-only";
    answer_problem(403, "Forbidden", "This token is only for reading.");
    return false;
  }
  bool const has_token = request.has(known_field::authorization);
  std::string_view const detail =
      has_token ? "The bearer token of the request is not one that this gateway knows."
                : "The request needs a bearer token.";
  context_.reason = has_token ? "token-unknown" : "token-missing";
  std::string_view const challenge = has_token ? "Bearer error=\"invalid_token\"" : "Bearer";
  if (is_scim) {
    auto answer = scim_error_answer({401, scim::scim_type::none, std::string(detail)});
    answer.fields.push_back({"WWW-Authenticate", std::string(challenge)});
    set_accepted_type(answer, request.value_of(known_field::accept));
    answer_service(std::move(answer));
    return false;
  }
  answer_problem(401, "Unauthorized", detail,
                 "WWW-Authenticate: " + std::string(challenge) + "\r\n");
  return false;
}

void exchange::answer_echo(wire::request_head const& request, std::string_view path) {
  auto& text = worker_.text;
  text.assign("{\"method\":");
  json::append_string(text, request.method_text());
  text.append(",\"path\":");
  json::append_string(text, path);
  text.append(",\"query\":");
  json::append_string(text, request.query());
  text.append(",\"fields\":[");
  auto const* between = "";
  for (auto const& field : request.fields()) {
    text.append(between).append("[");
    json::append_string(text, field.name);
    text.append(",");
    json::append_string(text, field.value);
    text.append("]");
    between = ",";
  }
  text.append("]}\n");
  context_.status = 200;
  worker_.field_lines.clear();
  append_limit_fields(worker_.field_lines, nullptr, 200);
  context_.response_octets = text.size();
  auto* const client = end();
  client->send_local({200, "application/json", worker_.field_lines, text, false});
}

void exchange::answer_description(wire::request_head const& request) {
  if (context_.method != wire::method::get && context_.method != wire::method::head) {
    context_.reason = "method-not-allowed";
    answer_problem(405, "Method Not Allowed", "This resource can be read with GET.",
                   "Allow: GET, HEAD\r\n");
    return;
  }
  // Programs that take anything get JSON; browsers name what they want.
  auto const accepted = accepted_types(request);
  auto const by_html = http::preference_for("text/html", accepted);
  bool const html = by_html.weight > 0 && by_html.closeness > 1 &&
                    by_html >= http::preference_for("application/json", accepted);
  auto const& settings = *runtime_->settings;
  context_.status = 200;
  auto const& content = html ? settings.description_html : settings.description_json;
  auto const owner = runtime_->settings;
  auto* const client = end(content.size());
  client->send_local({.status = 200,
                      .content_type = html ? "text/html; charset=utf-8" : "application/json",
                      .field_lines = "Vary: Accept\r\nCache-Control: no-cache\r\n",
                      .content = content,
                      .owner = owner});
}

void exchange::answer_options(std::string_view methods) {
  auto& lines = worker_.field_lines;
  lines.clear();
  context_.status = 200;
  append_limit_fields(lines, nullptr, context_.status);
  wire::append_field(lines, "Allow", methods);
  auto* const client = end();
  client->send_local({.status = 200, .field_lines = lines, .content = {}});
}

// ---- the upstream ----

/// The lines that tell the upstream who asked. `is_trusted` is whether the peer is believed in what it says
/// about that itself.
void exchange::append_forwarding_lines(std::string& lines, wire::request_head const& request,
                                       client_address const& from, bool is_trusted) {
  bool const by_forwarded =
      runtime_->settings->settings.client_address == client_address_field::forwarded;
  auto host = request.authority();
  if (!is_trusted && !by_forwarded && !request.has(known_field::via) &&
      request.minor_version() == 1) {  // nearly always
    if (!host.empty()) {
      wire::append_parts(lines, "X-Forwarded-Host: ", host, "\r\n");
    }
    lines.append(from.forwarding_lines);
    return;
  }
  std::string_view forwarded_for = from.peer_text();
  auto proto = from.scheme;
  auto& value = worker_.text;
  value.clear();
  if (is_trusted) {
    auto const client = find_forwarded_client(request, from, *runtime_->settings, worker_.lines);
    if (by_forwarded) {
      if (client.address != from.peer) {
        http::append_x_forwarded_for(value, client.address);
      }
    } else {
      for (auto const& line : lines_of(request, known_field::x_forwarded_for, worker_.lines)) {
        value.append(value.empty() ? "" : ", ").append(line);
      }
    }
    http::append_x_forwarded_for(value, from.peer);
    forwarded_for = value;
    proto = http::x_forwarded_proto(client.proto, true, proto);
    host = http::x_forwarded_host(client.host, true, host);
  }
  if (!host.empty()) {
    wire::append_parts(lines, "X-Forwarded-Host: ", host, "\r\n");
  }
  constexpr std::string_view http_name = "HTTP/";
  wire::append_parts(lines, "X-Forwarded-For: ", forwarded_for, "\r\nX-Forwarded-Proto: ", proto,
                     "\r\nVia: ");
  if (request.has(known_field::via)) {  // each proxy adds itself at the end
    for (auto const& line : lines_of(request, known_field::via, worker_.lines)) {
      lines.append(line).append(", ");
    }
  }
  wire::append_parts(lines, client_->protocol().substr(http_name.size()), via_here, "\r\n");
  if (by_forwarded) {
    value.clear();
    if (is_trusted) {
      for (auto const& line : lines_of(request, known_field::forwarded, worker_.lines)) {
        value.append(value.empty() ? "" : ", ").append(line);
      }
    }
    http::append_forwarded(value,
                           {.peer = from.peer, .host = request.authority(), .scheme = from.scheme});
    wire::append_parts(lines, "Forwarded: ", std::string_view(value), "\r\n");
  }
}

void exchange::append_forwarded_head(std::string& out, wire::request_head const& request,
                                     std::string_view path, client_address const& from,
                                     forwarding const& wanted) {
  auto& lines = worker_.field_lines;
  lines.clear();
  append_forwarding_lines(lines, request, from, is_trusted_peer(*runtime_->settings, from));
  wire::request_forwarding how;
  std::string target;
  if (!wanted.target.empty()) {
    how.target = wanted.target;
  } else if (path.data() != request.path().data()) {  // not as it came
    target.assign(path).append(request.query());
    how.target = target;
  }
  how.drop = wanted.drop | forwarding_fields;
  how.other_names = route_of().other_names;
  how.field_lines = lines;
  how.body = wanted.body.value_or(request.body());
  wire::append_request_head(out, request, how);
}

void exchange::forward(wire::request_head const& request, std::string_view path,
                       client_address const& from) {
  request_.clear();
  append_forwarded_head(request_, request, path, from, {});
  if (context_.method == wire::method::options && !count_forward(request)) {
    return;
  }
  may_retry_ = request.body().kind == wire::body_kind::none && is_idempotent(context_.method);
  send_when_whole(request);
}

auto exchange::is_held(wire::request_head const& request) const -> bool {
  auto const body = request.body();
  return body.kind == wire::body_kind::content_length && body.length > octets_at_hand_ &&
         body.length <= held_body_octets_max && !request.has(known_field::expect) &&
         worker_.may_hold_bodies();
}

void exchange::send_when_whole(wire::request_head const& request) {
  if (is_held(request)) {
    octets_missing_ = request.body().length;
    count_held();
    return;
  }
  send_upstream(false);
}

void exchange::hold_body(std::string_view bytes, std::uint64_t content_octets, bool last) {
  request_.append(bytes);
  octets_missing_ -= std::min(octets_missing_, content_octets);
  if (octets_missing_ > 0 && !last) {
    count_held();
    if (worker_.may_hold_bodies()) {
      return;
    }
  }
  octets_missing_ = 0;
  count_held();
  send_upstream(false);
}

auto exchange::count_forward(wire::request_head const& request) -> bool {
  constexpr std::string_view name = "max-forwards";
  wire::field const* given = nullptr;
  for (auto const& field : request.fields()) {
    if (field.known == known_field::other && equal_names(field.name, name)) {
      if (given != nullptr) {
        context_.reason = "malformed";
        answer_problem(400, "Bad Request", "The request has Max-Forwards more than once.");
        return false;
      }
      given = &field;
    }
  }
  if (given == nullptr) {
    return true;
  }
  std::uint64_t left = 0;
  auto const* const end = given->value.data() + given->value.size();
  auto const [last, fault] = std::from_chars(given->value.data(), end, left);
  if (last != end || fault == std::errc::invalid_argument) {
    context_.reason = "malformed";
    answer_problem(400, "Bad Request", "The Max-Forwards of the request is not a number.");
    return false;
  }
  if (fault == std::errc::result_out_of_range) {
    left = std::numeric_limits<std::uint64_t>::max();
  }
  if (left == 0) {
    std::string methods;
    for (auto const& method : route_of().settings->match.methods) {
      methods.append(methods.empty() ? "" : ", ").append(method);
    }
    answer_options(methods.empty() ? usual_methods : methods);
    return false;
  }
  drop_field(request_, name);
  request_.resize(request_.size() - 2);  // the empty line
  wire::append_parts(request_, "Max-Forwards: ", left - 1, "\r\n\r\n");
  return true;
}

void exchange::send_upstream(bool fresh) {
  ++tries_;
  auto const taken = context_.route->pool->take(fresh);
  if (!taken) {
    upstream_failed(taken.error(), {});
    return;
  }
  upstream_ = *taken;
  log_server(context_.route->pool->settings().servers[upstream_->server()].authority);
  upstream_->start(*this, context_.method, request_);
  if (!may_retry_ && request_.capacity() > kept_octets_max) {
    std::string().swap(request_);  // with its body, which the connection has now
  }
}

void exchange::body(std::string_view bytes, std::uint64_t content_octets, bool last) {
  if (asked_ && asked_->waits) {
    asked_->body.append(bytes);
    asked_->content_octets += content_octets;
    asked_->body_is_last = last;
    count_held();
    return;
  }
  context_.request_octets += content_octets;
  request_done_ = last;
  if (octets_missing_ > 0) {
    hold_body(bytes, content_octets, last);
  } else if (upstream_ != nullptr) {
    upstream_->send(bytes);
  } else if (keyed_) {
    auto const keyed = keyed_;  // it may end in this call
    keyed->content(bytes, last);
  } else if (service_) {
    service_content(bytes, last);
  } else if (bridge_) {
    bridge_content(bytes, last);
  }
}

void exchange::upstream_head(wire::response_head const& head) {
  if (bridge_ && bridge_head(head)) {
    return;
  }
  context_.status = head.status();
  context_.reason = {};
  context_.answered_at = worker_.loop.now();
  head_sent_ = true;
  auto& lines = worker_.field_lines;
  lines.clear();
  append_limit_fields(lines, &head, context_.status);
  auto drop = route_of().fields_made_anew;
  if (head.has(known_field::trailer)) [[unlikely]] {
    drop |= {known_field::trailer};
    if (client_->wants_framing()) {  // else there are no trailers
      append_trailer_names(lines, lines_of(head, known_field::trailer, worker_.lines));
    }
  }
  client_->send_head(head, drop, lines);
}

void exchange::upstream_body(std::string_view bytes, std::uint64_t content_octets) {
  if (bridge_) {
    bridge_body(bytes);
    return;
  }
  context_.response_octets += content_octets;
  client_->send_body(bytes);
}

void exchange::upstream_done() {
  upstream_ = nullptr;
  if (bridge_) {
    bridge_done();
    return;
  }
  end()->send_end();
}

void exchange::upstream_failed(upstream_failure why, std::string unsent) {
  upstream_ = nullptr;
  note_failure(why);
  if (head_sent_) {
    end()->cut();
    return;
  }
  if (bridge_) {  // what came of an answer is of no use
    bridge_->fields.clear();
    bridge_->limit_lines.clear();
    bridge_->answer.clear();
  }
  bool const nothing_sent =
      why == upstream_failure::connect_refused || why == upstream_failure::connect_timeout;
  bool const worth_a_retry =
      nothing_sent || why == upstream_failure::closed_unanswered || why == upstream_failure::closed;
  auto const& settings = *context_.route->pool->settings().settings;
  // A connection that the server had just closed costs no try; else only as often as allowed.
  auto const tries_max =
      settings.retries + 1 + (why == upstream_failure::closed_unanswered ? 1 : 0);
  if (nothing_sent && !unsent.empty()) {
    request_ = std::move(unsent);
  }
  if ((may_retry_ || nothing_sent) && worth_a_retry && tries_ < tries_max) {
    send_upstream(why == upstream_failure::closed_unanswered);
    return;
  }
  switch (why) {
    case upstream_failure::timeout:
    case upstream_failure::connect_timeout:
    case upstream_failure::idle:
      answer_problem(504, "Gateway Timeout",
                     "The service behind this gateway did not answer in time.");
      break;
    case upstream_failure::malformed:
      answer_problem(502, "Bad Gateway",
                     "The service behind this gateway gave an answer that is not valid HTTP.");
      break;
    case upstream_failure::no_descriptor:
      tries_ = 0;  // the service was not asked
      answer_problem(503, "Service Unavailable",
                     "This gateway has no more connections to the service behind it.",
                     "Retry-After: 1\r\n");
      break;
    default:
      answer_problem(502, "Bad Gateway", "The service behind this gateway cannot be reached.");
  }
}

void exchange::note_failure(upstream_failure why) {
  switch (why) {
    case upstream_failure::connect_refused: context_.reason = "upstream-refused"; break;
    case upstream_failure::connect_timeout: context_.reason = "upstream-connect-timeout"; break;
    case upstream_failure::closed_unanswered:
    case upstream_failure::closed: context_.reason = "upstream-closed"; break;
    case upstream_failure::malformed: context_.reason = "upstream-malformed"; break;
    case upstream_failure::timeout: context_.reason = "upstream-timeout"; break;
    case upstream_failure::idle: context_.reason = "upstream-idle"; break;
    case upstream_failure::no_descriptor: context_.reason = "no-descriptor"; break;
  }
}

void exchange::client_takes_more() {
  if (upstream_ != nullptr) {
    upstream_->resume();
  } else if (keyed_) {
    auto const keyed = keyed_;  // it may end in this call
    keyed->client_takes_more();
  } else if (service_ && std::exchange(service_->waits, false)) {
    ask_service();
  }
}

auto exchange::held_octets() const -> std::size_t {
  std::size_t octets = 0;
  // One that waits for its client to read is not over soon, so that it counts itself.
  if (keyed_) {
    octets += keyed_->held_octets() + (keyed_->waits_for_client() ? waiting_octets_of_one : 0);
  }
  if (service_) {
    octets += service_->request.content.size() + service_->asked_octets +
              (service_->waits ? waiting_octets_of_one : 0);
  }
  if (bridge_) {
    octets += bridge_->content.size() + bridge_->answer.size();
  }
  if (asked_) {
    octets += asked_->body.size();
  }
  if (octets_missing_ > 0) {
    octets += request_.size();
  }
  return octets;
}

auto exchange::waiting_octets() const -> std::size_t {
  return held_octets() + (upstream_ != nullptr ? upstream_->waiting_octets() : 0) +
         (keyed_ ? keyed_->upstream_octets() : 0);
}

void exchange::abandon(int status) {
  if (runtime_ == nullptr) {
    return;  // it is over, though the client could not be told
  }
  if (keyed_) {
    client_ = nullptr;
    if (!keyed_->client_has_gone()) {
      if (told_status_ == 0) {  // what comes of it goes to no client
        told_status_ = status;
        told_reason_ = status == client_is_gone ? "client-gone" : reason_of_unreadable(status);
      }
      return;
    }
    keyed_.reset();
  }
  if (service_) {
    service_->of = nullptr;  // what was asked for is done all the same
    service_.reset();
  }
  if (upstream_ != nullptr) {
    std::exchange(upstream_, nullptr)->abandon();
  }
  if (context_.status == 0) {
    context_.status = status;
  }
  context_.reason = status == client_is_gone ? "client-gone" : reason_of_unreadable(status);
  (void)end();
}

void exchange::unload() {
  auto* const load = std::exchange(load_, nullptr);
  if (load == nullptr) {
    return;
  }
  auto const now = worker_.loop.now();
  // A refusal by quota, or a client that has gone, says nothing about the service.
  bool const is_failure =
      tries_ > 0 && context_.answered_at == instant::min() && context_.status >= 500;
  bool const is_answer = context_.answered_at != instant::min();
  std::lock_guard const lock(load->mutex);
  if (is_answer || is_failure) {
    bool const well =
        is_answer && context_.status != 502 && context_.status != 503 && context_.status != 504;
    load->guard.answered((is_answer ? context_.answered_at : now) - context_.admitted_at, well,
                         load->in_flight, now);
  }
  --load->in_flight;
}

auto exchange::end(std::size_t local_octets) -> client_stream* {
  if (!log_line_.empty()) {
    try {
      end_log_line(local_octets);
    } catch (std::bad_alloc const&) {  // the client must still be let go
      log_line_.clear();
    }
  }
  bridge_.reset();
  if (asked_) {
    std::exchange(asked_, nullptr)->of = nullptr;  // what is spent meanwhile is given back
    replayed_ = {};
  }
  if (std::exchange(octets_missing_, 0) > 0) {  // it was never sent
    std::string().swap(request_);
  }
  worker_.count_buffered(counted_, 0);
  try {
    quota_.settle(context_, quota_service_, worker_.loop.now());
  } catch (std::bad_alloc const&) {  // a store of quotas is not told what is given back
  }
  unload();
  if (context_.route != nullptr) {
    context_.route->counts->count(told_status_ != 0 ? told_status_ : context_.status,
                                  worker_.loop.now() - context_.begun);
  }
  if (scim_operation_ != scim_operation::none) {
    worker_.metrics->scim[static_cast<std::size_t>(scim_operation_)].add(
        static_cast<std::size_t>(std::clamp(context_.status, 0, 599)));
  }
  worker_.release(*std::exchange(runtime_, nullptr));
  return std::exchange(client_, nullptr);
}

// ---- the access log ----

void exchange::begin_log_line(wire::request_head const& request, client_address const& from) {
  server_ = {};
  key_id_.clear();
  key_outcome_ = {};
  append_log_client(log_line_, std::chrono::system_clock::now(),
                    find_client(request, from, *runtime_->settings, worker_.lines),
                    client_->protocol());
  append_log_request(log_line_, request, runtime_->settings->settings.access_log.query);
}

void exchange::log_server(std::string_view authority) {
  if (!log_line_.empty()) {
    server_ = authority;
  }
}

void exchange::log_key(std::string id, std::string_view outcome) {
  if (!log_line_.empty()) {
    key_id_ = std::move(id);
    key_outcome_ = outcome;
  }
}

void exchange::end_log_line(std::size_t local_octets) {
  std::vector<std::string_view> policies;
  std::vector<std::string> partitions;
  for (auto const i : quota_.refused()) {
    policies.emplace_back(route_of().limits[i].policy->name);
    partitions.push_back(partition_key_of(quota_.partition(i)));
  }
  append_log_decision(log_line_, quota_.decision(), policies, partitions);
  logged_response response{
      .principal =
          context_.token != nullptr ? std::string_view(context_.token->name) : std::string_view(),
      .key_id = key_id_,
      .key_outcome = key_outcome_,
      .status = told_status_ != 0 ? told_status_ : context_.status,
      .reason = told_status_ != 0 ? told_reason_ : context_.reason,
      .request_octets = context_.request_octets,
      .response_octets =
          context_.response_octets + (context_.method == wire::method::head ? 0 : local_octets),
      // The clock of the loop stands still while a request is answered at once.
      .duration = instant(std::chrono::steady_clock::now().time_since_epoch()) - context_.begun,
  };
  if (told_status_ != 0) {
    response.response_octets = told_octets_;  // what came later went to no client
  }
  if (context_.route != nullptr) {
    response.route = route_of().settings->name;
    if (context_.route->pool != nullptr) {
      response.upstream = context_.route->pool->settings().settings->name;
    }
  }
  response.server = server_;
  if (context_.answered_at != instant::min()) {
    response.upstream_time = context_.answered_at - context_.begun;
  }
  append_log_response(log_line_, response);
  worker_.write_log(log_line_);
  log_line_.clear();
}

}  // namespace tidegate::gateway
