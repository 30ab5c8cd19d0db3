// SPDX-License-Identifier: Apache-2.0
#include "exchange.hpp"

#include "access_log_line.hpp"
#include "bearer.hpp"
#include "field_names.hpp"

#include <tidegate/http/cookie.hpp>
#include <tidegate/http/forwarded.hpp>
#include <tidegate/http/json_string.hpp>
#include <tidegate/http/problem.hpp>
#include <tidegate/http/query.hpp>
#include <tidegate/http/target.hpp>
#include <tidegate/ratelimit/merge.hpp>
#include <tidegate/ratelimit/read.hpp>

#include <algorithm>
#include <mutex>
#include <utility>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;
using ratelimit::partition_source_kind;
using ratelimit::quota_unit;
using wire::known_field;

/// The states of abuse detection are kept under numbers that no policy has.
constexpr std::uint32_t abuse_domain = 0x8000'0000;

/// The fields that we make anew for an upstream.
constexpr wire::field_set forwarding_fields = {known_field::x_forwarded_for,
                                               known_field::x_forwarded_proto,
                                               known_field::x_forwarded_host, known_field::via};

/// What we add to Via.
constexpr std::string_view via_here = "1.1 tidegate";

constexpr std::string_view description_path = "/.well-known/tidegate";

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

/// The value of a header field, its lines joined with ", ": `scratch` is for that.
[[nodiscard]] auto header_value(wire::request_head const& request, std::string_view name,
                                known_field known, std::string& scratch) -> std::string_view {
  if (!request.has(known)) {
    return {};
  }
  std::string_view value;
  bool is_first = true;
  for (auto const& field : request.fields()) {
    if (field.known != known || (known == known_field::other && !equal_names(field.name, name))) {
      continue;
    }
    if (is_first) {
      value = field.value;
    } else {
      if (value.data() != scratch.data()) {
        scratch.assign(value);
      }
      scratch.append(", ").append(field.value);
      value = scratch;
    }
    is_first = false;
  }
  return value;
}

/// All lines of a field, in `room`.
auto lines_of(wire::message_head const& head, known_field name, std::vector<std::string_view>& room)
    -> std::span<std::string_view const> {
  room.clear();
  for (auto const& field : head.fields()) {
    if (field.known == name) {
      room.push_back(field.value);
    }
  }
  return room;
}

/// True when a RateLimit field says of one of its limits that nothing remains.
[[nodiscard]] auto says_exhausted(std::string_view field) -> bool {
  auto const read = ratelimit::read_limits({&field, 1});
  return read &&
         std::ranges::any_of(read->limits, [](auto const& limit) { return limit.remaining == 0; });
}

/// The client as far as the proxies before us are believed.
[[nodiscard]] auto find_client(wire::request_head const& request, client_address const& from,
                               http::cidr_set const& trusted_proxies,
                               std::vector<std::string_view>& room) -> http::ip_address {
  if (trusted_proxies.contains(from.peer)) {
    if (request.has(known_field::forwarded)) {
      return http::client_by_forwarded(from.peer, lines_of(request, known_field::forwarded, room),
                                       trusted_proxies);
    }
    if (request.has(known_field::x_forwarded_for)) {
      return http::client_by_x_forwarded_for(
          from.peer, lines_of(request, known_field::x_forwarded_for, room), trusted_proxies);
    }
  }
  return from.peer;
}

}  // namespace

client_address::client_address(http::ip_address const& address,
                               std::string_view scheme_of_connection)
    : peer(address), scheme(scheme_of_connection) {
  auto const text = http::to_string(address);
  peer_text_size = static_cast<std::uint8_t>(text.size());
  std::string lines;
  wire::append_field(lines, "X-Forwarded-For", text);
  wire::append_field(lines, "X-Forwarded-Proto", scheme);
  wire::append_field(lines, "Via", via_here);
  forwarding_lines.assign(lines);  // which takes no more room than they need
}

