// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/cursor.hpp>

#include <tidegate/base/base64.hpp>

#include <gtest/gtest.h>

#include <set>

namespace tidegate::TIDEGATE_ABI::scim {
namespace {

using namespace std::chrono_literals;

constexpr wall_time now{1'800'000'000'000ms};

auto key_with(std::uint32_t id, unsigned char octet) -> cursor_key {
  cursor_key key{id, {}};
  key.secret.fill(static_cast<std::byte>(octet));
  return key;
}

auto nonce_with(unsigned char octet) -> cursor_sealer::nonce {
  cursor_sealer::nonce out{};
  out.fill(static_cast<std::byte>(octet));
  return out;
}

auto sealer_of(std::vector<cursor_key> const& keys) -> cursor_sealer {
  return cursor_sealer(keys);
}

auto sealer() -> cursor_sealer {
  return sealer_of({key_with(1, 1)});
}

auto some_cursor(std::string sort_key = "\x01jensen") -> cursor {
  return {.place = {direction::forward, gap{{std::move(sort_key), 4711}, true}},
          .count = 10,
          .rid_max = 9000,
          .total_results = 100,
          .expires = now + 10min};
}

std::vector<std::string> const some_names = {"userName", "displayName"};
std::vector<std::string> const other_names = {"userName"};

auto some_binding() -> cursor_binding {
  return {.tenant = "acme",
          .principal = "okta",
          .permission_epoch = 3,
          .endpoint = "/Users",
          .filter = "username sw \"J\"",
          .sort_by = "name.familyName",
          .descending = false,
          .attributes = some_names,
          .excluded_attributes = {}};
}

auto sealed(cursor const& c = some_cursor()) -> std::string {
  return sealer().seal(c, some_binding(), nonce_with(7)).value();
}

auto fault_of(std::string_view text, cursor_binding const& binding = some_binding(),
              wall_time when = now) -> std::optional<cursor_fault> {
  auto const opened = sealer().open(text, binding, when);
  return opened ? std::nullopt : std::optional(opened.error());
}

TEST(scim_cursor, is_opened_as_it_was_sealed) {
  for (auto towards : {direction::forward, direction::backward}) {
    for (bool behind : {false, true}) {
      for (std::optional<std::uint64_t> total : {std::optional<std::uint64_t>(), {0}, {~0ULL}}) {
        for (std::size_t size : {0U, 1U, 26U, 27U, 254U, 255U}) {
          cursor const c{.place = {towards, gap{{std::string(size, '\xff'), ~0ULL}, behind}},
                         .count = ~0U,
                         .rid_max = ~0ULL - 1,
                         .total_results = total,
                         .expires = now};
          EXPECT_EQ(sealer().open(sealed(c), some_binding(), now), c) << size;
        }
      }
    }
  }
}

// RFC 9865, section 2: only characters of the unreserved set.
TEST(scim_cursor, has_only_unreserved_characters) {
  std::string all;
  for (unsigned i = 0; i < 64; ++i) {
    all += sealer()
               .seal(some_cursor(), some_binding(), nonce_with(static_cast<unsigned char>(i)))
               .value();
  }
  EXPECT_EQ(
      all.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"),
      std::string::npos);
}

TEST(scim_cursor, shows_neither_its_sort_key_nor_its_length) {
  std::set<std::size_t> sizes;
  for (std::size_t size = 0; size <= 26; ++size) {
    auto const text = sealed(some_cursor(std::string(size, 'j')));
    EXPECT_EQ(from_base64url(text)->find("jj"), std::string::npos);
    sizes.insert(text.size());
  }
  EXPECT_EQ(sizes.size(), 1U);
  for (std::size_t size = 27; size <= sort_key_octets_max; ++size) {
    sizes.insert(sealed(some_cursor(std::string(size, 'j'))).size());
  }
  EXPECT_EQ(sizes.size(), 5U);
  EXPECT_EQ(*sizes.rbegin(), cursor_octets_max);
}

TEST(scim_cursor, cannot_be_made_of_a_longer_sort_key_or_of_the_start) {
  EXPECT_EQ(sealer().seal(some_cursor(std::string(256, 'j')), some_binding(), {}), std::nullopt);
  EXPECT_EQ(sealer().seal({}, some_binding(), {}), std::nullopt);
}

TEST(scim_cursor, is_invalid_when_any_bit_of_it_is_flipped) {
  auto const text = sealed();
  auto const octets = from_base64url(text).value();
  for (std::size_t bit = 0; bit < 8 * octets.size(); ++bit) {
    auto changed = octets;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    EXPECT_EQ(fault_of(to_base64url(changed)), cursor_fault::invalid) << "octet bit " << bit;
  }
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    auto changed = text;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    EXPECT_EQ(fault_of(changed), cursor_fault::invalid) << "character bit " << bit;
  }
}

TEST(scim_cursor, is_invalid_when_it_is_cut_or_longer) {
  auto const text = sealed();
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_EQ(fault_of(text.substr(0, size)), cursor_fault::invalid) << size;
    EXPECT_EQ(fault_of(text.substr(text.size() - size)), cursor_fault::invalid) << size;
  }
  for (auto const* more : {"A", "AA", "AAA", "AAAA", "=", "==", " ", "\n"}) {
    EXPECT_EQ(fault_of(text + more), cursor_fault::invalid) << more;
    EXPECT_EQ(fault_of(more + text), cursor_fault::invalid) << more;
  }
}

