// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/auth_fields.hpp>

#include <tidegate/base/ascii.hpp>
#include <tidegate/http/query.hpp>

#include <algorithm>

namespace tidegate::gateway {

namespace {

void drop(auth_fields& made, std::string_view name) {
  auto const known = wire::find_known_field(name);
  made.trailer_names.push_back(lower_case(name));
  if (known != wire::known_field::other) {
    made.dropped.insert(known);
  } else {
    made.dropped_names.push_back(lower_case(name));
  }
}

/// As servers of CGI read a name: words with one "-" between two.
[[nodiscard]] auto plain_spelling_of(std::string_view name) -> std::string {
  std::string plain;
  for (char const c : name) {
    if (is_letter_or_digit(c)) {
      plain += to_lower(c);
    } else if (!plain.empty() && plain.back() != '-') {
      plain += '-';
    }
  }
  if (plain.ends_with('-')) {
    plain.pop_back();
  }
  return plain;
}

[[nodiscard]] auto is_one_of(std::string_view parameter, std::vector<std::string> const& names)
    -> bool {
  return std::ranges::any_of(names, [&](std::string const& name) {
    return http::find_query_value(parameter, name).has_value();
  });
}

}  // namespace

auto make_auth_fields(route_config const& settings, std::vector<std::string> const& other_names)
    -> std::shared_ptr<auth_fields const> {
  if (!settings.auth) {
    return nullptr;
  }
  auto const& auth = *settings.auth;
  auth_fields made;
  bool const keeps_keys = auth.forward_credentials.value_or(false);
  for (auto const& place : auth.api_keys) {
    if (keeps_keys) {
      continue;
    }
    if (place.kind == key_place::place_kind::query) {
      made.parameters.push_back(place.name);
    } else if (place.kind == key_place::place_kind::bearer || place.name == "authorization") {
      made.drops_bearer_keys = true;
    } else {
      drop(made, place.name);
    }
  }
  made.drops_authorization = !auth.forward_credentials.value_or(true);
  made.passed = auth.pass;
  for (auto const& each : auth.pass) {
    drop(made, each.field);
    // Other spellings are dropped by what they spell; the plain one is a name by itself.
    if (auto const plain = plain_spelling_of(each.field);
        !plain.empty() && !equal_ignoring_case(plain, each.field)) {
      drop(made, plain);
    }
  }
  bool const has_any = !made.trailer_names.empty() || !made.parameters.empty() ||
                       made.drops_bearer_keys || made.drops_authorization;
  if (!has_any) {
    return nullptr;
  }
  made.dropped_names.insert(made.dropped_names.end(), other_names.begin(), other_names.end());
  return std::make_shared<auth_fields const>(std::move(made));
}

auto has_parameter_of(std::string_view query, std::vector<std::string> const& names) -> bool {
  return std::ranges::any_of(names, [&](std::string const& name) {
    return http::find_query_value(query, name).has_value();
  });
}

void remove_parameters(std::string& target, std::vector<std::string> const& names) {
  auto const mark = std::min(target.find('?'), target.size());
  auto read = mark;
  auto write = mark;
  while (read < target.size()) {  // at "?" or "&"
    auto const end = std::min(target.find('&', read + 1), target.size());
    auto const parameter = std::string_view(target).substr(read + 1, end - read - 1);
    if (!is_one_of(parameter, names)) {
      auto const size = end - read;
      target[read] = write == mark ? '?' : '&';
      std::copy_n(target.begin() + static_cast<std::ptrdiff_t>(read), size,
                  target.begin() + static_cast<std::ptrdiff_t>(write));
      write += size;
    }
    read = end;
  }
  target.resize(write);
}

}  // namespace tidegate::gateway
