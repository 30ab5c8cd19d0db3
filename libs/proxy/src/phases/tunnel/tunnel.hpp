// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "observe/exchange_log.hpp"
#include "phases/tunnel/held_charges.hpp"
#include "request/client_stream.hpp"
#include "upstream/upstream_stream.hpp"
#include "worker/worker.hpp"

namespace tidegate::gateway {

/// What an exchange leaves to the tunnel that takes its place.
struct tunnel_account {
  worker_config* config = nullptr;  ///< which it uses
  request_context context{};        ///< without its head
  std::unique_ptr<held_charges> charges{};
  exchange_log log{};
};

/// A client and an upstream that send each other octets after a 101. Each of them may end its
/// direction before the other; who is slow makes the other wait. Belongs to the connection of the
/// client. Smaller than an exchange by far, since there may be many that say nothing for long.
class tunnel final : private upstream_user, private engine::timer {
 public:
  tunnel(worker& on, client_stream& client, upstream_stream& upstream)
      : worker_(on), client_(&client), upstream_(&upstream) {}
  tunnel(tunnel const&) = delete;
  auto operator=(tunnel const&) -> tunnel& = delete;
  ~tunnel() override = default;

  /// Takes the place of the exchange that `account` is of.
  void start(tunnel_account account) noexcept;

  // For the connection of the client. Each may end the tunnel, and destroy it.
  void client_sent(std::string_view bytes);
  /// The client sends no more.
  void client_ended();
  /// The client takes more.
  void client_resumed() {
    if (!upstream_ended_) {
      upstream_->resume();
    }
  }
  /// Nothing more can be sent to the client. Does not destroy the tunnel.
  void client_gone();
  /// Whether more is to be read from the client.
  [[nodiscard]] auto reads_client() const noexcept -> bool {
    return !client_ended_ && !upstream_->is_above_high_watermark();
  }
  /// What waits for the upstream.
  [[nodiscard]] auto waiting_octets() const noexcept -> std::size_t {
    return upstream_ != nullptr ? upstream_->waiting_octets() : 0;
  }

 private:
  void upstream_interim(wire::response_head const& /*head*/) override {}
  void upstream_head(wire::response_head const& /*head*/) override {}
  void upstream_body(std::string_view bytes, std::uint64_t content_octets) override;
  void upstream_moved(upstream_stream& /*to*/) override {}
  void upstream_done(std::string_view /*trailers*/) override {}
  void upstream_ended() override;
  void upstream_failed(upstream_failure why, std::string unsent) override;
  void upstream_resumed() override { client_->resume(); }
  void flush_client() override { client_->flush(); }
  [[nodiscard]] auto wants_framing() const -> bool override { return false; }
  [[nodiscard]] auto request_done() const -> bool override { return true; }
  [[nodiscard]] auto client_is_full() const -> bool override {
    return client_->is_above_high_watermark();
  }
  void expired() override;

  /// Something has passed.
  void touch() noexcept;
  /// Ends both directions.
  void end(std::string_view reason);
  /// Settles, counts and logs.
  void close(std::string_view reason);

  worker& worker_;
  client_stream* client_;
  upstream_stream* upstream_;  // null when it has failed
  bool client_ended_ = false;
  bool upstream_ended_ = false;
  tunnel_account account_;
};

}  // namespace tidegate::gateway
