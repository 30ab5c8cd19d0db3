// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a JSON pointer, a line feed, and content:
//
// - never a crash; what is not canonical leaves the output as it was;
// - a canonical form is its own canonical form, has no whitespace outside of strings and is at most
//   four times as long as the text;
// - whitespace around it makes no difference, and a text in an array is that text in brackets;
// - what a pointer finds is canonical too; the whole is found by the empty pointer;
// - the fingerprint of the content is that of its canonical form, and differs from that of other
//   content.
#include "check.hpp"

#include <tidegate/idempotency/fingerprint.hpp>
#include <tidegate/json/canonical.hpp>

#include <algorithm>
#include <string>
#include <string_view>

namespace {

namespace json = tidegate::json;
using namespace tidegate::idempotency;
using tidegate::fuzz::check;

auto const fuzz_secret = secret(std::as_bytes(std::span(std::string_view("fuzz"))));

auto fingerprint_of(fingerprint_rule const& rule, std::string_view content) -> fingerprint {
  return fingerprinter(fuzz_secret, rule, "POST", "/", "").finish(content);
}

auto canonical(std::string_view text) -> std::string {
  std::string out;
  check(json::append_canonical(out, text));
  return out;
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) -> int {
  auto const input = std::string_view(reinterpret_cast<char const*>(data), size);
  auto const end = std::min(input.find('\n'), input.size());
  auto const content = input.substr(std::min(end + 1, input.size()));
  auto const pointer = json::pointer::parse(input.substr(0, end));
  if (!pointer) {
    check(pointer.error().offset <= end);
    check(!to_string(pointer.error()).empty());
  }

  auto const rule = fingerprint_rule::json();
  std::string form = "before";
  if (!json::append_canonical(form, content)) {
    check(form == "before");
    check(fingerprint_of(rule, content) == fingerprint_of(rule, content));
    return 0;
  }
  form.erase(0, 6);
  check(form.size() <= 4 * content.size());
  check(canonical(form) == form);
  check(canonical(" \t\r\n" + std::string(content) + "\n") == form);
  check(fingerprint_of(rule, content) == fingerprint_of(rule, form));
  check(fingerprint_of(rule, content) != fingerprint_of(rule, "[" + form + "]"));
  check(json::pointer::parse("")->find(form) == form);
  std::string bracketed;
  if (json::append_canonical(bracketed, "[" + std::string(content) + "]")) {
    check(bracketed == "[" + form + "]");
    check(json::pointer::parse("/0")->find(bracketed) == form);
    check(json::pointer::parse("/1")->find(bracketed) == std::nullopt);
  }
  if (pointer) {
    if (auto const found = pointer->find(form)) {
      check(canonical(*found) == *found);
    }
    auto const chosen = fingerprint_rule::json({*pointer});
    check(fingerprint_of(*chosen, content) == fingerprint_of(*chosen, form));
  }
  return 0;
}
