// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/engine/tls.hpp>

#include <openssl/ssl.h>

#include <chrono>
#include <memory>
#include <optional>

namespace tidegate::engine {

struct free_ssl_context {
  void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
};

struct tls_context::state {
  std::unique_ptr<SSL_CTX, free_ssl_context> context;
  bool verify = false;
  std::optional<std::chrono::sys_seconds> expires;  // of a server
};

}  // namespace tidegate::engine