struct text_row {
  char const* name;
  std::string text;
};

TEST(scim_cursor, is_invalid_whatever_else_it_is) {
  text_row const rows[] = {
      {"one of the RFC", "VZUTiyhEQJ94IR"},
      {"an empty one", ""},
      {"an offset in base64", "b2Zmc2V0PTEw"},
      {"not base64url", "a+b/c="},
      {"a NUL", std::string(100, '\0')},
      {"not ASCII", "\xc3\xa9"},
      {"zeros", std::string(200, 'A')},
      {"as long as one may be", std::string(cursor_octets_max, 'A')},
      {"longer than one may be", std::string(cursor_octets_max + 1, 'A')},
      {"very long", std::string(1 << 20, 'A')},
  };
  for (auto const& row : rows) {
    EXPECT_EQ(fault_of(row.text), cursor_fault::invalid) << row.name;
  }
}

// The contract: another base64 spelling of a cursor is tampered.
TEST(scim_cursor, is_invalid_in_another_spelling_of_base64) {
  // Of sizes that leave 0, 2 and 4 bits behind the last octet.
  for (std::string const octets : {"abc", "ab", "a"}) {
    auto const text = to_base64url(octets);
    EXPECT_EQ(from_base64url(text), octets);
    unsigned spellings = 0;
    for (int c = 0; c < 256; ++c) {
      auto const other = text.substr(0, text.size() - 1) + static_cast<char>(c);
      spellings += from_base64url(other) == octets ? 1U : 0U;
    }
    EXPECT_EQ(spellings, 1U) << octets;
    EXPECT_EQ(from_base64url(text + "="), std::nullopt);
  }
  EXPECT_EQ(from_base64url("A"), std::nullopt);
  EXPECT_EQ(from_base64url("AAAAA"), std::nullopt);
}

