// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "observe/exchange_log.hpp"
#include "phases/forward.hpp"
#include "phases/grpc_call.hpp"
#include "phases/key/key_phase.hpp"
#include "phases/overload.hpp"
#include "phases/quota.hpp"
#include "phases/scim/bridge.hpp"
#include "phases/scim/scim.hpp"
#include "request/client_stream.hpp"
#include "request/held_request.hpp"

#include <tidegate/wire/http1_write.hpp>

namespace tidegate::gateway {

/// The phases of a request, in order; see `exchange::advance`.
enum class phase : std::uint8_t { select, charges, key, overload, quota, handle };

/// The lines of a response that are not the framing: of whom they are, and what we add to them.
struct response_lines {
  /// The response of an upstream whose fields are sent on by themselves.
  wire::response_head const* upstream = nullptr;
  /// Fields that were kept: of SCIM, of a first answer with a key, of a replay.
  std::span<http::field const> fields{};
  bool has_date = false;   ///< among `fields`
  bool is_replay = false;  ///< `fields` are those of an earlier answer
  /// The RateLimit fields when they were made before; else they are made now.
  std::optional<std::string_view> limit_lines{};
  bool has_resets = true;                   ///< of RateLimit
  std::chrono::nanoseconds retry_after{0};  ///< 0: there is no Retry-After
  std::string_view more{};                  ///< complete lines
};

/// An answer that is there as a whole and was kept with its fields.
struct kept_response {
  int status = 200;
  response_lines lines{};
  std::string_view content_begin{};
  std::string_view content{};
  std::shared_ptr<void const> owner{};  ///< of `content`; without it a copy is made where it waits
  std::string_view trailers{};          ///< complete lines
  bool closes = false;                  ///< the rest of the request is not waited for
};

/// One request and its response, from the route to the last byte. Kept for reuse by its worker.
class exchange final {
 public:
  explicit exchange(worker& on) : worker_(on), forward_(*this, on) {}

  // ---- for the connection of the client ----

  /// Decides about a request and begins to answer it. The head is looked at only here.
  /// `octets_at_hand` have come behind it, for its body and perhaps for another request.
  void begin(client_stream& client, wire::request_head const& request, client_address const& from,
             std::uint64_t octets_at_hand = 0);
  /// The request's body, framed as it came; `content_octets` of it are content.
  void body(std::string_view bytes, std::uint64_t content_octets, bool last);
  /// Nothing more is to be sent to the client: it is gone, or was told something else, with
  /// `status`.
  void abandon(int status = status_client_closed);
  /// The client takes more of the response.
  void client_resumed();
  /// True when no more of the body is to be read for now.
  [[nodiscard]] auto is_above_high_watermark() const -> bool {
    return forward_.is_active() ? forward_.is_above_high_watermark() : held_ != nullptr;
  }
  /// What of the request, or of an answer that has to be complete first, is kept in memory.
  [[nodiscard]] auto held_octets() const -> std::size_t;
  /// That and what waits for its upstream.
  [[nodiscard]] auto waiting_octets() const -> std::size_t;
  /// True while a request with a key runs without its client: the exchange must stay.
  [[nodiscard]] auto is_detached() const noexcept -> bool { return keyed_ != nullptr; }

  // ---- for its phases ----

  [[nodiscard]] auto context() noexcept -> request_context& { return context_; }
  [[nodiscard]] auto client() const noexcept -> client_stream* { return client_; }
  [[nodiscard]] auto texts() noexcept -> reply_texts { return {worker_.text, worker_.reply_lines}; }
  [[nodiscard]] auto log() noexcept -> exchange_log& { return log_; }
  [[nodiscard]] auto forward() noexcept -> forward_phase& { return forward_; }
  /// Tells the worker what is held.
  void count_held() { worker_.count_buffered(counted_, held_octets()); }
  /// Prefetches what the answer of an upstream will touch.
  void prefetch() const noexcept {
    __builtin_prefetch(&context_.begun, 1);
    quota_.prefetch();
  }
  [[nodiscard]] auto wants_framing() const -> bool { return !bridge_ && client_->wants_framing(); }
  [[nodiscard]] auto request_done() const noexcept -> bool { return request_.is_done; }

