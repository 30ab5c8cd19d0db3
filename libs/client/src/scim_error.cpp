// SPDX-License-Identifier: Apache-2.0
#include <tidegate/client/scim_error.hpp>

#include <tidegate/json/parse.hpp>
#include <tidegate/json/value.hpp>

#include <utility>

namespace tidegate::TIDEGATE_ABI::client {

auto name_of(scim_fault fault) noexcept -> std::string_view {
  switch (fault) {
    case scim_fault::no_answer: return "no-answer";
    case scim_fault::answer_too_large: return "answer-too-large";
    case scim_fault::refused: return "refused";
    case scim_fault::invalid_answer: return "invalid-answer";
    case scim_fault::place_lost: return "place-lost";
    case scim_fault::stuck: return "stuck";
    case scim_fault::no_way_back: break;
  }
  return "no-way-back";
}

auto to_string(scim_error const& error) -> std::string {
  std::string out;
  switch (error.fault) {
    case scim_fault::no_answer: out = "there is no answer"; break;
    case scim_fault::answer_too_large: out = "the answer is too large"; break;
    case scim_fault::refused: out = "the server answered " + std::to_string(error.status); break;
    case scim_fault::invalid_answer: out = "the answer is not a list of resources"; break;
    case scim_fault::place_lost: out = "the server does not accept its cursor any more"; break;
    case scim_fault::stuck: out = "the server brings nothing new and is not at its end"; break;
    case scim_fault::no_way_back: out = "the server gives no way back"; break;
  }
  if (auto const type = to_string(error.type); !type.empty()) {
    out.append(" ").append(type);
  }
  if (!error.detail.empty()) {
    out.append(": ").append(error.detail);
  }
  return out;
}

auto refusal_of(int status, std::string_view body) -> scim_error {
  scim_error out{.fault = scim_fault::refused, .status = status};
  if (auto read = scim::parse_error(body)) {
    out.type = read->type;
    out.detail = std::move(read->detail);
  } else if (auto const problem = json::parse(body)) {
    out.detail = text_of(*problem, "detail");
    if (out.detail.empty()) {
      out.detail = text_of(*problem, "title");
    }
  }
  return out;
}

}  // namespace tidegate::TIDEGATE_ABI::client
