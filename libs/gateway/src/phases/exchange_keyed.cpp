// SPDX-License-Identifier: Apache-2.0
//
// What an exchange does for a request with an Idempotency-Key.
#include <tidegate/config/key_scope.hpp>
#include "admin/admin_quotas.hpp"
#include "exchange.hpp"
#include "request/field_names.hpp"

#include <tidegate/http/problem.hpp>
#include <tidegate/idempotency/key.hpp>
#include <tidegate/sf/parse.hpp>

#include <algorithm>
#include <charconv>
#include <utility>
#include <variant>
#include <vector>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;
using idempotency::problem_code;
using wire::known_field;

constexpr std::string_view bypassed_line = "Idempotency-Status: bypassed\r\n";

/// `Prefer: wait=N` (RFC 7240, section 4.3); nothing when there is none, or no number.
[[nodiscard]] auto preferred_wait(wire::request_head const& request)
    -> std::optional<std::chrono::seconds> {
  for (auto const& field : request.fields()) {
    if (field.known != known_field::other || !equal_names(field.name, "prefer")) {
      continue;
    }
    auto rest = field.value;
    while (!rest.empty()) {
      auto const end = std::min(rest.find(','), rest.size());
      auto preference = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      preference.remove_prefix(std::min(preference.find_first_not_of(" \t"), preference.size()));
      if (!equal_names(preference.substr(0, 5), "wait=")) {
        continue;
      }
      preference.remove_prefix(5);
      std::uint32_t seconds = 0;
      auto const [last, fault] =
          std::from_chars(preference.data(), preference.data() + preference.size(), seconds);
      if (fault == std::errc() && last != preference.data()) {
        return std::chrono::seconds(seconds);
      }
    }
  }
  return std::nullopt;
}

/// What Content-Digest (RFC 9530, section 2) says by SHA-256; nothing when it says nothing that we know.
[[nodiscard]] auto content_digest_of(wire::request_head const& request)
    -> std::optional<sha256_digest> {
  std::vector<std::string_view> lines;
  for (auto const& field : request.fields()) {
    if (field.known == known_field::other && equal_names(field.name, "content-digest")) {
      lines.push_back(field.value);
    }
  }
  if (lines.empty()) {
    return std::nullopt;
  }
  std::string joined;
  auto const members = sf::parse_dictionary(sf::combine(lines, joined));
  auto const* const member = members ? members->find("sha-256") : nullptr;
  auto const* const item = member != nullptr ? std::get_if<sf::item>(member) : nullptr;
  auto const octets = item != nullptr ? item->value.get_byte_sequence() : std::nullopt;
  sha256_digest digest{};
  if (!octets || octets->octets.size() != digest.size()) {
    return std::nullopt;
  }
  std::ranges::transform(octets->octets, digest.begin(),
                         [](char c) { return static_cast<std::byte>(c); });
  return digest;
}

/// Whether a field of a first answer says something that was so then: Retry-After in seconds counts from when it came.
[[nodiscard]] auto is_stale(idempotency::response_field const& field) -> bool {
  return equal_names(field.name, "retry-after") &&
         field.value.find_first_not_of("0123456789") == std::string::npos;
}

void append_fields(std::string& out, std::span<idempotency::response_field const> fields) {
  for (auto const& field : fields) {
    wire::append_field(out, field.name, std::string_view(field.value));
  }
}

}  // namespace

