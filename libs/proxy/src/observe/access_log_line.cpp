// SPDX-License-Identifier: Apache-2.0
#include "observe/access_log_line.hpp"

#include <tidegate/json/string.hpp>
#include <tidegate/proxy/auth_fields.hpp>

#include <charconv>
#include <tidegate/http/date.hpp>

namespace tidegate::gateway {

namespace {

/// Three digits.
void append_thousandth(std::string& out, unsigned number) {
  for (unsigned const unit : {100U, 10U, 1U}) {
    out += static_cast<char>('0' + number / unit % 10);
  }
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
  append_thousandth(out, static_cast<unsigned>(microseconds % 1000));
}

void append_text(std::string& out, std::string_view text) {
  json::append_string(out, text.substr(0, logged_octets_max));
}

/// `label` and then the text, or null when it is empty.
void append_text_or_null(std::string& out, std::string_view label, std::string_view text) {
  out.append(label);
  if (text.empty()) {
    out.append("null");
  } else {
    append_text(out, text);
  }
}

}  // namespace

void append_log_time(std::string& out, std::chrono::system_clock::time_point time) {
  auto const seconds = std::chrono::floor<std::chrono::seconds>(time);
  http::append_rfc3339(out, seconds);
  out.back() = '.';
  append_thousandth(out, static_cast<unsigned>((time - seconds) / std::chrono::milliseconds(1)));
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

void append_log_request(std::string& out, wire::request_head const& request, bool query,
                        std::vector<std::string> const& secret) {
  out.append(R"(,"method":)");
  append_text(out, request.method_text());
  append_text_or_null(out, R"(,"host":)", request.authority());
  out.append(R"(,"path":)");
  append_text(out, request.path());
  if (query) {
    std::string shown;
    auto text = request.query();
    if (has_parameter_of(text.substr(std::min<std::size_t>(1, text.size())), secret)) {
      shown = text;
      remove_parameters(shown, secret);
      text = shown;
    }
    append_text_or_null(out, R"(,"query":)", text.empty() ? "" : text.substr(1));
  }
  append_text_or_null(out, R"(,"user_agent":)", request.value_of(wire::known_field::user_agent));
}

void append_log_no_request(std::string& out, bool query) {
  out.append(R"(,"method":null,"host":null,"path":null)");
  out.append(query ? R"(,"query":null)" : "").append(R"(,"user_agent":null)");
}

void append_log_decision(std::string& out, std::string_view decision,
                         std::span<std::string_view const> policies,
                         std::span<std::string const> partitions) {
  append_text_or_null(out, R"(,"decision":)", decision);
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
  append_text_or_null(out, R"(,"principal":)", response.principal);
  out.append(R"(,"idempotency":)");
  if (response.key_outcome.empty()) {
    out.append("null");
  } else {
    append_text_or_null(out, R"({"id":)", response.key_id);
    out.append(R"(,"outcome":)");
    append_text(out, response.key_outcome);
    out.append("}");
  }
  append_text_or_null(out, R"(,"route":)", response.route);
  append_text_or_null(out, R"(,"upstream":)", response.upstream);
  append_text_or_null(out, R"(,"server":)", response.server);
  out.append(R"(,"status":)");
  append_number(out, static_cast<std::uint64_t>(response.status));
  append_text_or_null(out, R"(,"reason":)", response.reason);
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
