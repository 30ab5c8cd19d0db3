// SPDX-License-Identifier: Apache-2.0
#include <tidegate/engine/tls.hpp>

#include "tls_state.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <ctime>

#include <array>
#include <string_view>
#include <utility>

namespace tidegate::engine {

namespace {

// Protocol names with their lengths before them (RFC 7301, section 3.1), the one we like best
// first.
constexpr std::string_view h2_only = "\x02h2";
constexpr std::string_view h2_and_http1 = "\x02h2\x08http/1.1";
constexpr std::string_view http1_only = "\x08http/1.1";

[[nodiscard]] auto octets(std::string_view text) -> unsigned char const* {
  return reinterpret_cast<unsigned char const*>(text.data());
}

/// What OpenSSL says, and forgets.
[[nodiscard]] auto take_error() -> std::string {
  std::array<char, 256> text{};
  auto const code = ERR_get_error();
  ERR_clear_error();
  auto const* const reason = ERR_reason_error_string(code);
  if (reason != nullptr) {
    return reason;
  }
  ERR_error_string_n(code, text.data(), text.size());
  return text.data();
}

/// A key with a password is refused: a server cannot ask for it.
auto no_password(char* /*buffer*/, int /*size*/, int /*writes*/, void* /*user*/) -> int {
  return -1;
}

auto select_protocol(SSL* /*session*/, unsigned char const** out, unsigned char* out_size,
                     unsigned char const* offered, unsigned offered_size, void* http2) -> int {
  auto const ours = http2 != nullptr ? h2_and_http1 : http1_only;
  unsigned char* selected = nullptr;
  if (SSL_select_next_proto(&selected, out_size, octets(ours), static_cast<unsigned>(ours.size()),
                            offered, offered_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;  // RFC 7301, section 3.2
  }
  *out = selected;
  return SSL_TLSEXT_ERR_OK;
}

/// What both sides have in common; null when the library does not give it.
[[nodiscard]] auto make_context(SSL_METHOD const* method)
    -> std::unique_ptr<SSL_CTX, free_ssl_context> {
  std::unique_ptr<SSL_CTX, free_ssl_context> context(SSL_CTX_new(method));
  if (context == nullptr || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1 ||
      // Of TLS 1.2 only what HTTP/2 allows too (RFC 9113, section 9.2.2).
      SSL_CTX_set_cipher_list(context.get(), "ECDHE+AESGCM:ECDHE+CHACHA20") != 1) {
    return nullptr;
  }
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                         SSL_OP_CIPHER_SERVER_PREFERENCE |
                                         SSL_OP_PRIORITIZE_CHACHA);
  // An idle connection keeps no buffers. What was not written is given again from another place.
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // One system call for the head and the content of a record.
  SSL_CTX_set_read_ahead(context.get(), 1);
  SSL_CTX_set_default_passwd_cb(context.get(), no_password);
  return context;
}

[[nodiscard]] auto expiry_of(SSL_CTX const& context) -> std::optional<std::chrono::sys_seconds> {
  auto const* const certificate = SSL_CTX_get0_certificate(&context);
  std::tm time{};
  if (certificate == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &time) != 1) {
    return std::nullopt;
  }
  return std::chrono::sys_seconds(std::chrono::seconds(::timegm(&time)));
}

/// What this end shows to the other.
[[nodiscard]] auto use_certificate(SSL_CTX& context, std::string const& certificate,
                                   std::string const& key) -> result<void, std::string> {
  if (SSL_CTX_use_certificate_chain_file(&context, certificate.c_str()) != 1) {
    return failure("cannot use the certificate " + certificate + ": " + take_error());
  }
  if (SSL_CTX_use_PrivateKey_file(&context, key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return failure("cannot use the key " + key + ": " + take_error());
  }
  return {};
}

}  // namespace

auto tls_context::for_server(tls_server_options const& options)
    -> result<tls_context, std::string> {
  ERR_clear_error();
  auto context = make_context(TLS_server_method());
  if (context == nullptr) {
    return failure("TLS cannot be set up: " + take_error());
  }
  TIDEGATE_TRY_VOID(use_certificate(*context, options.certificate, options.key));
  // Sessions are resumed by tickets, which no thread has to look up.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  constexpr std::string_view session_context = "tidegate";
  SSL_CTX_set_session_id_context(context.get(), octets(session_context),
                                 static_cast<unsigned>(session_context.size()));
  SSL_CTX_set_alpn_select_cb(context.get(), select_protocol,
                             options.http2 ? context.get() : nullptr);
  auto const expires = expiry_of(*context);
  return tls_context(std::make_shared<state const>(state{std::move(context), false, expires}));
}

auto tls_context::expires() const -> std::optional<std::chrono::sys_seconds> {
  return state_->expires;
}

auto tls_context::for_client(tls_client_options const& options)
    -> result<tls_context, std::string> {
  ERR_clear_error();
  auto context = make_context(TLS_client_method());
  auto const offered = options.offer == alpn_offer::http1   ? http1_only
                       : options.offer == alpn_offer::http2 ? h2_only
                                                            : h2_and_http1;
  if (context == nullptr || SSL_CTX_set_alpn_protos(context.get(), octets(offered),
                                                    static_cast<unsigned>(offered.size())) != 0) {
    return failure("TLS cannot be set up: " + take_error());
  }
  if (options.verify) {
    bool const found = options.ca
                           ? SSL_CTX_load_verify_file(context.get(), options.ca->c_str()) == 1
                           : SSL_CTX_set_default_verify_paths(context.get()) == 1;
    if (!found) {
      return failure("cannot use the certificates " + options.ca.value_or("of the system") + ": " +
                     take_error());
    }
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  }
  if (options.certificate && options.key) {
    TIDEGATE_TRY_VOID(use_certificate(*context, *options.certificate, *options.key));
  }
  return tls_context(std::make_shared<state const>(state{std::move(context), options.verify, {}}));
}

}  // namespace tidegate::engine
