// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/error.hpp>

#include "message.hpp"

#include <tidegate/json/string.hpp>

#include <array>
#include <charconv>
#include <cstddef>

namespace tidegate::TIDEGATE_ABI::scim {

namespace {

constexpr std::array<std::string_view, 14> names = {"",
                                                    "invalidFilter",
                                                    "tooMany",
                                                    "uniqueness",
                                                    "mutability",
                                                    "invalidSyntax",
                                                    "invalidPath",
                                                    "noTarget",
                                                    "invalidValue",
                                                    "invalidVers",
                                                    "sensitive",
                                                    "invalidCursor",
                                                    "expiredCursor",
                                                    "invalidCount"};

[[nodiscard]] auto status_of(json::value const* value) noexcept -> int {
  if (value == nullptr) {
    return 0;
  }
  if (auto const* number = value->if_integer()) {
    return *number >= 100 && *number <= 599 ? static_cast<int>(*number) : 0;
  }
  int status = 0;
  if (auto const* text = value->if_string(); text != nullptr && text->size() == 3) {
    auto const [end, fault] = std::from_chars(text->data(), text->data() + text->size(), status);
    bool const whole = fault == std::errc{} && end == text->data() + text->size();
    status = whole && status >= 100 && status <= 599 ? status : 0;
  }
  return status;
}

}  // namespace

auto to_string(scim_type type) noexcept -> std::string_view {
  return names[static_cast<std::size_t>(type)];
}

void append_error(std::string& out, error const& e) {
  out += R"({"schemas":[")";
  out += error_schema;
  out += "\"]";
  if (e.type != scim_type::none) {
    out += R"(,"scimType":")";
    out += to_string(e.type);
    out += '"';
  }
  if (!e.detail.empty()) {
    out += R"(,"detail":)";
    json::append_string(out, e.detail);
  }
  // A string, by RFC 7644.
  out += R"(,"status":")" + std::to_string(e.status) + "\"}";
}

auto parse_error(std::string_view body) -> result<error, error> {
  TIDEGATE_TRY(auto const message, parse_message(body, error_schema));
  error read{.status = status_of(message.find("status"))};
  if (read.status == 0) {
    return failure(invalid_syntax("status is not a status code"));
  }
  if (auto const* type = message.find("scimType"); type != nullptr && type->if_string()) {
    for (std::size_t i = 1; i < names.size(); ++i) {
      read.type = names[i] == *type->if_string() ? static_cast<scim_type>(i) : read.type;
    }
  }
  if (auto const* detail = message.find("detail"); detail != nullptr && detail->if_string()) {
    read.detail = *detail->if_string();
  }
  return read;
}

}  // namespace tidegate::TIDEGATE_ABI::scim
