// SPDX-License-Identifier: Apache-2.0
#include "admin.hpp"

#include <tidegate/http/problem.hpp>
#include <tidegate/wire/http1_head.hpp>
#include <tidegate/wire/http1_write.hpp>

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;

class admin_connection final : public engine::watched, private engine::timer {
 public:
  admin_connection(engine::loop& on, engine::descriptor socket, shared_state& shared)
      : loop_(on), socket_(std::move(socket)), shared_(shared) {}

  [[nodiscard]] auto start() -> bool {
    set(loop_.timers(), loop_.now() + 10s);
    return loop_.watch(socket_, *this).has_value();
  }
  void close() {
    cancel();
    socket_.close();
    loop_.dispose(std::unique_ptr<watched>(this));
  }

 private:
  void expired() override { close(); }

  void ready(engine::readiness what) override {
    if (!socket_.is_open()) {
      return;
    }
    if (what.hung_up) {
      close();
      return;
    }
    if (what.readable && out_.empty()) {
      read();
    }
    if (socket_.is_open() && !out_.empty()) {
      write();
    }
  }

  void read() {
    std::array<char, 8192> bytes;  // NOLINT: what is not read is not looked at
    for (;;) {
      auto const size = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
      if (size < 0 && errno == EAGAIN) {
        break;
      }
      if (size <= 0) {
        close();
        return;
      }
      in_.append(bytes.data(), static_cast<std::size_t>(size));
      if (in_.size() > 64 * 1024) {
        close();
        return;
      }
    }
    auto const request = std::make_unique<wire::request_head>();
    auto const head = wire::parse_request_head(in_, 0, {}, *request);
    if (head.state == wire::head_state::complete) {
      answer(*request);
    } else if (head.state != wire::head_state::incomplete) {
      respond(400, "text/plain; charset=utf-8", "bad request\n", false);
    }
  }

  void answer(wire::request_head const& request) {
    bool const is_head = request.method() == wire::method::head;
    if (!is_head && request.method() != wire::method::get) {
      respond(405, "text/plain; charset=utf-8", "only GET and HEAD\n", false);
    } else if (request.path() == "/metrics") {
      std::string text;
      append_prometheus(text, shared_.metrics, shared_.quotas.size(), shared_.quotas.memory(),
                        shared_.log.lost());
      respond(200, "text/plain; version=0.0.4; charset=utf-8", text, is_head);
    } else if (request.path() == "/healthz") {
      respond(200, "text/plain; charset=utf-8", "ok\n", is_head);
    } else if (request.path() == "/readyz") {
      bool const is_ready = !shared_.draining.load(std::memory_order_relaxed);
      respond(is_ready ? 200 : 503, "text/plain; charset=utf-8",
              is_ready ? "ready\n" : "draining\n", is_head);
    } else {
      respond(404, "text/plain; charset=utf-8", "not found\n", is_head);
    }
  }

  void respond(int status, std::string_view type, std::string_view content, bool is_head) {
    wire::append_status_line(out_, status);
    wire::append_field(out_, "Content-Type", type);
    wire::append_field(out_, "Content-Length", content.size());
    wire::append_field(out_, "Cache-Control", "no-store");
    wire::append_field(out_, "Connection", "close");
    wire::append_end_of_head(out_);
    if (!is_head) {
      out_.append(content);
    }
  }

  void write() {
    auto const sent = ::send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN) {
        close();
      }
      return;
    }
    out_.erase(0, static_cast<std::size_t>(sent));
    if (out_.empty()) {
      ::shutdown(socket_.get(), SHUT_WR);
      close();
    }
  }

  engine::loop& loop_;
  engine::descriptor socket_;
  shared_state& shared_;
  std::string in_;
  std::string out_;
};

}  // namespace

admin_service::admin_service(engine::loop& on, engine::descriptor socket, shared_state& shared)
    : loop_(on), socket_(std::move(socket)), shared_(shared) {
  (void)loop_.watch(socket_, *this);
}

void admin_service::ready(engine::readiness /*what*/) {
  for (;;) {
    engine::descriptor accepted(
        ::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!accepted.is_open()) {
      return;
    }
    auto* const made = new admin_connection(loop_, std::move(accepted), shared_);  // NOLINT
    if (!made->start()) {
      made->close();
    }
  }
}

}  // namespace tidegate::gateway
