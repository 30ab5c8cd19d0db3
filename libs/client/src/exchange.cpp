// SPDX-License-Identifier: Apache-2.0
#include "exchange.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/http/field.hpp>
#include <tidegate/http/target.hpp>
#include <tidegate/idempotency/make_key.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>

namespace tidegate::TIDEGATE_ABI::client {

namespace {

constexpr std::size_t method_octets_max = 32;
constexpr std::size_t url_octets_max = 64 * 1024;
constexpr std::size_t key_octets_max = 255;
constexpr std::string_view key_name = "idempotency-key";

/// Fields that say how a message is framed or where it goes are not the caller's.
[[nodiscard]] auto is_framing(std::string_view name) noexcept -> bool {
  constexpr std::array<std::string_view, 5> framing = {"content-length", "transfer-encoding",
                                                       "connection", "host", "expect"};
  return std::ranges::any_of(framing, [&](auto each) { return equal_ignoring_case(name, each); });
}

[[nodiscard]] auto invalid(std::string detail) -> std::unexpected<client_error> {
  return failure(client_error{.fault = client_fault::invalid_request, .detail = std::move(detail)});
}

/// What the fields say of the partition: each value behind its place in the list.
void append_partition(std::string& out, request const& wanted, session_options const& options) {
  for (std::size_t i = 0; i < options.partition_fields.size(); ++i) {
    for (auto const& [name, value] : wanted.fields) {
      if (equal_ignoring_case(name, options.partition_fields[i])) {
        out.append(std::to_string(i)).append("=").append(value).push_back('\n');
      }
    }
  }
}

/// Origin, route and partition in one text. No part but the last has a line feed in it: where a
/// route does, its length keeps it apart.
[[nodiscard]] auto name_lane(http::target_view const& target, request const& wanted,
                             session_options const& options) -> std::string {
  auto out = lower_case(target.scheme);
  auto const default_port = out == "https" ? 443 : 80;
  out.append("://");
  http::append_normal_host(out, *target.host);
  if (auto const port = target.host->port.value_or(default_port); port != default_port) {
    out.append(":").append(std::to_string(port));
  }
  out.push_back('\n');
  if (!wanted.route.empty()) {
    out.append(std::to_string(wanted.route.size())).append(":").append(wanted.route);
  }
  out.push_back('\n');
  if (!wanted.partition.empty()) {
    out.append("=").append(wanted.partition);
  } else {
    append_partition(out, wanted, options);
  }
  return out;
}

}  // namespace

void exchange_queue::insert(exchange& each, exchange* after) noexcept {
  each.after = after;
  each.before = after == nullptr ? last_ : after->before;
  (each.before == nullptr ? first_ : each.before->after) = &each;
  (after == nullptr ? last_ : after->before) = &each;
}

void exchange_queue::remove(exchange& each) noexcept {
  (each.before == nullptr ? first_ : each.before->after) = each.after;
  (each.after == nullptr ? last_ : each.after->before) = each.before;
}

auto prepare(request wanted, session_options const& options, origination const& at)
    -> result<std::unique_ptr<exchange>, client_error> {
  if (!http::is_token(wanted.method) || wanted.method.size() > method_octets_max ||
      wanted.method == "CONNECT") {
    return invalid("invalid method (expected a token other than CONNECT)");
  }
  if (!wanted.body.empty() && (wanted.method == "HEAD" || wanted.method == "TRACE")) {
    return invalid(wanted.method + " has no content");
  }
  if (wanted.url.size() > url_octets_max) {
    return invalid("the URL is too long");
  }
  wanted.url.resize(std::min(wanted.url.find('#'), wanted.url.size()));
  auto const target = http::parse_target("GET", wanted.url);
  if (!target) {
    return invalid("URL, offset " + std::to_string(target.error().offset) + ": " +
                   std::string(http::message(target.error().fault)));
  }
  if (target->form != http::target_form::absolute) {
    return invalid("the URL does not begin with http:// or https://");
  }
  auto made = std::make_unique<exchange>();
  made->repeats.idempotent_method = idempotency::is_idempotent(wanted.method);
  for (auto const& [name, value] : wanted.fields) {
    if (!http::is_token(name) || !http::is_field_value(value)) {
      return invalid(http::is_token(name) ? "invalid value of the field " + name
                                          : std::string("invalid field name (expected a token)"));
    }
    if (is_framing(name)) {
      return invalid("the field " + name + " is set by the client itself");
    }
    if (equal_ignoring_case(name, key_name)) {
      if (value.find_first_not_of(" \t") == std::string::npos) {
        return invalid("the field " + name + " is empty (expected a key)");
      }
      made->repeats.has_key = true;
    }
  }
  if (!wanted.key.empty() &&
      (wanted.key.size() > key_octets_max || !http::is_field_value(wanted.key) ||
       wanted.key.find('\t') != std::string::npos ||
       std::ranges::any_of(wanted.key, [](char c) { return c < 0; }))) {
    return invalid("the key is not printable ASCII, or longer than 255 characters");
  }
  if ((wanted.idempotent || !wanted.key.empty()) && !made->repeats.has_key) {
    made->repeats.has_key = true;
    made->key = wanted.key.empty() ? idempotency::make_key(at.wall_clock, at.randomness)
                                   : std::move(wanted.key);
  }
  made->lane_name = name_lane(*target, wanted, options);
  // A URL without a path has none of its text.
  auto const* const url_end = wanted.url.data() + wanted.url.size();
  bool const has_path = std::greater_equal<>()(target->path.data(), wanted.url.data()) &&
                        std::less<>()(target->path.data(), url_end);
  if (has_path && http::is_normal_path(target->path)) {
    made->target_begin = static_cast<std::size_t>(target->path.data() - wanted.url.data());
  }
  // A time below 0 counts as 0, and must not become a very long one.
  auto const time =
      std::max(wanted.time_max.value_or(options.time_max), std::chrono::nanoseconds(0));
  made->sent_at = at.now;
  made->deadline = at.now > instant::max() - time ? instant::max() : at.now + time;
  made->wanted = std::move(wanted);
  return made;
}

}  // namespace tidegate::TIDEGATE_ABI::client