void exchange::begin(client_stream& client, wire::request_head const& request,
                     client_address const& from) {
  client_ = &client;
  runtime_ = worker_.current;
  ++runtime_->users;
  upstream_ = nullptr;
  route_ = nullptr;
  method_ = request.method();
  status_ = 0;
  head_sent_ = false;
  charged_ = false;
  load_ = nullptr;
  share_ = 1;
  answered_at_ = instant::min();
  may_retry_ = false;
  tries_ = 0;
  request_octets_ = 0;
  response_octets_ = 0;
  views_count_ = 0;
  request_done_ = request.body().kind == wire::body_kind::none;
  begun_ = worker_.loop.now();
  admitted_at_ = begun_;
  if (worker_.log != nullptr) {
    begin_log_line(request, from);
  }

  auto const& settings = *runtime_->settings;
  auto const path =
      request.path() == "*"
          ? std::string_view("*")
          : http::normal_path(request.path(), worker_.path).value_or(std::string_view());
  if (path.empty()) {
    answer_problem(400, "Bad Request", "The path of the request is not valid.");
    return;
  }
  auto const found =
      settings.routes_by_request.find(request.method_text(), request.authority(), path);
  if (!found) {
    if (path == description_path) {
      answer_description(request);
    } else {
      answer_problem(404, "Not Found", "No route of this gateway matches the request.");
    }
    return;
  }
  route_ = &runtime_->routes[*found];
  auto const& max_body = settings.settings.http.max_body;
  if (max_body && request.body().kind == wire::body_kind::content_length &&
      request.body().length > static_cast<std::uint64_t>(*max_body)) {
    answer_problem(413, "Content Too Large", "The content of the request is larger than allowed.");
    return;
  }
  auto const& auth = route_of().settings->auth;
  token_ = auth ? find_token(auth->tokens, bearer_token_of(request)) : nullptr;
  find_partitions(request, path, from);
  find_costs(request, path);
  if (auth && !is_let_in(request, path)) {
    return;
  }
  if (route_of().settings->bridge && begin_bridge(request, path, from)) {
    return;
  }
  if (route_of().settings->idempotency && begin_keyed(request, path, from)) {
    return;
  }
  if (is_overloaded() || !admit()) {
    return;
  }
  switch (route_of().settings->service) {
    case route_service::upstream: forward(request, path, from); break;
    case route_service::echo: answer_echo(request, path); break;
    case route_service::scim: begin_service(request, path, from); break;
  }
}

// ---- quotas ----

auto exchange::value_of(ratelimit::partition_source const& source, known_field field,
                        wire::request_head const& request, std::string_view path,
                        client_address const& from) -> std::string_view {
  auto& scratch = scratch_;
  switch (source.kind) {
    case partition_source_kind::client_ip: {
      auto const client =
          find_client(request, from, runtime_->settings->trusted_proxies, worker_.lines);
      if (client.is_v4() && client == from.peer) {
        return from.peer_text();
      }
      scratch.clear();
      http::append_client_key(scratch, client);
      return scratch;
    }
    case partition_source_kind::header: return header_value(request, source.name, field, scratch);
    case partition_source_kind::query: {
      auto query = request.query();
      query.remove_prefix(std::min<std::size_t>(1, query.size()));
      return http::query_value(query, source.name, scratch).value_or("");
    }
    case partition_source_kind::cookie:
      return http::find_cookie(lines_of(request, known_field::cookie, worker_.lines), source.name)
          .value_or("");
    case partition_source_kind::method: return request.method_text();
    case partition_source_kind::host:
      if (auto const host = http::parse_host(request.authority())) {
        scratch.clear();
        http::append_normal_host(scratch, *host);
        return scratch;
      }
      return "";
    case partition_source_kind::path: return path;
    case partition_source_kind::route: return route_of().settings->name;
    case partition_source_kind::principal:
      return token_ != nullptr ? std::string_view(token_->name) : "";
  }
  return "";
}

void exchange::find_partitions(wire::request_head const& request, std::string_view path,
                               client_address const& from) {
  std::span const limits = route_of().limits;
  partitions_.clear();
  std::array<std::size_t, limits_max> ends;  // NOLINT: as many as there are limits
  for (std::size_t i = 0; i < limits.size(); ++i) {
    if (limits[i].partition_of == i) {
      auto const& rule = limits[i].policy->partition;
      for (std::size_t j = 0; j < limits[i].source_fields.size(); ++j) {
        rule.append_source(
            partitions_, j,
            value_of(rule.sources()[j], limits[i].source_fields[j], request, path, from));
      }
    }
    ends[i] = partitions_.size();
  }
  // The text does not move any more.
  for (std::size_t i = 0; i < limits.size(); ++i) {
    auto const of = limits[i].partition_of;
    auto const begin = of == 0 ? 0 : ends[of - 1];
    charges_[i] = {&limits[i].policy->policy, limits[i].id,
                   std::string_view(partitions_).substr(begin, ends[of] - begin), 1,
                   !limits[i].policy->shadow};
  }
}

