// SPDX-License-Identifier: Apache-2.0
#include <tidegate/gateway/server.hpp>

#include "reload_plan.hpp"

#include <tidegate/admin/server.hpp>
#include <tidegate/config/values.hpp>
#include <tidegate/engine/listening.hpp>
#include <tidegate/engine/loop.hpp>
#include <tidegate/proxy/data_plane.hpp>

#include <mutex>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

namespace tidegate::gateway {

namespace {

/// The admin address on a thread of its own.
struct admin_thread {
  std::unique_ptr<engine::loop> loop;
  std::thread thread;
  std::string address;
  std::string configured;  ///< as the configuration had it at the start
  std::unique_ptr<config_reloader> reloader;
  std::unique_ptr<admin_server> server;
};

}  // namespace

struct server::state {
  explicit state(server_options given) : options(std::move(given)) {
    if (!options.events) {
      options.events = std::make_shared<event_log>();
    }
    about.version = options.version;
    about.commit = options.commit;
  }

  state(state const&) = delete;
  auto operator=(state const&) -> state& = delete;
  ~state();

  [[nodiscard]] auto start_admin(std::vector<engine::passed_socket>& passed)
      -> result<void, std::string>;
  [[nodiscard]] auto open_now() const -> open_stores {
    return {data->has_keys(), data->has_directory(), data->has_bridge()};
  }
  [[nodiscard]] auto effective() const -> std::vector<effective_option> const& {
    return data->active()->config.effective;
  }
  [[nodiscard]] auto refusal_of(config const& next) const -> result<void, std::string>;
  [[nodiscard]] auto load() const -> result<config, reload_refusal>;
  [[nodiscard]] auto preview_reload() -> reload_outcome;
  auto reload() -> reload_outcome;
  [[nodiscard]] auto apply(config next) -> result<void, std::string>;
  void log_outcome(reload_outcome const& outcome);

