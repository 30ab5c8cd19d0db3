// SPDX-License-Identifier: Apache-2.0
#include <tidegate/admin/server.hpp>

#include "connection.hpp"
#include "router.hpp"

#include <sys/socket.h>

#include <cstdint>
#include <unordered_map>
#include <utility>

namespace tidegate::gateway {

namespace {

constexpr std::size_t connections_max = 256;

}  // namespace

/// Accepts the connections to the admin address, one for each request, and bounds their number.
class admin_service final : public engine::watched {
 public:
  admin_service(control seen, engine::descriptor socket, admin_config const& settings,
                config_reloader& reloader, program_facts const& about);

  [[nodiscard]] auto seen() noexcept -> control& { return router_.seen(); }
  void follow_config();

 private:
  void ready(engine::readiness events) override;
  /// Closes the connection that has waited longest without a request, so that clients that send
  /// nothing do not keep others out. False when there is no room all the same.
  [[nodiscard]] auto make_room() -> bool;
  void remove(admin_connection& closed);

  admin_router router_;
  engine::descriptor socket_;
  std::uint64_t accepted_ = 0;
  std::unordered_map<admin_connection*, std::unique_ptr<admin_connection>> open_;
};

admin_service::admin_service(control seen, engine::descriptor socket, admin_config const& settings,
                             config_reloader& reloader, program_facts const& about)
    : router_(std::move(seen), settings, reloader, about), socket_(std::move(socket)) {
  auto& loop = router_.seen().loop;
  loop.when_out_of_memory([this] { router_.note_out_of_memory(); });
  (void)loop.watch(socket_, *this);
}

void admin_service::follow_config() {
  auto const& settings = router_.seen().active->config.admin;
  if (settings) {
    router_.access().use(settings->tokens);
  }
}

auto admin_service::make_room() -> bool {
  admin_connection* oldest = nullptr;
  for (auto const& [each, owned] : open_) {
    if (each->awaits_head() && (oldest == nullptr || each->number() < oldest->number())) {
      oldest = each;
    }
  }
  if (oldest != nullptr) {
    oldest->close();
  }
  return open_.size() < connections_max;
}

void admin_service::ready(engine::readiness /*events*/) {
  for (;;) {
    engine::descriptor accepted(
        ::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!accepted.is_open()) {
      return;
    }
    if (open_.size() >= connections_max && !make_room()) {
      continue;  // and it is closed
    }
    auto made =
        std::make_unique<admin_connection>(router_, std::move(accepted), ++accepted_,
                                           [this](admin_connection& closed) { remove(closed); });
    auto* const added = made.get();
    open_.emplace(added, std::move(made));
    if (!added->start()) {
      added->close();
    }
  }
}

void admin_service::remove(admin_connection& closed) {
  router_.seen().loop.dispose(std::move(open_.extract(&closed).mapped()));
}

admin_server::admin_server(control seen, engine::descriptor socket, admin_config const& settings,
                           config_reloader& reloader, program_facts const& about)
    : service_(std::make_unique<admin_service>(std::move(seen), std::move(socket), settings,
                                               reloader, about)) {}

admin_server::~admin_server() = default;

auto admin_server::seen() -> control& {
  return service_->seen();
}

void admin_server::follow_config() {
  service_->follow_config();
}

}  // namespace tidegate::gateway