/// For a refusal that no quota is the reason of: how they stand.
void exchange::look_at_all() {
  for (std::size_t i = 0; i < route_of().limits.size(); ++i) {
    results_[i] = {};
    results_[i].decision.left = worker_.shared.quotas.look(charges_[i], worker_.loop.now());
  }
  advertise_all(true);
}

auto exchange::is_overloaded() -> bool {
  auto* const load = route_->pool == nullptr ? nullptr : route_->pool->settings().load.get();
  if (load == nullptr) {
    return false;
  }
  {
    std::lock_guard const lock(load->mutex);
    share_ = load->guard.capacity();
    if (load->guard.admits(load->in_flight)) {
      ++load->in_flight;
      load_ = load;
      return false;
    }
  }
  look_at_all();
  log_decision("overloaded", {});
  auto& content = worker_.text;
  content.clear();
  ratelimit::append_problem(content, ratelimit::problem_type::temporary_reduced_capacity, {});
  refuse(ratelimit::problem_type::temporary_reduced_capacity, content, 1s);
  return true;
}

auto exchange::is_blocked() -> bool {
  std::span const limits = route_of().limits;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    auto const& policy = *limits[i].policy;
    if (!policy.abuse || policy.shadow) {
      continue;
    }
    auto const state = worker_.shared.quotas.peek<ratelimit::refusal_state>(
        abuse_domain + limits[i].id, charges_[i].partition, worker_.loop.now());
    if (auto const left = ratelimit::blocked_for(state, worker_.loop.now()); left > 0ns) {
      route_->policies[i]->blocked.add();
      look_at_all();
      auto const name = std::string_view(policy.name);
      log_decision("blocked", {&name, 1});
      auto& content = worker_.text;
      content.clear();
      ratelimit::append_problem(content, ratelimit::problem_type::abnormal_usage_detected,
                                {&name, 1});
      refuse(ratelimit::problem_type::abnormal_usage_detected, content, left);
      return true;
    }
  }
  return false;
}

void exchange::find_costs(wire::request_head const& request, std::string_view path) {
  auto const& route = route_of();
  std::span const limits = route.limits;
  if (limits.empty()) {
    return;
  }
  auto const cost = route.costs.cost(request.method_text(), path);
  for (std::size_t i = 0; i < limits.size(); ++i) {
    switch (limits[i].policy->policy.unit()) {
      case quota_unit::content_bytes:
        charges_[i].cost = request.body().kind == wire::body_kind::content_length
                               ? static_cast<std::int64_t>(std::min<std::uint64_t>(
                                     request.body().length, 999'999'999'999'999))
                               : 0;
        break;
      case quota_unit::concurrent_requests: charges_[i].cost = 1; break;
      default: charges_[i].cost = cost;
    }
  }
}

auto exchange::admit() -> bool {
  auto const& route = route_of();
  std::span const limits = route.limits;
  if (limits.empty()) {
    return true;
  }
  if (route.watches_abuse && is_blocked()) {
    return false;
  }
  auto const now = worker_.loop.now();
  auto const admitted = worker_.shared.quotas.spend({charges_.data(), limits.size()}, now,
                                                    {results_.data(), limits.size()});
  for (std::size_t i = 0; i < limits.size(); ++i) {
    auto& counts = *route_->policies[i];
    if (results_[i].shared) {
      counts.shared.add();
    }
    if (results_[i].decision.admitted) {
      counts.admitted.add();
    } else if (limits[i].policy->shadow) {
      counts.shadow_refused.add();
    } else {
      counts.refused.add();
    }
  }
  if (admitted) {
    charged_ = true;
    advertise_all(true);
    return true;
  }
  refuse_by_quota();
  return false;
}

