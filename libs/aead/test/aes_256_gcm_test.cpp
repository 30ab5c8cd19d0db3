// SPDX-License-Identifier: Apache-2.0
#include <tidegate/aead/aes_256_gcm.hpp>

#include <tidegate/base/hex.hpp>

#include <gtest/gtest.h>

#include <algorithm>

namespace tidegate::TIDEGATE_ABI::aead {
namespace {

struct material {
  std::array<std::byte, 32> key{};
  std::array<std::byte, nonce_size> nonce{};
};

auto sealed_by(material const& m, std::string_view data, std::string_view text) -> std::string {
  std::string out;
  EXPECT_TRUE(append_sealed(out, {m.key, m.nonce, data}, text));
  return out;
}

auto opens(material const& m, std::string_view data, std::string_view sealed) -> bool {
  std::string out = "before";
  bool const opened = append_opened(out, {m.key, m.nonce, data}, sealed);
  EXPECT_TRUE(opened || out == "before") << "what did not open leaves nothing behind";
  return opened;
}

// Test cases 13 and 14 of "The Galois/Counter Mode of Operation" by McGrew and Viega.
TEST(aead_aes_256_gcm, has_the_published_vectors) {
  auto const hex = [](std::string_view text) { return to_hex(std::as_bytes(std::span(text))); };
  EXPECT_EQ(hex(sealed_by({}, "", "")), "530f8afbc74536b9a963b4f1c4cb738b");
  EXPECT_EQ(hex(sealed_by({}, "", std::string(16, '\0'))),
            "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919");
}

TEST(aead_aes_256_gcm, opens_what_it_sealed_and_appends) {
  std::string sealed = "head";
  material const m;
  ASSERT_TRUE(append_sealed(sealed, {m.key, m.nonce, "data"}, "text"));
  EXPECT_EQ(sealed.size(), 4 + 4 + tag_size);
  std::string opened = "more ";
  ASSERT_TRUE(append_opened(opened, {m.key, m.nonce, "data"}, sealed.substr(4)));
  EXPECT_EQ(opened, "more text");
}

TEST(aead_aes_256_gcm, refuses_what_was_changed_in_any_bit_or_cut) {
  material const m;
  auto const sealed = sealed_by(m, "data", "some text");
  for (std::size_t bit = 0; bit < 8 * sealed.size(); ++bit) {
    auto changed = sealed;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(opens(m, "data", changed)) << bit;
  }
  for (std::size_t size = 0; size < sealed.size(); ++size) {
    EXPECT_FALSE(opens(m, "data", sealed.substr(0, size))) << size;
  }
}

TEST(aead_aes_256_gcm, refuses_another_key_nonce_or_associated_data) {
  material const m;
  auto const sealed = sealed_by(m, "data", "text");
  material other_key = m;
  other_key.key[31] = std::byte{1};
  material other_nonce = m;
  other_nonce.nonce[0] = std::byte{1};
  EXPECT_TRUE(opens(m, "data", sealed));
  EXPECT_FALSE(opens(other_key, "data", sealed));
  EXPECT_FALSE(opens(other_nonce, "data", sealed));
  EXPECT_FALSE(opens(m, "dat", sealed));
  EXPECT_FALSE(opens(m, "", sealed));
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::aead
