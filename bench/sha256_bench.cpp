// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 beside the EVP interface of OpenSSL, of messages as short as keys and as long as bodies,
// and HMAC of a key. EVP has a context that is made once and an algorithm that was fetched once,
// which is the fastest that its documentation knows.
#include "harness.hpp"

#include <tidegate/base/sha256.hpp>

#include <openssl/core_names.h>
#include <openssl/evp.h>

#include <array>
#include <cstdlib>
#include <memory>

namespace {

using namespace tidegate;

auto make_context() -> std::shared_ptr<EVP_MD_CTX> {
  return {EVP_MD_CTX_new(), EVP_MD_CTX_free};
}

auto digesting(std::string name, std::size_t octets) -> bench::comparison {
  auto const message = std::make_shared<std::string>(octets, 'm');
  return {"sha256/" + std::move(name),
          octets,
          [message] { bench::keep(sha256::of(*message)); },
          {{"openssl", [message, context = make_context(),
                        algorithm = std::shared_ptr<EVP_MD>(
                            EVP_MD_fetch(nullptr, "SHA256", nullptr), EVP_MD_free)] {
              sha256_digest digest;
              if (EVP_DigestInit_ex2(context.get(), algorithm.get(), nullptr) != 1 ||
                  EVP_DigestUpdate(context.get(), message->data(), message->size()) != 1 ||
                  EVP_DigestFinal_ex(context.get(), reinterpret_cast<unsigned char*>(digest.data()),
                                     nullptr) != 1) {
                std::abort();
              }
              bench::keep(digest);
            }}}};
}

auto signing(std::string name, std::size_t octets) -> bench::comparison {
  auto const message = std::make_shared<std::string>(octets, 'm');
  constexpr std::string_view key = "0123456789abcdef0123456789abcdef";
  auto const mac = std::shared_ptr<EVP_MAC>(EVP_MAC_fetch(nullptr, "HMAC", nullptr), EVP_MAC_free);
  auto const context = std::shared_ptr<EVP_MAC_CTX>(EVP_MAC_CTX_new(mac.get()), EVP_MAC_CTX_free);
  char algorithm[] = "SHA256";
  std::array const parameters{
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, static_cast<char*>(algorithm), 0),
      OSSL_PARAM_construct_end()};
  if (EVP_MAC_init(context.get(), reinterpret_cast<unsigned char const*>(key.data()), key.size(),
                   parameters.data()) != 1) {
    std::abort();
  }
  return {
      "sha256/" + std::move(name),
      octets,
      [message, ours = std::make_shared<hmac_sha256>(key)] {
        ours->update(*message);
        bench::keep(ours->finish());
      },
      {{"openssl", [message, mac, context] {
          sha256_digest digest;
          std::size_t size = 0;
          if (EVP_MAC_init(context.get(), nullptr, 0, nullptr) != 1 ||
              EVP_MAC_update(context.get(), reinterpret_cast<unsigned char const*>(message->data()),
                             message->size()) != 1 ||
              EVP_MAC_final(context.get(), reinterpret_cast<unsigned char*>(digest.data()), &size,
                            digest.size()) != 1) {
            std::abort();
          }
          bench::keep(digest);
        }}}};
}

}  // namespace

auto main() -> int {
  bench::compare({digesting("64", 64), digesting("1k", 1024), digesting("64k", 65536),
                  signing("hmac-64", 64)});
  return 0;
}