void exchange::refuse_by_quota() {
  std::span const limits = route_of().limits;
  auto const now = worker_.loop.now();
  advertise_all(false);
  auto retry_after = 0ns;
  limit const* last = nullptr;
  std::size_t refusals = 0;
  for (std::size_t i = 0, view = 0; i < limits.size(); ++i) {
    auto const& policy = *limits[i].policy;
    if (policy.shadow) {
      continue;
    }
    auto const reset = views_[view++].reset.value_or(1s);
    if (results_[i].decision.admitted) {
      continue;
    }
    last = &limits[i];
    ++refusals;
    retry_after = std::max({retry_after, reset, 1ns});
    if (policy.abuse) {
      worker_.shared.quotas.update<ratelimit::refusal_state>(
          abuse_domain + limits[i].id, charges_[i].partition, now,
          [&](ratelimit::refusal_state& state) {
            state = ratelimit::count_refusal(*policy.abuse, state, now).next;
            return ratelimit::expires(state);
          });
    }
  }
  if (refusals == 1) {
    auto const name = std::string_view(last->policy->name);
    log_decision("refused", {&name, 1});
    refuse(ratelimit::problem_type::quota_exceeded, last->problem, retry_after, last->problem_head);
    return;
  }
  std::vector<std::string_view> violated;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    if (!results_[i].decision.admitted && !limits[i].policy->shadow) {
      violated.emplace_back(limits[i].policy->name);
    }
  }
  log_decision("refused", violated);
  auto& content = worker_.text;
  content.clear();
  ratelimit::append_problem(content, ratelimit::problem_type::quota_exceeded, violated);
  refuse(ratelimit::problem_type::quota_exceeded, content, retry_after);
}

void exchange::advertise_all(bool admitted) {
  std::span const limits = route_of().limits;
  views_count_ = 0;
  auto const random = worker_.random();
  // All keys first: then the text does not move any more.
  std::array<std::size_t, limits_max> key_ends;  // NOLINT: as many as there are limits
  if (route_of().tells_keys) {
    partition_keys_.clear();
    for (std::size_t i = 0; i < limits.size(); ++i) {
      limits[i].policy->partition.append_key(partition_keys_, charges_[i].partition);
      key_ends[i] = partition_keys_.size();
    }
  }
  for (std::size_t i = 0; i < limits.size(); ++i) {
    auto const& policy = *limits[i].policy;
    if (policy.shadow) {
      continue;
    }
    auto const& decided = results_[i].decision;
    auto const* how = &policy.advertisement;
    ratelimit::advertisement lowered;
    if (share_ < 1) {
      lowered = *how;
      lowered.share = share_;
      how = &lowered;
    }
    std::optional<std::string_view> key;
    if (policy.partition.form() != ratelimit::partition_key_form::none) {
      auto const begin = i == 0 ? 0 : key_ends[i - 1];
      key = std::string_view(partition_keys_).substr(begin, key_ends[i] - begin);
    }
    ratelimit::policy_outcome const outcome{
        &policy.policy, decided.left, decided.retry, !admitted && !decided.admitted, how, key};
    views_[views_count_++] = ratelimit::advertise(outcome, random);
  }
}

void exchange::append_limit_fields(std::string& out, wire::response_head const* origin,
                                   int status) {
  auto const& fields = runtime_->settings->settings.fields;
  if (route_ == nullptr) {
    return;
  }
  auto const& route = route_of();
  std::span<ratelimit::service_limit_view const> const views{views_.data(), views_count_};
  bool const is_redirect = status >= 300 && status < 400;
  bool const is_exhausted =
      std::ranges::any_of(views, [](auto const& view) { return view.remaining == 0; });
  if (fields.ratelimit && origin != nullptr &&
      (origin->has(known_field::ratelimit) || origin->has(known_field::ratelimit_policy))) {
    std::string policy;
    std::string limit;
    std::vector<std::string_view> more_lines;
    auto const policy_lines = lines_of(*origin, known_field::ratelimit_policy, worker_.lines);
    auto const limit_lines = lines_of(*origin, known_field::ratelimit, more_lines);
    auto const dropped = ratelimit::merge_fields({policy_lines, limit_lines}, route.policies, views,
                                                 *fields.ratelimit, policy, limit);
    if (dropped.policy || dropped.limit) {
      worker_.metrics->origin_fields_dropped.add();
    }
    if (!policy.empty()) {
      wire::append_field(out, "RateLimit-Policy", policy);
    }
    if (!limit.empty() && !(is_redirect && says_exhausted(limit))) {
      wire::append_field(out, "RateLimit", limit);
    }
  } else if (fields.ratelimit && !views.empty()) {
    route.fields.append_lines(out, views, !(is_redirect && is_exhausted));
  }
  if (fields.legacy) {
    if (auto const closest = ratelimit::find_expiring_limit(route.policies, views)) {
      wire::append_field(out, "X-RateLimit-Limit", static_cast<std::uint64_t>(closest->limit));
      wire::append_field(out, "X-RateLimit-Remaining",
                         static_cast<std::uint64_t>(closest->remaining));
      wire::append_field(out, "X-RateLimit-Reset", static_cast<std::uint64_t>(closest->reset));
    }
  }
}

