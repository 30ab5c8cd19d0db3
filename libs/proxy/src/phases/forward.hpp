// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/request_context.hpp"
#include "upstream/upstream_pool.hpp"

namespace tidegate::gateway {

class exchange;
class worker;

/// Why an upstream did not answer, for the access log.
[[nodiscard]] auto reason_of(upstream_failure why) noexcept -> std::string_view;
/// What the client is told then.
[[nodiscard]] auto failure_reply(upstream_failure why, reply_texts texts) -> local_reply;
/// Whether nothing of the request was sent, or the server has done nothing with it.
[[nodiscard]] auto was_not_sent(upstream_failure why) noexcept -> bool;
/// Whether no server was asked at all: it says nothing of them.
[[nodiscard]] auto was_not_asked(upstream_failure why) noexcept -> bool;
/// What went wrong in the words of `retry.on`; nothing for what no retry helps against.
[[nodiscard]] auto cause_of(upstream_failure why) noexcept -> std::optional<balance::retry_cause>;
/// Whether the request is sent again after `retries`. `may_repeat`: also when it is not known
/// whether it arrived.
[[nodiscard]] auto is_worth_a_retry(balance::retry_cause what, bool may_repeat,
                                    std::int64_t retries,
                                    balance::retry_settings const& settings) noexcept -> bool;
/// Methods that may be sent again when it is not known whether they arrived (RFC 9110, section
/// 9.2.2).
[[nodiscard]] auto is_idempotent(wire::method method) noexcept -> bool;

/// A body of this length is held until it is whole; a longer one passes through as it comes, and is
/// not sent again.
inline constexpr std::uint64_t held_body_octets_max = 64 * 1024;

/// Sends a request to an upstream, and hands the answer to the exchange.
class forward_phase final : private upstream_user, private request_pause {
 public:
  forward_phase(exchange& owner, worker& on) : request_pause(on), owner_(owner), worker_(on) {}

  /// For the next request.
  void reset() noexcept;
  /// Where the request is written to, before `start`.
  [[nodiscard]] auto text() noexcept -> std::string& { return request_; }
  /// Sends what is in `text`, or holds it until its body has come: a client that is slow takes no
  /// connection of the upstream. `octets_at_hand` of the body have come.
  void start(request_context const& context, std::uint64_t octets_at_hand);
  /// Sends what is in `text`, with all of its body. `fresh`: on a new connection.
  void send(bool fresh = false);
  /// More of the body, `content_octets` of it content.
  void body(std::string_view bytes, std::uint64_t content_octets, bool last);
  /// True while it takes the body of the request.
  [[nodiscard]] auto takes_body() const noexcept -> bool {
    return is_active() || octets_missing_ > 0;
  }
  void resume();
  /// Wants no answer any more.
  void abandon();
  /// The exchange is over.
  void end() noexcept;

  [[nodiscard]] auto is_above_high_watermark() const noexcept -> bool {
    return upstream_ != nullptr ? upstream_->is_above_high_watermark()
                                : is_paused() && request_.size() > held_body_octets_max;
  }
  /// True while an upstream has the request, or will have it again after a pause.
  [[nodiscard]] auto is_active() const noexcept -> bool {
    return upstream_ != nullptr || is_paused();
  }
  [[nodiscard]] auto waiting_octets() const noexcept -> std::size_t {
    return upstream_ != nullptr ? upstream_->waiting_octets() : 0;
  }
  [[nodiscard]] auto held_octets() const noexcept -> std::size_t {
    return octets_missing_ > 0 || is_paused() || keeps_body_ ? request_.size() : 0;
  }
  /// The head of the answer goes to the client: the request is not sent again.
  void head_is_sent() noexcept { head_sent_ = true; }
  [[nodiscard]] auto has_sent_head() const noexcept -> bool { return head_sent_; }
  /// How often an upstream was asked.
  [[nodiscard]] auto tries() const noexcept -> std::int64_t { return tries_; }
  void set_tries(std::int64_t tries) noexcept { tries_ = tries; }

 private:
  void prefetch() const noexcept override;
  void upstream_moved(upstream_stream& to) override { upstream_ = &to; }
  [[nodiscard]] auto answer_timeout(std::chrono::nanoseconds of_upstream) const
      -> std::chrono::nanoseconds override;
  void upstream_interim(wire::response_head const& head) override;
  void upstream_head(wire::response_head const& head) override;
  [[nodiscard]] auto wants_upgrade() const -> bool override;
  [[nodiscard]] auto upstream_upgraded(wire::response_head const& head) -> bool override;
  void upstream_body(std::string_view bytes, std::uint64_t content_octets) override;
  void upstream_done(std::string_view trailers) override;
  void upstream_failed(upstream_failure why, std::string unsent) override;
  void upstream_resumed() override;
  void flush_client() override;
  [[nodiscard]] auto wants_framing() const -> bool override;
  [[nodiscard]] auto request_done() const -> bool override;
  [[nodiscard]] auto client_is_full() const -> bool override;

  /// A response has come. True when another one is asked for in its place.
  [[nodiscard]] auto asks_again(int status) -> bool;
  /// Sends the request once more if that is allowed, perhaps after a pause.
  [[nodiscard]] auto try_again(balance::retry_cause what) -> bool;
  void pause_ended(bool is_late) override;

  exchange& owner_;
  worker& worker_;
  upstream_stream* upstream_ = nullptr;
  bool may_repeat_ = false;  // safe, and all of it is in `request_`
  bool keeps_body_ = false;  // for that
  bool head_sent_ = false;
  bool was_stale_ = false;    // a connection that rested was closed when it was sent
  bool was_refused_ = false;  // by a server that did nothing with it
  std::int64_t tries_ = 0;
  std::uint64_t octets_missing_ = 0;   // of the body of a request that is held; 0: it is not
  std::string request_;                // as it is sent, while it may be sent again
  std::size_t base_path_octets_ = 0;   // in it
  std::optional<instant> wait_until_;  // for a connection
  std::uint32_t server_ = 0;           // that was chosen last
  failed_servers failed_;
};

}  // namespace tidegate::gateway
