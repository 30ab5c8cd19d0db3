// SPDX-License-Identifier: Apache-2.0
#include "worker.hpp"

#include "connection/listener.hpp"
#include "exchange.hpp"
#include "observe/access_log_line.hpp"
#include "services/change_retry_queue.hpp"
#include "upstream/upstream_pool.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace tidegate::gateway {

namespace {

/// That are kept for reuse. Their room is made at the start, so that keeping one allocates nothing.
constexpr std::size_t exchanges_max = 256;

}  // namespace

worker::worker(engine::loop& on, shared_state& shared_by_all,
               std::shared_ptr<worker_metrics> counts, access_log::source& lines,
               std::uint64_t randomness)
    : loop(on),
      shared(shared_by_all),
      metrics(std::move(counts)),
      jitter(randomness),
      log_source_(lines) {
  exchanges_.reserve(exchanges_max);
  loop.when_out_of_memory([this] { note_out_of_memory(); });
}

worker::~worker() {
  listeners_.clear();
  while (!clients.empty()) {
    clients.front()->drop();
  }
  quotas.reset();  // before the configurations that its questions refer to
}

void worker::use(std::shared_ptr<active_config const> active) {
  auto made = std::make_unique<worker_config>();
  for (auto const& upstream : active->upstreams) {
    made->pools.push_back(std::make_unique<upstream_pool>(*this, upstream));
  }
  for (auto const& route : active->routes) {
    bool const has_upstream = route.settings->service == route_service::upstream;
    auto& added = made->routes.emplace_back(
        worker_route{&route,
                     has_upstream ? made->pools[route.settings->upstream].get() : nullptr,
                     &metrics->of_route(route.settings->name),
                     {}});
    if (route.settings->idempotency) {
      added.counts->has_keys = true;  // also when a reload takes them away: counters stay
    }
    for (auto const& limit : route.limits) {
      added.policies.push_back(&metrics->of_policy(limit.policy->name));
    }
  }
  log =
      active->config.access_log.to == access_log_config::destination::off ? nullptr : &log_source_;
  made->active = std::move(active);
  for (auto const& each : listeners_) {
    each->use(*made->active);
  }
  if (current != nullptr) {
    current->retired = true;
  }
  current = made.get();
  std::erase_if(configs_, [](auto const& old) { return old->retired && old->users == 0; });
  configs_.push_back(std::move(made));
}

void worker::count_round_trips() {
  auto const trips = quotas->status().round_trips;
  metrics->quota_store_round_trips.add(trips - std::exchange(round_trips_, trips));
}

void worker::note_unknown(std::string_view what) {
  shared.events->write_limited("outcome unknown", log_level::warning,
                               "the outcome of a request is unknown: " + std::string(what));
}

void worker::release(worker_config& used) {
  // One that has retired goes with the next configuration: what was made of it may be in use.
  --used.users;
}

void worker::add_listener(engine::descriptor socket, std::string address, bool shared_socket) {
  auto made = std::make_unique<listener>(*this, std::move(socket), std::move(address));
  made->use(*current->active);
  if (made->start(shared_socket)) {
    listeners_.push_back(std::move(made));
  }
}

auto worker::first_byte_timeout() const -> std::chrono::nanoseconds {
  constexpr std::chrono::nanoseconds while_draining = std::chrono::seconds(2);
  auto const& configured = current->active->config.http.header_timeout;
  return shared.drain.draining.load(std::memory_order_relaxed)
             ? std::min(configured, while_draining)
             : configured;
}

void worker::drain() {
  for (auto& each : listeners_) {
    // To close a socket is to reset what waits in its queue, perhaps with a request.
    each->accept_last();
    loop.dispose(std::move(each));
  }
  listeners_.clear();
  for (auto at = clients.begin(); at != clients.end();) {
    auto* const client = *at++;  // it may go
    client->drain();
  }
  std::lock_guard const lock(shared.drain.mutex);
  ++shared.drain.workers_draining;
  shared.drain.changed.notify_all();
}

auto worker::add_client() -> std::optional<client_place> {
  auto const max =
      std::min(current->active->config.http.max_connections, shared.connections.clients_max);
  auto const place = clients.insert(clients.end(), nullptr);
  // Any thread may take the last place; one that took too many gives it back.
  if (shared.connections.clients.fetch_add(1, std::memory_order_relaxed) >= max) {
    clients.erase(place);
    shared.connections.clients.fetch_sub(1, std::memory_order_relaxed);
    return std::nullopt;
  }
  metrics->connections_open.add();
  return place;
}

