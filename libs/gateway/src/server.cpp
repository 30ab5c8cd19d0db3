// SPDX-License-Identifier: Apache-2.0
#include <tidegate/gateway/server.hpp>

#include "reload_plan.hpp"

#include <tidegate/config/values.hpp>
#include <tidegate/engine/listening.hpp>
#include <tidegate/engine/loop.hpp>
#include <tidegate/proxy/data_plane.hpp>

#include <set>
#include <string_view>
#include <utility>

namespace tidegate::gateway {

namespace {

/// Which stores are open.
[[nodiscard]] auto open_stores_of(data_plane const& data) -> open_stores {
  return {data.has_keys(), data.has_directory(), data.has_bridge()};
}

}  // namespace

server::server(server_options options) : options_(std::move(options)) {
  if (!options_.events) {
    options_.events = std::make_shared<event_log>();
  }
  about_.version = options_.version;
  about_.commit = options_.commit;
}

server::~server() {
  if (admin_thread_.joinable()) {
    admin_loop_->stop();
    admin_thread_.join();
  }
  reloader_.reset();  // waits for a reload that is under way, which uses the threads of `data_`
  if (data_) {
    data_->stop();
  }
  admin_.reset();
  data_.reset();  // last answers of its stores go to the loops, that of the admin address too
}

auto server::current() const -> config const& {
  return data_->active()->config;
}

auto server::refusal_of(config const& next) const -> result<void, std::string> {
  if (next.stores.quota != current().stores.quota) {
    return failure(std::string("a change of stores.quota needs a restart"));
  }
  if (!data_->has_same_directory(next)) {
    return failure(std::string(
        "a change of stores.directory, or of schemas or indexes of SCIM, needs a restart"));
  }
  if (admin_ && !is_local_address(admin_configured_) && next.admin && next.admin->tokens.empty()) {
    return failure("the admin address stays " + admin_configured_ +
                   " until a restart, and other machines can reach it: it needs tokens until then");
  }
  return {};
}

auto server::load() const -> result<config, reload_refusal> {
  if (!options_.load) {
    return failure(reload_refusal{{}, "the gateway was started without a configuration file"});
  }
  auto loaded = options_.load();
  if (!loaded) {
    return failure(reload_refusal{std::move(loaded.error()), {}});
  }
  if (auto const possible = refusal_of(*loaded); !possible) {
    return failure(reload_refusal{{}, loaded->hidden.hide(possible.error())});
  }
  return *std::move(loaded);
}

auto server::preview_reload() -> reload_outcome {
  std::lock_guard const lock(reload_mutex_);
  TIDEGATE_TRY(auto next, load());
  auto changes = changes_of(current().effective, next, open_stores_of(*data_));
  auto const hidden = next.hidden;
  if (auto const possible = data_->preview(std::move(next)); !possible) {
    return failure(reload_refusal{{}, hidden.hide(possible.error())});
  }
  return changes;
}

auto server::reload() -> reload_outcome {
  std::lock_guard const lock(reload_mutex_);
  auto outcome = [&]() -> reload_outcome {
    TIDEGATE_TRY(auto next, load());
    for (auto const& warning : next.warnings) {
      options_.events->warning(to_string(warning));
    }
    auto changes = changes_of(current().effective, next, open_stores_of(*data_));
    auto const hidden = next.hidden;
    if (auto const applied = apply(std::move(next)); !applied) {
      return failure(reload_refusal{{}, hidden.hide(applied.error())});
    }
    return changes;
  }();
  log_outcome(outcome);
  return outcome;
}

auto server::apply(config next) -> result<void, std::string> {
  next.effective = effective_after(current().effective, next, open_stores_of(*data_));
  TIDEGATE_TRY_VOID(data_->apply(std::move(next)));
  if (admin_) {
    data_->update(admin_->seen(), *admin_loop_, [this] { admin_->follow_config(); });
  }
  return {};
}

void server::log_outcome(reload_outcome const& outcome) {
  auto& events = *options_.events;
  if (!outcome) {
    // Before the line is written: its reader may look at the metrics.
    about_.reload_failures.fetch_add(1, std::memory_order_relaxed);
    about_.last_reload_is_good.store(false, std::memory_order_relaxed);
    auto const& [faults, reason] = outcome.error();
    for (auto const& fault : faults) {
      events.error(to_string(fault));
    }
    events.error("the configuration was not applied: " +
                 (reason.empty() ? std::string("it has faults") : reason));
    return;
  }
  about_.last_reload_is_good.store(true, std::memory_order_relaxed);
  about_.last_good_reload.store(std::chrono::system_clock::now(), std::memory_order_relaxed);
  std::set<std::string_view> late;  // "listen" for all of its listeners
  for (auto const& change : *outcome) {
    if (change.at_start) {
      late.insert(std::string_view(change.path).substr(0, change.path.find('[')));
    }
  }
  for (auto const path : late) {
    events.warning(std::string(path) + " changed: takes effect on restart");
  }
  events.info("the configuration was applied");
}

auto server::start_admin(std::vector<engine::passed_socket>& passed) -> result<void, std::string> {
  auto const& settings = current().admin;
  if (!settings) {
    return {};
  }
  TIDEGATE_TRY(auto sockets, engine::sockets_for(settings->address, 1, false, passed));
  admin_address_ = engine::address_of(sockets.each.front());
  admin_configured_ = settings->address;
  reloader_ = std::make_unique<config_reloader>([this](reload_mode mode) {
    return mode == reload_mode::apply ? reload() : preview_reload();
  });
  auto loop = engine::loop::make();
  if (!loop) {
    return failure(engine::to_string(loop.error()));
  }
  admin_loop_ = *std::move(loop);
  TIDEGATE_TRY(auto seen, data_->make_control(*admin_loop_));
  admin_ = std::make_unique<admin_server>(std::move(seen), std::move(sockets.each.front()),
                                          *settings, *reloader_, about_);
  return {};
}

auto server::start(config settings, std::span<std::uint64_t const, 4> randomness,
                   server_options options, std::vector<engine::passed_socket> passed)
    -> result<std::unique_ptr<server>, std::string> {
  std::unique_ptr<server> made(new server(std::move(options)));
  TIDEGATE_TRY(made->data_, data_plane::make(std::move(settings), randomness, made->options_.events,
                                             made->options_.stores));
  TIDEGATE_TRY_VOID(made->data_->listen(passed));
  TIDEGATE_TRY_VOID(made->start_admin(passed));
  if (!passed.empty()) {
    auto const& left = passed.front();
    return failure("a socket" + (left.name.empty() ? "" : " (" + left.name + ")") +
                   " was passed that is bound to " + engine::address_of(left.socket) +
                   ", which is neither an address of listen nor admin");
  }
  made->data_->start();
  if (made->admin_) {
    made->admin_thread_ = std::thread([&on = *made->admin_loop_] { on.run(); });
  }
  return made;
}

auto server::addresses() const -> std::vector<std::string> const& {
  return data_->addresses();
}

auto server::begin_drain() -> drain_times {
  data_->begin_drain();
  std::lock_guard const lock(reload_mutex_);
  return {current().drain_delay, current().drain_timeout};
}

auto server::drain(std::chrono::milliseconds wait) -> bool {
  return data_->drain(wait);
}

}  // namespace tidegate::gateway
