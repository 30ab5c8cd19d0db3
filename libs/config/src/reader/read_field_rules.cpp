// SPDX-License-Identifier: Apache-2.0
//
// `routes[].request` and `routes[].response`: which headers rules may change, and which not.
#include <tidegate/base/ascii.hpp>
#include <tidegate/http/field.hpp>
#include <tidegate/http/target.hpp>
#include "reader/edge_scalars.hpp"
#include "reader/parts.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace tidegate::gateway {

namespace {

constexpr std::size_t rules_max = 64;

/// In which of the three rules of which side a header may stand.
enum : std::uint8_t {
  nowhere = 0,
  set_in_request = 1,
  add_to_request = 2,
  removed_from_request = 4,
  set_in_response = 8,
  add_to_response = 16,
  removed_from_response = 32,
  everywhere = 63,
};

struct reserved_name {
  std::string_view name;  // in lower case; with `*` at its end, how names begin
  std::uint8_t allowed;
  std::string_view reason;
};

constexpr std::string_view of_message = "it says where a message ends";
constexpr std::string_view of_connection = "it belongs to one connection";
constexpr std::string_view of_gateway = "only the gateway writes it";
constexpr std::uint8_t in_responses = set_in_response | add_to_response | removed_from_response;

constexpr auto reserved_names = std::to_array<reserved_name>({
    {"content-length", nowhere, of_message},
    {"transfer-encoding", nowhere, of_message},
    {"trailer", nowhere, of_message},
    {"expect", in_responses, of_message},
    {"connection", nowhere, of_connection},
    {"keep-alive", nowhere, of_connection},
    {"proxy-connection", nowhere, of_connection},
    {"upgrade", nowhere, of_connection},
    {"te", nowhere, of_connection},
    {"http2-settings", nowhere, of_connection},
    {"sec-websocket-*", nowhere, of_connection},
    {"via", nowhere, of_gateway},
    {"retry-after", nowhere, of_gateway},
    {"ratelimit", nowhere, of_gateway},
    {"ratelimit-*", nowhere, of_gateway},
    {"x-ratelimit-*", nowhere, of_gateway},
    {"idempotency-*", nowhere, of_gateway},
    {"idempotent-*", nowhere, of_gateway},
    {"max-forwards", in_responses, of_gateway},
    {"host", in_responses | set_in_request, "a request has one Host; only \"set\" may name it"},
    {"forwarded", everywhere & ~add_to_request, "a second one would name another proxy"},
    {"x-forwarded-*", everywhere & ~add_to_request, "a second one would name another proxy"},
});

/// How CGI, and what follows it, reads a name: all that is neither letter nor digit is one mark.
auto read_by_cgi(std::string_view name) -> std::string {
  std::string words;
  for (char const c : name) {
    if (is_letter_or_digit(c)) {
      words += to_lower(c);
    } else if (!words.empty() && words.back() != '-') {
      words += '-';
    }
  }
  if (words.ends_with('-')) {
    words.pop_back();
  }
  return words;
}

auto find_reserved(std::string_view name) -> reserved_name const* {
  auto const found = std::ranges::find_if(reserved_names, [&](reserved_name const& known) {
    return known.name.ends_with('*') ? name.starts_with(known.name.substr(0, known.name.size() - 1))
                                     : name == known.name;
  });
  return found == reserved_names.end() ? nullptr : &*found;
}

/// Why a rule of that kind may not name the header; empty if it may.
auto reason_against(std::string_view name, std::uint8_t kind, bool has_cors) -> std::string {
  auto const spelled = read_by_cgi(name);
  bool const is_plain = equal_ignoring_case(spelled, name);
  if (auto const* const known = find_reserved(spelled)) {
    if ((known->allowed & kind) == 0) {
      return (is_plain ? "" : "servers read it as " + shown(spelled) + ", and ") +
             std::string(known->reason);
    }
    return is_plain ? "" : "servers read it as " + shown(spelled) + "; write that name";
  }
  if (!has_cors || (kind & in_responses) == 0) {
    return "";
  }
  if (spelled.starts_with("access-control-")) {
    return "\"cors\" of the route writes it";
  }
  return spelled == "vary" && kind != add_to_response
             ? "\"cors\" of the route needs it; only \"add\" may name it"
             : "";
}

/// Reads the rules of one side.
class rules_reader {
 public:
  rules_reader(option_reader& in, section const& from, bool is_request, bool has_cors)
      : in_(in), from_(from), is_request_(is_request), has_cors_(has_cors) {}

