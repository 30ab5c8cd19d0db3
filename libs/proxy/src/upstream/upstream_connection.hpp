// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "upstream/upstream_stream.hpp"

#include <tidegate/engine/loop.hpp>
#include <tidegate/engine/transport.hpp>
#include <tidegate/wire/http1_body.hpp>

namespace tidegate::gateway {

class upstream_pool;
class worker;
struct server_slot;

/// A connection of HTTP/1.1 to one server of an upstream. Serves one exchange at a time and rests
/// in its pool in between.
class upstream_connection final : public engine::watched,
                                  public upstream_stream,
                                  private engine::timer {
 public:
  /// `is_check`: for one exchange that counts nowhere.
  upstream_connection(worker& on, upstream_pool& pool, server_slot& server,
                      engine::transport transport, bool is_check);

  void start(upstream_user& user, wire::method method, std::string_view bytes) override;
  [[nodiscard]] auto is_connected() const noexcept -> bool override {
    return phase_ != phase::connecting;
  }
  void await_answer() override;
  void send(std::string_view bytes) override;
  [[nodiscard]] auto is_above_high_watermark() const noexcept -> bool override;
  [[nodiscard]] auto waiting_octets() const noexcept -> std::size_t override { return out_.size(); }
  void resume() override;
  void abandon() override;
  void hand_over(upstream_user& user) noexcept override { user_ = &user; }
  void end_sending() override;
  void leave_tunnel() override;

 private:
  friend class upstream_pool;
  void ready(engine::readiness what) override;
  void out_of_memory() override;
  void expired() override;

  /// The server has agreed to HTTP/2: the request goes on there.
  void become_http2();
  void flush();
  /// Has the worker know what waits to be sent.
  void count_waiting();
  void read();
  void take(std::string_view bytes);
  void note_head();
  void take_body(std::string_view bytes);
  [[nodiscard]] auto begin_body(std::string_view bytes) -> bool;
  void take_upgrade(std::string_view rest);
  void take_octets(std::string_view bytes);
  void tunnel_has_ended(bool in_order);
  void finish(bool reusable);
  [[nodiscard]] auto take_content(std::string_view& bytes) -> bool;
  /// Takes what has come up to the end of the connection, behind `size` octets of the input, as one
  /// piece: a response that breaks off must not have begun for the client.
  void take_to_end(std::size_t size);
  /// Whether `body`, behind which the connection ended, is whole.
  [[nodiscard]] auto is_whole(std::string_view body) const -> bool;
  /// `detail` says more of it than `why` does, for people.
  void fail(upstream_failure why, std::string const& detail = {});
  [[nodiscard]] auto describe(upstream_failure why) const -> std::string;
  /// The exchange is over.
  void leave();
  void note_failure(upstream_failure why, std::string const& detail);
  void close();
  void set_deadline(std::chrono::nanoseconds wait);

  /// The beginning of a head or of a line, whose rest has not come.
  struct unparsed {
    std::string text;
    std::size_t seen = 0;  // of a head, by the parser
    std::string trailers;  // complete lines
    bool is_last = false;  // behind what is being taken nothing follows
  };
  /// The request that it serves.
  struct served {
    wire::method method = wire::method::get;
    bool has_failed = false;  // its response counts as a failure
    bool is_check = false;    // of health: counts nowhere
    instant since{};
  };
  enum class phase : std::uint8_t {
    connecting,
    idle,
    head,
    body,
    tunnel,     // after a 101
    finishing,  // the same, and nothing is sent but what waits
    closed,
  };

  worker& worker_;
  upstream_pool& pool_;
  engine::transport transport_;
  upstream_user* user_ = nullptr;
  phase phase_ = phase::connecting;
  bool connected_ = false;  // though a handshake may be under way
  bool used_before_ = false;
  bool keep_alive_ = false;
  bool answered_ = false;  // a byte of the answer has come
  bool readable_ = false;
  bool closing_ = false;
  bool paused_ = false;
  bool taking_ = false;  // bytes are being handed on: what they lead to must not read again
  served request_;
  std::string out_;
  std::size_t counted_ = 0;  // of it
  unparsed in_;
  wire::body_decoder body_;
};

}  // namespace tidegate::gateway
