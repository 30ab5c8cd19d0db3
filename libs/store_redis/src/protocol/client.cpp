// SPDX-License-Identifier: Apache-2.0
#include "protocol/client.hpp"

#include <utility>

namespace tidegate::store_redis {

namespace {

class single_client final : public client {
 public:
  single_client(engine::loop& on, connection_options options) : to_(on, std::move(options)) {}

  void send(std::string_view /*key*/, command request, answer_function answer) override {
    to_.send(request, std::move(answer));
  }
  [[nodiscard]] auto is_up(std::string_view /*key*/) const -> bool override { return to_.is_up(); }
  [[nodiscard]] auto error_text(std::string_view /*key*/) const -> std::string override {
    return to_.error_text();
  }

 private:
  connection to_;
};

}  // namespace

auto client::make(engine::loop& on, server_url const& url, connection_options options)
    -> result<std::unique_ptr<client>, std::string> {
  options.server = url.servers.front();
  if (url.tls) {
    TIDEGATE_TRY(options.tls, engine::tls_context::for_client({true, url.ca}));
  }
  options.login = url.login;
  options.database = url.database;
  switch (url.kind) {
    case topology::cluster: return make_cluster_client(on, url, std::move(options));
    case topology::sentinel: return make_sentinel_client(on, url, std::move(options));
    case topology::single: break;
  }
  return std::make_unique<single_client>(on, std::move(options));
}

}  // namespace tidegate::store_redis