TEST(scim_cursor, is_invalid_for_any_other_tenant_caller_or_query) {
  struct binding_row {
    char const* name;
    cursor_binding binding;
  };
  auto const with = [](auto change) {
    auto made = some_binding();
    change(made);
    return made;
  };
  binding_row const rows[] = {
      {"tenant", with([](auto& b) { b.tenant = "acm"; })},
      {"no tenant", with([](auto& b) { b.tenant = ""; })},
      {"principal", with([](auto& b) { b.principal = "entra"; })},
      {"tenant and principal run together", with([](auto& b) {
         b.tenant = "acmeo";
         b.principal = "kta";
       })},
      {"permissions", with([](auto& b) { b.permission_epoch = 4; })},
      {"endpoint", with([](auto& b) { b.endpoint = "/Groups"; })},
      {"no filter", with([](auto& b) { b.filter = ""; })},
      {"value of the filter", with([](auto& b) { b.filter = "username sw \"j\""; })},
      {"no sort", with([](auto& b) { b.sort_by = ""; })},
      {"sort", with([](auto& b) { b.sort_by = "name.givenName"; })},
      {"order", with([](auto& b) { b.descending = true; })},
      {"fewer attributes", with([](auto& b) { b.attributes = other_names; })},
      {"no attributes", with([](auto& b) { b.attributes = {}; })},
      {"attributes that are left out", with([](auto& b) { b.excluded_attributes = other_names; })},
      {"both lists the other way", with([](auto& b) {
         b.excluded_attributes = some_names;
         b.attributes = {};
       })},
  };
  auto const text = sealed();
  EXPECT_EQ(fault_of(text), std::nullopt);
  for (auto const& row : rows) {
    EXPECT_EQ(fault_of(text, row.binding), cursor_fault::invalid) << row.name;
    EXPECT_EQ(fault_of(text, row.binding, now + 1h), cursor_fault::invalid)
        << row.name << ": only the holder hears that it has expired";
  }
}

TEST(scim_cursor, does_not_mind_case_and_order_of_names) {
  std::vector<std::string> const names = {"DISPLAYNAME", "username", "userName"};
  auto binding = some_binding();
  binding.attributes = names;
  binding.sort_by = "NAME.familyname";
  EXPECT_EQ(fault_of(sealed(), binding), std::nullopt);
}

TEST(scim_cursor, is_good_up_to_its_expiry_and_expired_then) {
  auto const text = sealed();
  EXPECT_EQ(fault_of(text, some_binding(), now - 1h), std::nullopt) << "a clock that was set back";
  EXPECT_EQ(fault_of(text, some_binding(), now + 10min), std::nullopt);
  EXPECT_EQ(fault_of(text, some_binding(), now + 10min + 1ms), cursor_fault::expired);
  EXPECT_EQ(fault_of(text, some_binding(), wall_time::max()), cursor_fault::expired);
}

TEST(scim_cursor, is_invalid_rather_than_expired_when_both_are_true) {
  auto text = sealed();
  text[text.size() / 2] = text[text.size() / 2] == 'A' ? 'B' : 'A';
  EXPECT_EQ(fault_of(text, some_binding(), now + 1h), cursor_fault::invalid);
}

TEST(scim_cursor, is_opened_by_an_old_key_until_that_is_removed) {
  auto const old_key = key_with(1, 1);
  auto const new_key = key_with(2, 2);
  auto const by_old = sealer_of({old_key}).seal(some_cursor(), some_binding(), {}).value();
  auto const rotated = sealer_of({new_key, old_key});
  auto const by_new = rotated.seal(some_cursor(), some_binding(), {}).value();
  EXPECT_TRUE(rotated.open(by_old, some_binding(), now));
  EXPECT_TRUE(rotated.open(by_new, some_binding(), now));
  EXPECT_FALSE(sealer_of({old_key}).open(by_new, some_binding(), now)) << "the new one seals";
  auto const removed = sealer_of({new_key}).open(by_old, some_binding(), now);
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error(), cursor_fault::invalid);
}

TEST(scim_cursor, is_invalid_with_another_secret_of_the_same_id) {
  auto const opened = sealer_of({key_with(1, 9)}).open(sealed(), some_binding(), now);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error(), cursor_fault::invalid);
}

TEST(scim_cursor, differs_with_each_nonce) {
  auto a = nonce_with(7);
  auto b = nonce_with(7);
  b.front() = std::byte{8};
  auto const one = sealer().seal(some_cursor(), some_binding(), a).value();
  auto const two = sealer().seal(some_cursor(), some_binding(), b).value();
  EXPECT_NE(one.substr(one.size() / 2), two.substr(two.size() / 2));
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::scim
