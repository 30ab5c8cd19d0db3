// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "phases/key/key_head.hpp"
#include "request/keyed_content.hpp"
#include "upstream/upstream_pool.hpp"

namespace tidegate::gateway {

class key_phase;
struct response_lines;

/// An answer as far as it has come.
struct kept_answer {
  std::uint16_t status = 0;
  std::vector<http::field> fields;
  std::optional<std::uint64_t> declared_length;
  std::string limit_lines;  ///< the fields of quotas
  std::string body;
  std::string trailers;  ///< complete lines

  /// What the head of the response says. `is_protected`: the key was claimed.
  [[nodiscard]] auto lines(bool is_protected) const -> response_lines;
};

/// Sends a request with a key to its upstream, or to a service of our own, and keeps the answer.
/// What happens goes to the execution of its phase.
class key_dispatch final : public upstream_user, private request_pause {
 public:
  key_dispatch(key_phase& phase, worker& on, worker_route const& route, keyed_head& head,
               keyed_content& content)
      : request_pause(on),
        phase_(phase),
        worker_(on),
        route_(route),
        head_(head),
        content_(content) {}

  /// Takes a connection. Once more it is a retry of the budget, after a pause where all servers
  /// have failed; not where a connection that rested was closed by its server.
  void connect(bool fresh);
  /// `attempt` is that of the claim; 0 where there is none.
  void send(std::uint32_t attempt);
  /// Goes on with the content, and with an answer that the client takes more of.
  void resume();
  /// Wants no answer any more.
  void drop();
  /// Why it failed last.
  [[nodiscard]] auto failure() const noexcept -> upstream_failure { return failure_; }
  [[nodiscard]] auto waiting_octets() const noexcept -> std::size_t {
    return upstream_ != nullptr ? upstream_->waiting_octets() : 0;
  }
  [[nodiscard]] auto answer() noexcept -> kept_answer& { return answer_; }
  [[nodiscard]] auto answer() const noexcept -> kept_answer const& { return answer_; }

 private:
  // For the connection to the upstream.
  void upstream_moved(upstream_stream& to) override { upstream_ = &to; }
  void upstream_connected() override;
  [[nodiscard]] auto answer_timeout(std::chrono::nanoseconds of_upstream) const
      -> std::chrono::nanoseconds override {
    return route_.route->settings->timeout.value_or(of_upstream);
  }
  void upstream_interim(wire::response_head const& head) override;
  void upstream_head(wire::response_head const& head) override;
  void upstream_body(std::string_view bytes, std::uint64_t content_octets) override;
  void upstream_done(std::string_view trailers) override;
  void upstream_failed(upstream_failure why, std::string unsent) override;
  [[nodiscard]] auto upstream_is_late() -> std::optional<std::chrono::nanoseconds> override;
  void upstream_resumed() override;
  void flush_client() override;
  [[nodiscard]] auto wants_framing() const -> bool override { return false; }
  [[nodiscard]] auto request_done() const -> bool override { return content_.is_taken(); }
  [[nodiscard]] auto client_is_full() const -> bool override;

  void pause_ended(bool is_late) override;
  void take_connection(bool fresh);
  void send_content();
  void ask_service();
  void service_answered(scim_answer answer);
  void begin_answer(wire::response_head const* head);

  key_phase& phase_;
  worker& worker_;
  worker_route const& route_;
  keyed_head& head_;
  keyed_content& content_;
  upstream_stream* upstream_ = nullptr;
  std::optional<instant> wait_until_;  // for a connection
  std::uint32_t server_ = 0;           // that was chosen last
  std::int64_t connects_ = 0;
  upstream_failure failure_ = upstream_failure::connect_refused;
  failed_servers failed_;
  instant late_until_{};
  kept_answer answer_;
};

}  // namespace tidegate::gateway
