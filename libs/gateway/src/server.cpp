// SPDX-License-Identifier: Apache-2.0
#include <tidegate/gateway/server.hpp>

#include <tidegate/config/effective.hpp>
#include <tidegate/config/values.hpp>
#include "admin/admin.hpp"
#include "observe/access_log.hpp"
#include "runtime.hpp"
#include "worker.hpp"

#include <tidegate/engine/loop.hpp>
#include <tidegate/store/quota_table.hpp>

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace tidegate::gateway {

namespace {

/// A thread with its loop and worker; the worker lives and dies on the thread.
struct worker_thread {
  std::unique_ptr<engine::loop> loop;
  std::unique_ptr<worker> works;
  std::thread thread;
};

/// A thread with its loop.
struct admin_thread {
  std::unique_ptr<engine::loop> loop;
  std::thread thread;
};

auto address_of(engine::descriptor const& socket) -> std::string {
  return engine::local_address(socket).value_or(engine::socket_address()).to_string();
}

[[nodiscard]] auto make_loop() -> result<std::unique_ptr<engine::loop>, std::string> {
  auto made = engine::loop::make();
  if (!made) {
    return failure(engine::to_string(made.error()));
  }
  return *std::move(made);
}

/// The sockets of one address, one for each thread.
struct listening_sockets {
  std::vector<engine::descriptor> each;
  bool is_one = false;  ///< with many descriptors
};

/// Takes the socket out of `passed` that is bound to the address, or binds; `others_may` listen there too.
auto sockets_for(std::string_view text, std::size_t count, bool others_may,
                 std::vector<engine::passed_socket>& passed)
    -> result<listening_sockets, std::string> {
  TIDEGATE_TRY(auto address, engine::socket_address::parse(text));
  listening_sockets out;
  auto const found = std::ranges::find_if(passed, [&](engine::passed_socket const& candidate) {
    return address_of(candidate.socket) == address.to_string();
  });
  // The kernel spreads connections over many sockets of a port; of a path there is only one.
  out.is_one = found != passed.end() || address.family() == AF_UNIX;
  if (found != passed.end()) {
    out.each.push_back(std::move(found->socket));
    passed.erase(found);
  }
  while (out.each.size() < count) {
    auto socket = out.is_one && !out.each.empty() ? engine::share(out.each.front())
                                                  : engine::listen_on(address, others_may);
    if (!socket) {
      return failure("cannot listen on " + address.to_string() + ": " +
                     engine::to_string(socket.error()));
    }
    out.each.push_back(*std::move(socket));
    // All threads listen on the port that the first one got.
    address = engine::local_address(out.each.front()).value_or(address);
  }
  return out;
}

/// Those that other programs listen on. Gateways of one user share a port, so that one can take
/// over from another.
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

/// The SCIM service of a configuration; all routes that have one agree on what is in the directory.
[[nodiscard]] auto find_scim(config const& settings) -> scim_config const* {
  auto const found = std::ranges::find_if(
      settings.routes, [](route_config const& route) { return route.scim.has_value(); });
  return found == settings.routes.end() ? nullptr : &*found->scim;
}

[[nodiscard]] auto clock_on_the_wall() -> idempotency::wall_time {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

}  // namespace

/// How many descriptors there are for connections of clients and to upstreams. Some of those that are
/// not open yet are kept for stores, files and the admin address.
[[nodiscard]] auto descriptors_possible() -> std::int64_t {
  constexpr std::int64_t kept_max = 64;
  rlimit limit{};
  std::error_code failed;
  std::filesystem::directory_iterator const first("/proc/self/fd", failed);
  if (failed || ::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return std::numeric_limits<std::int64_t>::max();
  }
  auto const open = std::distance(first, std::filesystem::directory_iterator());
  auto const left = static_cast<std::int64_t>(limit.rlim_cur) - open;
  return std::max<std::int64_t>(left - std::min(left / 8, kept_max), 2);
}

/// How many of them connections of clients may take: half is kept for upstreams, but not more than
/// these ever need.
[[nodiscard]] auto connections_possible(std::int64_t descriptors) -> std::int64_t {
  constexpr std::int64_t kept_max = 4096;
  return descriptors - std::min(descriptors / 2, kept_max);
}

/// Whether people are to know that there are fewer than they have asked for. Where they have not said how many, half of the default
/// is enough for not to bother them.
[[nodiscard]] auto is_worth_telling(config const& settings, std::int64_t possible) -> bool {
  auto const wanted = settings.http.max_connections;
  auto const found =
      std::ranges::find(settings.effective, "http.max-connections", &effective_option::path);
  bool const is_default = found == settings.effective.end() || found->origin == "default";
  return possible < (is_default ? wanted / 2 : wanted);
}

/// Has time do its work on the records of idempotency keys.
class sweeper final : private engine::timer {
 public:
  sweeper(engine::loop& on, idempotency_state& keys) : loop_(on), keys_(keys) { expired(); }

 private:
  void expired() override {
    keys_.clock.look(clock_on_the_wall(), loop_.now());
    keys_.store->sweep(keys_.clock.at(loop_.now()), records_at_once);
    set(loop_.timers(), loop_.now() + std::chrono::seconds(1));
  }

  static constexpr std::size_t records_at_once = 10'000;

  engine::loop& loop_;
  idempotency_state& keys_;
};

/// What a directory was opened with.
struct directory_shape {
  store_location place;
  std::vector<std::string> schemas;
  std::vector<std::string> indexes;
  auto operator==(directory_shape const&) const -> bool = default;
};

struct server::state {
  state(store::quota_table::options const& options, store_openers openers)
      : quotas(options),
        shared(quotas, log, openers.events ? openers.events : std::make_shared<event_log>()),
        open(std::move(openers)) {
    shared.version = open.version;
    shared.commit = open.commit;
    shared.report = [events = shared.events](std::string_view line) { events->warning(line); };
    shared.quota_health.use(to_events());
  }

  /// Hosts whose keys an operator may ask for before a request has named them.
  void note_hosts(config const& settings) {
    auto const keys = shared.idempotency;
    for (auto const* const here : {"[::1]", "127.0.0.1", "localhost"}) {
      keys->hosts.add(here);
    }
    for (auto const& route : settings.routes) {
      if (route.idempotency && !route.match.host.empty()) {
        keys->hosts.add(host_of(route.match.host));
      }
    }
    keys->store->list_unknown(
        seen_hosts::hosts_max, [owner = std::weak_ptr(keys)](store::list_answer const& answer) {
          auto const there = owner.lock();
          for (std::size_t i = 0; there && answer && i < answer->size(); ++i) {
            there->hosts.add((*answer)[i].record.origin.host);
          }
        });
  }

  /// Outlives the stores that use it.
  [[nodiscard]] auto to_events() const -> store::store_health::report {
    return [events = shared.events.get()](bool fails, std::string_view line) {
      events->write(fails ? log_level::warning : log_level::info, line);
    };
  }

  /// Null where quotas are in memory.
  [[nodiscard]] auto open_quotas(runtime const& used, engine::loop& on) const
      -> result<std::unique_ptr<store::quota_store>, std::string> {
    if (used.settings.stores.quota.kind == store_kind::memory) {
      return nullptr;
    }
    return open.quotas(used.settings, on);
  }

  /// Opens the store of idempotency keys when the first route needs it.
  [[nodiscard]] auto see_to_idempotency(runtime const& used) -> result<void, std::string> {
    bool const needed = std::ranges::any_of(used.settings.routes, [](route_config const& route) {
      return route.idempotency.has_value();
    });
    if (!needed || shared.idempotency) {
      return {};
    }
    auto const steady = [] { return instant(std::chrono::steady_clock::now().time_since_epoch()); };
    auto const clock = std::make_shared<guarded_clock>(clock_on_the_wall(), steady());
    TIDEGATE_TRY(auto parts,
                 open.idempotency(used.settings, [clock, steady] { return clock->at(steady()); }));
    auto& on = *threads.front().loop;
    shared.idempotency = std::make_shared<idempotency_state>(std::move(parts.store), parts.secret,
                                                             used.settings.data, clock);
    shared.idempotency->health.use(to_events());
    note_hosts(used.settings);
    if (auto const lost = shared.idempotency->store->used().unknown.value_or(0);
        lost > 0 && shared.report) {
      shared.report("the outcomes of " + std::to_string(lost) +
                    " requests with keys are unknown: look them up and resolve them by "
                    "/api/v1/idempotency/unknown");
    }
    on.post(
        [this, &on, keys = shared.idempotency] { sweeps = std::make_unique<sweeper>(on, *keys); });
    return {};
  }

  /// Opens the directory when the first route needs it. What it holds stays what it is until the end.
  [[nodiscard]] auto see_to_directory(runtime const& used) -> result<void, std::string> {
    auto const* const found = find_scim(used.settings);
    if (found == nullptr) {
      return {};
    }
    directory_shape const wanted{used.settings.stores.directory, found->schemas, found->indexes};
    if (shared.scim) {
      return {};  // the same, or there is no reload
    }
    TIDEGATE_TRY(auto model, make_scim_model(*found));
    TIDEGATE_TRY(auto parts, open.directory(used.settings, model));
    shared.scim = std::make_unique<scim_service>(
        std::move(model), std::move(parts.directory), std::span<std::byte const>(parts.secret),
        [events = shared.events](std::string_view line) { events->info(line); });
    shared.scim->health().use(to_events());
    directory = wanted;
    return {};
  }

  /// Has cursors sealed when the first route needs it.
  [[nodiscard]] auto see_to_bridges(runtime const& used) -> result<void, std::string> {
    bool const needed = std::ranges::any_of(
        used.settings.routes, [](route_config const& route) { return route.bridge.has_value(); });
    if (needed && !shared.bridge_cursors) {
      TIDEGATE_TRY(auto const secret, open.secret(used.settings));
      auto const key = cursor_key_of(secret, "tidegate scim bridge");
      shared.bridge_cursors = std::make_unique<scim::cursor_sealer const>(std::span(&key, 1));
    }
    return {};
  }

  /// What a change of an option has to wait for, by what is open.
  [[nodiscard]] auto waits_for_start(effective_option const& option, config const& next) const
      -> bool {
    std::string_view const path = option.path;
    if (path.starts_with("listen[")) {
      // A listener that stays follows its settings. An address of IPv6 ends in a bracket as well.
      auto const element = path.substr(0, std::min(path.rfind(']'), path.size() - 1) + 1);
      auto const is_of_it = [&](effective_option const& each) {
        return each.path.starts_with(element);
      };
      return option.at_start || std::ranges::none_of(effective, is_of_it) ||
             std::ranges::none_of(next.effective, is_of_it);
    }
    if (path.starts_with("admin.")) {
      return option.at_start || !next.admin;
    }
    if (path == "stores.directory") {
      return shared.scim != nullptr;
    }
    if (path.starts_with("stores.idempotency")) {
      return shared.idempotency != nullptr;
    }
    if (path == "data" || path == "secrets") {
      return shared.idempotency || shared.scim || shared.bridge_cursors;
    }
    return option.at_start;
  }

  /// What taking over `next` changes.
  [[nodiscard]] auto changes_to(config const& next) const -> std::vector<config_change> {
    auto const text = [](effective_option const* option) {
      return option == nullptr ? std::nullopt : std::optional(option->value);
    };
    std::vector<config_change> changes;
    for (auto const& [from, to] : differences(effective, next.effective)) {
      auto const& either = to != nullptr ? *to : *from;
      changes.push_back({either.path, text(from), text(to), waits_for_start(either, next)});
    }
    if (std::max(effective.size(), next.effective.size()) >= effective_options_max) {
      changes.push_back({"...", std::nullopt, "there are more options than are compared", false});
    }
    return changes;
  }

  /// What holds once `next` was taken over: what waits for a start stays as it is.
  [[nodiscard]] auto effective_after(config const& next) const -> std::vector<effective_option> {
    std::vector<effective_option> merged;
    for (auto const& each : effective) {
      if (waits_for_start(each, next)) {
        merged.push_back(each);
      }
    }
    for (auto const& each : next.effective) {
      if (!waits_for_start(each, next)) {
        merged.push_back(each);
      }
    }
    return merged;
  }

  /// Why a configuration cannot be taken over while this runs, if there is a reason.
  [[nodiscard]] auto refusal_of(config const& next) const -> result<void, std::string> {
    if (next.stores.quota != quota_place) {
      return failure(std::string("another store of quotas needs a new start"));
    }
    auto const* const found = find_scim(next);
    if (found != nullptr && shared.scim &&
        directory_shape{next.stores.directory, found->schemas, found->indexes} != directory) {
      return failure(
          std::string("another directory, or other schemas and indexes of SCIM, need a "
                      "new start"));
    }
    if (admin && !is_local_address(admin_configured) && next.admin && next.admin->tokens.empty()) {
      return failure("the admin address stays " + admin_configured +
                     " until the next start, and others reach it: it needs tokens until then");
    }
    return {};
  }

  [[nodiscard]] auto look_at_reload() -> reload_outcome;
  auto reload() -> reload_outcome;
  /// Has people know, and metrics.
  void say(reload_outcome const& outcome);

  /// Reads the configuration, and sees whether it could be taken over.
  [[nodiscard]] auto load() -> result<config, reload_refusal>;
  [[nodiscard]] auto take_over(config next) -> result<void, std::string>;

  store::quota_table quotas;
  access_log log;  // outlives the workers, whose last lines it writes
  shared_state shared;
  policy_ids ids;
  upstream_loads loads;
  std::vector<worker_thread> threads;
  admin_thread admin_runs;
  std::unique_ptr<config_desk> desk;
  std::unique_ptr<admin_service> admin;
  std::vector<std::string> addresses;
  std::string admin_address;
  std::string admin_configured;  // as the configuration had it at the start
  std::mutex reload_mutex;       // what follows, and what only reloads change
  std::vector<effective_option> effective;
  std::chrono::nanoseconds drain_delay{0};
  store_openers open;
  store_location quota_place;       // that is open
  directory_shape directory;        // that is open
  std::unique_ptr<sweeper> sweeps;  // of the first thread
};

auto check_schemas(config const& settings) -> result<void, std::string> {
  if (auto const* const found = find_scim(settings)) {
    TIDEGATE_TRY_VOID(make_scim_model(*found));
  }
  return {};
}

auto check_files(config const& settings) -> std::vector<config_fault> {
  std::vector<config_fault> faults;
  auto const add = [&](std::string const& path, std::string message) {
    auto fault = place_of(settings, path);
    fault.message = std::move(message);
    faults.push_back(std::move(fault));
  };
  // Each alone, so that all that is wrong is said at once.
  policy_ids ids;
  upstream_loads loads;
  auto const check_address = [&](std::string const& path, std::string const& text) {
    auto const address = engine::socket_address::parse(text);
    if (!address) {
      return;  // it is a fault of the file, which has been said
    }
    if (auto const checked = engine::check_listening(*address); !checked) {
      add(path, "cannot listen on " + text + ": " + engine::to_string(checked.error()));
    }
  };
  if (settings.admin) {
    check_address("admin.address", settings.admin->address);
  }
  for (auto const& listen : settings.listen) {
    check_address("listen[" + listen.address + "].address", listen.address);
    config part;
    part.listen.push_back(listen);
    if (auto const made = runtime::make(std::move(part), ids, loads); !made) {
      bool const is_key = made.error().contains("cannot use the key");
      add("listen[" + listen.address + "].tls." + (is_key ? "key" : "certificate"), made.error());
    }
  }
  for (auto const& upstream : settings.upstreams) {
    config part;
    part.upstreams.push_back(upstream);
    if (auto const made = runtime::make(std::move(part), ids, loads); !made) {
      bool const is_ca = upstream.tls.ca && made.error().contains(*upstream.tls.ca);
      add("upstreams." + upstream.name + (is_ca ? ".tls.ca" : ".servers"), made.error());
    }
  }
  if (auto const schemas = check_schemas(settings); !schemas) {
    auto const with = std::ranges::find_if(
        settings.routes, [](route_config const& route) { return route.scim.has_value(); });
    bool const is_file = std::ranges::any_of(with->scim->schemas, [&](std::string const& file) {
      return schemas.error().contains(file);
    });
    add("routes[" + with->name + (is_file ? "].schemas" : "].indexes"), schemas.error());
  }
  if (settings.access_log.to == access_log_config::destination::file) {
    auto const& file = settings.access_log.file;
    auto const folder = std::filesystem::path(file).parent_path();
    bool const is_there = ::access(file.c_str(), F_OK) == 0;
    bool const is_folder = std::filesystem::is_directory(file);
    auto const& written = is_there ? file : folder.empty() ? std::string(".") : folder.string();
    if (is_folder || ::access(written.c_str(), W_OK) != 0) {
      add("access-log.file", "access-log: cannot write " + file + ": " +
                                 std::system_category().message(is_folder ? EISDIR : errno));
    }
  }
  return faults;
}

server::server(std::unique_ptr<state> made) : state_(std::move(made)) {}

auto server::start(config settings, std::span<std::uint64_t const, 4> randomness,
                   store_openers open, std::vector<engine::passed_socket> passed)
    -> result<std::unique_ptr<server>, std::string> {
  store::quota_table::options options;
  options.partitions_max = static_cast<std::size_t>(settings.stores.quota_partitions);
  std::ranges::copy(randomness, options.randomness.begin());
  auto made = std::make_unique<state>(options, std::move(open));
  auto const count = static_cast<std::size_t>(settings.workers.value_or(
      static_cast<std::int64_t>(std::max(std::thread::hardware_concurrency(), 1U))));
  TIDEGATE_TRY(auto used, runtime::make(std::move(settings), made->ids, made->loads));
  TIDEGATE_TRY(auto file, access_log::open(used->settings.access_log));

  for (std::size_t i = 0; i < count; ++i) {
    TIDEGATE_TRY(auto loop, make_loop());
    auto counts = std::make_shared<worker_metrics>();
    made->shared.metrics.push_back(counts);
    auto& each = made->threads.emplace_back();
    each.loop = std::move(loop);
    each.works = std::make_unique<worker>(*each.loop, made->shared, std::move(counts),
                                          made->log.add_source(),
                                          randomness[i % 4] + i * 0x9e3779b97f4a7c15);
    each.works->use(used);
    made->shared.workers.push_back(each.works.get());
    TIDEGATE_TRY(each.works->quotas, made->open_quotas(*used, *each.loop));
  }
  made->quota_place = used->settings.stores.quota;
  TIDEGATE_TRY_VOID(made->see_to_idempotency(*used));
  TIDEGATE_TRY_VOID(made->see_to_directory(*used));
  TIDEGATE_TRY_VOID(made->see_to_bridges(*used));
  // Before any of them is bound, so that what is found is of others.
  auto const in_use = addresses_in_use(used->settings);
  for (auto const& listen : used->settings.listen) {
    auto const passed_before = passed.size();
    TIDEGATE_TRY(auto sockets, sockets_for(listen.address, count, true, passed));
    if (in_use.contains(listen.address) && passed.size() == passed_before) {
      made->shared.report("another process listens on " + listen.address +
                          " too: connections are spread over both, and each has its own quotas");
    }
    made->addresses.push_back(address_of(sockets.each.front()));
    if (auto const bound = engine::local_address(sockets.each.front())) {
      made->shared.listeners.push_back({listen.address, *bound});
    }
    for (std::size_t i = 0; i < count; ++i) {
      made->threads[i].works->add_listener(std::move(sockets.each[i]), listen.address,
                                           sockets.is_one);
    }
  }
  if (used->settings.admin) {
    auto const& settings_of_admin = *used->settings.admin;
    TIDEGATE_TRY(auto sockets, sockets_for(settings_of_admin.address, 1, false, passed));
    made->admin_address = address_of(sockets.each.front());
    made->admin_configured = settings_of_admin.address;
    made->desk = std::make_unique<config_desk>([&of = *made](config_desk::errand what) {
      return what == config_desk::errand::reload ? of.reload() : of.look_at_reload();
    });
    TIDEGATE_TRY(made->admin_runs.loop, make_loop());
    control seen{*made->admin_runs.loop,   made->shared,           nullptr, used,
                 made->shared.idempotency, made->shared.scim.get()};
    TIDEGATE_TRY(seen.quotas, made->open_quotas(*used, seen.loop));
    made->admin = std::make_unique<admin_service>(std::move(seen), std::move(sockets.each.front()),
                                                  settings_of_admin, *made->desk);
  }
  made->effective = used->settings.effective;
  made->drain_delay = used->settings.drain_delay;
  if (!passed.empty()) {
    auto const& left = passed.front();
    return failure("a socket" + (left.name.empty() ? "" : " (" + left.name + ")") +
                   " was passed that is bound to " + address_of(left.socket) +
                   ", which is neither an address of listen nor admin");
  }
  made->log.use(std::move(file));
  auto& shared = made->shared;
  shared.descriptors = descriptors_possible();
  shared.connections_max = connections_possible(shared.descriptors);
  if (is_worth_telling(used->settings, shared.connections_max)) {
    shared.report("http.max-connections is " + std::to_string(used->settings.http.max_connections) +
                  ", but the limit of open files leaves room for " +
                  std::to_string(shared.connections_max) +
                  " connections of clients: no more are taken (see ulimit -n, LimitNOFILE=)");
  }
  made->shared.events->use(used->settings.log);
  for (auto& each : made->threads) {
    each.thread = std::thread([&each] { each.loop->run(); });
  }
  if (made->admin) {
    made->admin_runs.thread = std::thread([&on = *made->admin_runs.loop] { on.run(); });
  }
  return std::unique_ptr<server>(new server(std::move(made)));
}

server::~server() {
  if (state_->admin) {
    state_->admin_runs.loop->stop();
    state_->admin_runs.thread.join();
  }
  for (auto& each : state_->threads) {
    each.loop->stop();
  }
  for (auto& each : state_->threads) {
    if (each.thread.joinable()) {
      each.thread.join();
    }
  }
  state_->desk.reset();  // waits for whoever reads the configuration
  state_->admin.reset();
  state_->sweeps.reset();
  for (auto& each : state_->threads) {
    each.works.reset();
  }
  // What they still answer goes to the loops, which are there yet.
  state_->shared.scim.reset();
  state_->shared.idempotency.reset();
}

auto server::addresses() const -> std::vector<std::string> const& {
  return state_->addresses;
}

auto server::admin_address() const -> std::string const& {
  return state_->admin_address;
}

auto server::reload() -> reload_outcome {
  return state_->reload();
}

auto server::look_at_reload() -> reload_outcome {
  return state_->look_at_reload();
}

auto server::state::look_at_reload() -> reload_outcome {
  std::lock_guard const lock(reload_mutex);
  auto next = load();
  if (!next) {
    return failure(std::move(next.error()));
  }
  auto changes = changes_to(*next);
  // A directory that is open has read its schemas.
  if (auto const schemas = shared.scim ? result<void, std::string>() : check_schemas(*next);
      !schemas) {
    return failure(reload_refusal{{}, schemas.error()});
  }
  auto ids_then = ids;
  auto loads_then = loads;
  if (auto const used = runtime::make(*std::move(next), ids_then, loads_then); !used) {
    return failure(reload_refusal{{}, used.error()});
  }
  return changes;
}

auto server::state::reload() -> reload_outcome {
  std::lock_guard const lock(reload_mutex);
  auto outcome = [&]() -> reload_outcome {
    TIDEGATE_TRY(auto next, load());
    for (auto const& warning : next.warnings) {
      shared.events->warning(to_string(warning));
    }
    auto changes = changes_to(next);
    if (auto const taken = take_over(std::move(next)); !taken) {
      return failure(reload_refusal{{}, taken.error()});
    }
    return changes;
  }();
  say(outcome);
  return outcome;
}

void server::state::say(reload_outcome const& outcome) {
  auto& events = *shared.events;
  auto& told = shared.reloads;
  if (!outcome) {
    // Before anything is said: who reads it may look.
    told.failures.fetch_add(1, std::memory_order_relaxed);
    told.last_is_good.store(false, std::memory_order_relaxed);
    auto const& [faults, reason] = outcome.error();
    for (auto const& fault : faults) {
      events.error(to_string(fault));
    }
    events.error("the configuration was not taken over: " +
                 (reason.empty() ? std::string("it has faults") : reason));
    return;
  }
  told.last_is_good.store(true, std::memory_order_relaxed);
  told.last_good.store(std::chrono::system_clock::now(), std::memory_order_relaxed);
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

auto server::state::load() -> result<config, reload_refusal> {
  if (!open.load) {
    return failure(reload_refusal{{}, "there is nothing to read it from again"});
  }
  auto loaded = open.load();
  if (!loaded) {
    return failure(reload_refusal{std::move(loaded.error()), {}});
  }
  if (auto const possible = refusal_of(*loaded); !possible) {
    return failure(reload_refusal{{}, possible.error()});
  }
  return *std::move(loaded);
}

auto server::state::take_over(config next) -> result<void, std::string> {
  next.effective = effective_after(next);
  TIDEGATE_TRY(auto used, runtime::make(std::move(next), ids, loads));
  TIDEGATE_TRY(auto file, access_log::open(used->settings.access_log));
  TIDEGATE_TRY_VOID(see_to_idempotency(*used));
  TIDEGATE_TRY_VOID(see_to_directory(*used));
  TIDEGATE_TRY_VOID(see_to_bridges(*used));
  log.use(std::move(file));
  shared.events->use(used->settings.log);
  for (auto const& upstream : used->upstreams) {
    if (upstream.load) {
      upstream.load->use(*upstream.settings->overload);
    }
  }
  for (auto& each : threads) {
    each.loop->post([&each, used] { each.works->use(used); });
  }
  if (admin) {
    // Nothing that waits in a loop owns the store, whose last answers go to loops.
    admin_runs.loop->post([this, used, keys = std::weak_ptr(shared.idempotency),
                           scim = shared.scim.get()] { admin->use(used, keys.lock(), scim); });
  }
  effective = used->settings.effective;
  drain_delay = used->settings.drain_delay;
  return {};
}

auto server::begin_drain() -> std::chrono::nanoseconds {
  state_->shared.draining.store(true, std::memory_order_relaxed);
  std::lock_guard const lock(state_->reload_mutex);
  return state_->drain_delay;
}

auto server::drain(std::chrono::milliseconds wait) -> bool {
  (void)begin_drain();
  auto const until = std::chrono::steady_clock::now() + wait;
  for (auto& each : state_->threads) {
    each.loop->post([&each] { each.works->drain(); });
  }
  auto& shared = state_->shared;
  std::unique_lock lock(shared.drain_mutex);
  return shared.drain_changed.wait_until(lock, until, [&] {
    return shared.workers_draining == state_->threads.size() &&
           shared.connections.load(std::memory_order_relaxed) == 0 &&
           shared.detached.load(std::memory_order_relaxed) == 0;
  });
}

}  // namespace tidegate::gateway
