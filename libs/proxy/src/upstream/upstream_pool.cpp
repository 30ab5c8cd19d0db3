// SPDX-License-Identifier: Apache-2.0
#include "upstream/upstream_pool.hpp"

namespace tidegate::gateway {

namespace {

/// How long a request waits at least where a connection of another thread rests, which is closed
/// for it.
constexpr std::chrono::milliseconds handover{100};

}  // namespace

upstream_pool::upstream_pool(worker& on, upstream const& to)
    : worker_(on), upstream_(to), latency_(on.metrics->of_upstream(to.settings->name)) {
  refresh();
  if (to.settings->health) {
    health_ = std::make_unique<health_checks>(on, *this);
  }
}

upstream_pool::~upstream_pool() {
  health_.reset();
  while (!all_.empty()) {
    all_.back()->close();
  }
}

void upstream_pool::refresh() {
  version_ = upstream_.servers->version();
  auto const list = upstream_.servers->list();
  auto const find = [&](listed_server const& each) {
    return std::ranges::find(slots_, each.server.get(),
                             [](auto const& slot) { return slot->server.get(); });
  };
  for (auto const& slot : slots_) {
    slot->is_listed = false;
  }
  for (auto const& each : *list) {
    auto found = find(each);
    if (found == slots_.end()) {
      add_slot(each);
      found = slots_.end() - 1;
    }
    auto& slot = **found;
    slot.is_listed = true;
    slot.weight = each.weight;
    slot.usable_from = each.server->usable_from();
  }
  listed_.clear();
  for (auto const& slot : slots_) {
    if (slot->is_listed) {
      listed_.push_back(slot.get());
    }
  }
  for (auto i = slots_.size(); i > 0; --i) {  // each may go
    if (!slots_[i - 1]->is_listed) {
      retire(*slots_[i - 1]);
    }
  }
}

void upstream_pool::add_slot(listed_server const& of) {
  auto const& name = upstream_.settings->name;
  auto const& label = of.server->identity.label;
  auto& slot = *slots_.emplace_back(std::make_unique<server_slot>());
  slot.server = of.server;
  slot.counts = worker_.metrics->of_server(name, label);
  slot.report = worker_.shared.upstreams.of(name, label);
  slot.id = ++last_id_;
  slot.seed = balance::hash_of(label);
  slot.idle.reserve(idle_max);  // nothing may fail where a connection becomes idle
}

void upstream_pool::retire(server_slot& slot) {
  ++slot.connections;  // it stays until the end of this
  while (!slot.idle.empty()) {
    slot.idle.back()->close();
  }
  --slot.connections;
  forget_if_gone(slot);
}

void upstream_pool::forget_if_gone(server_slot& slot) {
  if (slot.is_listed || slot.connections > 0) {
    return;
  }
  auto const label = slot.server->identity.label;
  std::erase_if(slots_, [&](auto const& each) { return each.get() == &slot; });
  worker_.metrics->forget_server(upstream_.settings->name, label);
}

void upstream_pool::closed(upstream_connection& connection) {
  auto& slot = *connection.server_;
  bool const has_rested = std::erase(slot.idle, &connection) != 0;
  std::erase(all_, &connection);
  if (upstream_.settings->max_connections && !connection.is_check_) {
    auto& counts = upstream_.servers->connections;
    counts.open.fetch_sub(1, std::memory_order_relaxed);
    counts.idle.fetch_sub(has_rested ? 1 : 0, std::memory_order_relaxed);
    if (counts.waiting.load(std::memory_order_relaxed) > 0) {
      worker_.tell_waiting(upstream_.servers);
    }
  }
  --slot.connections;
  forget_if_gone(slot);
}

void upstream_pool::note_response(server_slot& slot, int status, std::chrono::nanoseconds took) {
  latency_.count(took);
  slot.counts->by_status.add(static_cast<std::size_t>(std::clamp(status, 0, 599)));
  if (balance::is_failure(status)) [[unlikely]] {
    auto const now = worker_.loop.now();
    slot.report->failed("it answered " + std::to_string(status),
                        upstream_.servers->failed(*slot.server, now), now);
    return;
  }
  if (slot.server->failures_in_a_row() != 0) [[unlikely]] {
    upstream_.servers->answered(*slot.server);
  }
  if (slot.report->awaits_answer()) [[unlikely]] {
    slot.report->answered(worker_.loop.now());
  }
}

void upstream_pool::note_failure(server_slot& slot, std::string_view what) {
  auto const now = worker_.loop.now();
  slot.counts->failures.add();
  slot.report->failed(what, upstream_.servers->failed(*slot.server, now), now);
}

// ---- max-connections ----

auto upstream_pool::has_room() -> bool {
  auto const max = upstream_.settings->max_connections;
  auto& open = upstream_.servers->connections.open;
  if (!max || open.fetch_add(1, std::memory_order_relaxed) < *max) {
    return true;
  }
  open.fetch_sub(1, std::memory_order_relaxed);
  // One that rests here, of another server, makes room.
  return close_idle() && has_room();
}

void upstream_pool::has_come_to_rest() {
  if (!upstream_.settings->max_connections) {
    return;
  }
  auto& counts = upstream_.servers->connections;
  counts.idle.fetch_add(1, std::memory_order_relaxed);
  if (counts.waiting.load(std::memory_order_relaxed) > 0) {
    worker_.tell_waiting(upstream_.servers);
  }
}

auto upstream_pool::may_wait_until() const -> std::optional<instant> {
  auto const& counts = upstream_.servers->connections;
  std::chrono::nanoseconds wait = upstream_.settings->max_wait;
  if (counts.idle.load(std::memory_order_relaxed) > 0) {
    wait = std::max<std::chrono::nanoseconds>(wait, handover);
  }
  return wait.count() > 0 &&
                 counts.waiting.load(std::memory_order_relaxed) < connection_counts::waiting_max
             ? std::optional(worker_.loop.now() + wait)
             : std::nullopt;
}

void upstream_pool::add_waiting(request_pause& who, bool is_next) {
  is_next ? waiting_.push_front(&who) : waiting_.push_back(&who);
  auto& counts = upstream_.servers->connections;
  counts.waiting.fetch_add(1, std::memory_order_relaxed);
  if (counts.idle.load(std::memory_order_relaxed) > 0) {
    worker_.tell_waiting(upstream_.servers);
  }
}

void upstream_pool::remove_waiting(request_pause& who) noexcept {
  std::erase(waiting_, &who);
  upstream_.servers->connections.waiting.fetch_sub(1, std::memory_order_relaxed);
}

void upstream_pool::connection_freed(server_set const& servers) {
  if (upstream_.servers.get() != &servers) {
    return;
  }
  auto& counts = upstream_.servers->connections;
  if (waiting_.empty()) {
    if (counts.waiting.load(std::memory_order_relaxed) > 0) {
      (void)close_idle();  // for a request of another thread
    }
    return;
  }
  auto const has_chance = [&] {
    return counts.open.load(std::memory_order_relaxed) <
               upstream_.settings->max_connections.value_or(0) ||
           std::ranges::any_of(slots_, [](auto const& each) { return !each->idle.empty(); });
  };
  for (auto left = waiting_.size(); left > 0 && !waiting_.empty() && has_chance(); --left) {
    auto& first = *waiting_.front();
    first.end_pause();
    first.pause_ended(false);
  }
}

auto upstream_pool::has_server_besides(std::span<std::uint32_t const> ids) const -> bool {
  auto const now = worker_.loop.now();
  return std::ranges::any_of(listed_, [&](balance::candidate const* each) {
    return balance::weight_at(*each, now) > 0 && std::ranges::find(ids, each->id) == ids.end();
  });
}

auto upstream_pool::listed_slots() const -> std::vector<server_slot*> {
  std::vector<server_slot*> slots;
  for (auto* const each : listed_) {
    slots.push_back(static_cast<server_slot*>(each));
  }
  return slots;
}

auto upstream_pool::connect_for_check(server_slot& to)
    -> result<upstream_connection*, upstream_failure> {
  return connect(to, true);
}

auto upstream_pool::may_retry() -> bool {
  auto const now = worker_.loop.now();
  if (!budget_.allows(upstream_.settings->retry.budget, now) &&
      !upstream_.servers->take_retry(now)) {
    return false;
  }
  budget_.retried(now);
  return true;
}

auto upstream_pool::close_idle() -> bool {
  auto const found = std::ranges::find_if(
      slots_, [](std::unique_ptr<server_slot> const& each) { return !each->idle.empty(); });
  if (found == slots_.end()) {
    return false;
  }
  (*found)->idle.front()->close();
  return true;
}

auto upstream_pool::take(connection_options const& options)
    -> result<upstream_connection*, upstream_failure> {
  follow_servers();
  auto* const choice =
      picker_.pick(listed_, upstream_.settings->balance, options.server, worker_.loop.now());
  if (choice == nullptr) [[unlikely]] {
    return failure(upstream_failure::no_server);
  }
  if (!waiting_.empty() && !options.has_waited) [[unlikely]] {
    return failure(upstream_failure::busy);
  }
  auto& slot = static_cast<server_slot&>(*choice);
  last_server_ = slot.id;
  upstream_connection* connection = nullptr;
  if (!options.fresh && !slot.idle.empty()) {
    connection = slot.idle.back();
    slot.idle.pop_back();
    if (upstream_.settings->max_connections) {
      upstream_.servers->connections.idle.fetch_sub(1, std::memory_order_relaxed);
    }
  } else {
    TIDEGATE_TRY(connection, connect(slot, false));
  }
  ++slot.in_flight;
  ++in_flight_;
  slot.counts->in_flight.add();
  return connection;
}

auto upstream_pool::connect(server_slot& to, bool is_check)
    -> result<upstream_connection*, upstream_failure> {
  if (!worker_.has_room_for_upstream()) {
    return failure(upstream_failure::no_descriptor);
  }
  if (!is_check && !has_room()) {
    return failure(upstream_failure::busy);
  }
  auto const uncount = [&] {
    if (!is_check && upstream_.settings->max_connections) {
      upstream_.servers->connections.open.fetch_sub(1, std::memory_order_relaxed);
    }
  };
  auto const& identity = to.server->identity;
  auto socket = engine::connect_to(identity.address);
  if (!socket) {
    uncount();
    if (!is_check) {
      note_failure(to, engine::to_string(socket.error()));
    }
    return failure(upstream_failure::connect_refused);
  }
  auto transport = identity.tls_name
                       ? engine::transport(*std::move(socket), *upstream_.tls, *identity.tls_name)
                       : engine::transport(*std::move(socket));
  auto made = std::make_unique<upstream_connection>(worker_, *this, to, std::move(transport));
  if (!worker_.loop.watch(made->transport_.socket(), *made)) {
    uncount();
    return failure(upstream_failure::connect_refused);
  }
  made->is_check_ = is_check;
  all_.push_back(made.get());
  ++to.connections;
  worker_.shared.connections.upstreams.fetch_add(1, std::memory_order_relaxed);
  return made.release();
}

}  // namespace tidegate::gateway
