// SPDX-License-Identifier: Apache-2.0
//
// Answers that several parts of the service give, and errors.
#include <tidegate/http/accept.hpp>
#include <tidegate/scim_server/call.hpp>

#include <utility>

namespace tidegate::gateway {

namespace {

using scim::error;
using scim::scim_type;

}  // namespace

auto scim_error_answer(error const& error) -> scim_answer {
  std::string content;
  scim::append_error(content, error);
  auto answer = json_answer(error.status, std::move(content));
  if (error.status == 503) {
    answer.fields.push_back({"Retry-After", "1"});
  }
  return answer;
}

void set_accepted_type(scim_answer& answer, std::string_view accept) {
  if (accept.empty() || accept == "*/*" || accept == scim::scim_json) {
    return;  // as most clients say
  }
  constexpr std::string_view plain = "application/json";
  auto const preference = http::preference_for(plain, accept);
  if (preference.weight == 0 || preference <= http::preference_for(scim::scim_json, accept)) {
    return;
  }
  for (auto& field : answer.fields) {
    if (field.name == "Content-Type" && field.value == scim::scim_json) {
      field.value = plain;
    }
  }
}

auto json_answer(int status, std::string content) -> scim_answer {
  scim_answer answer{status, {}, std::move(content)};
  answer.fields.reserve(4);  // as many as one with a resource has
  answer.fields.push_back({"Content-Type", std::string(scim::scim_json)});
  return answer;
}

auto bad_request(scim_type type, std::string detail) -> error {
  return {400, type, std::move(detail)};
}

auto not_found(std::string_view what) -> error {
  return {404, scim_type::none, "There is no such " + std::string(what) + "."};
}

auto unavailable(store::store_error const& error) -> scim::error {
  if (error.fault == store::store_fault::in_doubt) {
    return {503, scim_type::none,
            "The directory does not say whether the change was made: look before you try again."};
  }
  return {503, scim_type::none, "The directory cannot be used at the moment."};
}

}  // namespace tidegate::gateway