auto worker::close_idle_upstream() -> bool {
  return std::ranges::any_of(configs_, [](auto const& each) {
    return std::ranges::any_of(each->pools, [](auto const& pool) { return pool->close_idle(); });
  });
}

auto worker::has_room_for_upstream() -> bool {
  auto const for_clients =
      std::min(current->active->config.http.max_connections, shared.connections.clients_max);
  auto const max = std::max<std::int64_t>(shared.connections.descriptors - for_clients, 1);
  auto const is_full = [&] {
    return shared.connections.upstreams.load(std::memory_order_relaxed) >= max;
  };
  if (!is_full()) {
    return true;
  }
  while (close_idle_upstream()) {
    if (!is_full()) {
      return true;
    }
  }
  // For the next request: those of other threads.
  for (auto* const other : shared.workers) {
    if (other != this) {
      other->loop.post([other] { (void)other->close_idle_upstream(); });
    }
  }
  if (may_note(shared.connections.noted, loop.now())) {
    shared.warn("there are " + std::to_string(max) +
                " connections to upstreams, as many as the limit of open files leaves room for: "
                "requests that need another one get 503 (see ulimit -n, LimitNOFILE=)");
  }
  return false;
}

void worker::remove_client(client_place at) {
  clients.erase(at);
  metrics->connections_open.subtract();
  bool const was_last = shared.connections.clients.fetch_sub(1, std::memory_order_relaxed) == 1;
  if (was_last && shared.drain.draining.load(std::memory_order_relaxed)) {
    std::lock_guard const lock(shared.drain.mutex);
    shared.drain.changed.notify_all();
  }
}

void worker::note_out_of_memory() noexcept {
  metrics->out_of_memory.add();
  try {
    shedder.shed_largest();
    if (may_note(shared.memory.memory_noted, loop.now())) {
      shared.warn("there was no memory for a request; its connection was closed");
    }
  } catch (std::bad_alloc const&) {  // neither for this
  }
}

auto worker::share_of_buffers(std::size_t least, std::size_t most) const -> std::size_t {
  auto const connections =
      std::max<std::int64_t>(shared.connections.clients.load(std::memory_order_relaxed), 1);
  auto const share =
      static_cast<std::size_t>(current->active->config.http.max_buffered / 2 / connections);
  return std::clamp(share, least, most);
}

auto worker::take_exchange() -> std::unique_ptr<exchange> {
  if (exchanges_.empty()) {
    return std::make_unique<exchange>(*this);
  }
  auto out = std::move(exchanges_.back());
  exchanges_.pop_back();
  return out;
}

void worker::recycle(std::unique_ptr<exchange> done) {
  if (done->is_detached()) {
    auto* const name = done.get();
    try {
      detached_.emplace(name, std::move(done));
    } catch (std::bad_alloc const&) {
      (void)done.release();  // lost: it is still being used
      return;
    }
    shared.connections.detached.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (exchanges_.size() < exchanges_max) {
    exchanges_.push_back(std::move(done));
  }
}

void worker::write_log(std::string_view line) {
  if (log != nullptr && !log->add(line)) {
    metrics->log_lines_dropped.add();
  }
}

void worker::log_malformed(http::ip_address const& client, std::string_view protocol, int status) {
  std::string line;
  append_log_client(line, std::chrono::system_clock::now(), client, protocol);
  append_log_no_request(line, current->active->config.access_log.query);
  append_log_decision(line, "", {}, {});
  append_log_response(line, {.status = status, .reason = reason_of_unreadable(status)});
  write_log(line);
}

void worker::reclaim(exchange& done) {
  auto found = detached_.extract(&done);
  if (!found) {
    return;
  }
  recycle(std::move(found.mapped()));
  bool const was_last = shared.connections.detached.fetch_sub(1, std::memory_order_relaxed) == 1;
  if (was_last && shared.drain.draining.load(std::memory_order_relaxed)) {
    std::lock_guard const lock(shared.drain.mutex);
    shared.drain.changed.notify_all();
  }
}

void worker::retry_later(idempotency::change change) {
  if (!retry_queue_) {
    retry_queue_ = std::make_unique<change_retry_queue>(loop, shared.idempotency);
  }
  retry_queue_->add(std::move(change));
}

}  // namespace tidegate::gateway