  server_options options;
  program_facts about;
  std::mutex reload_mutex;  // guards `data` against two reloads at a time
  std::unique_ptr<data_plane> data;
  admin_thread admin;
};

server::state::~state() {
  if (admin.thread.joinable()) {
    admin.loop->stop();
    admin.thread.join();
  }
  if (data) {
    data->stop();
  }
  admin.reloader.reset();  // waits for a reload that is under way
  admin.server.reset();
  data.reset();  // last answers of its stores go to the loops, that of `admin` too
}

/// Why a configuration cannot be applied while this runs, if there is a reason.
auto server::state::refusal_of(config const& next) const -> result<void, std::string> {
  if (next.stores.quota != data->active()->config.stores.quota) {
    return failure(std::string("another store of quotas needs a new start"));
  }
  if (!data->has_same_directory(next)) {
    return failure(
        std::string("another directory, or other schemas and indexes of SCIM, need a new start"));
  }
  if (admin.server && !is_local_address(admin.configured) && next.admin &&
      next.admin->tokens.empty()) {
    return failure("the admin address stays " + admin.configured +
                   " until the next start, and others reach it: it needs tokens until then");
  }
  return {};
}

auto server::state::load() const -> result<config, reload_refusal> {
  if (!options.load) {
    return failure(reload_refusal{{}, "there is nothing to read it from again"});
  }
  auto loaded = options.load();
  if (!loaded) {
    return failure(reload_refusal{std::move(loaded.error()), {}});
  }
  if (auto const possible = refusal_of(*loaded); !possible) {
    return failure(reload_refusal{{}, possible.error()});
  }
  return *std::move(loaded);
}

auto server::state::preview_reload() -> reload_outcome {
  std::lock_guard const lock(reload_mutex);
  TIDEGATE_TRY(auto next, load());
  auto changes = changes_of(effective(), next, open_now());
  if (auto const possible = data->preview(std::move(next)); !possible) {
    return failure(reload_refusal{{}, possible.error()});
  }
  return changes;
}

auto server::state::reload() -> reload_outcome {
  std::lock_guard const lock(reload_mutex);
  auto outcome = [&]() -> reload_outcome {
    TIDEGATE_TRY(auto next, load());
    for (auto const& warning : next.warnings) {
      options.events->warning(to_string(warning));
    }
    auto changes = changes_of(effective(), next, open_now());
    if (auto const applied = apply(std::move(next)); !applied) {
      return failure(reload_refusal{{}, applied.error()});
    }
    return changes;
  }();
  log_outcome(outcome);
  return outcome;
}

auto server::state::apply(config next) -> result<void, std::string> {
  next.effective = effective_after(effective(), next, open_now());
  TIDEGATE_TRY_VOID(data->apply(std::move(next)));
  if (admin.server) {
    data->update(admin.server->seen(), *admin.loop, [this] { admin.server->follow_config(); });
  }
  return {};
}

void server::state::log_outcome(reload_outcome const& outcome) {
  auto& events = *options.events;
  if (!outcome) {
    // Before the line is written: its reader may look at the metrics.
    about.reload_failures.fetch_add(1, std::memory_order_relaxed);
    about.last_reload_is_good.store(false, std::memory_order_relaxed);
    auto const& [faults, reason] = outcome.error();
    for (auto const& fault : faults) {
      events.error(to_string(fault));
    }
    events.error("the configuration was not taken over: " +
                 (reason.empty() ? std::string("it has faults") : reason));
    return;
  }
  about.last_reload_is_good.store(true, std::memory_order_relaxed);
  about.last_good_reload.store(std::chrono::system_clock::now(), std::memory_order_relaxed);
  std::set<std::string_view> late;  // "listen" for all of its listeners
  for (auto const& change : *outcome) {
    if (change.at_start) {
      late.insert(std::string_view(change.path).substr(0, change.path.find('[')));
    }
  }
  for (auto const path : late) {
    events.warning(std::string(path) + " changed: takes effect on restart");
  }
  events.info("the configuration was taken over");
}

auto server::state::start_admin(std::vector<engine::passed_socket>& passed)
    -> result<void, std::string> {
  auto const& settings = data->active()->config.admin;
  if (!settings) {
    return {};
  }
  TIDEGATE_TRY(auto sockets, engine::sockets_for(settings->address, 1, false, passed));
  admin.address = engine::address_of(sockets.each.front());
  admin.configured = settings->address;
  admin.reloader = std::make_unique<config_reloader>([this](reload_mode mode) {
    return mode == reload_mode::apply ? reload() : preview_reload();
  });
  auto loop = engine::loop::make();
  if (!loop) {
    return failure(engine::to_string(loop.error()));
  }
  admin.loop = *std::move(loop);
  TIDEGATE_TRY(auto seen, data->make_control(*admin.loop));
  admin.server = std::make_unique<admin_server>(std::move(seen), std::move(sockets.each.front()),
                                                *settings, *admin.reloader, about);
  return {};
}

server::server(std::unique_ptr<state> made) : state_(std::move(made)) {}

auto server::start(config settings, std::span<std::uint64_t const, 4> randomness,
                   server_options options, std::vector<engine::passed_socket> passed)
    -> result<std::unique_ptr<server>, std::string> {
  auto made = std::make_unique<state>(std::move(options));
  TIDEGATE_TRY(made->data, data_plane::make(std::move(settings), randomness, made->options.events,
                                            made->options.stores));
  TIDEGATE_TRY_VOID(made->data->listen(passed));
  TIDEGATE_TRY_VOID(made->start_admin(passed));
  if (!passed.empty()) {
    auto const& left = passed.front();
    return failure("a socket" + (left.name.empty() ? "" : " (" + left.name + ")") +
                   " was passed that is bound to " + engine::address_of(left.socket) +
                   ", which is neither an address of listen nor admin");
  }
  made->data->start();
  if (made->admin.server) {
    made->admin.thread = std::thread([&on = *made->admin.loop] { on.run(); });
  }
  return std::unique_ptr<server>(new server(std::move(made)));
}

server::~server() = default;

auto server::addresses() const -> std::vector<std::string> const& {
  return state_->data->addresses();
}

auto server::admin_address() const -> std::string const& {
  return state_->admin.address;
}

auto server::reload() -> reload_outcome {
  return state_->reload();
}

auto server::preview_reload() -> reload_outcome {
  return state_->preview_reload();
}

auto server::begin_drain() -> std::chrono::nanoseconds {
  state_->data->begin_drain();
  std::lock_guard const lock(state_->reload_mutex);
  return state_->data->active()->config.drain_delay;
}

auto server::drain(std::chrono::milliseconds wait) -> bool {
  return state_->data->drain(wait);
}

}  // namespace tidegate::gateway
