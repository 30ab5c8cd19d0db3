// SPDX-License-Identifier: Apache-2.0
#include <tidegate/idempotency/problems.hpp>

#include <tidegate/http/date.hpp>
#include <tidegate/http/problem.hpp>

#include <array>
#include <cstddef>
#include <span>

namespace tidegate::TIDEGATE_ABI::idempotency {

namespace {

struct code_text {
  problem_code code;
  std::string_view name;
  int status;
  std::string_view title;
  std::string_view detail;
};

/// In the order of `problem_code`. The titles of the draft's examples where it has one.
constexpr std::array<code_text, 13> texts = {{
    {problem_code::key_missing, "key-missing", 400, "Idempotency-Key is missing",
     "This operation requires an Idempotency-Key."},
    {problem_code::key_malformed, "key-malformed", 400, "Idempotency-Key is malformed",
     "The Idempotency-Key is not valid for this operation."},
    {problem_code::key_too_old, "key-too-old", 400, "Idempotency-Key is too old",
     "The Idempotency-Key was made too long ago: make a new one."},
    {problem_code::scope_missing, "scope-missing", 400, "Owner of the Idempotency-Key is missing",
     "Nothing in the request says whose Idempotency-Key it is."},
    {problem_code::digest_mismatch, "digest-mismatch", 400,
     "The body does not match its Content-Digest",
     "The body does not have the digest that Content-Digest says: it was changed on its way."},
    {problem_code::key_reused, "key-reused", 422, "Idempotency-Key is already used",
     "The Idempotency-Key was used for another request: make a new one for each operation."},
    {problem_code::in_flight, "in-flight", 409, "A request is outstanding for this Idempotency-Key",
     "A request with the same Idempotency-Key is being processed: send this one again later."},
    {problem_code::outcome_unknown, "outcome-unknown", 409,
     "The outcome of the first request is unknown",
     "Whether the request with this Idempotency-Key was carried out is not known; it is not run "
     "again. A new key would run it a second time."},
    {problem_code::result_expired, "result-expired", 409,
     "The result of the first request has expired",
     "The request with this Idempotency-Key was carried out; its result is not kept any more."},
    {problem_code::response_not_replayable, "response-not-replayable", 409,
     "The response to the first request cannot be replayed",
     "The request with this Idempotency-Key was carried out; its response could not be kept."},
    {problem_code::body_too_large, "body-too-large", 413,
     "Body too large for a request with an Idempotency-Key",
     "The body is larger than this operation allows with an Idempotency-Key."},
    {problem_code::too_many_keys, "too-many-keys", 429, "Too many Idempotency-Keys",
     "This client has too many Idempotency-Keys: send the request again when older ones have "
     "expired."},
    {problem_code::store_unavailable, "store-unavailable", 503,
     "Idempotency-Keys cannot be checked at present",
     "The request was not run, because its Idempotency-Key cannot be checked: send it again "
     "later."},
}};

[[nodiscard]] constexpr auto in_order() noexcept -> bool {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (static_cast<std::size_t>(texts[i].code) != i) {
      return false;
    }
  }
  return true;
}
static_assert(in_order());

[[nodiscard]] auto text_of(problem_code code) noexcept -> code_text const& {
  return texts[static_cast<std::size_t>(code)];
}

}  // namespace

auto name_of(problem_code code) noexcept -> std::string_view {
  return text_of(code).name;
}

auto title_of(problem_code code) noexcept -> std::string_view {
  return text_of(code).title;
}

auto status_of(problem_code code) noexcept -> int {
  return text_of(code).status;
}

void append_problem(std::string& out, problem_details const& problem) {
  auto const& text = text_of(problem.code);
  std::string type(problem.documentation);
  type += '#';
  type += text.name;
  http::problem_writer writer(out,
                              {.type = type,
                               .title = text.title,
                               .status = problem.status != 0 ? problem.status : text.status,
                               .detail = problem.detail.empty() ? text.detail : problem.detail});
  writer.extension("code", text.name);

  std::array<std::string_view, all_request_parts.size()> differs;
  std::size_t size = 0;
  for (auto part : all_request_parts) {
    if (problem.differs.contains(part)) {
      differs[size++] = name_of(part);
    }
  }
  writer.extension("differs", std::span<std::string_view const>(differs.data(), size));
  if (problem.first_status != 0) {
    writer.extension("first-status", problem.first_status);
  }
  if (problem.first_completed && *problem.first_completed <= http::date_max) {
    std::string time;
    http::append_rfc3339(time, std::chrono::floor<std::chrono::seconds>(*problem.first_completed));
    writer.extension("first-completed", time);
  }
}

void append_link(std::string& out, std::string_view documentation) {
  out += '<';
  out += documentation;
  out += R"(>; rel="describedby"; type="text/html")";
}

}  // namespace tidegate::TIDEGATE_ABI::idempotency
