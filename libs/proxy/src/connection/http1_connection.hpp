// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "connection/http1_writer.hpp"
#include "phases/tunnel/tunnel.hpp"

namespace tidegate::gateway {

/// A connection of a client that speaks HTTP/1.1 or HTTP/1.0. It answers one request after the
/// other; what comes of the next one meanwhile waits in the socket. None is begun while too much
/// waits for the client.
class http1_connection final : public engine::watched,
                               public client_connection,
                               private http1_writer {
 public:
  /// With `http2`, a client that begins with the preface of HTTP/2 is handed to a
  /// `http2_connection`.
  http1_connection(worker& on, worker::client_place at, engine::transport transport,
                   http::ip_address const& peer, bool http2);

  /// Begins to watch the socket, which something else does so far when it `is_watched`; false when
  /// the system does not let it.
  [[nodiscard]] auto start(bool is_watched) -> bool;
  void drain() override;
  void drop() override { close(); }
  /// Who asks, as far as it is known before the first request.
  [[nodiscard]] auto from() noexcept -> client_address& { return from_; }
  [[nodiscard]] auto waiting_octets() const -> std::size_t override;
  [[nodiscard]] auto waiting_since(instant now) const -> instant override;

 private:
  void ready(engine::readiness what) override;
  void out_of_memory() override;
  void expired() override;
  void time_is_up();

  // For the exchange.
  void send_end(response_end const& how) override;
  void give_up() override { out_of_memory(); }
  void resume() override;
  void begin_tunnel(std::unique_ptr<tunnel> made, wire::response_head const& head,
                    dropped_fields const& drop, std::string_view field_lines) override;

  // For the writer.
  void response_is_complete() override;
  void close() override;

  [[nodiscard]] auto may_read() const -> bool;
  void read();
  void take(std::string_view bytes);
  [[nodiscard]] auto take_head(std::string_view& bytes) -> bool;
  [[nodiscard]] auto take_body(std::string_view& bytes) -> bool;
  [[nodiscard]] auto skip_body(std::string_view& bytes) -> bool;
  void await_request();
  void become_http2(std::string_view bytes);
  void respond_to_malformed(int status);
  void next_request();
  void resume_reading();
  void write_out();
  void linger();

  bool may_be_http2_;   // until the first request has come
  bool is_new_ = true;  // no request has come yet
  bool readable_ = false;
  bool closing_ = false;        // the client sends no more
  bool client_closes_ = false;  // it said so with its request
  bool taking_ = false;         // input is being taken: what it leads to must not take more
  bool response_done_ = false;
  std::unique_ptr<exchange> exchange_;
  std::unique_ptr<tunnel> tunnel_;  // in the place of the exchange, after an upgrade
  wire::body_decoder body_;
  std::uint64_t body_octets_ = 0;
  std::size_t seen_ = 0;
  instant came_at_{};  // what was read last
  std::string in_;
  std::size_t counted_ = 0;  // of it
  client_address from_;
  worker::client_place place_;  // behind the last when the connection has another owner
};

}  // namespace tidegate::gateway
