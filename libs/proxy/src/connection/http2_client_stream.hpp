// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "connection/http2_connection.hpp"
#include "phases/tunnel/tunnel.hpp"

namespace tidegate::gateway {

/// One request on a connection of HTTP/2.
class http2_client_stream final : public client_stream {
 public:
  http2_client_stream(http2_connection& on, wire::http2_stream& as)
      : connection_(on), stream_(&as) {}
  http2_client_stream(http2_client_stream const&) = delete;
  auto operator=(http2_client_stream const&) -> http2_client_stream& = delete;
  ~http2_client_stream() = default;

  /// For the next request.
  void reuse(wire::http2_stream& as) {
    stream_ = &as;
    chunks_ = false;
    is_connect_ = false;
    was_tunnel_ = false;
    is_head_request_ = false;
    head_sent_ = false;
    waits_for_ = room::any;
    asks_ = false;
    body_octets_ = 0;
    waiting_since_ = {};
  }
  void begin(wire::request_head const& head);

  /// False when the client is to wait.
  [[nodiscard]] auto take(std::string_view bytes) -> bool;
  /// `trailers` are complete lines.
  void take_end(std::string_view trailers);

  /// Answers in place of an exchange, or resets the stream when a part of an answer is gone
  /// already.
  void refuse(int status);

  /// No client waits for an answer any more.
  void abandon(int status = status_client_closed) {
    has_asked();
    if (is_connect_) {
      keep_early({});
    }
    if (exchange_) {
      exchange_->abandon(status);
      connection_.worker_.exchanges->recycle(std::move(exchange_));
    }
    if (auto const over = std::move(tunnel_)) {
      over->client_gone();
    }
  }

  /// Perhaps the client has taken what was waited for.
  void resume_waiting();

  /// The text that waits for this client is sent, or is not to be any more.
  void let_text_go() {
    text_.reset();
    owner_.reset();
  }

  /// What it keeps in memory besides what is in the session. Of a text that others wait for too,
  /// its part.
  [[nodiscard]] auto held_octets() const -> std::size_t;

  /// True when it is the client that is waited for, to send the rest of its request.
  [[nodiscard]] auto waits_for_content() const -> bool;
  [[nodiscard]] auto received_at() const -> instant { return received_at_; }
  /// True while it is a tunnel, which has its own time.
  [[nodiscard]] auto is_tunnel() const noexcept -> bool { return tunnel_ != nullptr; }
  /// When content of the response began to wait for the client.
  [[nodiscard]] auto waiting_since() const -> instant { return waiting_since_; }

  // For the exchange.

  void send_interim(wire::response_head const& head, dropped_fields const& drop) override;
  void send_head(wire::response_head const& head, dropped_fields const& drop,
                 std::string_view field_lines) override;
  void send_own_head(int status, std::string_view field_lines,
                     std::optional<std::uint64_t> length) override;
  void send_body(std::string_view bytes) override;
  void send_end(response_end const& how) override;
  void send_whole(local_reply const& reply, std::string_view field_lines) override;
  void give_up() override;
  void flush() override {}  // at the end of the turn

  [[nodiscard]] auto wants_framing() const -> bool override { return false; }
  [[nodiscard]] auto protocol() const -> std::string_view override { return "HTTP/2"; }

  [[nodiscard]] auto is_above_high_watermark() const -> bool override;
  [[nodiscard]] auto takes_answers() -> bool override { return has(room::for_answer); }

  [[nodiscard]] auto may_ask_directory() -> bool override;
  void resume() override;
  void begin_tunnel(std::unique_ptr<tunnel> made, wire::response_head const& head,
                    dropped_fields const& drop, std::string_view field_lines) override;
  void end_sending() override;

 private:
  /// What there has to be room for before the exchange goes on.
  enum class room : std::uint8_t { any, for_piece, for_answer, for_page };

  /// When there is none, it is waited for.
  [[nodiscard]] auto has(room what) const -> bool;
  void has_asked() {
    if (std::exchange(asks_, false)) {
      --connection_.asking_;
    }
  }

  /// What an extended CONNECT sends before it is answered.
  void keep_early(std::string octets);
  /// The exchange has said all it has to say, and is called no more.
  void is_over();

  http2_connection& connection_;
  wire::http2_stream* stream_;
  std::unique_ptr<exchange> exchange_;
  std::unique_ptr<tunnel> tunnel_;  // in the place of the exchange, after an upgrade
  bool chunks_ = false;             // the request's body is framed here
  bool is_connect_ = false;         // an extended CONNECT (RFC 8441)
  bool was_tunnel_ = false;
  bool is_head_request_ = false;
  bool head_sent_ = false;
  mutable room waits_for_ = room::any;
  bool asks_ = false;                    // the directory
  slow_client_shedder::held_text text_;  // that others may send as well
  std::weak_ptr<void const> owner_;
  std::size_t text_octets_ = 0;
  std::uint64_t body_octets_ = 0;
  struct {
    std::string octets;
    std::size_t counted = 0;
  } early_;  // behind an extended CONNECT, until it is answered
  instant received_at_{};
  instant waiting_since_{};
};

}  // namespace tidegate::gateway
