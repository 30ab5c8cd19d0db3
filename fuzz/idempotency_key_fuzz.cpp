// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the lines of an Idempotency-Key field, under every format and with the bare form
// allowed or not:
//
// - never a crash; an error names a byte of the line, its end or the length that is allowed, and
//   has a code and a sentence;
// - a key is printable ASCII, neither empty nor too long, and is read again from its own String;
// - what is a key in the strict form is the same key where the bare form is allowed too;
// - more than one line is never a key.
#include "check.hpp"

#include <tidegate/idempotency/key.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace tidegate::idempotency;
using tidegate::fuzz::check;
using namespace std::chrono_literals;

constexpr wall_time now{1'700'000'000'000ms};

auto quoted(std::string_view key) -> std::string {
  std::string out = "\"";
  for (char c : key) {
    if (c == '"' || c == '\\') {
      out += '\\';
    }
    out += c;
  }
  return out + '"';
}

void check_lines(std::vector<std::string_view> const& lines, key_options options) {
  std::string scratch;
  auto const key = read_key(lines, options, now, scratch);
  if (!key) {
    check(key.error().fault == key_fault::too_long
              ? key.error().offset == options.length_max
              : lines.empty() || key.error().offset <= lines.front().size());
    check(!to_string(key.error()).empty());
    check(name_of(code_of(key.error())).starts_with("key-"));
    return;
  }
  check(lines.size() == 1);
  check(!key->empty() && key->size() <= options.length_max);
  check(std::all_of(key->begin(), key->end(), [](char c) { return c >= ' ' && c < 0x7f; }));

  auto const again = quoted(*key);
  std::vector<std::string_view> const written = {again};
  std::string other_scratch;
  check(read_key(written, options, now, other_scratch) == *key);
  if (!options.accept_unquoted) {
    options.accept_unquoted = true;
    check(read_key(lines, options, now, other_scratch) == *key);
  }
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) -> int {
  auto input = std::string_view(reinterpret_cast<char const*>(data), size);
  std::vector<std::string_view> lines;
  while (!input.empty()) {
    auto const end = std::min(input.find('\n'), input.size());
    lines.push_back(input.substr(0, end));
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  for (auto format : {key_format::any, key_format::uuid, key_format::uuidv7}) {
    for (bool const unquoted : {false, true}) {
      for (std::size_t const length_max : {std::size_t{255}, std::size_t{36}, std::size_t{3}}) {
        check_lines(lines, {.format = format,
                            .length_max = length_max,
                            .accept_unquoted = unquoted,
                            .age_max = 24h});
      }
    }
  }
  return 0;
}
