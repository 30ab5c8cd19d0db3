// SPDX-License-Identifier: Apache-2.0
#include "request/grpc.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/base/hex.hpp>
#include <tidegate/json/parse.hpp>
#include <tidegate/wire/http1_write.hpp>

#include <charconv>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;

constexpr std::string_view any_grpc = "application/grpc";
constexpr std::string_view timeout_name = "grpc-timeout";

/// Code numbers of gRPC, as far as we say them.
enum code : int {
  unknown = 2,
  invalid_argument = 3,
  deadline_exceeded = 4,
  permission_denied = 7,
  resource_exhausted = 8,
  aborted = 10,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
  unauthenticated = 16,
};

[[nodiscard]] auto begins_with(std::string_view text, std::string_view beginning) -> bool {
  return equal_ignoring_case(text.substr(0, beginning.size()), beginning);
}

[[nodiscard]] auto content_type_of(grpc_kind kind) -> std::string_view {
  switch (kind) {
    case grpc_kind::web: return "application/grpc-web";
    case grpc_kind::web_text: return "application/grpc-web-text";
    default: return any_grpc;
  }
}

/// What a problem says to people.
[[nodiscard]] auto text_of(local_reply const& reply) -> std::string {
  auto const problem = json::parse(std::string(reply.content_begin).append(reply.content));
  if (problem) {
    for (auto const* const name : {"detail", "title"}) {
      if (auto const* const text = problem->find<std::string>(name)) {
        return *text;
      }
    }
  }
  return std::string(wire::reason_phrase(reply.status));
}

}  // namespace

auto grpc_kind_of(wire::request_head const& request) -> grpc_kind {
  auto const type = request.value_of(wire::known_field::content_type);
  if (!begins_with(type, any_grpc)) [[likely]] {
    return grpc_kind::none;
  }
  return begins_with(type, "application/grpc-web-text") ? grpc_kind::web_text
         : begins_with(type, "application/grpc-web")    ? grpc_kind::web
                                                        : grpc_kind::grpc;
}

auto grpc_status_of(int status) noexcept -> int {
  switch (status) {
    case 401: return unauthenticated;
    case 403: return permission_denied;
    case 404:
    case 405:
    case 501: return unimplemented;
    case 408:
    case 504: return deadline_exceeded;
    case 409: return aborted;
    case 413:
    case 429: return resource_exhausted;
    case 502:
    case 503: return unavailable;
    default:
      return status >= 400 && status < 500 ? invalid_argument : status >= 500 ? internal : unknown;
  }
}

/// TimeoutValue TimeoutUnit: at most eight digits, and one letter.
auto parse_grpc_timeout(std::string_view value) -> std::optional<std::chrono::nanoseconds> {
  if (value.size() < 2 || value.size() > 9) {
    return std::nullopt;
  }
  std::int64_t count = 0;
  auto const digits = value.substr(0, value.size() - 1);
  auto const [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc() || end != digits.data() + digits.size() || !is_digit(digits.front())) {
    return std::nullopt;
  }
  switch (value.back()) {
    case 'H': return std::chrono::hours(std::min<std::int64_t>(count, 24 * 365));
    case 'M': return std::min<std::chrono::nanoseconds>(std::chrono::minutes(count), 24h * 365);
    case 'S': return std::min<std::chrono::nanoseconds>(std::chrono::seconds(count), 24h * 365);
    case 'm': return std::chrono::milliseconds(count);
    case 'u': return std::chrono::microseconds(count);
    case 'n': return std::chrono::nanoseconds(count);
    default: return std::nullopt;
  }
}

auto find_grpc_timeout(wire::request_head const& request) -> grpc_timeout_field {
  grpc_timeout_field found;
  for (auto const& field : request.fields()) {
    if (field.known == wire::known_field::other && equal_ignoring_case(field.name, timeout_name)) {
      found.value = field.value;
      ++found.count;
    }
  }
  return found;
}

void append_grpc_message(std::string& out, std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (char const c : text) {
    if (c >= ' ' && c <= '~' && c != '%') {
      out.push_back(c);
    } else {
      auto const octet = static_cast<unsigned char>(c);
      out.push_back('%');
      out.push_back(digits[octet >> 4U]);
      out.push_back(digits[octet & 0xfU]);
    }
  }
}

void append_grpc_end(std::string& out, int grpc_status, std::string_view message) {
  wire::append_field(out, "grpc-status", static_cast<std::uint64_t>(grpc_status));
  out.append("grpc-message: ");
  append_grpc_message(out, message);
  out.append("\r\n");
}

void become_grpc(local_reply& reply, grpc_kind kind, std::string& lines) {
  lines.assign(reply.field_lines);
  wire::append_field(lines, "Content-Type", content_type_of(kind));
  append_grpc_end(lines, grpc_status_of(reply.status), text_of(reply));
  if (reply.retry_after > 0ns) {
    auto const seconds = std::chrono::ceil<std::chrono::seconds>(reply.retry_after).count();
    wire::append_field(lines, "grpc-retry-pushback-ms", static_cast<std::uint64_t>(seconds) * 1000);
  }
  reply.field_lines = lines;
  reply.content_type = {};
  reply.content_begin = {};
  reply.content = {};
  reply.content_head = {};
  reply.owner.reset();
  reply.status = 200;
}

}  // namespace tidegate::gateway
