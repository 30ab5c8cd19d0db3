// SPDX-License-Identifier: Apache-2.0
#include <tidegate/base/sha256.hpp>

#include <tidegate/base/hex.hpp>

#include "sha256_compress.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tidegate {
namespace {

/// Bytes that do not repeat with the size of a block.
auto message_of(std::size_t size) -> std::string {
  std::string out(size, '\0');
  for (std::size_t i = 0; i < size; ++i) {
    out[i] = static_cast<char>(i * 7 + i / 251);
  }
  return out;
}

TEST(base_sha256, gives_the_digests_that_nist_publishes) {
  struct row {
    std::string message;
    std::string_view digest;
  };
  for (auto const& [message, digest] : {
           row{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
           {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
           {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
           {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
            "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
           {"\xbd", "68325720aabd7c82f30f554b313d0570c95accbb7dc4b5aae11204c08ffe732b"},
           {std::string(55, '\0'),
            "02779466cdec163811d078815c633f21901413081449002f24aa3e80f0b88ef7"},
           {std::string(56, '\0'),
            "d4817aa5497628e7c77e6b606107042bbba3130888c5f47a375e6179be789fbb"},
           {std::string(57, '\0'),
            "65a16cb7861335d5ace3c60718b5052e44660726da4cd13bb745381b235a1785"},
           {std::string(64, '\0'),
            "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b"},
           {std::string(1000, '\0'),
            "541b3e9daa09b20bf85fa273e5cbd3e80185aa4ec298e765db87742b70138a53"},
           {std::string(1000, 'A'),
            "c2e686823489ced2017f6059b8b239318b6364f6dcd835d0a519105a1eadd6e4"},
           {std::string(1005, 'U'),
            "f4d62ddec0f3dd90ea1380fa16a5ff8dc4c54b21740650f24afc4120903552b0"},
       }) {
    EXPECT_EQ(to_hex(sha256::of(message)), digest) << message.size() << " bytes";
  }
}

TEST(base_sha256, takes_a_million_bytes_in_pieces_of_any_size) {
  sha256 hash;
  std::string const message(1'000'000, 'a');
  for (std::size_t begin = 0, size = 0; begin < message.size(); begin += size) {
    size = (size * 3 + 1) % 1009;
    hash.update(std::string_view(message).substr(begin, size));
  }
  EXPECT_EQ(to_hex(hash.finish()),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(base_sha256, does_not_depend_on_where_a_message_is_split) {
  for (std::size_t size : {1U, 55U, 56U, 63U, 64U, 65U, 127U, 128U, 129U, 200U}) {
    auto const message = message_of(size);
    auto const whole = sha256::of(message);
    for (std::size_t first = 0; first <= size; ++first) {
      for (std::size_t second = first; second <= size; ++second) {
        sha256 hash;
        hash.update(std::string_view(message).substr(0, first));
        hash.update(std::string_view(message).substr(first, second - first));
        hash.update(std::string_view(message).substr(second));
        ASSERT_EQ(hash.finish(), whole) << size << " bytes, split at " << first << ", " << second;
      }
    }
  }
}

TEST(base_sha256, is_the_same_with_and_without_instructions_for_it) {
#if defined(__x86_64__)
  if (!detail::has_sha_instructions()) {
    GTEST_SKIP() << "this processor has no instructions for SHA-256";
  }
  detail::sha256_words fast = {1, 2, 3, 4, 5, 6, 7, 8};
  auto portable = fast;
  for (std::size_t count = 0; count < 50; ++count) {
    auto const message = message_of(count * sha256::block_size + 1);
    // The blocks lie anywhere.
    auto const* const blocks = reinterpret_cast<std::byte const*>(message.data()) + 1;
    detail::compress_x86(fast, blocks, count);
    detail::compress_portable(portable, blocks, count);
    ASSERT_EQ(fast, portable) << count;
  }
#else
  GTEST_SKIP() << "there is one way only";
#endif
}

TEST(base_sha256, starts_over_after_finish_and_goes_on_in_a_copy) {
  sha256 hash;
  hash.update("ab");
  auto copy = hash;
  hash.update("x");
  EXPECT_EQ(hash.finish(), sha256::of("abx"));
  EXPECT_EQ(hash.finish(), sha256::of(""));
  copy.update("c");
  EXPECT_EQ(copy.finish(), sha256::of("abc"));
}

TEST(base_sha256, takes_bytes_and_text_alike) {
  std::array const bytes = {std::byte{'a'}, std::byte{'b'}, std::byte{'c'}};
  EXPECT_EQ(sha256::of(bytes), sha256::of("abc"));
  sha256 hash;
  hash.update(bytes);
  EXPECT_EQ(hash.finish(), sha256::of("abc"));
}

TEST(base_hmac_sha256, gives_the_codes_of_rfc_4231) {
  struct row {
    std::string key;
    std::string message;
    std::string_view code;
  };
  std::string counting;
  for (char c = 1; c <= 25; ++c) {
    counting += c;
  }
  for (auto const& [key, message, code] : {
           row{std::string(20, '\x0b'), "Hi There",
               "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
           {"Jefe", "what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
           {std::string(20, '\xaa'), std::string(50, '\xdd'),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
           {counting, std::string(50, '\xcd'),
            "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
           {std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
           {std::string(131, '\xaa'),
            "This is a test using a larger than block-size key and a larger than block-size data. "
            "The key needs to be hashed before being used by the HMAC algorithm.",
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
       }) {
    EXPECT_EQ(to_hex(hmac_sha256::of(key, message)), code);
  }
  // Test case 5 publishes the first 16 bytes only.
  auto const truncated = hmac_sha256::of(std::string(20, '\x0c'), "Test With Truncation");
  EXPECT_EQ(to_hex(std::span(truncated).first(16)), "a3b6167473100ee06e0c796c2955552b");
}

TEST(base_hmac_sha256, is_what_rfc_2104_writes_it_as_for_keys_of_every_size) {
  auto const message = message_of(70);
  for (std::size_t size = 0; size <= 130; ++size) {
    auto const key = message_of(size);
    std::string padded = key;
    if (size > 64) {
      auto const digest = sha256::of(key);
      padded.assign(reinterpret_cast<char const*>(digest.data()), digest.size());
    }
    padded.resize(64, '\0');
    std::string inner;
    std::string outer;
    for (char c : padded) {
      inner += static_cast<char>(c ^ 0x36);
      outer += static_cast<char>(c ^ 0x5c);
    }
    auto const digest = sha256::of(inner + message);
    outer.append(reinterpret_cast<char const*>(digest.data()), digest.size());
    EXPECT_EQ(hmac_sha256::of(key, message), sha256::of(outer)) << size;
  }
}

TEST(base_hmac_sha256, keeps_its_key_for_the_next_message) {
  hmac_sha256 code("Jefe");
  for (int i = 0; i < 3; ++i) {
    auto const message = message_of(100);
    for (char const& c : message) {
      code.update(std::string_view(&c, 1));
    }
    EXPECT_EQ(code.finish(), hmac_sha256::of("Jefe", message));
  }
  EXPECT_EQ(code.finish(), hmac_sha256::of("Jefe", ""));
}

TEST(base_equal_in_constant_time, is_true_for_the_same_bytes_only) {
  auto const a = message_of(33);
  EXPECT_TRUE(equal_in_constant_time(a, message_of(33)));
  EXPECT_TRUE(equal_in_constant_time("", ""));
  EXPECT_FALSE(equal_in_constant_time(a, message_of(32)));
  EXPECT_FALSE(equal_in_constant_time("", a));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      auto b = a;
      b[i] = static_cast<char>(b[i] ^ 1 << bit);
      EXPECT_FALSE(equal_in_constant_time(a, b));
    }
  }
  EXPECT_TRUE(equal_in_constant_time(sha256::of("abc"), sha256::of("abc")));
  EXPECT_FALSE(equal_in_constant_time(sha256::of("abc"), sha256::of("abd")));
}

}  // namespace
}  // namespace tidegate
