// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "phases/key_phase.hpp"
#include "phases/quota.hpp"
#include "request/bridge_call.hpp"
#include "request/exchange_service.hpp"
#include "request/quota_call.hpp"
#include "request/request_context.hpp"
#include "upstream/upstream_pool.hpp"
#include "worker.hpp"

#include <tidegate/wire/http1_head.hpp>
#include <tidegate/wire/http1_write.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tidegate::gateway {

/// A response that the gateway makes itself. Borrows its texts.
struct local_response {
  int status = 200;
  std::string_view content_type = "application/problem+json";
  std::string_view field_lines = {};  ///< complete lines besides those that every response has
  std::string_view content = {};
  bool closes = false;  ///< the connection is of no use afterwards
  /// What HTTP/1.1 says of status and content, when it was made before; see `append_content_head`.
  std::string_view content_head = {};
  /// `field_lines` say all but the framing: neither Date nor Content-Type is added.
  bool is_whole = false;
  /// Of such a response: what comes before `content`.
  std::string_view content_begin = {};
  /// Keeps `content` for as long as it has to wait, so that no copy of it is made.
  std::shared_ptr<void const> owner = {};
};

/// Content that is as long as this is sent from where it is; what is shorter is gathered with its head.
inline constexpr std::size_t large_octets_min = 16 * 1024;

/// The client's side of one exchange.
class client_stream {
 public:
  /// Sends a 1xx response on.
  virtual void send_interim(wire::response_head const& head) = 0;
  /// Sends the head of an upstream's response, with `field_lines` besides its own fields less `drop`.
  virtual void send_head(wire::response_head const& head, wire::field_set const& drop,
                         std::string_view field_lines) = 0;
  /// Sends the head of a response that `send_body` and `send_end` follow; `field_lines` say all but the
  /// framing. `length` is that of the content, where it is known.
  virtual void send_own_head(int status, std::string_view field_lines,
                             std::optional<std::uint64_t> length) = 0;
  /// Sends bytes of the body: with their framing when `wants_framing`, else content.
  virtual void send_body(std::string_view bytes) = 0;
  virtual void send_end() = 0;
  virtual void send_local(local_response const& response) = 0;
  /// The response cannot be completed.
  virtual void cut() = 0;
  /// There is no memory for going on: abandons the exchange and tells the client nothing.
  virtual void give_up() = 0;
  /// Sends what was gathered.
  virtual void flush() = 0;
  [[nodiscard]] virtual auto wants_framing() const -> bool = 0;
  /// True when so much waits for the client that nothing more is to be made for it. When it has taken some of it,
  /// `exchange::client_takes_more` is called.
  [[nodiscard]] virtual auto is_clogged() const -> bool = 0;
  /// False when a store is not to be asked for an answer yet, because the client has not taken others. When it
  /// has, `exchange::client_takes_more` is called.
  [[nodiscard]] virtual auto takes_answers() -> bool { return true; }
  /// As that, where an answer takes the directory some time: each client may wait for a few at once.
  [[nodiscard]] virtual auto may_ask_directory() -> bool { return true; }
  /// The upstream takes more of the request's body.
  virtual void resume() = 0;
  /// As logs call it: `HTTP/1.1`.
  [[nodiscard]] virtual auto protocol() const -> std::string_view = 0;

 protected:
  ~client_stream() = default;
};

/// What is counted and logged, as others do it, when nobody waits for the response any more.
inline constexpr int client_is_gone = 499;

/// One request and its response, from the route to the last byte. Kept for reuse by its worker.
class exchange final : private upstream_user {
 public:
  explicit exchange(worker& on) : worker_(on) {}

  /// Decides about a request and begins to answer it, or to forward it. The head is looked at only here.
  /// `octets_at_hand` have come behind it, for its body and perhaps for another request.
  void begin(client_stream& client, wire::request_head const& request, client_address const& from,
             std::uint64_t octets_at_hand = 0);
  /// The request's body, framed as it came; `content_octets` of it are content.
  void body(std::string_view bytes, std::uint64_t content_octets, bool last);
  /// Nothing more is to be sent to the client: it is gone, or told something else, with `status`.
  void abandon(int status = client_is_gone);
  /// The client takes more of the response.
  void client_takes_more();
  [[nodiscard]] auto upstream_is_clogged() const -> bool {
    return upstream_ != nullptr ? upstream_->is_clogged() : asked_ && asked_->waits;
  }

  /// What of the request, or of an answer that has to be complete first, is kept in memory.
  [[nodiscard]] auto held_octets() const -> std::size_t;
  /// That and what waits for its upstream.
  [[nodiscard]] auto waiting_octets() const -> std::size_t;
  /// Has the worker know of what is held.
  void count_held() { worker_.count_buffered(counted_, held_octets()); }

  /// True while a keyed request goes on for which nobody waits: the exchange must stay.
  [[nodiscard]] auto is_detached() const noexcept -> bool { return keyed_ != nullptr; }

  // For a keyed request. Those that end the exchange are the last thing it calls.

