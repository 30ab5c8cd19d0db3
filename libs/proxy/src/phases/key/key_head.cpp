// SPDX-License-Identifier: Apache-2.0
#include "phases/key/key_head.hpp"

#include "request/caller.hpp"
#include "request/scim_request_of.hpp"

#include <tidegate/proxy/auth_fields.hpp>
#include <tidegate/proxy/partition_key.hpp>
#include <tidegate/sf/parse.hpp>

#include <charconv>

namespace tidegate::gateway {

namespace {

using idempotency::problem_code;
using wire::known_field;

/// `Prefer: wait=N` (RFC 7240, section 4.3); nothing when there is none, or no number.
[[nodiscard]] auto preferred_wait(wire::request_head const& request)
    -> std::optional<std::chrono::seconds> {
  for (auto const& field : request.fields()) {
    if (field.known != known_field::other || !equal_ignoring_case(field.name, "prefer")) {
      continue;
    }
    auto rest = field.value;
    while (!rest.empty()) {
      auto preference = http::take_element(rest);
      if (!equal_ignoring_case(preference.substr(0, 5), "wait=")) {
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

/// What Content-Digest (RFC 9530, section 2) says by SHA-256, if it does.
[[nodiscard]] auto content_digest_of(wire::request_head const& request)
    -> std::optional<sha256_digest> {
  std::vector<std::string_view> lines;
  for (auto const& field : request.fields()) {
    if (field.known == known_field::other && equal_ignoring_case(field.name, "content-digest")) {
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

/// Who owns a key.
struct key_scope {
  std::string text;   ///< in which a key is one key
  std::string owner;  ///< for the digest that an operator is shown
  std::string host;
  bool is_anonymous = false;
};

/// Nothing when the request has a value of the scope more than once.
[[nodiscard]] auto read_scope(request_context const& context, value_scratch& values)
    -> std::optional<key_scope> {
  auto const& route = context.route_settings();
  auto const& settings = *route.settings->idempotency;
  key_scope out;
  // A key of another host is another key.
  out.host = host_of(context.head->authority());
  append_scope_value(out.text, out.host);
  out.is_anonymous = !settings.owned_by_address;
  values.repeated = nullptr;
  for (std::size_t i = 0; i < settings.scope.size(); ++i) {
    auto const& source = settings.scope[i];
    auto const value = value_of(source, route.scope_fields[i], context, values);
    out.is_anonymous = out.is_anonymous && (value.empty() || !names_client(source.kind));
    append_scope_value(out.text, value);
    route.key_owner.append_source(out.owner, i, value);
  }
  return values.repeated == nullptr ? std::optional(std::move(out)) : std::nullopt;
}

void fill_head(keyed_head& head, request_context const& context, key_reading const& by,
               key_scope scope) {
  auto const& request = *context.head;
  head.wait = preferred_wait(request);
  head.method = request.method();
  head.method_text = request.method_text();
  if (auto const who = principal_of(context); !who.empty()) {
    head.principal = who;
  } else if (!scope.is_anonymous) {
    head.owner = std::move(scope.owner);
  }
  head.host = std::move(scope.host);
  head.path = context.path;
  auto query = request.query();
  query.remove_prefix(std::min<std::size_t>(1, query.size()));
  head.query = query;
  if (auto const& auth = context.route_settings().auth;
      auth && has_parameter_of(query, auth->parameters)) {
    // A retry with another key of the same client is the same request.
    std::string without = "?" + head.query;
    remove_parameters(without, auth->parameters);
    head.query = without.empty() ? without : without.substr(1);
  }
  if (context.handler == handler::scim) {
    head.service = scim_request_of(context, by.active, by.values.lines);
  } else {
    append_forwarded_head(head.lines, context, by.protocol, {.drop = {known_field::expect}},
                          by.texts);
    head.lines.resize(head.lines.size() - 2);  // the empty line: Idempotency-Attempt follows
  }
  head.content_digest = content_digest_of(request);
  head.framing = request.body();
}

}  // namespace

auto principal_of(keyed_head const& head) -> std::string {
  // It is stored and shown: a name that the operator gave is, a value that a client sent is not.
  return head.owner.empty() ? head.principal : partition_key_of(head.owner);
}

auto read_keyed_head(request_context const& context, key_reading const& by)
    -> std::variant<no_key, keyed_head, key_fault, repeated_scope> {
  auto const& request = *context.head;
  auto const& settings = *context.route_settings().settings->idempotency;
  if (std::ranges::find(settings.methods, request.method_text()) == settings.methods.end()) {
    return no_key{};
  }
  auto const lines = lines_of(request, known_field::idempotency_key, by.values.lines);
  if (lines.empty()) {
    if (settings.required) {
      return key_fault{problem_code::key_missing};
    }
    return no_key{};
  }
  std::string scratch;
  auto const key = idempotency::read_key(lines, settings.key, by.now, scratch);
  if (!key) {
    return key_fault{idempotency::code_of(key.error()), std::string(to_string(key.error()))};
  }
  auto scope = read_scope(context, by.values);
  if (!scope) {
    return repeated_scope{};
  }
  if (scope->is_anonymous && !settings.anonymous) {
    return key_fault{problem_code::scope_missing};
  }
  if (request.body().kind == wire::body_kind::content_length &&
      request.body().length > static_cast<std::uint64_t>(settings.max_body)) {
    return key_fault{problem_code::body_too_large};
  }
  if (scope->host != by.last_host) {
    by.keys.hosts.add(scope->host);
    by.last_host = scope->host;
  }
  std::variant<no_key, keyed_head, key_fault, repeated_scope> out;
  auto& head = out.emplace<keyed_head>();
  head.key = by.keys.secret.lookup(scope->text, *key);
  fill_head(head, context, by, *std::move(scope));
  return out;
}

}  // namespace tidegate::gateway