/// False when the request has no key and needs none.
auto exchange::begin_keyed(wire::request_head const& request, std::string_view path,
                           client_address const& from) -> bool {
  auto const& settings = *route_of().settings->idempotency;
  if (std::ranges::find(settings.methods, request.method_text()) == settings.methods.end()) {
    return false;
  }
  auto const problem = [&](problem_code code, std::string_view detail = {}) {
    idempotency::problem_details const details{
        .code = code, .documentation = settings.documentation, .detail = detail};
    auto const outcome =
        code == problem_code::key_missing ? keyed_outcome::missing : keyed_outcome::malformed;
    context_.route->counts->of(outcome).add();
    log_key({}, name_of(outcome));
    refuse_key(details, 0s);
    return true;
  };
  worker_.lines.clear();
  for (auto const& field : request.fields()) {
    if (field.known == known_field::idempotency_key) {
      worker_.lines.push_back(field.value);
    }
  }
  if (worker_.lines.empty()) {
    return settings.required ? problem(problem_code::key_missing) : false;
  }
  std::string scratch;
  auto const key = idempotency::read_key(worker_.lines, settings.key, worker_.key_time(), scratch);
  if (!key) {
    return problem(idempotency::code_of(key.error()), to_string(key.error()));
  }
  // A key of another host is another key.
  auto host = host_of(request.authority());
  std::string scope;
  append_scope_value(scope, host);
  std::string owner;
  bool is_anonymous = !settings.owned_by_address;
  values_.repeated = nullptr;
  for (std::size_t i = 0; i < settings.scope.size(); ++i) {
    auto const& source = settings.scope[i];
    auto const value = value_of(source, route_of().scope_fields[i], context_, values_);
    is_anonymous = is_anonymous && (value.empty() || !names_client(source.kind));
    append_scope_value(scope, value);
    route_of().key_owner.append_source(owner, i, value);
  }
  if (values_.repeated != nullptr) {
    context_.route->counts->of(keyed_outcome::malformed).add();
    log_key({}, name_of(keyed_outcome::malformed));
    answer_repeated();
    return true;
  }
  if (is_anonymous && !settings.anonymous) {
    return problem(problem_code::scope_missing);
  }
  if (request.body().kind == wire::body_kind::content_length &&
      request.body().length > static_cast<std::uint64_t>(settings.max_body)) {
    return problem(problem_code::body_too_large);
  }
  if (host != worker_.key_host) {
    worker_.shared.idempotency->hosts.add(host);
    worker_.key_host = host;
  }
  keyed_head head;
  head.key = worker_.shared.idempotency->secret.lookup(scope, *key);
  head.wait = preferred_wait(request);
  head.method = request.method();
  head.method_text = request.method_text();
  // It is stored and shown: a name that the operator gave is, a value that a client sent is not.
  head.principal = context_.token != nullptr ? context_.token->name
                   : is_anonymous            ? std::string()
                                             : partition_key_of(owner);
  head.host = std::move(host);
  head.path = path;
  auto query = request.query();
  query.remove_prefix(std::min<std::size_t>(1, query.size()));
  head.query = query;
  if (route_of().settings->service == route_service::scim) {
    head.service = scim_request_of(request, path, from);
  } else {
    append_forwarded_head(head.lines, request, path, from, {.drop = {known_field::expect}});
    head.lines.resize(head.lines.size() - 2);  // the empty line
  }
  head.content_digest = content_digest_of(request);
  head.framing = request.body();
  // Held here as well: each of the calls below may end it, and the exchange with it.
  auto const keyed = keyed_ =
      std::make_shared<key_phase>(worker_, *this, *context_.route, std::move(head));
  invite_content(request);  // it is needed before anybody is asked for anything
  keyed->start();
  return true;
}

auto exchange::end_keyed(std::size_t local_octets) -> client_stream* {
  auto const keyed = std::exchange(keyed_, nullptr);
  auto& on = worker_;
  auto* const client = end(local_octets);
  if (client == nullptr) {
    on.reclaim(*this);
  }
  return client;
}

void exchange::end_unheard() {
  if (context_.status == 0) {
    context_.status = client_is_gone;
    context_.reason = "client-gone";
  }
  (void)end_keyed();
}

auto exchange::admit_run() -> admission {
  // A refusal ends the exchange, which then has no owner any more.
  auto keyed = std::exchange(keyed_, nullptr);
  if (!resumed_) {
    context_.admitted_at = worker_.loop.now();
  }
  auto const said = is_overloaded() ? step::answered : admit_step();
  if (said == step::answered) {
    keyed->note(keyed_outcome::refused, this);
    respond();
    return admission::over;
  }
  tries_ = 1;
  keyed_ = std::move(keyed);
  return said == step::next ? admission::admitted : admission::waiting;
}

void exchange::close_charges() {
  quota_.settle(context_, quota_service_, worker_.loop.now());
  unload();
}

void exchange::give_charges_back() {
  unload();
  quota_.release(context_, quota_service_, worker_.loop.now());
}

void exchange::replay(std::shared_ptr<idempotency::stored_response const> const& stored,
                      std::int64_t cost) {
  auto const& response = *stored;
  auto const keyed = keyed_;
  if (client_ == nullptr) {
    keyed->note(keyed_outcome::replayed, this);
    quota_.keep_charge();
    end_unheard();
    return;
  }
  if (cost > 0 && !route_of().limits.empty()) {
    quota_.charge_replay(context_, cost);
    switch (admit_step()) {
      case step::next: break;
      case step::answered:
        keyed_.reset();
        keyed->note(keyed_outcome::refused, this);
        respond();
        return;
      case step::suspended: replayed_ = {stored, cost}; return;
    }
    quota_.keep_charge();
  } else {
    quota_.look(context_, quota_service_, worker_.loop.now());
  }
  keyed->note(keyed_outcome::replayed, this);
  context_.status = response.status;
  context_.response_octets = response.body.size();
  auto& lines = worker_.field_lines;
  lines.clear();
  for (auto const& field : response.fields) {
    if (!is_stale(field)) {
      append_fields(lines, {&field, 1});
    }
  }
  append_limit_fields(lines, nullptr, context_.status);
  lines.append("Idempotent-Replayed: true\r\n");
  if (auto* const client = end_keyed()) {
    client->send_local({.status = response.status,
                        .field_lines = lines,
                        .content = response.body,
                        .is_whole = true,
                        .owner = stored});
  }
}

