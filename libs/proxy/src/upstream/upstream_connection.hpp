// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/engine/loop.hpp>
#include <tidegate/engine/transport.hpp>
#include <tidegate/wire/http1_body.hpp>

namespace tidegate::gateway {

class upstream_pool;
class worker;
struct server_slot;

/// Why an upstream did not answer.
enum class upstream_failure : std::uint8_t {
  connect_refused,    ///< nothing was sent
  connect_timeout,    ///< nothing was sent
  closed_unanswered,  ///< a connection that was used before ended without a byte of an answer
  closed,             ///< in the middle of an answer, or a new connection without one
  malformed,          ///< an answer that HTTP does not allow
  timeout,            ///< no head in time
  idle,               ///< too long between two bytes
  no_descriptor,      ///< nothing was sent: there are as many connections as there may be
  busy,               ///< nothing was sent: `max-connections` are open
  no_server,          ///< nothing was sent: no name of a server was ever resolved
};

/// How a request and its response flow between a client and an upstream.
class upstream_flow {
 public:
  /// An answer is about to be read: prefetch what handling it will touch.
  virtual void prefetch() const noexcept {}
  /// More of the request can be sent.
  virtual void upstream_resumed() = 0;
  /// What was given so far is all for now.
  virtual void flush_client() = 0;
  [[nodiscard]] virtual auto wants_framing() const -> bool = 0;
  /// True when the upstream has all of the request.
  [[nodiscard]] virtual auto request_done() const -> bool = 0;
  /// True when no more of the response is to be read for now.
  [[nodiscard]] virtual auto client_is_full() const -> bool = 0;

 protected:
  upstream_flow() = default;
  upstream_flow(upstream_flow const&) = default;
  auto operator=(upstream_flow const&) -> upstream_flow& = default;
  virtual ~upstream_flow() = default;
};

/// Has a request sent to an upstream and takes its response. Everything is called on the thread of
/// the worker.
class upstream_user : public upstream_flow {
 public:
  /// The connection is there; only where `start` found none that was.
  virtual void upstream_connected() {}
  virtual void upstream_interim(wire::response_head const& head) = 0;
  virtual void upstream_head(wire::response_head const& head) = 0;
  /// A part of the response's content, `content_octets` of it; with its framing when
  /// `wants_framing`.
  virtual void upstream_body(std::string_view bytes, std::uint64_t content_octets) = 0;
  virtual void upstream_done() = 0;
  /// `unsent` is all of the request so far when none of it was sent.
  virtual void upstream_failed(upstream_failure why, std::string unsent) = 0;
  /// The head of the response did not come in time. How much longer to wait; nothing: the request
  /// has failed.
  [[nodiscard]] virtual auto upstream_is_late() -> std::optional<std::chrono::nanoseconds> {
    return std::nullopt;
  }

 protected:
  ~upstream_user() override = default;
};

/// A connection to one server of an upstream. Serves one exchange at a time and rests in its pool
/// in between.
class upstream_connection final : public engine::watched, private engine::timer {
 public:
  upstream_connection(worker& on, upstream_pool& pool, server_slot& server,
                      engine::transport transport);

  /// Sends the request of `user`: `head` and perhaps the beginning of its body.
  void start(upstream_user& user, wire::method method, std::string_view bytes);
  /// False until a new connection has come about.
  [[nodiscard]] auto is_connected() const noexcept -> bool { return phase_ != phase::connecting; }
  /// Counts the time until the head of the response from now on.
  void await_answer();
  /// Sends more of the body.
  void send(std::string_view bytes);
  /// True when more is waiting to be sent than should.
  [[nodiscard]] auto is_above_high_watermark() const noexcept -> bool;
  /// What waits to be sent.
  [[nodiscard]] auto waiting_octets() const noexcept -> std::size_t { return out_.size(); }
  /// Goes on reading after the client has taken what there was.
  void resume();
  /// The exchange wants no answer any more.
  void abandon();

  [[nodiscard]] auto server() const noexcept -> server_slot const& { return *server_; }

 private:
  friend class upstream_pool;
  void ready(engine::readiness what) override;
  void out_of_memory() override;
  void expired() override;

  void flush();
  /// Has the worker know what waits to be sent.
  void count_waiting();
  void read();
  void take(std::string_view bytes);
  void take_body(std::string_view bytes);
  void finish(bool reusable);
  /// Reads what has come up to the end of the connection, behind `size` octets of the input: an
  /// answer that breaks off must not have begun for the client.
  [[nodiscard]] auto read_to_end(std::size_t size) -> std::string;
  /// Whether `body`, behind which the connection ended, is whole.
  [[nodiscard]] auto is_whole(std::string_view body) const -> bool;
  /// `detail` says more of it than `why` does, for people.
  void fail(upstream_failure why, std::string const& detail = {});
  [[nodiscard]] auto describe(upstream_failure why) const -> std::string;
  /// The exchange is over.
  void leave();
  void close();
  void set_deadline(std::chrono::nanoseconds wait);

  /// The beginning of a head or of a line, whose rest has not come.
  struct unparsed {
    std::string text;
    std::size_t seen = 0;  // of a head, by the parser
    bool is_last = false;  // behind what is being taken nothing follows
  };
  /// The request that it serves.
  struct served {
    wire::method method = wire::method::get;
    instant since{};
  };
  enum class phase : std::uint8_t { connecting, idle, head, body, closed };

  worker& worker_;
  upstream_pool& pool_;
  server_slot* server_;
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
  bool is_check_ = false;  // of health: counts nowhere
  bool taking_ = false;    // bytes are being handed on: what they lead to must not read again
  served request_;
  std::string out_;
  std::size_t counted_ = 0;  // of it
  unparsed in_;
  wire::body_decoder body_;
};

}  // namespace tidegate::gateway
