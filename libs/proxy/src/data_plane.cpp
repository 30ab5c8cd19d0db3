// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/data_plane.hpp>

#include "services/descriptor_limit.hpp"
#include "services/wall_clock.hpp"
#include "serving_worker.hpp"

#include <set>
#include <string>

namespace tidegate::gateway {

namespace {

/// How long a start or a reload waits for the addresses of new names; then it goes on without.
constexpr std::chrono::milliseconds first_look_up_max{2000};

/// A thread with its loop and worker; the worker lives and dies on the thread.
struct worker_thread {
  std::unique_ptr<engine::loop> loop;
  std::unique_ptr<serving_worker> works;
  std::thread thread;
};

/// The addresses that other processes listen on. Gateways of one user share a port, so that one
/// can take over from another.
[[nodiscard]] auto addresses_in_use(config const& settings) -> std::set<std::string> {
  std::set<std::string> found;
  for (auto const& listen : settings.listen) {
    auto const address = engine::socket_address::parse(listen.address);
    if (address && engine::is_listened_on(*address)) {
      found.insert(listen.address);
    }
  }
  return found;
}

/// The SCIM service of a configuration; all routes that have one agree on the directory.
[[nodiscard]] auto find_scim(config const& settings) -> scim_config const* {
  auto const found = std::ranges::find_if(
      settings.routes, [](route_config const& route) { return route.scim.has_value(); });
  return found == settings.routes.end() ? nullptr : &*found->scim;
}

/// What a directory was opened with.
struct directory_shape {
  store_location place;
  std::vector<std::string> schemas;
  std::vector<std::string> indexes;
  auto operator==(directory_shape const&) const -> bool = default;
};

[[nodiscard]] auto shape_of(config const& settings, scim_config const& scim) -> directory_shape {
  return {settings.stores.directory, scim.schemas, scim.indexes};
}

/// Expires the records of idempotency keys, once a second.
class key_sweeper final : private engine::timer {
 public:
  key_sweeper(engine::loop& on, idempotency_service& keys) : loop_(on), keys_(keys) { expired(); }

 private:
  void expired() override {
    keys_.clock.look(wall_clock_now(), loop_.now());
    keys_.store->sweep(keys_.clock.at(loop_.now()), records_at_once);
    set(loop_.timers(), loop_.now() + std::chrono::seconds(1));
  }

  static constexpr std::size_t records_at_once = 10'000;