void exchange::refuse_key(idempotency::problem_details const& problem,
                          std::chrono::seconds retry_after, std::string_view more_lines) {
  quota_.look(context_, quota_service_, worker_.loop.now());
  context_.status = problem.status != 0 ? problem.status : idempotency::status_of(problem.code);
  context_.reason = idempotency::name_of(problem.code);
  auto& lines = worker_.field_lines;
  lines.clear();
  append_limit_fields(lines, nullptr, context_.status);
  lines.append("Link: ");
  idempotency::append_link(lines, problem.documentation);
  lines.append("\r\n");
  if (retry_after > 0s) {
    wire::append_field(lines, "Retry-After", static_cast<std::uint64_t>(retry_after.count()));
  }
  lines.append(more_lines);
  auto& text = worker_.text;
  text.clear();
  idempotency::append_problem(text, problem);
  auto const status = context_.status;
  if (auto* const client = end_keyed(text.size())) {
    client->send_local({.status = status,
                        .content_type = "application/problem+json",
                        .field_lines = lines,
                        .content = text,
                        .closes = status == 413});
  }
}

void exchange::tell_unknown(int status, idempotency_config const& how) {
  context_.status = status;
  if (context_.reason.empty()) {
    context_.reason = status == 504 ? "upstream-timeout" : "upstream-closed";
  }
  if (client_ == nullptr) {
    return;
  }
  auto& lines = worker_.field_lines;
  lines.clear();
  append_limit_fields(lines, nullptr, status);
  lines.append("Link: ");
  idempotency::append_link(lines, how.documentation);
  lines.append("\r\n");
  wire::append_field(lines, "Retry-After",
                     static_cast<std::uint64_t>(how.policy.retry_unknown_outcome.count()));
  auto& text = worker_.text;
  text.clear();
  idempotency::append_problem(text, {.code = problem_code::outcome_unknown,
                                     .documentation = how.documentation,
                                     .status = status});
  told_status_ = status;
  told_octets_ = text.size();
  told_reason_ = context_.reason;
  std::exchange(client_, nullptr)
      ->send_local({.status = status,
                    .content_type = "application/problem+json",
                    .field_lines = lines,
                    .content = text});
}

void exchange::end_unknown(int status, idempotency_config const& how) {
  auto& on = worker_;
  tell_unknown(status, how);
  // The client may have given the exchange back by now, but not to others: it was not over.
  auto const keyed = std::exchange(keyed_, nullptr);
  (void)end();
  on.reclaim(*this);
}

void exchange::answer_unreachable(upstream_failure why) {
  auto const keyed = std::exchange(keyed_, nullptr);
  bool const is_full = why == upstream_failure::no_descriptor;
  context_.reason = is_full ? "no-descriptor" : "upstream-refused";
  tries_ = is_full ? 0 : tries_;  // the service was not asked
  if (client_ == nullptr) {
    auto& on = worker_;
    context_.status = is_full ? 503 : 502;
    (void)end();
    on.reclaim(*this);
    return;
  }
  answer_problem(is_full ? 503 : 502, is_full ? "Service Unavailable" : "Bad Gateway",
                 is_full ? "This gateway has no more connections to the service behind it."
                         : "The service behind this gateway cannot be reached.",
                 "Retry-After: 1\r\n");
}

void exchange::answer_first(int status, std::span<idempotency::response_field const> fields,
                            std::string_view limit_lines, std::string content, bool is_protected) {
  auto& lines = worker_.field_lines;
  lines.clear();
  append_fields(lines, fields);
  lines.append(limit_lines).append(is_protected ? "" : bypassed_line);
  context_.response_octets = content.size();
  if (auto* const client = end_keyed()) {
    local_response response{.status = status, .field_lines = lines, .is_whole = true};
    if (content.size() >= large_octets_min) {
      auto kept = std::make_shared<std::string const>(std::move(content));
      response.content = *kept;
      response.owner = std::move(kept);
    } else {
      response.content = content;
    }
    client->send_local(response);
  }
}

void exchange::pass_interim(wire::response_head const& head) {
  // One that does not take what there is loses some of them: the request goes on whatever the client does.
  if (client_ != nullptr && !client_->is_clogged()) {
    client_->send_interim(head);
  }
}

void exchange::head_came(int status) {
  context_.status = status;
  context_.reason = {};
  context_.answered_at = worker_.loop.now();
}

void exchange::append_limit_lines(std::string& out, wire::response_head const* head) {
  append_limit_fields(out, head, context_.status);
}

void exchange::begin_stream(int status, std::span<idempotency::response_field const> fields,
                            std::string_view limit_lines, std::optional<std::uint64_t> length,
                            bool is_protected) {
  if (client_ == nullptr) {
    return;
  }
  auto& lines = worker_.field_lines;
  lines.clear();
  append_fields(lines, fields);
  lines.append(limit_lines).append(is_protected ? "" : bypassed_line);
  client_->send_own_head(status, lines, length);
}

void exchange::stream(std::string_view content) {
  context_.response_octets += content.size();
  if (client_ != nullptr) {
    client_->send_body(content);
  }
}

void exchange::flush_stream() {
  if (client_ != nullptr) {
    client_->flush();
  }
}

auto exchange::stream_is_clogged() const -> bool {
  return client_ != nullptr && client_->is_clogged();
}

void exchange::end_stream() {
  if (auto* const client = end_keyed()) {
    client->send_end();
  }
}

void exchange::cut_stream() {
  if (auto* const client = end_keyed()) {
    client->cut();
  }
}

}  // namespace tidegate::gateway