  [[nodiscard]] auto read() -> field_rules {
    field_rules made;
    made.set = read_values("set", is_request_ ? set_in_request : set_in_response);
    made.add = read_values("add", is_request_ ? add_to_request : add_to_response);
    auto const& rule = from_.rule("remove");
    for (auto const* const item : in_.items_at(from_, "remove")) {
      auto name = in_.take_node(rule, *item, read_header_name);
      if (name && take_name(*name, item->place, "remove",
                            is_request_ ? removed_from_request : removed_from_response)) {
        made.remove.push_back(*std::move(name));
      }
    }
    if (places_.size() > rules_max) {
      in_.fault(from_.place, "too many headers" + expected("at most " + std::to_string(rules_max)));
    }
    return made;
  }

  [[nodiscard]] auto names(std::string_view name) const -> bool {
    return places_.contains(lower(name));
  }

 private:
  static auto lower(std::string_view name) -> std::string {
    std::string text;
    std::ranges::transform(name, std::back_inserter(text), to_lower);
    return text;
  }

  /// Whether the name may stand there.
  auto take_name(std::string_view name, yaml_place place, std::string_view key, std::uint8_t kind)
      -> bool {
    auto const [first, fresh] = places_.try_emplace(lower(name), place);
    if (!fresh) {
      in_.fault(place, std::string(key) + ": duplicate header " + shown(name) +
                           "; it is already in " + in_.line_of(first->second, place));
      return false;
    }
    if (auto const reason = reason_against(name, kind, has_cors_); !reason.empty()) {
      in_.fault(place, std::string(key) + ": " + shown(name) + " cannot be changed: " + reason);
      return false;
    }
    return true;
  }

  auto read_values(std::string_view key, std::uint8_t kind) -> std::vector<field_rule> {
    std::vector<field_rule> made;
    auto const& rule = from_.rule(key);
    for (auto const& member : in_.named_at(from_, key)) {
      auto const& name = member.key->text;
      if (!http::is_token(name)) {
        in_.fault(member.key->place, std::string(key) + ": invalid header name " + shown(name) +
                                         expected(allowed_values(from_.rule("remove"))));
        continue;
      }
      bool const is_allowed = take_name(name, member.key->place, key, kind);
      if (in_.has_no_value(member)) {
        continue;
      }
      auto value = in_.take_node(rule, *member.value, read_header_value);
      if (!value || !is_allowed) {
        continue;
      }
      auto const host = http::parse_host(*value);
      if (is_request_ && equal_ignoring_case(name, "host") && (!host || host->name.empty())) {
        in_.fault(member.value->place, std::string(key) + ": invalid host " + shown(*value) +
                                           expected("a host, perhaps with a port"));
        continue;
      }
      made.push_back({name, *std::move(value)});
    }
    return made;
  }

  option_reader& in_;
  section const& from_;
  bool is_request_;
  bool has_cors_;
  std::map<std::string, yaml_place> places_;  // of the names, in lower case
};

/// What the OWASP REST Security Cheat Sheet lists for every response of an API, and of its list for
/// responses that could be taken for HTML, `default-src` and Referrer-Policy. The other two for
/// every response are Content-Type, which only a service knows, and Strict-Transport-Security,
/// which is `hsts`. X-Frame-Options is for browsers that do not know `frame-ancestors`.
constexpr auto api_preset = std::to_array<std::pair<char const*, char const*>>({
    {"Cache-Control", "no-store"},
    {"Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"},
    {"Referrer-Policy", "no-referrer"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
});

void read_response_rules(option_reader& in, section const& from, route_config& route) {
  in.fill(from, route);
  rules_reader reader(in, from, false, route.cors.has_value());
  route.response = reader.read();
  if (in.take(from, "preset", read_choice)) {
    std::vector<field_rule> preset;
    for (auto const& [name, value] : api_preset) {
      if (!reader.names(name)) {
        preset.push_back({name, value});
      }
    }
    route.response.set.insert(route.response.set.begin(), preset.begin(), preset.end());
  }
  if (route.hsts && reader.names("Strict-Transport-Security")) {
    in.fault(from.place_of("hsts"),
             "hsts: a rule of this route writes Strict-Transport-Security too (expected one of "
             "them)");
  }
}

}  // namespace

auto reason_against_header(std::string_view name) -> std::string {
  return reason_against(name, add_to_request, false);
}

void read_field_rules(option_reader& in, section const& from, route_config& route) {
  if (from.has("request")) {
    auto const request = in.open_at(from, "request");
    route.request = rules_reader(in, request, true, route.cors.has_value()).read();
  }
  if (from.has("response")) {
    read_response_rules(in, in.open_at(from, "response"), route);
  }
}

}  // namespace tidegate::gateway
