// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a cursor, as what a cursor says, and as a change of one:
//
// - never a crash; a text that was made without the key is refused as invalid;
// - what is sealed is opened as it was, has only unreserved characters and is never too long;
// - with any change of its text, or of whom or what it is bound to, it is invalid, also when it has
//   expired.
#include "check.hpp"

#include <tidegate/scim/cursor.hpp>

#include <algorithm>
#include <string>
#include <string_view>

namespace {

using namespace tidegate::scim;
using tidegate::fuzz::check;

/// Takes values off the front of the input; behind its end there are zeros.
struct source {
  std::string_view rest;

  auto octet() -> unsigned char {
    if (rest.empty()) {
      return 0;
    }
    auto const c = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    return c;
  }
  auto integer(int octets) -> std::uint64_t {
    std::uint64_t value = 0;
    for (int i = 0; i < octets; ++i) {
      value = value << 8 | octet();
    }
    return value;
  }
  auto text(std::size_t size) -> std::string {
    std::string out(rest.substr(0, size));
    rest.remove_prefix(out.size());
    return out;
  }
};

auto sealer() -> cursor_sealer const& {
  static cursor_sealer const made = [] {
    cursor_key key{7, {}};
    key.secret.fill(std::byte{42});
    return cursor_sealer(std::span(&key, 1));
  }();
  return made;
}

void check_invalid(std::string_view text, cursor_binding const& binding, wall_time now) {
  auto const opened = sealer().open(text, binding, now);
  check(!opened && opened.error() == cursor_fault::invalid);
}

void check_sealed(source from) {
  auto const flags = from.octet();
  cursor c;
  c.place.towards = (flags & 1) != 0 ? direction::backward : direction::forward;
  c.count = static_cast<std::uint32_t>(from.integer(4));
  c.rid_max = from.integer(8);
  if ((flags & 2) != 0) {
    c.total_results = from.integer(8);
  }
  c.expires = wall_time(std::chrono::milliseconds(static_cast<std::int64_t>(from.integer(8))));
  auto const rid = from.integer(8);
  c.place.from = gap{{from.text(from.octet()), rid}, (flags & 4) != 0};
  cursor_sealer::nonce nonce{};
  std::generate(nonce.begin(), nonce.end(), [&] { return static_cast<std::byte>(from.octet()); });
  auto const tenant = from.text(from.octet());
  auto const filter = from.text(from.octet());
  cursor_binding const binding{.tenant = tenant,
                               .principal = "p",
                               .endpoint = "/Users",
                               .filter = filter,
                               .sort_by = {},
                               .attributes = {},
                               .excluded_attributes = {}};

  auto const text = sealer().seal(c, binding, nonce);
  check(text.has_value());
  check(text->size() <= cursor_octets_max);
  check(
      text->find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") ==
      std::string::npos);
  check(sealer().open(*text, binding, c.expires) == c);
  bool const can_expire = c.expires < wall_time::max();
  auto const later = can_expire ? c.expires + std::chrono::milliseconds(1) : c.expires;
  if (can_expire) {
    auto const expired = sealer().open(*text, binding, later);
    check(!expired && expired.error() == cursor_fault::expired);
  }

  auto changed = *text;
  for (std::size_t i = 0; !from.rest.empty() && i < 64; ++i) {
    auto const at = from.octet() % changed.size();
    changed[at] = static_cast<char>(from.octet());
  }
  if (changed != *text) {
    check_invalid(changed, binding, later);
  }
  auto other = binding;
  other.tenant = filter;
  other.filter = tenant;
  if (tenant != filter) {
    check_invalid(*text, other, later);
  }
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) -> int {
  auto const octets = std::string_view(reinterpret_cast<char const*>(data), size);
  check_invalid(octets, {}, wall_time());
  check_sealed({octets});
  return 0;
}
