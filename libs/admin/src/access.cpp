// SPDX-License-Identifier: Apache-2.0
#include "access.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/proxy/control.hpp>

#include <algorithm>
#include <utility>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;

[[nodiscard]] auto policy_of(std::int64_t quota) -> ratelimit::policy {
  ratelimit::policy_settings settings;
  settings.quota = quota;
  settings.window = admin_access::tries_window;
  settings.algorithm = ratelimit::algorithm::fixed;
  return *ratelimit::policy::make(settings);
}

[[nodiscard]] auto unauthorized(std::string_view detail, std::string_view error) -> admin_answer {
  auto answer = admin_problem(401, detail);
  std::string challenge = "Bearer realm=\"tidegate admin\"";
  if (!error.empty()) {
    challenge.append(", error=\"").append(error).append("\"");
  }
  answer.fields.emplace_back("WWW-Authenticate", std::move(challenge));
  return answer;
}

[[nodiscard]] auto is_read(wire::request_head const& request) -> bool {
  return request.method() == wire::method::get || request.method() == wire::method::head;
}

/// What a browser says of where the request was made: `none` is by its user.
enum class request_site : std::uint8_t { not_said, same_origin, none, elsewhere };

/// What is said twice, or in a word that no browser has, is not trusted.
[[nodiscard]] auto site_of(wire::request_head const& request) -> request_site {
  auto found = request_site::not_said;
  for (auto const& field : request.fields()) {
    if (!equal_ignoring_case(field.name, "sec-fetch-site")) {
      continue;
    }
    bool const is_first = found == request_site::not_said;
    found = is_first && equal_ignoring_case(field.value, "same-origin") ? request_site::same_origin
            : is_first && equal_ignoring_case(field.value, "none")      ? request_site::none
                                                                        : request_site::elsewhere;
  }
  return found;
}

/// Whether a request with a cookie may do what it asks for. Browsers send cookies with the requests
/// of pages of other ports, too.
[[nodiscard]] auto is_from_here(wire::request_head const& request) -> bool {
  auto const site = site_of(request);
  if (is_read(request)) {
    return site != request_site::elsewhere || request.path() == std::string_view("/");
  }
  if (is_from_elsewhere(request) || site == request_site::none) {
    return false;
  }
  return request.has(wire::known_field::origin) || site == request_site::same_origin;
}

/// The value of a cookie, empty where there is none.
[[nodiscard]] auto cookie_named(wire::request_head const& request, std::string_view name)
    -> std::string_view {
  for (auto const& field : request.fields()) {
    if (field.known != wire::known_field::cookie) {
      continue;
    }
    for (std::string_view rest = field.value; !rest.empty();) {
      auto pair = take_until(rest, ';');
      pair.remove_prefix(std::min(pair.find_first_not_of(' '), pair.size()));
      if (pair.starts_with(name) && pair.substr(name.size()).starts_with('=')) {
        return pair.substr(name.size() + 1);
      }
    }
  }
  return {};
}

}  // namespace

auto is_from_elsewhere(wire::request_head const& request) -> bool {
  if (site_of(request) == request_site::elsewhere) {
    return true;
  }
  if (!request.has(wire::known_field::origin)) {
    return false;
  }
  auto const origin = request.value_of(wire::known_field::origin);
  auto const scheme_end = origin.find("://");
  return scheme_end == std::string_view::npos ||
         !equal_ignoring_case(origin.substr(scheme_end + 3), request.authority());
}

auto asks_by_token(wire::request_head const& request) -> bool {
  constexpr std::string_view scheme = "bearer";
  return std::ranges::any_of(request.fields(), [&](auto const& field) {
    return field.known == wire::known_field::authorization &&
           equal_ignoring_case(std::string_view(field.value).substr(0, scheme.size()), scheme);
  });
}

admin_access::admin_access(bool needs_token)
    : needs_token_(needs_token),
      tries_policy_(policy_of(tries_max)),
      shared_policy_(policy_of(shared_tries_max)) {}

void admin_access::use(std::span<bearer_token const> tokens) {
  tokens_.assign(tokens.begin(), tokens.end());
  std::erase_if(sessions_, [this](session const& each) { return find(each.token) == nullptr; });
}

auto admin_access::find(sha256_digest const& token) const -> bearer_token const* {
  auto const found = std::ranges::find(tokens_, token, &bearer_token::digest);
  return found == tokens_.end() ? nullptr : &*found;
}