  engine::loop& loop_;
  idempotency_service& keys_;
};

[[nodiscard]] auto steady_now() -> instant {
  return instant(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace

struct data_plane::state {
  state(store::quota_table::options const& options, std::shared_ptr<event_log> events,
        store_openers openers)
      : table(options), shared(table, log, std::move(events)), open(std::move(openers)) {
    shared.quotas.health.use(to_events());
  }

  /// Outlives the stores that use it.
  [[nodiscard]] auto to_events() const -> store::store_health::report {
    return [events = shared.events.get()](bool fails, std::string_view line) {
      events->write(fails ? log_level::warning : log_level::info, line);
    };
  }

  [[nodiscard]] auto add_worker(std::uint64_t randomness) -> result<void, std::string>;
  [[nodiscard]] auto open_quotas(active_config const& used, engine::loop& on) const
      -> result<std::unique_ptr<store::quota_store>, std::string>;
  void follow_consumers(active_config const& used, std::function<void()> const& tell);
  void note_hosts(config const& settings) const;
  [[nodiscard]] auto ensure_stores(active_config const& used) -> result<void, std::string>;
  [[nodiscard]] auto ensure_idempotency(active_config const& used) -> result<void, std::string>;
  [[nodiscard]] auto ensure_directory(active_config const& used) -> result<void, std::string>;
  [[nodiscard]] auto ensure_bridges(active_config const& used) -> result<void, std::string>;

  store::quota_table table;
  access_log log;  // outlives the workers, whose last lines it writes
  shared_state shared;
  store_openers open;
  policy_ids ids;
  upstream_states upstreams;
  std::shared_ptr<active_config const> active;
  std::vector<worker_thread> threads;
  std::vector<std::string> addresses;
  directory_shape directory;            // that is open
  std::unique_ptr<key_sweeper> sweeps;  // of the first thread
};

auto data_plane::state::add_worker(std::uint64_t randomness) -> result<void, std::string> {
  auto loop = engine::loop::make();
  if (!loop) {
    return failure(engine::to_string(loop.error()));
  }
  auto counts = std::make_shared<worker_metrics>();
  shared.metrics.push_back(counts);
  auto& added = threads.emplace_back();
  added.loop = *std::move(loop);
  added.works = std::make_unique<serving_worker>(*added.loop, shared, std::move(counts),
                                                 log.add_source(), randomness);
  added.works->use(active);
  shared.workers.push_back(added.works.get());
  TIDEGATE_TRY(added.works->quotas, open_quotas(*active, *added.loop));
  return {};
}

/// Has changes of the file of consumers told to all threads. Behind the start of their loops.
void data_plane::state::follow_consumers(active_config const& used,
                                         std::function<void()> const& tell) {
  if (!shared.consumers) {
    shared.consumers = std::make_unique<consumer_follower>(
        *shared.events, [this](std::shared_ptr<consumer_index const> const& changed) {
          for (auto& each : threads) {
            each.loop->post([&each, changed] { each.works->use(changed); });
          }
        });
  }
  shared.consumers->use(used.config.consumers, used.consumers, tell);
}

/// Null where quotas are in memory.
auto data_plane::state::open_quotas(active_config const& used, engine::loop& on) const
    -> result<std::unique_ptr<store::quota_store>, std::string> {
  if (used.config.stores.quota.kind == store_kind::memory) {
    return nullptr;
  }
  return open.quotas(used.config, on);
}

/// Hosts whose keys an operator may ask for before a request has named them.
void data_plane::state::note_hosts(config const& settings) const {
  auto& keys = *shared.idempotency;
  for (auto const* const here : {"[::1]", "127.0.0.1", "localhost"}) {
    keys.hosts.add(here);
  }
  for (auto const& route : settings.routes) {
    if (route.idempotency && !route.match.host.empty() && !route.match.host.starts_with("*.")) {
      keys.hosts.add(host_of(route.match.host));
    }
  }
  // The store gives its last answer before the hosts go. An owner of the store on its own thread,
  // even for a moment, could be the last one.
  keys.store->list_unknown(seen_hosts::hosts_max, [&keys](store::list_answer const& answer) {
    for (std::size_t i = 0; answer && i < answer->size(); ++i) {
      keys.hosts.add((*answer)[i].record.origin.host);
    }
  });
}

auto data_plane::state::ensure_stores(active_config const& used) -> result<void, std::string> {
  TIDEGATE_TRY_VOID(ensure_idempotency(used));
  TIDEGATE_TRY_VOID(ensure_directory(used));
  return ensure_bridges(used);
}

/// Opens the store of idempotency keys when the first route needs it.
auto data_plane::state::ensure_idempotency(active_config const& used) -> result<void, std::string> {
  bool const needed = std::ranges::any_of(
      used.config.routes, [](route_config const& route) { return route.idempotency.has_value(); });
  if (!needed || shared.idempotency) {
    return {};
  }
  auto const clock = std::make_shared<slewed_clock>(wall_clock_now(), steady_now());
  TIDEGATE_TRY(auto parts,
               open.idempotency(used.config, [clock] { return clock->at(steady_now()); }));
  auto& on = *threads.front().loop;
  shared.idempotency = std::make_shared<idempotency_service>(std::move(parts.store), parts.secret,
                                                             used.config.data, clock);
  shared.idempotency->health.use(to_events());
  note_hosts(used.config);
  if (auto const lost = shared.idempotency->store->used().unknown.value_or(0); lost > 0) {
    shared.warn("the outcomes of " + std::to_string(lost) +
                " requests with keys are unknown: look them up at /api/v1/idempotency/unknown and "
                "resolve them");
  }
  on.post([this, &on, &keys = *shared.idempotency] {
    sweeps = std::make_unique<key_sweeper>(on, keys);
  });
  return {};
}

/// Opens the directory when the first route needs it. What it holds stays what it is until the end.
auto data_plane::state::ensure_directory(active_config const& used) -> result<void, std::string> {
  auto const* const found = find_scim(used.config);
  if (found == nullptr || shared.scim) {
    return {};
  }
  TIDEGATE_TRY(auto model, make_scim_model(*found));
  TIDEGATE_TRY(auto parts, open.directory(used.config, model));
  shared.scim = std::make_unique<scim_service>(
      std::move(model), std::move(parts.directory), std::span<std::byte const>(parts.secret),
      [events = shared.events](std::string_view line) { events->info(line); });
  shared.scim->health().use(to_events());
  directory = shape_of(used.config, *found);
  return {};
}

/// Makes what seals cursors when the first route needs it.
auto data_plane::state::ensure_bridges(active_config const& used) -> result<void, std::string> {
  bool const needed = std::ranges::any_of(
      used.config.routes, [](route_config const& route) { return route.bridge.has_value(); });
  if (needed && !shared.bridge_cursors) {
    TIDEGATE_TRY(auto const secret, open.secret(used.config));
    auto const key = cursor_key_of(secret, "tidegate scim bridge");
    shared.bridge_cursors = std::make_unique<scim::cursor_sealer const>(std::span(&key, 1));
  }
  return {};
}

data_plane::data_plane(std::unique_ptr<state> made) : state_(std::move(made)) {}

auto data_plane::make(config settings, std::span<std::uint64_t const, 4> randomness,
                      std::shared_ptr<event_log> events, store_openers open)
    -> result<std::unique_ptr<data_plane>, std::string> {
  store::quota_table::options options;
  options.partitions_max = static_cast<std::size_t>(settings.stores.quota_partitions);
  std::ranges::copy(randomness, options.randomness.begin());
  auto made = std::make_unique<state>(options, std::move(events), std::move(open));
  auto const count = static_cast<std::size_t>(settings.workers.value_or(
      static_cast<std::int64_t>(std::max(std::thread::hardware_concurrency(), 1U))));
  TIDEGATE_TRY(made->active, active_config::make(std::move(settings), made->ids, made->upstreams));
  auto const& used = *made->active;
  TIDEGATE_TRY(auto file, access_log::open(used.config.access_log));
  made->shared.names.use(used.upstreams, first_look_up_max);
  for (std::size_t i = 0; i < count; ++i) {
    TIDEGATE_TRY_VOID(made->add_worker(randomness[i % 4] + i * 0x9e3779b97f4a7c15));
  }
  TIDEGATE_TRY_VOID(made->ensure_stores(used));
  made->log.use(std::move(file));
  return std::unique_ptr<data_plane>(new data_plane(std::move(made)));
}

data_plane::~data_plane() {
  stop();
  state_->sweeps.reset();
  for (auto& each : state_->threads) {
    each.works.reset();
  }
  // What they still answer goes to the loops, which are there yet.
  state_->shared.scim.reset();
  state_->shared.idempotency.reset();
}

auto data_plane::listen(std::vector<engine::passed_socket>& passed) -> result<void, std::string> {
  auto& threads = state_->threads;
  auto& shared = state_->shared;
  auto const& settings = state_->active->config;
  // Before any of them is bound, so that what is found is of others.
  auto const in_use = addresses_in_use(settings);
  for (auto const& listen : settings.listen) {
    auto const passed_before = passed.size();
    TIDEGATE_TRY(auto sockets, engine::sockets_for(listen.address, threads.size(), true, passed));
    if (in_use.contains(listen.address) && passed.size() == passed_before) {
      shared.warn("another process also listens on " + listen.address +
                  ": connections are spread over both, and each has its own quotas");
    }
    state_->addresses.push_back(engine::address_of(sockets.each.front()));
    if (auto const bound = engine::local_address(sockets.each.front())) {
      shared.listeners.push_back({listen.address, *bound});
    }
    for (std::size_t i = 0; i < threads.size(); ++i) {
      threads[i].works->add_listener(std::move(sockets.each[i]), listen.address, sockets.is_one);
    }
  }
  return {};
}

auto data_plane::addresses() const -> std::vector<std::string> const& {
  return state_->addresses;
}

void data_plane::start() {
  auto& shared = state_->shared;
  auto const& settings = state_->active->config;
  shared.connections.descriptors = descriptors_possible();
  shared.connections.clients_max = clients_possible(shared.connections.descriptors);
  if (is_below_wanted(settings, shared.connections.clients_max)) {
    shared.warn("http.max-connections is " + std::to_string(settings.http.max_connections) +
                ", but the limit of open files allows only " +
                std::to_string(shared.connections.clients_max) +
                " client connections (see ulimit -n, LimitNOFILE=)");
  }
  shared.events->use(settings.log);
  for (auto& each : state_->threads) {
    each.thread = std::thread([&each] { each.loop->run(); });
  }
  state_->follow_consumers(*state_->active, [] {});
}

void data_plane::stop() {
  state_->shared.consumers.reset();  // it tells the loops
  for (auto& each : state_->threads) {
    each.loop->stop();
  }
  for (auto& each : state_->threads) {
    if (each.thread.joinable()) {
      each.thread.join();
    }
  }
}

auto data_plane::active() const -> std::shared_ptr<active_config const> const& {
  return state_->active;
}

auto data_plane::preview(config next) const -> result<void, std::string> {
  // A directory that is open has read its schemas.
  if (!state_->shared.scim) {
    TIDEGATE_TRY_VOID(check_schemas(next));
  }
  auto ids = state_->ids;
  auto upstreams = state_->upstreams;
  TIDEGATE_TRY_VOID(active_config::make(std::move(next), ids, upstreams));
  return {};
}

auto data_plane::apply(config next) -> result<void, std::string> {
  TIDEGATE_TRY(auto used, active_config::make(std::move(next), state_->ids, state_->upstreams));
  TIDEGATE_TRY(auto file, access_log::open(used->config.access_log));
  TIDEGATE_TRY_VOID(state_->ensure_stores(*used));
  state_->log.use(std::move(file));
  state_->shared.events->use(used->config.log);
  for (auto const& upstream : used->upstreams) {
    if (upstream.load) {
      upstream.load->use(*upstream.settings->overload);
    }
    upstream.servers->use(*upstream.settings);
  }
  state_->shared.names.use(used->upstreams, first_look_up_max);
  // What was read of the file before must not reach a thread behind what is read now.
  state_->follow_consumers(*used, [this, &used] {
    for (auto& each : state_->threads) {
      each.loop->post([&each, used] { each.works->use(used); });
    }
  });
  state_->active = std::move(used);
  return {};
}

auto data_plane::has_keys() const -> bool {
  return state_->shared.idempotency != nullptr;
}

auto data_plane::has_directory() const -> bool {
  return state_->shared.scim != nullptr;
}

auto data_plane::has_bridge() const -> bool {
  return state_->shared.bridge_cursors != nullptr;
}

auto data_plane::has_same_directory(config const& next) const -> bool {
  auto const* const found = find_scim(next);
  return found == nullptr || !state_->shared.scim || shape_of(next, *found) == state_->directory;
}

auto data_plane::make_control(engine::loop& on) -> result<control, std::string> {
  control made(on, state_->shared);
  made.active = state_->active;
  made.keys = state_->shared.idempotency;
  made.scim = state_->shared.scim.get();
  TIDEGATE_TRY(made.quotas, state_->open_quotas(*state_->active, on));
  return made;
}

void data_plane::update(control& seen, engine::loop& on, std::function<void()> then) const {
  // Nothing that waits in a loop owns the store, whose last answers go to loops.
  on.post([&seen, then = std::move(then), active = state_->active,
           keys = std::weak_ptr(state_->shared.idempotency), scim = state_->shared.scim.get()] {
    seen.active = active;
    seen.keys = keys.lock();
    seen.scim = scim;
    then();
  });
}

void data_plane::begin_drain() {
  state_->shared.drain.draining.store(true, std::memory_order_relaxed);
}

auto data_plane::drain(std::chrono::milliseconds wait) -> bool {
  begin_drain();
  auto const until = std::chrono::steady_clock::now() + wait;
  for (auto& each : state_->threads) {
    each.loop->post([&each] { each.works->drain(); });
  }
  auto& drain = state_->shared.drain;
  auto& connections = state_->shared.connections;
  std::unique_lock lock(drain.mutex);
  return drain.changed.wait_until(lock, until, [&] {
    return drain.workers_draining == state_->threads.size() &&
           connections.clients.load(std::memory_order_relaxed) == 0 &&
           connections.detached.load(std::memory_order_relaxed) == 0;
  });
}

auto check_schemas(config const& settings) -> result<void, std::string> {
  if (auto const* const found = find_scim(settings)) {
    TIDEGATE_TRY_VOID(make_scim_model(*found));
  }
  return {};
}

}  // namespace tidegate::gateway
