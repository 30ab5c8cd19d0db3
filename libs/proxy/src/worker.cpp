// SPDX-License-Identifier: Apache-2.0
#include "worker.hpp"

#include "connection/listener.hpp"
#include "exchange.hpp"
#include "observe/access_log_line.hpp"
#include "services/change_retry_queue.hpp"
#include "upstream/upstream_pool.hpp"

#include <tidegate/http/date.hpp>

#include <ctime>

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <new>
#include <utility>

namespace tidegate::gateway {

namespace {

/// That are kept for reuse. There is room for so many from the start on, so that giving one back needs none.
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
  quotas.reset();  // what it still has to answer is nobody's any more, but of these runtimes
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
  // One that has retired goes with the next configuration: what was made of it may still be looked at.
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
  // Any thread may be first to the last place: whoever finds that it took one too many gives it back.
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
  if (may_note(shared.connections.noted)) {
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

auto worker::may_note(std::atomic<instant>& noted) const -> bool {
  constexpr std::chrono::seconds pause{10};
  auto before = noted.load(std::memory_order_relaxed);
  return (before == instant::min() || loop.now() >= before + pause) &&
         noted.compare_exchange_strong(before, loop.now());
}

void worker::note_out_of_memory() noexcept {
  metrics->out_of_memory.add();
  try {
    shed_largest();
    if (may_note(shared.memory.memory_noted)) {
      shared.warn("there was no memory for a request; its connection was closed");
    }
  } catch (std::bad_alloc const&) {  // neither for this
  }
}

void worker::shed_largest() {
  std::size_t most = 0;
  for (auto const* const client : clients) {
    most = std::max(most, client != nullptr ? client->waiting_octets() : 0);
  }
  if (most == 0) {
    return;
  }
  for (auto at = clients.begin(); at != clients.end();) {
    auto* const client = *at++;  // it may go
    if (client != nullptr && client->waiting_octets() >= most - most / 2) {
      metrics->connections_shed.add();
      client->drop();
    }
  }
}

void worker::recount(std::size_t& counted, std::size_t octets) {
  auto const change = static_cast<std::int64_t>(octets) - static_cast<std::int64_t>(counted);
  counted = octets;
  auto const all = shared.memory.buffered.fetch_add(change, std::memory_order_relaxed) + change;
  if (change <= 0 || all <= current->active->config.http.max_buffered) {
    return;
  }
  if (shared.memory.shed_requests.fetch_add(1) == 0) {
    begin_to_shed();
  }
}

auto worker::hold_text(std::string_view text) -> held_text {
  auto& of = texts_[text.data()];
  ++of.holders;
  count_buffered(of.counted, text.size());
  return {*this, text.data()};
}

void worker::let_text_go(void const* text) noexcept {
  auto const found = texts_.find(text);
  if (found != texts_.end() && --found->second.holders == 0) {
    count_buffered(found->second.counted, 0);
    texts_.erase(found);
  }
}

auto worker::share_of_buffers(std::size_t least, std::size_t most) const -> std::size_t {
  auto const connections =
      std::max<std::int64_t>(shared.connections.clients.load(std::memory_order_relaxed), 1);
  auto const share =
      static_cast<std::size_t>(current->active->config.http.max_buffered / 2 / connections);
  return std::clamp(share, least, most);
}

/// A client as it is ranked.
struct worker::slow_client {
  double cost;  ///< what waits for it, multiplied by the time for which it has been waited for
  std::size_t octets;
  client_connection* client;  ///< for its own thread only
};

/// Goes from thread to thread: first to rank the clients of all of them, then to drop those at the
/// top. So no thread drops a client that reads while another one has clients that do not.
struct worker::shed_round {
  explicit shed_round(shared_state& in) : of(in) {}
  shed_round(shed_round const&) = delete;
  auto operator=(shed_round const&) -> shed_round& = delete;
  ~shed_round() {
    if (!has_ended) {  // there was no memory for going on
      of.memory.shed_requests.store(0);
    }
  }

  shared_state& of;
  instant at{};                    ///< the time by which clients are ranked
  std::uint64_t requests_met = 1;  ///< those that came later ask for another round
  std::vector<slow_client> found;
  double cost_min = 0;  ///< of those that are dropped
  bool has_dropped = false;
  bool has_ended = false;
};

auto worker::has_too_much() const -> bool {
  return shared.memory.buffered.load(std::memory_order_relaxed) >
         current->active->config.http.max_buffered;
}

void worker::begin_to_shed() {
  std::shared_ptr<shed_round> round;
  try {
    round = std::make_shared<shed_round>(shared);
  } catch (std::bad_alloc const&) {
    shared.memory.shed_requests.store(0);
    throw;
  }
  start(round);
}

void worker::start(std::shared_ptr<shed_round> const& round) {
  round->at = loop.now();
  round->found.clear();
  round->has_dropped = false;
  round->cost_min = std::numeric_limits<double>::infinity();
  auto* const first = shared.workers.front();
  first->loop.post([first, round] { first->rank_clients(round, 0); });
}

/// Those of this thread for whom more waits than half of an equal share: others are not the reason.
auto worker::find_slow(instant now) const -> std::vector<slow_client> {
  auto const share =
      current->active->config.http.max_buffered /
      std::max<std::int64_t>(shared.connections.clients.load(std::memory_order_relaxed), 1);
  std::vector<slow_client> found;
  for (auto* const client : clients) {
    auto const octets = client != nullptr ? client->waiting_octets() : 0;
    if (octets > static_cast<std::size_t>(share / 2)) {
      // Where none is waited for, those for which most waits come first.
      auto const waited = std::max<std::chrono::nanoseconds>(now - client->waiting_since(now),
                                                             std::chrono::milliseconds(1));
      found.push_back({static_cast<double>(octets) * std::chrono::duration<double>(waited).count(),
                       octets, client});
    }
  }
  std::ranges::sort(found, std::greater(), &slow_client::cost);
  return found;
}

void worker::rank_clients(std::shared_ptr<shed_round> const& round, std::size_t at) {
  std::ranges::copy(find_slow(round->at), std::back_inserter(round->found));
  if (at + 1 < shared.workers.size()) {
    auto* const next = shared.workers[at + 1];
    next->loop.post([next, round, at] { next->rank_clients(round, at + 1); });
    return;
  }
  auto too_much = shared.memory.buffered.load(std::memory_order_relaxed) -
                  current->active->config.http.max_buffered;
  if (too_much <= 0) {
    end_or_repeat(round);
    return;
  }
  std::ranges::sort(round->found, std::greater(), &slow_client::cost);
  for (auto each = round->found.begin(); each != round->found.end() && too_much > 0; ++each) {
    round->cost_min = each->cost;
    too_much -= static_cast<std::int64_t>(each->octets);
  }
  drop_slowest(round, at);  // and then those before this one
}

void worker::drop_slowest(std::shared_ptr<shed_round> const& round, std::size_t at) {
  for (auto const& each : find_slow(round->at)) {
    if (each.cost < round->cost_min || !has_too_much()) {
      break;
    }
    metrics->connections_shed.add();
    round->has_dropped = true;
    each.client->drop();
  }
  if (at > 0) {
    auto* const next = shared.workers[at - 1];
    next->loop.post([next, round, at] { next->drop_slowest(round, at - 1); });
    return;
  }
  if (round->has_dropped && may_note(shared.memory.shed_noted)) {
    shared.warn("more than " + std::to_string(current->active->config.http.max_buffered) +
                " octets wait for clients (http.max-buffered): those for which most has waited "
                "for longest are closed");
  }
  end_or_repeat(round);
}

void worker::end_or_repeat(std::shared_ptr<shed_round> const& round) {
  bool again = round->has_dropped && has_too_much();
  while (!again) {
    if (shared.memory.shed_requests.compare_exchange_strong(round->requests_met, 0)) {
      round->has_ended = true;
      return;
    }
    again = has_too_much();
  }
  start(round);
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

auto worker::wall_clock() -> std::chrono::sys_seconds {
  (void)date_line();
  return wall_clock_;
}

auto worker::date_line() -> std::string_view {
  if (loop.now() >= date_until_) {
    timespec time{};
    ::clock_gettime(CLOCK_REALTIME, &time);
    wall_clock_ = std::chrono::sys_seconds(std::chrono::seconds(time.tv_sec));
    date_until_ = loop.now() + std::chrono::nanoseconds(1'000'000'000 - time.tv_nsec);
    date_line_.assign("Date: ");
    http::append_http_date(date_line_, wall_clock_);
    date_line_.append("\r\n");
  }
  return date_line_;
}

}  // namespace tidegate::gateway
