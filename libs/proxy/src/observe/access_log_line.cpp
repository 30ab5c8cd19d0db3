// SPDX-License-Identifier: Apache-2.0
#include "observe/access_log_line.hpp"

#include <tidegate/json/string.hpp>

#include <algorithm>
#include <array>
#include <charconv>

namespace tidegate::gateway {

namespace {

/// A number with leading zeros.
void append_padded(std::string& out, unsigned number, int digits) {
  std::array<char, 10> text{};
  for (int i = digits; i > 0; --i) {
    text[static_cast<std::size_t>(i) - 1] = static_cast<char>('0' + number % 10);
    number /= 10;
  }
  out.append(text.data(), static_cast<std::size_t>(digits));
}

void append_number(std::string& out, std::uint64_t number) {
  std::array<char, 20> text{};
  auto const end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  out.append(text.data(), end);
}

/// Milliseconds with three digits behind the point.
void append_duration(std::string& out, std::chrono::nanoseconds duration) {
  auto const microseconds = static_cast<std::uint64_t>(
      std::max<std::int64_t>(duration / std::chrono::microseconds(1), 0));
  append_number(out, microseconds / 1000);
  out += '.';
  append_padded(out, static_cast<unsigned>(microseconds % 1000), 3);
}

void append_text(std::string& out, std::string_view text) {
  json::append_string(out, text.substr(0, logged_octets_max));
}

void append_text_or_null(std::string& out, std::string_view text) {
  if (text.empty()) {
    out.append("null");
  } else {
    append_text(out, text);
  }
}

}  // namespace

void append_log_time(std::string& out, std::chrono::system_clock::time_point time) {
  auto const milliseconds = std::chrono::floor<std::chrono::milliseconds>(time);
  auto const day = std::chrono::floor<std::chrono::days>(milliseconds);
  std::chrono::year_month_day const date(day);
  std::chrono::hh_mm_ss const clock(milliseconds - day);
  append_padded(out, static_cast<unsigned>(static_cast<int>(date.year())), 4);
  out += '-';
  append_padded(out, static_cast<unsigned>(date.month()), 2);
  out += '-';
  append_padded(out, static_cast<unsigned>(date.day()), 2);
  out += 'T';
  append_padded(out, static_cast<unsigned>(clock.hours().count()), 2);
  out += ':';
  append_padded(out, static_cast<unsigned>(clock.minutes().count()), 2);
  out += ':';
  append_padded(out, static_cast<unsigned>(clock.seconds().count()), 2);
  out += '.';
  append_padded(out, static_cast<unsigned>(clock.subseconds().count()), 3);
  out += 'Z';
}

void append_log_client(std::string& out, std::chrono::system_clock::time_point time,
                       http::ip_address const& client, std::string_view protocol) {
  out.append(R"({"time":")");
  append_log_time(out, time);
  out.append(R"(","client":")");
  http::append_ip_address(out, client);
  out.append(R"(","protocol":")").append(protocol).append("\"");
}

void append_log_request(std::string& out, wire::request_head const& request, bool query) {
  out.append(R"(,"method":)");
  append_text(out, request.method_text());
  out.append(R"(,"host":)");
  append_text_or_null(out, request.authority());
  out.append(R"(,"path":)");
  append_text(out, request.path());
  if (query) {
    out.append(R"(,"query":)");
    append_text_or_null(out, request.query().empty() ? "" : request.query().substr(1));
  }
  out.append(R"(,"user_agent":)");
  append_text_or_null(out, request.value_of(wire::known_field::user_agent));
}

void append_log_no_request(std::string& out, bool query) {
  out.append(R"(,"method":null,"host":null,"path":null)");
  out.append(query ? R"(,"query":null)" : "").append(R"(,"user_agent":null)");
}

void append_log_decision(std::string& out, std::string_view decision,
                         std::span<std::string_view const> policies,
                         std::span<std::string const> partitions) {
  out.append(R"(,"decision":)");
  append_text_or_null(out, decision);
  out.append(R"(,"policies":[)");
  for (auto const& policy : policies) {
    out.append(&policy == policies.data() ? "" : ",");
    append_text(out, policy);
  }
  out.append(R"(],"partitions":[)");
  for (auto const& partition : partitions) {
    out.append(&partition == partitions.data() ? "" : ",");
    append_text(out, partition);
  }
  out.append("]");
}

auto reason_of_unreadable(int status) -> std::string_view {
  switch (status) {
    case 408: return "client-timeout";
    case 413: return "body-too-large";
    case 414: return "uri-too-long";
    case 431: return "headers-too-large";
    default: return "malformed";
  }
}

void append_log_response(std::string& out, logged_response const& response) {
  out.append(R"(,"principal":)");
  append_text_or_null(out, response.principal);
  out.append(R"(,"idempotency":)");
  if (response.key_outcome.empty()) {
    out.append("null");
  } else {
    out.append(R"({"id":)");
    append_text_or_null(out, response.key_id);
    out.append(R"(,"outcome":)");
    append_text(out, response.key_outcome);
    out.append("}");
  }
  out.append(R"(,"route":)");
  append_text_or_null(out, response.route);
  out.append(R"(,"upstream":)");
  append_text_or_null(out, response.upstream);
  out.append(R"(,"server":)");
  append_text_or_null(out, response.server);
  out.append(R"(,"status":)");
  append_number(out, static_cast<std::uint64_t>(response.status));
  out.append(R"(,"reason":)");
  append_text_or_null(out, response.reason);
  out.append(R"(,"request_bytes":)");
  append_number(out, response.request_octets);
  out.append(R"(,"response_bytes":)");
  append_number(out, response.response_octets);
  out.append(R"(,"duration_ms":)");
  append_duration(out, response.duration);
  out.append(R"(,"upstream_ms":)");
  if (response.upstream_time) {
    append_duration(out, *response.upstream_time);
  } else {
    out.append("null");
  }
  out.append("}\n");
}

}  // namespace tidegate::gateway
