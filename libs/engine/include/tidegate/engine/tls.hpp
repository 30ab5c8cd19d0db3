// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace tidegate::engine {

/// What a server shows to its clients.
struct tls_server_options {
  std::string certificate;  ///< a file: PEM, with the chain
  std::string key;          ///< a file: PEM, without a password
  bool http2 = true;        ///< offers `h2` besides `http/1.1` (RFC 7301)
};

/// What a client offers to speak (RFC 7301).
enum class alpn_offer : std::uint8_t { http1, http2, both };

/// Whom a client believes, and what it shows.
struct tls_client_options {
  bool verify = true;
  std::optional<std::string> ca;  ///< a file: PEM; the system's when it is missing
  alpn_offer offer = alpn_offer::http1;
  std::optional<std::string> certificate{};  ///< a file for servers that ask: PEM, with the chain
  std::optional<std::string> key{};          ///< a file: PEM, without a password
};

/// What the TLS connections of a listener or of an upstream share: TLS 1.2 or later, ciphers with
/// forward secrecy only. Immutable, for any number of threads; copies share it.
class tls_context {
 public:
  /// Reads the files. The error is one line for people.
  [[nodiscard]] static auto for_server(tls_server_options const& options)
      -> result<tls_context, std::string>;
  [[nodiscard]] static auto for_client(tls_client_options const& options)
      -> result<tls_context, std::string>;

  /// Until when the certificate of a server is good; nothing for a client.
  [[nodiscard]] auto expires() const -> std::optional<std::chrono::sys_seconds>;

 private:
  friend class transport;
  struct state;
  explicit tls_context(std::shared_ptr<state const> made) : state_(std::move(made)) {}

  std::shared_ptr<state const> state_;
};

}  // namespace tidegate::engine
