// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "phases/key/key_dispatch.hpp"

#include <tidegate/idempotency/execution.hpp>

namespace tidegate::gateway {

class exchange;

/// One request with an Idempotency-Key, from its head to the last thing that is written about it.
/// It goes on when the client has gone (R5): its exchange then answers no one, but stays until the
/// end.
///
/// What is done is decided by `idempotency::execution`; this performs its actions on the store, the
/// upstream, the timer and the client.
class key_phase final : public std::enable_shared_from_this<key_phase>,
                        public duplicate,
                        private engine::timer {
 public:
  key_phase(worker& on, exchange& of, worker_route const& route, keyed_head&& head);
  ~key_phase() override;

  /// To be called once, when it is owned; it may be over by then.
  void start();
  /// What became of the request, for metrics and the log of `in`, if there is one; what is noted
  /// first stays.
  void note(keyed_outcome outcome, exchange* in);
  /// The content, framed as it came.
  void content(std::string_view framed, bool last);
  /// The client is gone. True when the exchange is over with that.
  [[nodiscard]] auto client_has_gone() -> bool;
  /// What waits for an upstream to take it.
  [[nodiscard]] auto upstream_octets() const noexcept -> std::size_t {
    return dispatch_.waiting_octets();
  }
  /// What is kept in memory of its content and of its answer.
  [[nodiscard]] auto held_octets() const noexcept -> std::size_t {
    return content_.memory_octets() + dispatch_.answer().body.size() +
           (waits_for_client_ ? sizeof *this : 0);
  }
  /// True while it is not looked up because other answers wait for the client.
  [[nodiscard]] auto waits_for_client() const noexcept -> bool { return waits_for_client_; }
  /// The client takes more of a response that is too large to be kept, or has taken what others
  /// were waiting for.
  void client_resumed();
  /// The request may spend what it costs: runs it, or sends the replay.
  void admitted();
  /// A quota or an overload refused the request, which ends the exchange.
  void refused();
  void look_again() override { perform(run_.woken()); }

  // For its dispatch.

  [[nodiscard]] auto run() noexcept -> idempotency::execution& { return run_; }
  /// The exchange; null when it is over.
  [[nodiscard]] auto owner() const noexcept -> exchange* { return exchange_; }
  [[nodiscard]] auto settings() const -> idempotency_config const& {
    return *route_.route->settings->idempotency;
  }
  /// Does what the execution says. `known` and `found` are what its event was about, if it was
  /// about the record of the key.
  void perform(idempotency::action const& next, idempotency::lookup_result* known = nullptr,
               store::found_record const* found = nullptr);

 private:
  void expired() override;

  void look_up();
  void compare_by(std::string_view rule_text, idempotency::lookup_result& known,
                  store::found_record const* found);
  void found(store::find_answer const& answer);
  void claimed(store::apply_answer const& answer);
  void recorded(store::apply_answer const& answer);
  void store_failed(store::store_error const& error);
  void prepare(idempotency::action const& next);
  void set_wait();
  void answer(idempotency::action const& how);
  void replay(store::found_record const& found);
  void begin_stream(idempotency::stream_end end);
  void refuse(idempotency::action const& why, store::found_record const* found);
  /// The exchange, which is to be ended by the caller, and not to be touched after that.
  [[nodiscard]] auto leave_exchange() -> exchange&;
  template <class Answer>
  [[nodiscard]] auto on_own_thread(void (key_phase::*take)(Answer const&));

  worker& worker_;
  exchange* exchange_;
  worker_route const& route_;
  keyed_head head_;
  keyed_content content_;
  idempotency::execution run_;
  key_dispatch dispatch_;
  bool waits_for_client_ = false;  // until it has taken other answers
  bool adds_key_ = false;          // by the claim that the store was asked for
  std::optional<keyed_outcome> outcome_;
  std::shared_ptr<idempotency::stored_response const> replayed_;  // when it is admitted
  instant wait_until_{instant::max()};
  std::chrono::milliseconds look_after_{50};
};

}  // namespace tidegate::gateway
