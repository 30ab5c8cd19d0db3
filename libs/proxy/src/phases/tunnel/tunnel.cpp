// SPDX-License-Identifier: Apache-2.0
#include "phases/tunnel/tunnel.hpp"

#include <new>

namespace tidegate::gateway {

void tunnel::start(tunnel_account account) noexcept {
  account_ = std::move(account);
  account_.context.head = nullptr;
  account_.context.from = nullptr;
  account_.context.path = {};
  worker_.metrics->tunnels_open.add();
  upstream_->hand_over(*this);
  touch();
}

void tunnel::touch() noexcept {
  set(worker_.loop.timers(),
      worker_.loop.now() + account_.context.route_settings().settings->tunnel_idle_timeout);
}

// ---- from the client ----

void tunnel::client_sent(std::string_view bytes) {
  account_.context.request_octets += bytes.size();
  worker_.metrics->tunnel_octets_to_upstream.add(bytes.size());
  touch();
  upstream_->send(bytes);
}

void tunnel::client_ended() {
  client_ended_ = true;
  upstream_->end_sending();
  if (upstream_ended_) {
    end({});
  }
}

void tunnel::client_gone() {
  if (client_ == nullptr) {
    return;
  }
  client_ = nullptr;
  std::exchange(upstream_, nullptr)->abandon();
  close("client-gone");
}

// ---- from the upstream ----

void tunnel::upstream_body(std::string_view bytes, std::uint64_t /*content_octets*/) {
  account_.context.response_octets += bytes.size();
  worker_.metrics->tunnel_octets_to_client.add(bytes.size());
  touch();
  client_->send_body(bytes);
}

void tunnel::upstream_ended() {
  upstream_ended_ = true;
  if (client_ended_) {
    end({});
  } else {
    client_->end_sending();
  }
}

void tunnel::upstream_failed(upstream_failure /*why*/, std::string /*unsent*/) {
  upstream_ = nullptr;
  auto& client = *std::exchange(client_, nullptr);
  close("upstream-closed");
  client.send_end({.is_cut = true});
}

// ---- the end ----

void tunnel::expired() {
  end("tunnel-idle");
}

void tunnel::end(std::string_view reason) {
  auto& client = *std::exchange(client_, nullptr);
  std::exchange(upstream_, nullptr)->leave_tunnel();
  close(reason);
  client.send_end({});
}

void tunnel::close(std::string_view reason) {
  cancel();
  auto& context = account_.context;
  context.reason = reason;
  try {
    if (account_.charges) {
      account_.charges->settle({worker_.shared.quotas.table, worker_.quotas.get()},
                               context.request_octets + context.response_octets,
                               worker_.loop.now());
    }
  } catch (std::bad_alloc const&) {  // a store of quotas is not told what is released
  }
  try {
    if (account_.log.is_on()) {
      worker_.write_log(account_.log.finish(context, {}, 0));
    }
  } catch (std::bad_alloc const&) {  // both ends must still be let go
  }
  worker_.metrics->tunnels_open.subtract();
  worker_.release(*account_.config);
}

}  // namespace tidegate::gateway