  [[nodiscard]] auto has_client() const noexcept -> bool { return client_ != nullptr; }
  [[nodiscard]] auto client() const noexcept -> client_stream* { return client_; }
  void end_unheard();  // ends
  /// What became of the wish to spend what a request costs.
  enum class admission : std::uint8_t {
    admitted,
    over,     ///< it was refused, which ended the exchange
    waiting,  ///< a store was asked; the request goes on when it has answered
  };
  /// When it waits, `key_phase::admit` is called, after which this does not wait again.
  [[nodiscard]] auto admit_run() -> admission;
  void give_charges_back();
  /// For the access log: which server is asked, and what became of a request with a key, whose id is empty where none
  /// could be read.
  void log_server(std::string_view authority);
  void log_key(std::string id, std::string_view outcome);
  /// What was charged is settled, as at the end of an exchange.
  void close_charges();
  /// Ends, perhaps when a store has decided about the cost.
  void replay(std::shared_ptr<idempotency::stored_response const> const& stored, std::int64_t cost);
  void refuse_key(idempotency::problem_details const& problem, std::chrono::seconds retry_after,
                  std::string_view more_lines = {});  // ends
  /// The answer did not come in time. The exchange goes on.
  void tell_unknown(int status, idempotency_config const& how);
  void end_unknown(int status, idempotency_config const& how);  // ends
  void answer_unreachable(upstream_failure why);                // ends
  void answer_first(int status, std::span<idempotency::response_field const> fields,
                    std::string_view limit_lines, std::string content,
                    bool is_protected);  // ends
  void pass_interim(wire::response_head const& head);
  /// The upstream has failed, which is what the log says of the answer unless another try brings one.
  void note_failure(upstream_failure why);
  void head_came(int status);
  /// `head` is that of the upstream's answer; null for one of our own.
  void append_limit_lines(std::string& out, wire::response_head const* head);
  void begin_stream(int status, std::span<idempotency::response_field const> fields,
                    std::string_view limit_lines, std::optional<std::uint64_t> length,
                    bool is_protected);
  void stream(std::string_view content);
  void flush_stream();
  [[nodiscard]] auto stream_is_clogged() const -> bool;
  /// False when the client has to take other answers first; see `client_stream::takes_answers`.
  [[nodiscard]] auto may_look_up() -> bool {
    return client_ == nullptr || client_->takes_answers();
  }
  void end_stream();  // ends
  void cut_stream();  // ends

 private:
  // For the connection to the upstream.
  void fetch_ahead() const noexcept override {
    __builtin_prefetch(&context_.begun, 1);
    quota_.prefetch();
  }
  void upstream_interim(wire::response_head const& head) override { client_->send_interim(head); }
  void upstream_head(wire::response_head const& head) override;
  void upstream_body(std::string_view bytes, std::uint64_t content_octets) override;
  void upstream_done() override;
  void upstream_failed(upstream_failure why, std::string unsent) override;
  void upstream_takes_more() override { client_->resume(); }
  void flush_client() override { client_->flush(); }
  [[nodiscard]] auto wants_framing() const -> bool override {
    return !bridge_ && client_->wants_framing();
  }
  [[nodiscard]] auto request_done() const -> bool override { return request_done_; }
  [[nodiscard]] auto client_is_clogged() const -> bool override { return client_->is_clogged(); }

  [[nodiscard]] auto route_of() const -> route const& { return context_.route_settings(); }
  /// Whether a server could read the path as another one, whose route, cost or partition is another than
  /// that of `found`.
  [[nodiscard]] auto is_ambiguous(wire::request_head const& request, std::string_view path,
                                  std::optional<std::size_t> found) const -> bool;
  void answer_repeated();
  /// From the route on. Called again when a store has decided about quotas.
  void begin_on_route(wire::request_head const& request, std::string_view path,
                      client_address const& from);
  /// A request that can be held until a store has decided about it.
  struct holdable {
    wire::request_head const& request;
    client_address const& from;
  };
  /// Spends what the request costs; when it is suspended, the store of quotas was asked.
  [[nodiscard]] auto admit_step() -> step;
  /// As that; a request that waits is held, and a refusal is sent.
  [[nodiscard]] auto admit(holdable const* what) -> admission;
  /// Asks the store of quotas whether what the request costs may be spent.
  void ask_quota_store();
  void hold(holdable const& what);
  void quotas_answered(store::spend_answer const& answer);
  void go_on();
  [[nodiscard]] auto begin_keyed(wire::request_head const& request, std::string_view path,
                                 client_address const& from) -> bool;
  /// How a head goes on to an upstream.
  struct forwarding {
    wire::field_set drop{};
    std::string_view target{};                 ///< empty: the request's
    std::optional<wire::body_framing> body{};  ///< nothing: the request's
  };
  void append_forwarded_head(std::string& out, wire::request_head const& request,
                             std::string_view path, client_address const& from,
                             forwarding const& how);
  /// The client that is to be answered, or null; the exchange is over with that.
  [[nodiscard]] auto end_keyed(std::size_t local_octets = 0) -> client_stream*;
  [[nodiscard]] auto is_overloaded() -> bool;
  /// Sends `context_.reply`.
  void respond();
  void append_limit_fields(std::string& out, wire::response_head const* upstream, int status) {
    quota_.append_fields(out, context_, quota_service_, upstream, status);
  }
  void append_forwarding_lines(std::string& lines, wire::request_head const& request,
                               client_address const& from, bool is_trusted);
  void forward(wire::request_head const& request, std::string_view path,
               client_address const& from);
  /// Sends `request_` to an upstream, or holds it until its body has come: a client that is slow
  /// takes no connection of the upstream.
  void send_when_whole(wire::request_head const& request);
  [[nodiscard]] auto is_held(wire::request_head const& request) const -> bool;
  void hold_body(std::string_view bytes, std::uint64_t content_octets, bool last);
  void send_upstream(bool fresh);
  /// What OPTIONS asks the gateway itself.
  void answer_options(std::string_view methods);
  /// Max-Forwards of OPTIONS (RFC 9110, section 7.6.2). False when the request goes no further.
  [[nodiscard]] auto count_forward(wire::request_head const& request) -> bool;
  void answer_problem(int status, std::string_view title, std::string_view detail,
                      std::string_view field_lines = {});
  /// True when the request may go on; else it was answered with 401 or 403.
  [[nodiscard]] auto is_let_in(wire::request_head const& request, std::string_view path,
                               client_address const& from) -> bool;
  void answer_echo(wire::request_head const& request, std::string_view path);
  void answer_description(wire::request_head const& request);

