// SPDX-License-Identifier: Apache-2.0
#include "upstream/health_checks.hpp"

#include "upstream/upstream_pool.hpp"

#include <tidegate/config/values.hpp>

namespace tidegate::gateway {

/// One server, and the question that is under way.
class health_check final : public upstream_user, private engine::timer {
 public:
  health_check(worker& on, upstream_pool& pool, server_slot& of)
      : worker_(on), pool_(pool), id_(of.id), server_(of.server), report_(of.report) {}
  ~health_check() override { stop(); }

  [[nodiscard]] auto id() const noexcept -> std::uint32_t { return id_; }

  void begin(server_slot& to) {
    if (asked_ != nullptr) {
      return;
    }
    auto const& identity = server_->identity;
    auto const taken = pool_.connect_for_check(to);
    if (!taken) {
      if (taken.error() != upstream_failure::no_descriptor) {  // which says nothing of the server
        end(false, "no connection");
      }
      return;
    }
    asked_ = *taken;
    set(worker_.loop.timers(), worker_.loop.now() + settings().timeout);
    asked_->start(*this, wire::method::get,
                  "GET " + identity.base_path + settings().path + " HTTP/1.1\r\nHost: " +
                      identity.authority + "\r\nUser-Agent: tidegate\r\n\r\n");
  }

 private:
  [[nodiscard]] auto settings() const -> health_config const& {
    return *pool_.target().settings->health;
  }
  void stop() {
    cancel();
    if (asked_ != nullptr) {
      std::exchange(asked_, nullptr)->abandon();
    }
  }
  void end(bool passed, std::string_view what) {
    stop();
    if (pool_.target().servers->checked(*server_, passed, worker_.loop.now())) {
      passed ? report_->is_healthy() : report_->is_unhealthy(what);
    }
  }

  void expired() override {
    end(false, "no response within " + format_duration(settings().timeout));
  }
  void upstream_interim(wire::response_head const& /*head*/) override {}
  void upstream_head(wire::response_head const& head) override {
    end(balance::includes(settings().expect, head.status()),
        "it answered " + std::to_string(head.status()));
  }
  void upstream_body(std::string_view /*bytes*/, std::uint64_t /*octets*/) override {}
  void upstream_moved(upstream_stream& to) override { asked_ = &to; }
  void upstream_done(std::string_view /*trailers*/) override { asked_ = nullptr; }
  void upstream_failed(upstream_failure why, std::string /*unsent*/) override {
    asked_ = nullptr;
    end(false, why == upstream_failure::closed || why == upstream_failure::closed_unanswered
                   ? "it closed the connection"
               : why == upstream_failure::malformed ? "its response is not valid HTTP"
                                                    : "no connection");
  }
  void upstream_resumed() override {}
  void flush_client() override {}
  [[nodiscard]] auto wants_framing() const -> bool override { return false; }
  [[nodiscard]] auto request_done() const -> bool override { return true; }
  [[nodiscard]] auto client_is_full() const -> bool override { return false; }

  worker& worker_;
  upstream_pool& pool_;
  std::uint32_t id_;
  std::shared_ptr<shared_server> server_;
  std::shared_ptr<server_report> report_;
  upstream_stream* asked_ = nullptr;
};

health_checks::health_checks(worker& on, upstream_pool& pool) : worker_(on), pool_(pool) {
  set(on.loop.timers(), on.loop.now());
}

health_checks::~health_checks() = default;

auto health_checks::is_in_charge() const -> bool {
  auto const& workers = worker_.shared.workers;
  bool const is_first = workers.empty() || workers.front() == &worker_;
  return is_first && worker_.current != nullptr &&
         std::ranges::any_of(worker_.current->pools,
                             [&](auto const& each) { return each.get() == &pool_; });
}

void health_checks::expired() {
  if (!is_in_charge()) {
    checks_.clear();
    return;
  }
  set(worker_.loop.timers(), worker_.loop.now() + pool_.target().settings->health->interval);
  pool_.follow_servers();
  auto const slots = pool_.listed();
  std::erase_if(checks_, [&](std::unique_ptr<health_check> const& check) {
    return std::ranges::none_of(slots, [&](auto const* slot) { return slot->id == check->id(); });
  });
  for (auto* const slot : slots) {
    auto found = std::ranges::find(checks_, slot->id, [](auto const& each) { return each->id(); });
    if (found == checks_.end()) {
      checks_.push_back(
          std::make_unique<health_check>(worker_, pool_, static_cast<server_slot&>(*slot)));
      found = checks_.end() - 1;
    }
    (*found)->begin(static_cast<server_slot&>(*slot));
  }
}

}  // namespace tidegate::gateway
