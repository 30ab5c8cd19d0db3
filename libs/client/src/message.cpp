// SPDX-License-Identifier: Apache-2.0
#include <tidegate/base/ascii.hpp>
#include <tidegate/client/error.hpp>
#include <tidegate/client/message.hpp>
#include <tidegate/http/field.hpp>

#include "exchange.hpp"

namespace tidegate::TIDEGATE_ABI::client {

auto name_of(client_fault fault) noexcept -> std::string_view {
  switch (fault) {
    case client_fault::invalid_request: return "invalid-request";
    case client_fault::too_many_requests: return "too-many-requests";
    case client_fault::cannot_connect: return "cannot-connect";
    case client_fault::connection_lost: return "connection-lost";
    case client_fault::attempt_timed_out: return "attempt-timed-out";
    case client_fault::deadline_exceeded: return "deadline-exceeded";
    case client_fault::response_too_large: return "response-too-large";
    case client_fault::cancelled: return "cancelled";
    case client_fault::out_of_resources: break;
  }
  return "out-of-resources";
}

auto message(client_fault fault) noexcept -> std::string_view {
  switch (fault) {
    case client_fault::invalid_request: return "the request cannot be sent";
    case client_fault::too_many_requests: return "too many requests wait or are under way";
    case client_fault::cannot_connect: return "cannot connect";
    case client_fault::connection_lost: return "no whole answer came";
    case client_fault::attempt_timed_out: return "no whole answer came in time";
    case client_fault::deadline_exceeded: return "the time for the request is over";
    case client_fault::response_too_large: return "the answer is too large";
    case client_fault::cancelled: return "cancelled";
    case client_fault::out_of_resources: break;
  }
  return "out of memory or other system resources";
}

auto to_string(client_error const& error) -> std::string {
  std::string out(message(error.fault));
  if (!error.detail.empty()) {
    out.append(": ").append(error.detail);
  }
  return out;
}

auto header_section::operator[](std::size_t index) const noexcept -> http::field_view {
  auto const& line = lines_[index];
  auto const text = std::string_view(text_).substr(line.begin);
  return {text.substr(0, line.name_size), text.substr(line.name_size, line.value_size)};
}

auto header_section::find(std::string_view name) const noexcept -> std::optional<std::string_view> {
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (auto const line = (*this)[i]; equal_ignoring_case(line.name, name)) {
      return line.value;
    }
  }
  return std::nullopt;
}

void header_section::add(std::string_view name, std::string_view value) {
  if (lines_.empty()) {
    // Enough for most, so that they do not grow step by step.
    lines_.reserve(16);
    text_.reserve(1024);
  }
  lines_.push_back({text_.size(), name.size(), value.size()});
  text_.append(name).append(value);
}

void header_section::clear() noexcept {
  text_.clear();
  lines_.clear();
}

}  // namespace tidegate::TIDEGATE_ABI::client