auto admin_access::authorize(wire::request_head const& request, std::string_view cookie,
                             http::ip_address const& from, instant now)
    -> result<admin_caller, admin_answer> {
  if (!is_read(request) && is_from_elsewhere(request)) {
    return failure(admin_problem(403, "Pages of other origins cannot change anything here."));
  }
  if (!needs_token()) {
    return admin_caller{};
  }
  if (asks_by_token(request)) {
    return by_token(bearer_token_of(request), from, now);
  }
  auto caller = by_cookie(request, cookie, now);
  if (!caller) {
    return failure(unauthorized("This address needs a token, in Authorization: Bearer.", ""));
  }
  if (!is_from_here(request)) {
    return failure(admin_problem(403, "A session works only for pages of this address."));
  }
  return *std::move(caller);
}

auto admin_access::by_token(std::string_view given, http::ip_address const& from, instant now)
    -> result<admin_caller, admin_answer> {
  auto const key = from.is_v4() ? from : from.first_of_network(64);
  auto& tries = tries_of(key, now);
  auto const& policy = &tries == &shared_tries_ ? shared_policy_ : tries_policy_;
  auto const left = ratelimit::look(policy, tries, now);
  if (left.remaining == 0) {
    auto answer =
        admin_problem(429, "Too many wrong tokens came from this address; try again later.");
    answer.fields.emplace_back(
        "Retry-After",
        std::to_string(std::max(std::chrono::ceil<std::chrono::seconds>(left.reset), 1s).count()));
    return failure(std::move(answer));
  }
  auto const* const token = find_token(tokens_, given);
  if (token != nullptr) {
    if (tries == ratelimit::bucket{}) {
      tries_.erase(key);
    }
    remember(key);
    return admin_caller{token->name, token->digest, token->read_only, std::nullopt};
  }
  (void)ratelimit::spend(policy, tries, now, 1);
  ++failures_.count;
  failures_.last_from = from;
  return failure(unauthorized("The token is not valid.", "invalid_token"));
}

auto admin_access::tries_of(http::ip_address const& from, instant now) -> ratelimit::bucket& {
  if (tries_.size() >= addresses_max && !tries_.contains(from)) {
    std::erase_if(tries_, [&](auto const& each) {
      return ratelimit::expires(tries_policy_, each.second) <= now;
    });
    if (tries_.size() >= addresses_max) {
      auto const known = std::ranges::find(known_, from, &known_address::from);
      return known != known_.end() ? known->tries : shared_tries_;
    }
  }
  return tries_[from];
}

void admin_access::remember(http::ip_address const& from) {
  auto const known = std::ranges::find(known_, from, &known_address::from);
  if (known != known_.end()) {
    std::rotate(known, known + 1, known_.end());
    return;
  }
  if (known_.size() >= known_max) {
    known_.pop_front();
  }
  known_.push_back({from});
}

auto admin_access::by_cookie(wire::request_head const& request, std::string_view cookie,
                             instant now) const -> std::optional<admin_caller> {
  auto const id = cookie_named(request, cookie);
  if (id.empty()) {
    return std::nullopt;
  }
  auto const digest = sha256::of(id);
  for (auto const& each : sessions_) {
    auto const* const token = find(each.token);
    if (equal_in_constant_time(digest, each.id) && now < each.ends && token != nullptr) {
      return admin_caller{token->name, token->digest, token->read_only, digest};
    }
  }
  return std::nullopt;
}

void admin_access::open_session(admin_caller const& caller, std::string_view id, instant now) {
  std::erase_if(sessions_, [&](session const& each) { return each.ends <= now; });
  if (sessions_.size() >= sessions_max) {
    auto const own = std::ranges::find(sessions_, caller.digest, &session::token);
    sessions_.erase(own != sessions_.end() ? own : sessions_.begin());
  }
  sessions_.push_back({sha256::of(id), caller.digest, now + session_lifetime});
}

void admin_access::close_session(admin_caller const& caller) {
  std::erase_if(sessions_, [&](session const& each) { return each.id == caller.session; });
}

auto admin_access::holds(admin_caller const& caller, instant now) const -> bool {
  if (!needs_token()) {
    return true;
  }
  if (find(caller.digest) == nullptr) {
    return false;
  }
  return !caller.session || std::ranges::any_of(sessions_, [&](session const& each) {
    return each.id == caller.session && now < each.ends;
  });
}

auto admin_access::take_failures(instant now) -> std::optional<failures> {
  if (failures_.count == 0 || (logged_at_ && now < *logged_at_ + note_interval)) {
    return std::nullopt;
  }
  logged_at_ = now;
  return std::exchange(failures_, {});
}

}  // namespace tidegate::gateway