  // The answer of an upstream. `take_end` ends the exchange.
  void take_head(wire::response_head const& head);
  void take_body(std::string_view bytes, std::uint64_t content_octets);
  void take_end(std::string_view trailers);
  /// The time of a call of gRPC is over.
  void deadline_passed();
  /// A 101, after which the request goes on as a tunnel. False when none was asked for.
  [[nodiscard]] auto take_upgrade(wire::response_head const& head, upstream_stream& from) -> bool;
  /// What came of an answer is of no use.
  void drop_answer();
  /// The head of an answer that is kept: appends the RateLimit fields of the response to
  /// `limit_lines`. `head` is null for an answer of our own.
  void answer_began(int status, wire::response_head const* head, std::string& limit_lines);

  /// The key phase has found what to do: admission comes next, with `cost` for a replay.
  void admit(std::optional<std::int64_t> replay_cost);
  /// Says how the policies stand, for an answer that none of them is the reason of.
  void look_at_quotas();
  /// What was charged is corrected by the outcome, or given back.
  void settle(bool refund);
  /// What was charged stays so, whatever the outcome.
  void keep_charge() noexcept { quota_.keep_charge(); }

  /// Writes the lines of a response head, whatever the response is made of: the one place.
  void write_lines(std::string& out, int status, response_lines const& of);
  /// Sends the head of a response that `take_body` and `finish` follow.
  void send_own_head(int status, response_lines const& of, std::optional<std::uint64_t> length);
  /// Sends `context().reply`, while the exchange goes on without its client.
  void respond_early();

  // Each of these ends the exchange, which may serve another request by the time they return.
  /// Sends `context().reply`.
  void respond();
  void respond(kept_response const& response);
  void respond(scim_answer answer);
  /// Ends the response.
  void finish(response_end const& how);

 private:
  void advance(phase from);
  void write_reply(std::string& out, local_reply& reply);
  [[nodiscard]] auto enter_key() -> step;
  void ask_quotas();
  void quotas_answered(store::spend_answer const& answer);
  void handle();
  void begin_forward();
  [[nodiscard]] auto begin_upgrade() -> bool;
  void begin_bridge();
  void begin_scim();
  void ask_scim();
  void bridge_content(std::string_view framed, bool last);
  /// Tells a client to go on that waits for that with its content.
  void send_continue();
  /// Settles, counts and logs. The client, if there is one, is to be told the end of the response;
  /// nothing of the exchange is used after that.
  [[nodiscard]] auto close(std::size_t local_octets = 0) -> client_stream*;

  worker& worker_;
  value_scratch values_{worker_.lines};
  quota_service quotas_{worker_.shared.quotas.table,
                        worker_.shared.quotas.overrides,
                        worker_.quotas,
                        worker_.shared.quotas.health,
                        *worker_.metrics,
                        worker_.jitter,
                        values_,
                        worker_.text};
  client_stream* client_ = nullptr;
  worker_config* config_ = nullptr;
  request_context context_;
  scim_operation scim_operation_ = scim_operation::none;
  struct {
    bool is_done = false;
    bool is_connect = false;           // an extended CONNECT (RFC 8441)
    std::uint64_t octets_at_hand = 0;  // of the body, or more, when the head came
    std::string websocket_key;         // that an extended CONNECT goes on with
  } request_;
  std::size_t counted_ = 0;  // of `held_octets`
  quota_phase quota_;
  overload_phase overload_;
  forward_phase forward_;
  grpc_call call_{*this};
  exchange_log log_;
  early_answer early_;
  std::shared_ptr<quota_question> question_;  // until what the store of quotas said is done
  std::unique_ptr<held_request> held_;        // the same, but for requests with keys
  std::shared_ptr<key_phase> keyed_;          // a request with an Idempotency-Key, until its end
  std::shared_ptr<scim_phase> scim_;          // a request to the SCIM service, until its end
  std::unique_ptr<bridge_phase> bridge_;      // while an answer may have to be changed
};

}  // namespace tidegate::gateway
