// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scim_service.hpp"
#include "spooled_content.hpp"
#include "upstream_pool.hpp"
#include "worker.hpp"

#include <tidegate/base/sha256.hpp>
#include <tidegate/idempotency/decide.hpp>
#include <tidegate/idempotency/problems.hpp>
#include <tidegate/idempotency/record.hpp>
#include <tidegate/store/idempotency_store.hpp>
#include <tidegate/wire/http1_body.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {

class exchange;

/// What a keyed request is made of, from its head.
struct keyed_head {
  idempotency::lookup_key key{};
  std::optional<std::chrono::seconds> wait;  ///< `Prefer: wait` (RFC 7240, section 4.3)
  wire::method method = wire::method::post;
  std::string method_text;
  std::string principal;  ///< who asks, by name; empty where there is none
  std::string host;       ///< as hosts are compared
  std::string path;       ///< normal
  std::string query;      ///< without its "?"
  /// Request line and fields for the upstream, without the empty line behind them; gone when sent.
  std::string lines;
  std::optional<sha256_digest>
      content_digest;                   ///< that of the content by SHA-256, if the client says it
  wire::body_framing framing;           ///< of the content, also towards the upstream
  std::optional<scim_request> service;  ///< for the SCIM service, in place of an upstream
};

/// One request with an Idempotency-Key, from its head to the last thing that is written down about it. It goes
/// on when the client has gone (R5): its exchange then has nobody to answer, but stays until the end.
///
/// The content is kept until all of it is there, since the fingerprint needs it. Then the key is looked up, and
/// what `idempotency::decide` says is done. A request that runs gets its connection first, so that a crash
/// until then leaves nothing behind; then its claim is made durable (R1); then it is sent. Its answer is kept
/// until it is durable (R2), or goes on as a stream once it is durable that it cannot be replayed. A service of
/// our own is asked in the same way, without a connection.
class keyed_request final : public upstream_user,
                            public std::enable_shared_from_this<keyed_request>,
                            private engine::timer {
 public:
  keyed_request(worker& on, exchange& of, worker_route const& route, keyed_head head);
  ~keyed_request() override;

  /// To be called once, when somebody owns it.
  void start();
  /// True when it has nothing to do any more.
  [[nodiscard]] auto is_over() const noexcept -> bool { return stage_ == stage::over; }
  /// The content, framed as it came.
  void content(std::string_view framed, bool last);
  /// The client is gone. True when the exchange is over with that.
  [[nodiscard]] auto client_has_gone() -> bool;
  /// What is kept in memory of its content and of its answer.
  [[nodiscard]] auto held_octets() const noexcept -> std::size_t {
    return content_.memory_octets() + body_.size() + (waits_to_look_ ? sizeof *this : 0);
  }
  /// True while it is not looked up because other answers wait for the client.
  [[nodiscard]] auto waits_for_client() const noexcept -> bool { return waits_to_look_; }
  /// The client takes more of a response that is too large to be kept, or has taken what others were waiting for.
  void client_takes_more();
  /// Whoever was asked by `exchange::admit_run` has answered.
  void quotas_decided();
  /// The record of the key may have changed.
  void look_again();

 private:
  // For the connection to the upstream.
  void upstream_connected() override;
  void upstream_interim(wire::response_head const& head) override;
  void upstream_head(wire::response_head const& head) override;
  void upstream_body(std::string_view bytes, std::uint64_t content_octets) override;
  void upstream_done() override;
  void upstream_failed(upstream_failure why, std::string unsent) override;
  [[nodiscard]] auto upstream_is_late() -> std::optional<std::chrono::nanoseconds> override;
  void upstream_takes_more() override;
  void flush_client() override;
  [[nodiscard]] auto wants_framing() const -> bool override { return false; }
  [[nodiscard]] auto request_done() const -> bool override { return sent_all_; }
  [[nodiscard]] auto client_is_clogged() const -> bool override;

  void expired() override;

  enum class stage : std::uint8_t {
    content,     // is coming
    looking,     // the store is asked
    waiting,     // for the answer to another request
    admitting,   // the store of quotas is asked
    connecting,  // nothing is claimed yet
    claiming,    // the store is asked to
    running,     // a byte may have been sent
    recording,   // the store is told what became of it
    streaming,   // recorded without content; the answer goes through
    over,
  };

  [[nodiscard]] auto settings() const -> idempotency_config const&;
  [[nodiscard]] auto fingerprint_by(idempotency::fingerprint_rule const& rule)
      -> std::optional<idempotency::fingerprint>;
  [[nodiscard]] auto matches_digest() -> std::optional<bool>;
  void look_up();
  void found(store::find_answer answer);
  void decide(std::optional<store::found_record> const& found);
  void follow(idempotency::decision const& what, std::optional<store::found_record> const& found);
  void wait_for_answer();
  void set_wait();
  void run();
  void run_admitted();
  void connect(bool fresh);
  void claim();
  [[nodiscard]] auto origin() const -> idempotency::request_origin;
  void claimed(store::apply_answer answer);
  void send();
  void send_content();
  void ask_service();
  void service_answered(scim_answer answer);
  void begin_recording(std::span<std::string_view const> connection_options);
  void record(idempotency::change change);
  [[nodiscard]] auto was_lost_by_store(store::applied const& answer) const -> bool;
  void recorded(store::apply_answer answer);
  void record_end(idempotency::exchange_end end);
  [[nodiscard]] auto change_by(idempotency::exchange_end end) -> idempotency::change;
  void forget_claim(bool is_sent);
  void answer();
  void begin_stream();
  void store_has_failed(store::store_error const& error);
  void refuse(idempotency::problem_details problem, std::chrono::seconds retry_after,
              std::string_view field_lines = {});
  /// What became of the request, for metrics; what is said first stays.
  void note(keyed_outcome outcome);
  void note_unknown(idempotency::unknown_reason reason);
  void note_end();
  void let_upstream_go();
  /// The exchange, which is told about an end, and is not to be touched after that.
  [[nodiscard]] auto leave_exchange() -> exchange&;
  void set_deadline(std::chrono::nanoseconds wait);
  template <class Answer>
  [[nodiscard]] auto on_own_thread(void (keyed_request::*take)(Answer));

  worker& worker_;
  exchange* exchange_;
  worker_route const& route_;
  keyed_head head_;
  stage stage_ = stage::content;
  wire::body_decoder decoder_;
  spooled_content content_;
  idempotency::keyed_request request_;
  idempotency::change claim_;
  idempotency::record mine_;  // as it was claimed
  bool claimed_ = false;
  bool charged_ = false;
  bool waits_to_look_ = false;  // until the client has taken other answers
  std::optional<keyed_outcome> outcome_;
  bool waits_for_record_ = false;  // is in the waiting room
  instant wait_until_{instant::max()};
  std::chrono::milliseconds look_after_{50};
  std::int64_t tries_ = 0;

  upstream_connection* upstream_ = nullptr;
  bool head_sent_ = false;  // a byte of the request may have left
  bool sent_all_ = false;
  std::uint64_t content_sent_ = 0;
  bool is_late_ = false;  // the client was told so
  instant late_until_{};

  // The answer.
  std::uint16_t status_ = 0;
  std::vector<idempotency::response_field> fields_;
  std::optional<std::uint64_t> declared_length_;
  std::string limit_lines_;
  std::optional<idempotency::response_recorder> recorder_;
  std::string body_;
  bool upstream_is_done_ = false;
  bool upstream_was_cut_ = false;
  std::optional<idempotency::exchange_end> end_;
  idempotency::change last_change_;  // while it is not certain that it was made
};

}  // namespace tidegate::gateway
