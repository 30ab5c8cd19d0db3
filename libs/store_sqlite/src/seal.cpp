// SPDX-License-Identifier: Apache-2.0
#include "seal.hpp"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>

namespace tidegate::store_sqlite {

namespace {

// A sealed text: its form, the id of the key, a nonce, the octets, a tag. One in clear: its form, the text.
constexpr char in_clear = 0;
constexpr char aes_256_gcm = 1;
constexpr std::size_t id_size = 4;
constexpr std::size_t nonce_size = 12;
constexpr std::size_t tag_size = 16;
constexpr std::size_t head_size = 1 + id_size + nonce_size;

using cipher_context = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

[[nodiscard]] auto octets(std::string_view text) noexcept -> unsigned char const* {
  return reinterpret_cast<unsigned char const*>(text.data());
}
[[nodiscard]] auto octets(std::string& text, std::size_t at) noexcept -> unsigned char* {
  return reinterpret_cast<unsigned char*>(text.data() + at);
}
[[nodiscard]] auto octets(std::span<std::byte const> bytes) noexcept -> unsigned char const* {
  return reinterpret_cast<unsigned char const*>(bytes.data());
}

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
  return failure(store::store_error{store::store_fault::unavailable, std::move(text)});
}
[[nodiscard]] auto damaged(std::string text) {
  return failure(store::store_error{store::store_fault::damaged, std::move(text)});
}

}  // namespace

auto seal(std::span<seal_key const> keys, seal_place const& place, std::string_view text)
    -> result<std::string, store::store_error> {
  if (keys.empty()) {
    return in_clear + std::string(text);
  }
  auto const& key = keys.front();
  std::string out(1, aes_256_gcm);
  append_big_endian(out, key.id, id_size);
  out.resize(head_size + text.size() + tag_size);
  auto const data = [&] {
    bool const random = RAND_bytes(octets(out, 1 + id_size), static_cast<int>(nonce_size)) == 1;
    return random ? associated_data(std::string_view(out).substr(0, head_size), place) : "";
  }();
  cipher_context const context(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  int size = 0;
  bool const done =
      !data.empty() && context != nullptr && text.size() < std::numeric_limits<int>::max() &&
      EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, octets(key.octets),
                         octets(out, 1 + id_size)) == 1 &&
      EVP_EncryptUpdate(context.get(), nullptr, &size, octets(data),
                        static_cast<int>(data.size())) == 1 &&
      EVP_EncryptUpdate(context.get(), octets(out, head_size), &size, octets(text),
                        static_cast<int>(text.size())) == 1 &&
      EVP_EncryptFinal_ex(context.get(), octets(out, head_size + text.size()), &size) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, static_cast<int>(tag_size),
                          octets(out, head_size + text.size())) == 1;
  if (!done) {
    return failed("a response cannot be sealed");
  }
  return out;
}

auto unseal(std::span<seal_key const> keys, seal_place const& place, std::string_view sealed)
    -> result<std::string, store::store_error> {
  if (sealed.starts_with(in_clear)) {
    return std::string(sealed.substr(1));
  }
  if (!sealed.starts_with(aes_256_gcm) || sealed.size() < head_size + tag_size) {
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
  auto const text = sealed.substr(head_size, sealed.size() - head_size - tag_size);
  std::string tag(sealed.substr(sealed.size() - tag_size));
  auto const data = associated_data(head, place);
  std::string out(text.size(), '\0');
  cipher_context const context(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  int size = 0;
  bool const done =
      context != nullptr && text.size() < std::numeric_limits<int>::max() &&
      EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, octets(key->octets),
                         octets(head.substr(1 + id_size))) == 1 &&
      EVP_DecryptUpdate(context.get(), nullptr, &size, octets(data),
                        static_cast<int>(data.size())) == 1 &&
      EVP_DecryptUpdate(context.get(), octets(out, 0), &size, octets(text),
                        static_cast<int>(text.size())) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, static_cast<int>(tag_size),
                          tag.data()) == 1 &&
      EVP_DecryptFinal_ex(context.get(), octets(out, out.size()), &size) == 1;
  if (!done) {
    return damaged("a stored response was changed, or sealed by another key of the same id");
  }
  return out;
}

}  // namespace tidegate::store_sqlite
