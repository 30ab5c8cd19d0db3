// SPDX-License-Identifier: Apache-2.0
#include <tidegate/aead/aes_256_gcm.hpp>

#include <openssl/evp.h>

#include <algorithm>
#include <limits>
#include <memory>

namespace tidegate::TIDEGATE_ABI::aead {

namespace {

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

/// Looked up once: that takes longer than sealing a short text. There as long as the program is.
[[nodiscard]] auto cipher() noexcept -> EVP_CIPHER const* {
  static EVP_CIPHER const* const found = EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr);
  return found;
}

/// OpenSSL counts octets by int.
[[nodiscard]] auto fits(std::string_view text) noexcept -> bool {
  return text.size() < std::numeric_limits<int>::max() - tag_size;
}

}  // namespace

auto append_sealed(std::string& out, seal const& by, std::string_view text) -> bool {
  auto const begin = out.size();
  auto const& data = by.associated_data;
  if (!fits(text) || !fits(data)) {
    return false;
  }
  out.resize(begin + text.size() + tag_size);
  cipher_context const context(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  int size = 0;
  bool const done =
      context != nullptr && cipher() != nullptr &&
      EVP_EncryptInit_ex(context.get(), cipher(), nullptr, octets(by.key), octets(by.nonce)) == 1 &&
      EVP_EncryptUpdate(context.get(), nullptr, &size, octets(data),
                        static_cast<int>(data.size())) == 1 &&
      EVP_EncryptUpdate(context.get(), octets(out, begin), &size, octets(text),
                        static_cast<int>(text.size())) == 1 &&
      EVP_EncryptFinal_ex(context.get(), octets(out, begin + text.size()), &size) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, static_cast<int>(tag_size),
                          octets(out, begin + text.size())) == 1;
  if (!done) {
    out.resize(begin);
  }
  return done;
}

auto append_opened(std::string& out, seal const& by, std::string_view sealed) -> bool {
  auto const begin = out.size();
  auto const& data = by.associated_data;
  if (sealed.size() < tag_size || !fits(sealed) || !fits(data)) {
    return false;
  }
  auto const text = sealed.substr(0, sealed.size() - tag_size);
  std::array<char, tag_size> tag{};  // OpenSSL takes it by a pointer to what is not const
  std::copy_n(sealed.end() - tag_size, tag_size, tag.begin());
  out.resize(begin + text.size());
  cipher_context const context(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  int size = 0;
  bool const done =
      context != nullptr && cipher() != nullptr &&
      EVP_DecryptInit_ex(context.get(), cipher(), nullptr, octets(by.key), octets(by.nonce)) == 1 &&
      EVP_DecryptUpdate(context.get(), nullptr, &size, octets(data),
                        static_cast<int>(data.size())) == 1 &&
      EVP_DecryptUpdate(context.get(), octets(out, begin), &size, octets(text),
                        static_cast<int>(text.size())) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, static_cast<int>(tag_size),
                          tag.data()) == 1 &&
      EVP_DecryptFinal_ex(context.get(), octets(out, out.size()), &size) == 1;
  if (!done) {
    out.resize(begin);
  }
  return done;
}

}  // namespace tidegate::TIDEGATE_ABI::aead
