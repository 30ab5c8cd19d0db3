// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"
#include "words.hpp"

#include <tidegate/http/date.hpp>
#include <tidegate/idempotency/key.hpp>

#include <algorithm>
#include <charconv>

namespace tidegate::TIDEGATE_ABI::explain {

namespace {

using idempotency::key_fault;

constexpr std::string_view name = "Idempotency-Key";
/// What servers take in general, and what a random text needs to have about 64 bits.
constexpr std::size_t common_length_max = 255;
constexpr std::size_t random_length_min = 16;

/// When a UUID of version 7 was made.
[[nodiscard]] auto made_at(std::string_view uuid) -> std::string {
  auto const digits = std::string(uuid.substr(0, 8)) + std::string(uuid.substr(9, 4));
  std::int64_t milliseconds = 0;
  (void)std::from_chars(digits.data(), digits.data() + digits.size(), milliseconds, 16);
  std::string text;
  http::append_rfc3339(text, std::chrono::sys_seconds(std::chrono::seconds(milliseconds / 1000)));
  return text;
}

void judge_key(std::string_view key, report& out) {
  auto const length = std::to_string(key.size()) + " characters";
  if (idempotency::is_uuid(key)) {
    switch (key[14]) {
      case '4': out.say(name, "a random UUID (version 4), " + length); return;
      case '7':
        out.say(name, "a UUID of version 7, made at " + made_at(key) + ", " + length);
        return;
      default: break;
    }
    out.say(name, std::string("a UUID of version ") + key[14] + ", " + length);
    if (key[14] < '3' || key[14] == '6') {
      out.break_rule(
          rule_of("idempotency-key-guessable"), name,
          "UUIDs of this version are made of a time and an address, which others can guess; "
          "take version 4 or 7");
    }
    return;
  }
  out.say(name,
          "a key of " + length + ", to be sent with every retry of one request and with no other");
  bool const is_number = key.find_first_not_of("0123456789") == std::string_view::npos;
  if (key.size() < random_length_min || (is_number && key.size() < 20)) {
    out.break_rule(rule_of("idempotency-key-guessable"), name,
                   "it is short enough to be guessed or to come twice; a UUID is recommended");
  } else if (key.size() > common_length_max) {
    out.break_rule(rule_of("idempotency-key-long"), name,
                   "many servers take at most 255 characters");
  }
}

}  // namespace

void explain_idempotency_key(message_view const& message, report& out) {
  auto const lines = lines_of(message, name);
  if (lines.empty()) {
    return;
  }
  std::string scratch;
  auto const key = idempotency::read_key(lines, {.length_max = lines.front().size()}, {}, scratch);
  if (key) {
    judge_key(*key, out);
    return;
  }
  auto text = to_string(key.error());
  text.pop_back();  // the period
  switch (key.error().fault) {
    case key_fault::repeated:
      out.break_rule(rule_of("idempotency-key-repeated"), name, std::move(text));
      return;
    case key_fault::empty:
      out.break_rule(rule_of("idempotency-key-empty"), name, std::move(text));
      return;
    default: break;
  }
  out.break_rule(rule_of("idempotency-key-string"), name, std::move(text));
}

}  // namespace tidegate::TIDEGATE_ABI::explain