void exchange::refuse(ratelimit::problem_type type, std::string_view content,
                      std::chrono::nanoseconds retry_after, std::string_view content_head) {
  auto& lines = worker_.field_lines;
  lines.clear();
  status_ = ratelimit::status_of(type);
  append_limit_fields(lines, nullptr, status_);
  wire::append_parts(lines, "Retry-After: ",
                     static_cast<std::uint64_t>(ratelimit::seconds_until(retry_after)), "\r\n");
  auto* const client = end(content.size());
  client->send_local({ratelimit::status_of(type), "application/problem+json", lines, content, false,
                      content_head});
}

void exchange::settle() {
  if (!std::exchange(charged_, false) || !route_of().gives_back) {
    return;
  }
  std::span const limits = route_of().limits;
  auto const now = worker_.loop.now();
  for (std::size_t i = 0; i < limits.size(); ++i) {
    auto const& policy = *limits[i].policy;
    if (!results_[i].decision.admitted) {
      continue;  // a shadow policy that would have refused was not charged
    }
    std::int64_t units = 0;
    if (policy.policy.unit() == quota_unit::concurrent_requests) {
      units = -1;
    } else if (policy.count == counted::successful && status_ >= 400) {
      units = -charges_[i].cost;
    } else if (policy.policy.unit() == quota_unit::content_bytes) {
      units = static_cast<std::int64_t>(request_octets_ + response_octets_) - charges_[i].cost;
    }
    if (units != 0) {
      worker_.shared.quotas.settle(charges_[i], results_[i], admitted_at_, now, units);
    }
  }
}

// ---- answers of the gateway itself ----

void exchange::answer_problem(int status, std::string_view title, std::string_view detail,
                              std::string_view more_lines) {
  auto& lines = worker_.field_lines;
  lines.clear();
  status_ = status;
  append_limit_fields(lines, nullptr, status);
  lines.append(more_lines);
  worker_.text.clear();
  http::problem_writer(worker_.text, {.title = title, .status = status, .detail = detail});
  auto* const client = end(worker_.text.size());
  // Content that is too large is not waited for.
  client->send_local({status, "application/problem+json", lines, worker_.text, status == 413});
}

