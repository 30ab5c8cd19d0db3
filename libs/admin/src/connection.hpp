// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "router.hpp"

#include <tidegate/engine/loop.hpp>
#include <tidegate/wire/http1_body.hpp>
#include <tidegate/wire/http1_head.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace tidegate::gateway {

/// One connection to the admin address: reads one request, has it answered, and closes.
class admin_connection final : public engine::watched, private engine::timer {
 public:
  /// `on_close` is called once, and gives the connection to the loop to be destroyed.
  admin_connection(admin_router& router, engine::descriptor socket, std::uint64_t number,
                   std::function<void(admin_connection&)> on_close);

  /// Connections that came before have lower numbers.
  [[nodiscard]] auto number() const -> std::uint64_t { return number_; }
  /// Whether the client has yet to send the head of its request.
  [[nodiscard]] auto awaits_head() const -> bool { return stage_ == stage::head; }

  [[nodiscard]] auto start() -> bool;
  void close();

 private:
  enum class stage : std::uint8_t { head, content, working, answering, streaming, closing };

  void expired() override;
  void out_of_memory() override { close(); }
  void ready(engine::readiness events) override;

  void read();
  void take_head(std::string_view bytes);
  /// False when the request was refused.
  [[nodiscard]] auto authorize(wire::request_head const& head) -> bool;
  void take_content(std::string_view bytes);
  void refuse_content();
  /// Logs that a change was refused, if the request asks for one.
  void note_refusal();
  [[nodiscard]] auto note_function() const -> admin_note;
  void answer();
  void respond(admin_answer const& answer);
  void send_event();
  void append_event();
  void write();
  void expire_after(std::chrono::nanoseconds time);

  admin_router& router_;
  engine::descriptor socket_;
  std::uint64_t number_;
  std::function<void(admin_connection&)> on_close_;
  /// Gone once the connection is closed: replies may come later.
  std::shared_ptr<admin_connection*> self_ = std::make_shared<admin_connection*>(this);
  stage stage_ = stage::head;
  std::string in_;
  std::size_t seen_ = 0;  // octets of the head that were looked at
  admin_request request_;
  admin_caller caller_;
  session_cookie cookie_;
  wire::body_decoder decoder_;
  std::string out_;
  int missed_ = 0;  // events that were not sent since the client does not read
};

}  // namespace tidegate::gateway
