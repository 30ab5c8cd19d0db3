// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store/seal.hpp>

#include <tidegate/aead/aes_256_gcm.hpp>

#include <openssl/rand.h>

#include <algorithm>

namespace tidegate::TIDEGATE_ABI::store {

namespace {

// A sealed text: its form, the id of the key, a nonce, the octets, a tag. One in clear: its form,
// the text.
constexpr char in_clear = 0;
constexpr char aes_256_gcm = 1;
constexpr std::size_t id_size = 4;
constexpr std::size_t head_size = 1 + id_size + aead::nonce_size;

using nonce = std::array<std::byte, aead::nonce_size>;

void append_big_endian(std::string& out, std::uint64_t value, std::size_t size) {
  for (auto left = size; left > 0; --left) {
    out.push_back(static_cast<char>(value >> (8 * (left - 1))));
  }
}

/// What is signed along with the text.
[[nodiscard]] auto associated_data(std::string_view head, seal_place const& place) -> std::string {
  std::string out(head);
  out.append(reinterpret_cast<char const*>(place.key.octets.data()), place.key.octets.size());
  append_big_endian(out, place.token, 8);
  return out;
}

[[nodiscard]] auto failed(std::string text) {
  return failure(store_error{store_fault::unavailable, std::move(text)});
}
[[nodiscard]] auto damaged(std::string text) {
  return failure(store_error{store_fault::damaged, std::move(text)});
}

}  // namespace

auto seal(std::span<seal_key const> keys, seal_place const& place, std::string_view text)
    -> result<std::string, store_error> {
  if (keys.empty()) {
    return in_clear + std::string(text);
  }
  auto const& key = keys.front();
  nonce fresh{};
  if (RAND_bytes(reinterpret_cast<unsigned char*>(fresh.data()), static_cast<int>(fresh.size())) !=
      1) {
    return failed("a response cannot be sealed: there is no randomness");
  }
  std::string out;
  out.reserve(head_size + text.size() + aead::tag_size);
  out.push_back(aes_256_gcm);
  append_big_endian(out, key.id, id_size);
  out.append(reinterpret_cast<char const*>(fresh.data()), fresh.size());
  if (!aead::append_sealed(out, {key.octets, fresh, associated_data(out, place)}, text)) {
    return failed("a response cannot be sealed");
  }
  return out;
}

auto unseal(std::span<seal_key const> keys, seal_place const& place, std::string_view sealed)
    -> result<std::string, store_error> {
  if (sealed.starts_with(in_clear)) {
    return std::string(sealed.substr(1));
  }
  if (!sealed.starts_with(aes_256_gcm) || sealed.size() < head_size + aead::tag_size) {
    return damaged("a stored response has a form that is not known");
  }
  std::uint32_t id = 0;
  for (char c : sealed.substr(1, id_size)) {
    id = id << 8 | static_cast<unsigned char>(c);
  }
  auto const key =
      std::find_if(keys.begin(), keys.end(), [id](seal_key const& k) { return k.id == id; });
  if (key == keys.end()) {
    return damaged("a stored response is sealed by key " + std::to_string(id) +
                   ", which is not configured");
  }
  auto const head = sealed.substr(0, head_size);
  auto const its_nonce = std::as_bytes(std::span(head)).last<aead::nonce_size>();
  std::string out;
  if (!aead::append_opened(out, {key->octets, its_nonce, associated_data(head, place)},
                           sealed.substr(head_size))) {
    return damaged("a stored response was changed, or sealed by another key of the same id");
  }
  return out;
}

}  // namespace tidegate::TIDEGATE_ABI::store
