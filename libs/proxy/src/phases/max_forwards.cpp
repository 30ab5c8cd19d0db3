// SPDX-License-Identifier: Apache-2.0
#include "phases/max_forwards.hpp"

#include "phases/select.hpp"

#include <tidegate/wire/http1_write.hpp>

namespace tidegate::gateway {

namespace {

constexpr std::string_view field_name = "max-forwards";

[[nodiscard]] auto is_max_forwards(wire::field_view const& field) -> bool {
  return field.known == wire::known_field::other && equal_ignoring_case(field.name, field_name);
}

}  // namespace

auto max_forwards_of(request_context const& context, reply_texts texts)
    -> std::variant<std::optional<std::uint64_t>, local_reply> {
  wire::field_view const* given = nullptr;
  for (auto const& field : context.head->fields()) {
    if (is_max_forwards(field)) {
      if (given != nullptr) {
        return problem_reply(texts, "malformed", 400, "Bad Request",
                             "The request has Max-Forwards more than once.");
      }
      given = &field;
    }
  }
  if (given == nullptr) {
    return std::optional<std::uint64_t>();
  }
  std::uint64_t left = 0;
  auto const* const end = given->value.data() + given->value.size();
  auto const [last, fault] = std::from_chars(given->value.data(), end, left);
  if (last != end || fault == std::errc::invalid_argument) {
    return problem_reply(texts, "malformed", 400, "Bad Request",
                         "The Max-Forwards of the request is not a number.");
  }
  if (fault == std::errc::result_out_of_range) {
    left = std::numeric_limits<std::uint64_t>::max();
  }
  if (left > 0) {
    return std::optional(left - 1);
  }
  std::string methods;
  for (auto const& method : context.route_settings().settings->match.methods) {
    methods.append(methods.empty() ? "" : ", ").append(method);
  }
  return options_reply(texts, methods.empty() ? usual_methods : std::string_view(methods));
}

void replace_max_forwards(std::string& head, std::uint64_t count) {
  auto const is_named = [&](std::string_view line) {
    return line.size() > field_name.size() && line[field_name.size()] == ':' &&
           equal_ignoring_case(line.substr(0, field_name.size()), field_name);
  };
  for (auto at = head.find("\r\n"); at != std::string::npos; at = head.find("\r\n", at + 2)) {
    while (is_named(std::string_view(head).substr(at + 2))) {
      head.erase(at, head.find("\r\n", at + 2) - at);
    }
  }
  head.resize(head.size() - 2);  // the empty line
  wire::append_parts(head, "Max-Forwards: ", count, "\r\n\r\n");
}

}  // namespace tidegate::gateway
