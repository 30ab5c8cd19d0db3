// SPDX-License-Identifier: Apache-2.0
#include "protocol/script.hpp"

#include <array>
#include <bit>
#include <utility>

namespace tidegate::store_redis {

namespace {

/// SHA-1 (FIPS 180-4, section 6.1) in hexadecimal. A name here, nothing that security would rest
/// on.
auto sha1_hex(std::string_view message) -> std::string {
  std::string padded(message);
  padded += '\x80';
  padded.resize((padded.size() + 8 + 63) / 64 * 64 - 8, '\0');
  for (int shift = 56; shift >= 0; shift -= 8) {
    padded += static_cast<char>(std::uint64_t{message.size()} * 8 >> shift & 0xff);
  }
  std::array<std::uint32_t, 5> state{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  std::array<std::uint32_t, 80> w{};
  for (std::size_t block = 0; block < padded.size(); block += 64) {
    for (std::size_t i = 0; i < 64; ++i) {
      w[i / 4] = w[i / 4] << 8 | static_cast<unsigned char>(padded[block + i]);
    }
    for (std::size_t i = 16; i < w.size(); ++i) {
      w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    }
    auto [a, b, c, d, e] = state;
    for (std::size_t i = 0; i < w.size(); ++i) {
      auto const [f, k] = i < 20   ? std::pair(((b & c) | (~b & d)), 0x5a827999U)
                          : i < 40 ? std::pair(b ^ c ^ d, 0x6ed9eba1U)
                          : i < 60 ? std::pair((b & c) | (b & d) | (c & d), 0x8f1bbcdcU)
                                   : std::pair(b ^ c ^ d, 0xca62c1d6U);
      auto const next = std::rotl(a, 5) + f + e + k + w[i];
      e = std::exchange(d,
                        std::exchange(c, std::rotl(std::exchange(b, std::exchange(a, next)), 30)));
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
  }
  std::string hex;
  for (auto const word : state) {
    for (int shift = 28; shift >= 0; shift -= 4) {
      hex += "0123456789abcdef"[word >> shift & 15];
    }
  }
  return hex;
}

auto call(std::string_view how, std::string_view what, word_list const& keys,
          word_list const& arguments) -> command {
  command made{how, what};
  made.add(static_cast<std::int64_t>(keys.size()));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    made.add(keys[i]);
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    made.add(arguments[i]);
  }
  return made;
}

}  // namespace

script::script(std::string_view text) : text_(text), name_(sha1_hex(text)) {}

void run(client& on, script const& what, word_list keys, word_list arguments,
         answer_function answer, command then) {
  auto by_name = call("EVALSHA", what.name(), keys, arguments);
  if (then.count() > 0) {
    by_name.then(then);
  }
  auto const key = std::string(keys[0]);
  on.send(key, std::move(by_name),
          [&on, &what, keys = std::move(keys), arguments = std::move(arguments),
           answer = std::move(answer), then = std::move(then)](store_redis::answer got) mutable {
            auto const* const of_script = !got                ? nullptr
                                          : then.count() == 0 ? &*got
                                                              : &got->items.front();
            if (of_script == nullptr || !of_script->is_error("NOSCRIPT")) {
              answer(std::move(got));
              return;
            }
            auto by_text = call("EVAL", what.text(), keys, arguments);
            if (then.count() > 0) {
              by_text.then(then);
            }
            on.send(keys[0], std::move(by_text), std::move(answer));
          });
}

void run_in_order(client& on, script const& what, word_list const& keys, word_list const& arguments,
                  answer_function answer) {
  on.send(keys[0], call("EVAL", what.text(), keys, arguments), std::move(answer));
}

}  // namespace tidegate::store_redis
