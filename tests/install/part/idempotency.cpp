// prints: a key of 36 characters, another request: body
// SPDX-License-Identifier: Apache-2.0
#include <tidegate/idempotency.hpp>

#include <array>
#include <cstdio>
#include <string>

namespace idempotency = tidegate::idempotency;

auto fingerprint_of(idempotency::secret const& secret, std::string_view body) {
  idempotency::fingerprint_rule const rule;
  idempotency::fingerprinter content(secret, rule, "POST", "/orders", "");
  content.update(body);
  return content.finish();
}

// Makes a key, reads it back, and tells two requests apart.
auto main() -> int {
  std::string field;
  auto const made = idempotency::make_key({}, std::array<std::uint8_t, 10>{});
  if (!idempotency::append_key_field(field, made)) {
    return 1;
  }
  std::array<std::string_view, 1> const lines = {field};
  std::string scratch;
  auto const key = idempotency::read_key(lines, {}, {}, scratch);
  if (!key) {
    std::puts(to_string(key.error()).c_str());
    return 1;
  }
  std::array<std::byte, 32> const master{};
  idempotency::secret const secret(master);
  auto const differs = idempotency::differing_parts(fingerprint_of(secret, "10 EUR"),
                                                    fingerprint_of(secret, "20 EUR"));
  for (auto part : idempotency::all_request_parts) {
    if (differs.contains(part)) {
      std::printf("a key of %zu characters, another request: %s\n", key->size(),
                  std::string(name_of(part)).c_str());
    }
  }
}