auto exchange::is_let_in(wire::request_head const& request, std::string_view path) -> bool {
  bool const is_safe = method_ == wire::method::get || method_ == wire::method::head ||
                       method_ == wire::method::options || method_ == wire::method::trace;
  bool const is_scim = route_of().settings->service == route_service::scim;
  // What reads only, SCIM knows better: a POST may be a search.
  if (token_ != nullptr && (is_safe || is_scim || !token_->read_only)) {
    return true;
  }
  // How to authenticate is told to everybody (RFC 7643, section 5).
  if (is_scim && is_safe && path_below_base(path) == "/ServiceProviderConfig") {
    return true;
  }
  if (!admit()) {  // guessing is limited as everything else is
    return false;
  }
  if (token_ != nullptr) {
    answer_problem(403, "Forbidden", "This token is only for reading.");
    return false;
  }
  bool const has_token = request.has(known_field::authorization);
  std::string_view const detail =
      has_token ? "The bearer token of the request is not one that this gateway knows."
                : "The request needs a bearer token.";
  std::string_view const challenge = has_token ? "Bearer error=\"invalid_token\"" : "Bearer";
  if (is_scim) {
    auto answer = scim_error_answer({401, scim::scim_type::none, std::string(detail)});
    answer.fields.push_back({"WWW-Authenticate", std::string(challenge)});
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
  http::append_json_string(text, request.method_text());
  text.append(",\"path\":");
  http::append_json_string(text, path);
  text.append(",\"query\":");
  http::append_json_string(text, request.query());
  text.append(",\"fields\":[");
  auto const* between = "";
  for (auto const& field : request.fields()) {
    text.append(between).append("[");
    http::append_json_string(text, field.name);
    text.append(",");
    http::append_json_string(text, field.value);
    text.append("]");
    between = ",";
  }
  text.append("]}\n");
  status_ = 200;
  worker_.field_lines.clear();
  append_limit_fields(worker_.field_lines, nullptr, 200);
  response_octets_ = text.size();
  auto* const client = end();
  client->send_local({200, "application/json", worker_.field_lines, text, false});
}

void exchange::answer_description(wire::request_head const& request) {
  if (method_ != wire::method::get && method_ != wire::method::head) {
    answer_problem(405, "Method Not Allowed", "This resource can be read with GET.",
                   "Allow: GET, HEAD\r\n");
    return;
  }
  auto const accepted = request.value_of(known_field::accept);
  bool const html = accepted.contains("text/html");
  auto const& settings = *runtime_->settings;
  status_ = 200;
  auto const& content = html ? settings.description_html : settings.description_json;
  auto* const client = end(content.size());
  client->send_local({200, html ? "text/html; charset=utf-8" : "application/json",
                      "Vary: Accept\r\nCache-Control: no-cache\r\n", content, false});
}

// ---- the upstream ----

/// The lines that tell the upstream who asked. `is_trusted` is whether the peer is believed in what it says
/// about that itself.
void exchange::append_forwarding_lines(std::string& lines, wire::request_head const& request,
                                       client_address const& from, bool is_trusted) {
  auto host = request.authority();
  if (!is_trusted && !request.has(known_field::via)) {  // nearly always
    if (!host.empty()) {
      wire::append_parts(lines, "X-Forwarded-Host: ", host, "\r\n");
    }
    lines.append(from.forwarding_lines);
    return;
  }
  std::string_view forwarded_for = from.peer_text();
  auto proto = from.scheme;
  if (is_trusted) {
    auto& value = worker_.text;
    value.clear();
    for (auto const& line : lines_of(request, known_field::x_forwarded_for, worker_.lines)) {
      value.append(value.empty() ? "" : ", ").append(line);
    }
    http::append_x_forwarded_for(value, from.peer);
    forwarded_for = value;
    proto = http::x_forwarded_proto(request.value_of(known_field::x_forwarded_proto), true, proto);
    host = http::x_forwarded_host(request.value_of(known_field::x_forwarded_host), true, host);
  }
  if (!host.empty()) {
    wire::append_parts(lines, "X-Forwarded-Host: ", host, "\r\n");
  }
  wire::append_parts(lines, "X-Forwarded-For: ", forwarded_for, "\r\nX-Forwarded-Proto: ", proto,
                     "\r\nVia: ");
  if (request.has(known_field::via)) {  // each proxy adds itself at the end
    for (auto const& line : lines_of(request, known_field::via, worker_.lines)) {
      lines.append(line).append(", ");
    }
  }
  wire::append_parts(lines, via_here, "\r\n");
}

void exchange::append_forwarded_head(std::string& out, wire::request_head const& request,
                                     std::string_view path, client_address const& from,
                                     forwarding const& wanted) {
  bool const is_trusted = runtime_->settings->trusted_proxies.contains(from.peer);
  auto& lines = worker_.field_lines;
  lines.clear();
  append_forwarding_lines(lines, request, from, is_trusted);
  wire::request_forwarding how;
  std::string target;
  if (!wanted.target.empty()) {
    how.target = wanted.target;
  } else if (path.data() != request.path().data()) {  // not as it came
    target.assign(path).append(request.query());
    how.target = target;
  }
  how.drop =
      wanted.drop | (is_trusted ? forwarding_fields
                                : forwarding_fields | wire::field_set{known_field::forwarded});
  how.field_lines = lines;
  how.body = wanted.body.value_or(request.body());
  wire::append_request_head(out, request, how);
}

void exchange::forward(wire::request_head const& request, std::string_view path,
                       client_address const& from) {
  request_.clear();
  append_forwarded_head(request_, request, path, from, {});
  may_retry_ = request.body().kind == wire::body_kind::none && is_idempotent(method_);
  send_upstream(false);
}

void exchange::send_upstream(bool fresh) {
  ++tries_;
  auto* const connection = route_->pool->take(fresh);
  if (connection == nullptr) {
    upstream_failed(upstream_failure::connect_refused, {});
    return;
  }
  upstream_ = connection;
  if (!log_line_.empty()) {
    server_ = route_->pool->settings().servers[connection->server()].authority;
  }
  upstream_->start(*this, method_, request_);
}

void exchange::body(std::string_view bytes, std::uint64_t content_octets, bool last) {
  request_octets_ += content_octets;
  request_done_ = last;
  if (upstream_ != nullptr) {
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
  status_ = head.status();
  answered_at_ = worker_.loop.now();
  head_sent_ = true;
  auto& lines = worker_.field_lines;
  lines.clear();
  append_limit_fields(lines, &head, status_);
  client_->send_head(head, runtime_->settings->fields_made_anew, lines);
}

void exchange::upstream_body(std::string_view bytes, std::uint64_t content_octets) {
  if (bridge_) {
    bridge_body(bytes);
    return;
  }
  response_octets_ += content_octets;
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
  auto const& settings = *route_->pool->settings().settings;
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
    default:
      answer_problem(502, "Bad Gateway", "The service behind this gateway cannot be reached.");
  }
}

void exchange::client_takes_more() {
  if (upstream_ != nullptr) {
    upstream_->resume();
  } else if (keyed_) {
    keyed_->client_takes_more();
  } else if (service_ && head_sent_) {
    stream_service();
  }
}

void exchange::abandon(int status) {
  if (keyed_) {
    client_ = nullptr;
    if (!keyed_->client_has_gone()) {
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
  if (status_ == 0) {
    status_ = status;
  }
  (void)end();
}

void exchange::unload() {
  auto* const load = std::exchange(load_, nullptr);
  if (load == nullptr) {
    return;
  }
  auto const now = worker_.loop.now();
  // A refusal by quota, or a client that has gone, says nothing about the service.
  bool const is_failure = tries_ > 0 && answered_at_ == instant::min() && status_ >= 500;
  bool const is_answer = answered_at_ != instant::min();
  std::lock_guard const lock(load->mutex);
  if (is_answer || is_failure) {
    bool const well = is_answer && status_ != 502 && status_ != 503 && status_ != 504;
    load->guard.answered((is_answer ? answered_at_ : now) - admitted_at_, well, load->in_flight,
                         now);
  }
  --load->in_flight;
}

auto exchange::end(std::size_t local_octets) -> client_stream* {
  if (!log_line_.empty()) {
    end_log_line(local_octets);
  }
  bridge_.reset();
  settle();
  unload();
  if (route_ != nullptr) {
    route_->counts->count(status_, worker_.loop.now() - begun_);
  }
  worker_.release(*std::exchange(runtime_, nullptr));
  return std::exchange(client_, nullptr);
}

// ---- the access log ----

void exchange::begin_log_line(wire::request_head const& request, client_address const& from) {
  decision_is_logged_ = false;
  server_ = {};
  append_log_client(log_line_, std::chrono::system_clock::now(),
                    find_client(request, from, runtime_->settings->trusted_proxies, worker_.lines),
                    client_->protocol());
  append_log_request(log_line_, request, runtime_->settings->settings.access_log.query);
}

void exchange::log_decision(std::string_view decision, std::span<std::string_view const> policies) {
  if (!log_line_.empty()) {
    append_log_decision(log_line_, decision, policies);
    decision_is_logged_ = true;
  }
}

void exchange::end_log_line(std::size_t local_octets) {
  if (!decision_is_logged_) {
    append_log_decision(log_line_, charged_ ? "admitted" : "", {});
  }
  logged_response response{
      .status = status_,
      .request_octets = request_octets_,
      .response_octets = response_octets_ + (method_ == wire::method::head ? 0 : local_octets),
      .duration = worker_.loop.now() - begun_,
  };
  if (route_ != nullptr) {
    response.route = route_of().settings->name;
    if (route_->pool != nullptr) {
      response.upstream = route_->pool->settings().settings->name;
    }
  }
  response.server = server_;
  if (answered_at_ != instant::min()) {
    response.upstream_time = answered_at_ - begun_;
  }
  append_log_response(log_line_, response);
  worker_.write_log(log_line_);
  log_line_.clear();
}

}  // namespace tidegate::gateway
