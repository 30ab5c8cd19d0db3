// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "phases/tunnel/tunnel.hpp"
#include "serving_worker.hpp"

#include <tidegate/config/config.hpp>
#include <tidegate/store/memory_idempotency_store.hpp>

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::gateway {

/// Notes what an exchange sends: `whole 200`, `interim 100`, `head 200`, `end`, `cut`.
class recorded_client final : public client_stream {
 public:
  void send_interim(wire::response_head const& head, dropped_fields const& /*drop*/) override {
    trace.push_back("interim " + std::to_string(head.status()));
  }
  void send_head(wire::response_head const& head, dropped_fields const& drop,
                 std::string_view field_lines) override {
    dropped = drop.known;
    dropped_names.assign(drop.names.begin(), drop.names.end());
    begin("head", head.status(), field_lines);
  }
  void send_own_head(int with_status, std::string_view field_lines,
                     std::optional<std::uint64_t> with_length) override {
    length = with_length;
    begin("head", with_status, field_lines);
  }
  void send_body(std::string_view bytes) override { content.append(bytes); }
  void send_end(response_end const& how) override {
    trace.emplace_back(how.is_cut ? "cut" : "end");
    trailers = how.trailers;
    is_over = true;
  }
  void send_whole(local_reply const& reply, std::string_view field_lines) override {
    closes = reply.closes;
    type = reply.content_type;
    begin("whole", reply.status, field_lines);
    content.append(reply.content_begin).append(reply.content);
    is_over = true;
  }
  void give_up() override { trace.emplace_back("given up"); }
  void flush() override {}
  [[nodiscard]] auto is_above_high_watermark() const -> bool override { return is_full; }
  [[nodiscard]] auto takes_answers() -> bool override { return takes; }
  [[nodiscard]] auto may_ask_directory() -> bool override { return takes; }
  void resume() override {}
  void begin_tunnel(std::unique_ptr<tunnel> made, wire::response_head const& head,
                    dropped_fields const& /*drop*/, std::string_view field_lines) override {
    begin("tunnel", head.status(), field_lines);
    opened = std::move(made);
  }
  void end_sending() override { trace.emplace_back("no more"); }
  [[nodiscard]] auto wants_framing() const -> bool override { return false; }
  [[nodiscard]] auto protocol() const -> std::string_view override { return "HTTP/1.1"; }

  std::vector<std::string> trace;
  int status = 0;
  bool closes = false;  // the connection is of no use after the response
  std::string lines;
  wire::field_set dropped;  // of an upstream's
  std::vector<std::string> dropped_names;
  std::string content;
  std::string type;  // where no line says it
  std::string trailers;
  std::optional<std::uint64_t> length;
  bool is_over = false;
  bool is_full = false;
  bool takes = true;
  std::shared_ptr<tunnel> opened;  // copies of a client have it together

 private:
  void begin(std::string_view how, int with_status, std::string_view field_lines) {
    trace.push_back(std::string(how) + " " + std::to_string(with_status));
    status = with_status;
    lines = field_lines;
  }
};

/// A server on a free port that answers as the test says. It waits for nothing.
class scripted_upstream {
 public:
  scripted_upstream() : listening_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);  // NOLINT: as sockets have it
    EXPECT_EQ(::bind(listening_, any, size), 0);
    EXPECT_EQ(::listen(listening_, 16), 0);
    EXPECT_EQ(::getsockname(listening_, any, &size), 0);
    port_ = ::ntohs(address.sin_port);
  }
  scripted_upstream(scripted_upstream const&) = delete;
  auto operator=(scripted_upstream const&) -> scripted_upstream& = delete;
  ~scripted_upstream() {
    hang_up();
    stop();
  }

  std::string base_path;  ///< of its URL

  /// `upstreams:` of a configuration, with this one as `api`.
  [[nodiscard]] auto config(std::string const& options = "") const -> std::string {
    return "upstreams: {api: {servers: [\"http://127.0.0.1:" + std::to_string(port_) + base_path +
           "\"]" + options + "}}\n";
  }
  /// Takes what has come; true when that is the end of a request with `content`.
  [[nodiscard]] auto has(std::string_view content) -> bool {
    if (connection_ < 0) {
      connection_ = ::accept4(listening_, nullptr, nullptr, SOCK_NONBLOCK);
      connections_ += connection_ < 0 ? 0 : 1;
    }
    std::array<char, 65536> room;  // NOLINT: what is not read is not looked at
    for (ssize_t count = 0; (count = ::recv(connection_, room.data(), room.size(), 0)) > 0;) {
      received_.append(room.data(), static_cast<std::size_t>(count));
    }
    return received_.find("\r\n\r\n") != std::string::npos && received_.ends_with(content);
  }
  /// What came since the last answer.
  [[nodiscard]] auto received() const -> std::string const& { return received_; }
  [[nodiscard]] auto connections() const -> int { return connections_; }
  void answer(std::string_view text) {
    received_.clear();
    EXPECT_EQ(::send(connection_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  /// True when the gateway has closed the connection.
  [[nodiscard]] auto is_left() const -> bool {
    char octet = 0;
    return ::recv(connection_, &octet, 1, MSG_PEEK) == 0;
  }
  /// Sends no more.
  void end_sending() const { EXPECT_EQ(::shutdown(connection_, SHUT_WR), 0); }
  /// Closes the connection.
  void hang_up() {
    if (connection_ >= 0) {
      ::close(std::exchange(connection_, -1));
    }
  }
  /// Takes no more connections.
  void stop() {
    if (listening_ >= 0) {
      ::close(std::exchange(listening_, -1));
    }
  }

 private:
  int listening_;
  int connection_ = -1;
  int connections_ = 0;
  std::uint16_t port_ = 0;
  std::string received_;
};

/// One worker with its loop, driven by the test, and what all workers share.
class exchange_fixture {
 public:
  explicit exchange_fixture(std::string const& text,
                            std::unique_ptr<store::idempotency_store> keys = nullptr) {
    auto read = parse_config("listen: 127.0.0.1:0\n" + text, "t.yaml");
    EXPECT_TRUE(read) << (read ? "" : read.error().front().message);
    auto made = active_config::make(*std::move(read), ids_, loads_);
    EXPECT_TRUE(made) << (made ? "" : made.error());
    shared.connections.descriptors = 1000;
    shared.connections.clients_max = 100;
    shared.idempotency = std::make_shared<idempotency_service>(
        keys ? std::move(keys)
             : std::make_unique<store::memory_idempotency_store>(
                   store::memory_idempotency_store::options{}),
        std::span<std::byte const>(), "/tmp",
        std::make_shared<slewed_clock>(idempotency::wall_time(std::chrono::hours(500'000)),
                                       loop->now()));
    on.emplace(*loop, shared, metrics, log_.add_source(), 1);
    shared.workers.push_back(&*on);
    on->use(*std::move(made));
  }
  exchange_fixture(exchange_fixture const&) = delete;
  auto operator=(exchange_fixture const&) -> exchange_fixture& = delete;
  ~exchange_fixture() {
    on.reset();
    shared.scim.reset();
    shared.idempotency.reset();
  }

  /// Works until `is_so`, for ten seconds at most.
  [[nodiscard]] auto turn_until(std::function<bool()> const& is_so) -> bool {
    auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!is_so() && std::chrono::steady_clock::now() < end) {
      loop->turn(std::chrono::milliseconds(1));
    }
    return is_so();
  }
  /// Does what is there to do, so that nothing more happens by itself.
  void turn() {
    for (int i = 0; i < 5; ++i) {
      loop->turn(std::chrono::milliseconds(0));
    }
  }
  /// What was counted of the first route.
  [[nodiscard]] auto counted(keyed_outcome outcome) -> std::uint64_t {
    return on->current->routes.front().counts->of(outcome).value();
  }

  std::unique_ptr<engine::loop> loop = *engine::loop::make();
  std::shared_ptr<worker_metrics> metrics = std::make_shared<worker_metrics>();
  store::quota_table table{{.partitions_max = 1000}};

 private:
  access_log log_;
  policy_ids ids_;
  upstream_states loads_;

 public:
  shared_state shared{table, log_, std::make_shared<event_log>()};
  std::optional<serving_worker> on;
};

/// One client with one request, as a connection has it.
class one_request {
 public:
  one_request(exchange_fixture& in, std::string_view head, std::string_view content = {})
      : in_(in), text_(head), exchange_(in.on->exchanges->take()) {
    EXPECT_EQ(wire::parse_request_head(text_, 0, {}, head_).state, wire::head_state::complete);
    exchange_->begin(client, head_, from_, content.size());
    if (!content.empty()) {
      body(content, true);
    }
  }
  one_request(one_request const&) = delete;
  auto operator=(one_request const&) -> one_request& = delete;
  ~one_request() { leave(); }

  void body(std::string_view content, bool last) { exchange_->body(content, content.size(), last); }
  /// The client closes its connection, whether it has its answer or not.
  void leave() {
    if (!exchange_) {
      return;
    }
    if (!client.is_over) {
      exchange_->abandon();
    }
    in_.on->exchanges->recycle(std::move(exchange_));
  }
  /// Ends the exchange as the end of a worker does, without a word to it.
  void vanish() { exchange_.reset(); }
  /// Works until the client has all of an answer.
  [[nodiscard]] auto is_answered() -> bool {
    return in_.turn_until([this] { return client.is_over; });
  }
  [[nodiscard]] auto operator->() -> exchange* { return exchange_.get(); }
  [[nodiscard]] auto operator*() -> exchange& { return *exchange_; }

  recorded_client client;

 private:
  exchange_fixture& in_;
  std::string text_;
  wire::request_head head_;
  client_address from_{*http::parse_ip_address("192.0.2.1"), "http"};
  std::unique_ptr<exchange> exchange_;
};

}  // namespace tidegate::gateway
