// SPDX-License-Identifier: Apache-2.0
#include "protocol/client.hpp"

#include "protocol/cluster_client.hpp"
#include "protocol/sentinel_client.hpp"

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
  [[nodiscard]] auto counted() const -> connection::counts override { return to_.counted(); }

 private:
  connection to_;
};

}  // namespace

auto connection_to(server_address server, client_options const& options) -> connection_options {
  return {.server = std::move(server),
          .connect_timeout = options.connect_timeout,
          .command_timeout = options.command_timeout,
          .backoff_first = options.backoff_first,
          .backoff_max = options.backoff_max,
          .commands_max = options.commands_max,
          .octets_max = options.octets_max};
}

auto client::make(engine::loop& on, server_url const& url, client_options const& options)
    -> result<std::unique_ptr<client>, std::string> {
  auto first = connection_to(url.servers.front(), options);
  if (url.tls) {
    TIDEGATE_TRY(first.tls, engine::tls_context::for_client({true, url.ca}));
  }
  first.login = url.login;
  first.database = url.database;
  switch (url.kind) {
    case topology::cluster: return std::make_unique<cluster_client>(on, url, options, first);
    case topology::sentinel: return std::make_unique<sentinel_client>(on, url, options, first);
    case topology::single: break;
  }
  return std::make_unique<single_client>(on, std::move(first));
}

}  // namespace tidegate::store_redis