  // For the SCIM service.
  [[nodiscard]] auto path_below_base(std::string_view path) const -> std::string_view;
  [[nodiscard]] auto scim_request_of(wire::request_head const& request, std::string_view path,
                                     client_address const& from) -> scim_request;
  void begin_service(wire::request_head const& request, std::string_view path,
                     client_address const& from);
  /// Tells a client to go on that waits for that with its content.
  void invite_content(wire::request_head const& request);
  void refuse_content();
  void service_content(std::string_view framed, bool last);
  void ask_service();
  /// `limit_lines` are the fields of quotas when they were made before, merged with those of an upstream.
  void answer_service(scim_answer answer, std::optional<std::string_view> limit_lines = {});

  // For `bridge: scim-cursor`.
  [[nodiscard]] auto begin_bridge(wire::request_head const& request, std::string_view path,
                                  client_address const& from) -> bool;
  [[nodiscard]] auto find_bridged_page(bridge_call& call, scim::list_request asked) const
      -> result<scim::bridged_page, scim::error>;
  void bridge_content(std::string_view framed, bool last);
  [[nodiscard]] auto bridge_head(wire::response_head const& head) -> bool;
  void bridge_body(std::string_view content);
  void bridge_done();

  void unload();
  /// Closes the books. Whoever calls it sends the end of the response to the client that it returns, and
  /// touches nothing of the exchange after that: it may serve another request by then.
  ///
  /// `local_octets` is the content that the gateway itself sends.
  [[nodiscard]] auto end(std::size_t local_octets = 0) -> client_stream*;

  // For the access log.
  void begin_log_line(wire::request_head const& request, client_address const& from);
  void end_log_line(std::size_t local_octets);

  worker& worker_;
  value_scratch values_{worker_.lines};
  quota_service quota_service_{
      worker_.shared.quotas, worker_.shared.overrides, worker_.quotas, worker_.shared.quota_health,
      *worker_.metrics,      worker_.jitter,           values_,        worker_.text};
  client_stream* client_ = nullptr;
  worker_runtime* runtime_ = nullptr;
  upstream_connection* upstream_ = nullptr;
  request_context context_;
  quota_phase quota_;
  scim_operation scim_operation_ = scim_operation::none;
  bool head_sent_ = false;
  bool request_done_ = false;
  std::optional<step> resumed_;    // what the store of quotas said to a request that waited
  upstream_load* load_ = nullptr;  // in which this exchange is counted
  bool may_retry_ = false;         // safe, and all of it is in `request_`
  std::int64_t tries_ = 0;
  std::uint64_t octets_at_hand_ = 0;  // of the body, or more, when the head came
  std::uint64_t octets_missing_ = 0;  // of the body of a request that is held; 0: it is not
  std::size_t counted_ = 0;           // of `held_octets`
  std::string request_;               // as it is sent to the upstream, while it may be sent again
  std::string log_line_;              // so far; empty while nothing is logged
  std::string_view server_;           // the last that was asked, when that is logged
  std::string key_id_;                // the same of a request with a key
  std::string_view key_outcome_;
  int told_status_ = 0;  // what a client was told before its request was over; 0: nothing
  std::size_t told_octets_ = 0;
  std::string_view told_reason_;       // of that; a literal
  std::shared_ptr<quota_call> asked_;  // while the store of quotas is waited for
  /// What is replayed when the store of quotas has decided about its cost.
  std::pair<std::shared_ptr<idempotency::stored_response const>, std::int64_t> replayed_;
  std::shared_ptr<key_phase> keyed_;   // a request with an Idempotency-Key, until its end
  std::shared_ptr<service_call> service_;  // a request to a service of our own, until its end
  std::unique_ptr<bridge_call> bridge_;    // while an answer has to be changed
};

}  // namespace tidegate::gateway
