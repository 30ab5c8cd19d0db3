// SPDX-License-Identifier: Apache-2.0
#include "worker.hpp"

#include "access_log_line.hpp"
#include "exchange.hpp"
#include "late_records.hpp"
#include "listener.hpp"
#include "upstream_pool.hpp"

#include <tidegate/http/date.hpp>

#include <ctime>

#include <algorithm>
#include <functional>
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
      log_source_(lines),
      random_(randomness | 1) {
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

void worker::use(std::shared_ptr<runtime const> settings) {
  auto made = std::make_unique<worker_runtime>();
  for (auto const& upstream : settings->upstreams) {
    made->pools.push_back(std::make_unique<upstream_pool>(*this, upstream));
  }
  for (auto const& route : settings->routes) {
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
  log = settings->settings.access_log.to == access_log_config::destination::off ? nullptr
                                                                                : &log_source_;
  made->settings = std::move(settings);
  for (auto const& each : listeners_) {
    each->use(*made->settings);
  }
  if (current != nullptr) {
    current->retired = true;
  }
  current = made.get();
  std::erase_if(runtimes_, [](auto const& old) { return old->retired && old->users == 0; });
  runtimes_.push_back(std::move(made));
}

void worker::count_round_trips() {
  auto const trips = quotas->counted().round_trips;
  metrics->quota_store_round_trips.add(trips - std::exchange(round_trips_, trips));
}

void worker::note_unknown(std::string_view what) {
  constexpr std::chrono::seconds pause{10};
  auto said = shared.unknown_noted.load(std::memory_order_relaxed);
  if (!shared.report || loop.now() < said + pause ||
      !shared.unknown_noted.compare_exchange_strong(said, loop.now())) {
    ++shared.unknown_not_noted;
    return;
  }
  auto const more = shared.unknown_not_noted.exchange(0);
  shared.report("the outcome of a request is unknown: " + std::string(what) +
                (more == 0 ? "" : "; " + std::to_string(more) + " more since the last such line"));
}

void worker::release(worker_runtime& used) {
  // One that has retired goes with the next configuration: what was made of it may still be looked at.
  --used.users;
}

void worker::add_listener(engine::descriptor socket, std::string address, bool shared_socket) {
  auto made = std::make_unique<listener>(*this, std::move(socket), std::move(address));
  made->use(*current->settings);
  if (made->start(shared_socket)) {
    listeners_.push_back(std::move(made));
  }
}

auto worker::first_byte_timeout() const -> std::chrono::nanoseconds {
  constexpr std::chrono::nanoseconds while_draining = std::chrono::seconds(2);
  auto const& configured = current->settings->settings.http.header_timeout;
  return shared.draining.load(std::memory_order_relaxed) ? std::min(configured, while_draining)
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
  std::lock_guard const lock(shared.drain_mutex);
  ++shared.workers_draining;
  shared.drain_changed.notify_all();
}

auto worker::add_client() -> std::optional<client_place> {
  auto const max =
      std::min(current->settings->settings.http.max_connections, shared.connections_max);
  auto const place = clients.insert(clients.end(), nullptr);
  // Any thread may be first to the last place: whoever finds that it took one too many gives it back.
  if (shared.connections.fetch_add(1, std::memory_order_relaxed) >= max) {
    clients.erase(place);
    shared.connections.fetch_sub(1, std::memory_order_relaxed);
    return std::nullopt;
  }
  metrics->connections_open.add();
  return place;
}

void worker::remove_client(client_place at) {
  clients.erase(at);
  metrics->connections_open.subtract();
  bool const was_last = shared.connections.fetch_sub(1, std::memory_order_relaxed) == 1;
  if (was_last && shared.draining.load(std::memory_order_relaxed)) {
    std::lock_guard const lock(shared.drain_mutex);
    shared.drain_changed.notify_all();
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
    if (may_note(shared.memory_noted)) {
      shared.report("there was no memory for a request; its connection was closed");
    }
  } catch (std::bad_alloc const&) {  // neither for this
  }
}

void worker::recount(std::size_t& counted, std::size_t octets) {
  auto const change = static_cast<std::int64_t>(octets) - static_cast<std::int64_t>(counted);
  counted = octets;
  auto const all = shared.buffered.fetch_add(change, std::memory_order_relaxed) + change;
  if (change <= 0 || all <= current->settings->settings.http.max_buffered) {
    return;
  }
  // The clients for which most waits may be on any thread.
  for (auto* const each : shared.workers) {
    if (!each->sheds_.exchange(true, std::memory_order_relaxed)) {
      each->loop.post([each] { each->shed(); });
    }
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
      std::max<std::int64_t>(shared.connections.load(std::memory_order_relaxed), 1);
  auto const share =
      static_cast<std::size_t>(current->settings->settings.http.max_buffered / 2 / connections);
  return std::clamp(share, least, most);
}

void worker::shed() {
  sheds_.store(false, std::memory_order_relaxed);
  auto const max = current->settings->settings.http.max_buffered;
  auto const is_too_much = [&] { return shared.buffered.load(std::memory_order_relaxed) > max; };
  if (!is_too_much()) {
    return;
  }
  // As long as there is too much, somebody has more than an equal share of it.
  auto const share = static_cast<std::size_t>(
      max / std::max<std::int64_t>(shared.connections.load(std::memory_order_relaxed), 1));
  std::vector<std::pair<std::size_t, client_connection*>> found;
  for (auto* const client : clients) {
    auto const octets = client != nullptr ? client->waiting_octets() : 0;
    if (octets > share) {
      found.emplace_back(octets, client);
    }
  }
  std::ranges::sort(found, std::greater());
  for (auto const& [octets, client] : found) {
    if (!is_too_much()) {
      break;
    }
    metrics->connections_shed.add();
    client->drop();
  }
  if (!found.empty() && may_note(shared.shed_noted)) {
    shared.report("more than " + std::to_string(max) +
                  " octets wait for clients (http.max-buffered): those for which most waits are "
                  "closed");
  }
}

auto worker::take_exchange() -> std::unique_ptr<exchange> {
  if (exchanges_.empty()) {
    return std::make_unique<exchange>(*this);
  }
  auto out = std::move(exchanges_.back());
  exchanges_.pop_back();
  return out;
}

void worker::give_back(std::unique_ptr<exchange> done) {
  if (done->is_detached()) {
    auto* const name = done.get();
    detached_.emplace(name, std::move(done));
    shared.detached.fetch_add(1, std::memory_order_relaxed);
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
  append_log_no_request(line);
  append_log_decision(line, "", {}, {});
  append_log_response(line, {.status = status, .reason = reason_of_unreadable(status)});
  write_log(line);
}

void worker::reclaim(exchange& done) {
  auto found = detached_.extract(&done);
  if (!found) {
    return;
  }
  give_back(std::move(found.mapped()));
  bool const was_last = shared.detached.fetch_sub(1, std::memory_order_relaxed) == 1;
  if (was_last && shared.draining.load(std::memory_order_relaxed)) {
    std::lock_guard const lock(shared.drain_mutex);
    shared.drain_changed.notify_all();
  }
}

void worker::record_later(idempotency::change change) {
  if (!late_records_) {
    late_records_ = std::make_unique<late_records>(loop, shared.idempotency);
  }
  late_records_->add(std::move(change));
}

auto worker::random() noexcept -> std::uint64_t {
  // xorshift64*: spreads jitter, protects nothing.
  random_ ^= random_ >> 12;
  random_ ^= random_ << 25;
  random_ ^= random_ >> 27;
  return random_ * 0x2545f4914f6cdd1d;
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
