// SPDX-License-Identifier: Apache-2.0
#include "upstream/upstream_pool.hpp"

namespace tidegate::gateway {

namespace {

/// With so many connections of HTTP/2 to a server, no more are made because it refuses requests.
constexpr std::size_t http2_retry_max = 8;

}  // namespace

upstream_pool::upstream_pool(worker& on, upstream const& to)
    : worker_(on), upstream_(to), limit_(on, to) {
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
  while (!slots_.empty()) {
    auto& slot = *slots_.back();
    slot.is_listed = true;  // it stays until the end of this
    while (!slot.http2.empty()) {
      slot.http2.back()->close();
    }
    slots_.pop_back();
  }
}

// ---- servers that come and go ----

void upstream_pool::refresh() {
  version_ = upstream_.servers->version();
  auto const list = upstream_.servers->list();
  for (auto const& slot : slots_) {
    slot->is_listed = false;
  }
  for (auto const& each : *list) {
    auto const same = [&](auto const& slot) { return slot->server == each.server; };
    auto found = std::ranges::find_if(slots_, same);
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
  slot.servers = upstream_.servers;
  slot.counts = worker_.metrics->of_server(name, label);
  slot.report = worker_.shared.upstreams.of(name, label);
  slot.latency = &worker_.metrics->of_upstream(name);
  slot.id = ++last_id_;
  slot.seed = balance::hash_of(label);
  slot.idle.reserve(idle_max);  // nothing may fail where a connection becomes idle
  slot.speaks_http2 = upstream_.settings->http2 == upstream_http2::always;
}

void upstream_pool::retire(server_slot& slot) {
  ++slot.connections;  // it stays until the end of this
  while (!slot.idle.empty()) {
    slot.idle.back()->close();
  }
  auto const connections = slot.http2;
  for (auto* const each : connections) {
    if (each->is_idle()) {
      each->close();
    }
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

auto upstream_pool::has_server_besides(std::span<std::uint32_t const> ids) const -> bool {
  auto const now = worker_.loop.now();
  return std::ranges::any_of(listed_, [&](balance::candidate const* each) {
    return balance::weight_at(*each, now) > 0 && std::ranges::find(ids, each->id) == ids.end();
  });
}

auto upstream_pool::in_flight() const noexcept -> std::int64_t {
  std::int64_t sum = 0;
  for (auto const& slot : slots_) {
    sum += slot->in_flight;
  }
  return sum;
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

// ---- connections ----

auto upstream_pool::take(connection_options const& options)
    -> result<upstream_stream*, upstream_failure> {
  follow_servers();
  auto* const choice =
      listed_.size() == 1 && listed_.front()->weight != 0 ? listed_.front() : pick(options.server);
  if (choice == nullptr) [[unlikely]] {
    return failure(upstream_failure::no_server);
  }
  if (limit_.has_waiting() && !options.has_waited) [[unlikely]] {
    return failure(upstream_failure::busy);
  }
  auto& slot = static_cast<server_slot&>(*choice);
  last_server_ = slot.id;
  upstream_stream* taken = nullptr;
  if (slot.speaks_http2) {
    TIDEGATE_TRY(taken, take_http2(slot, options.fresh));
  } else if (!options.fresh && !slot.idle.empty()) {
    taken = slot.idle.back();
    slot.idle.pop_back();
    limit_.is_used_again();
  } else {
    TIDEGATE_TRY(taken, connect_http1(slot, false));
  }
  slot.enter();
  return taken;
}

auto upstream_pool::pick(balance::pick_options const& options) -> balance::candidate* {
  return picker_.pick(listed_, upstream_.settings->balance, options, worker_.loop.now());
}

auto upstream_pool::take_http2(server_slot& from, bool fresh)
    -> result<upstream_stream*, upstream_failure> {
  bool const may_connect = from.http2.size() < http2_retry_max && limit_.may_open();
  for (auto* const each : from.http2) {
    if (each->has_room() && !(fresh && may_connect && each->has_refused())) {
      if (each->is_idle()) {
        limit_.is_used_again();
      }
      return &each->add_stream();
    }
  }
  return connect_http2(from, false);
}

auto upstream_pool::connect(server_slot& to, bool is_check)
    -> result<engine::transport, upstream_failure> {
  auto const& identity = to.server->identity;
  if (identity.tls_name && !upstream_.tls) {  // it came with a reload, of which this knows nothing
    return failure(upstream_failure::no_server);
  }
  if (!worker_.has_room_for_upstream()) {
    return failure(upstream_failure::no_descriptor);
  }
  // One that rests here, of another server, makes room.
  while (!is_check && !limit_.open()) {
    if (!close_idle()) {
      return failure(upstream_failure::busy);
    }
  }
  auto socket = engine::connect_to(identity.address);
  if (!socket) {
    if (!is_check) {
      limit_.closed(false);
      to.note_failure(engine::to_string(socket.error()), worker_.loop.now());
    }
    return failure(upstream_failure::connect_refused);
  }
  return identity.tls_name
             ? engine::transport(*std::move(socket), *upstream_.tls, *identity.tls_name)
             : engine::transport(*std::move(socket));
}

auto upstream_pool::connect_http1(server_slot& to, bool is_check)
    -> result<upstream_stream*, upstream_failure> {
  TIDEGATE_TRY(auto transport, connect(to, is_check));
  auto made =
      std::make_unique<upstream_connection>(worker_, *this, to, std::move(transport), is_check);
  if (!worker_.loop.watch(made->transport_.socket(), *made)) {
    if (!is_check) {
      limit_.closed(false);
    }
    return failure(upstream_failure::connect_refused);
  }
  all_.push_back(made.get());
  opened(to);
  return made.release();
}

auto upstream_pool::connect_http2(server_slot& to, bool is_check)
    -> result<upstream_stream*, upstream_failure> {
  TIDEGATE_TRY(auto transport, connect(to, is_check));
  auto made = std::make_unique<http2_upstream_connection>(worker_, *this, to, std::move(transport),
                                                          is_check);
  if (!worker_.loop.watch(made->socket(), *made)) {
    if (!is_check) {
      limit_.closed(false);
    }
    return failure(upstream_failure::connect_refused);
  }
  to.http2.push_back(made.get());
  opened(to);
  made->connect();
  return &made.release()->add_stream();
}

auto upstream_pool::connect_for_check(server_slot& to)
    -> result<upstream_stream*, upstream_failure> {
  return to.speaks_http2 ? connect_http2(to, true) : connect_http1(to, true);
}

auto upstream_pool::add_http2(server_slot& of, engine::transport transport, bool is_check)
    -> http2_upstream_connection* {
  auto made = std::make_unique<http2_upstream_connection>(worker_, *this, of, std::move(transport),
                                                          is_check);
  if (!worker_.loop.watch_instead(made->socket(), *made)) {
    return nullptr;
  }
  of.http2.push_back(made.get());
  opened(of);
  if (!is_check) {
    limit_.add_open();
  }
  return made.release();
}

void upstream_pool::note_protocol(server_slot& slot, bool is_http2) const {
  if (upstream_.settings->http2 == upstream_http2::by_alpn) {
    slot.speaks_http2 = is_http2;
  }
}

void upstream_pool::opened(server_slot& slot) {
  ++slot.connections;
  worker_.shared.connections.upstreams.fetch_add(1, std::memory_order_relaxed);
}

void upstream_pool::closed(server_slot& slot, bool is_check, bool rested) {
  worker_.shared.connections.upstreams.fetch_sub(1, std::memory_order_relaxed);
  if (!is_check) {
    limit_.closed(rested);
  }
  --slot.connections;
  forget_if_gone(slot);
}

auto upstream_pool::close_idle() -> bool {
  for (auto const& slot : slots_) {
    if (!slot->idle.empty()) {
      slot->idle.front()->close();
      return true;
    }
    auto const found = std::ranges::find_if(slot->http2, &http2_upstream_connection::is_idle);
    if (found != slot->http2.end()) {
      (*found)->close();
      return true;
    }
  }
  return false;
}

void upstream_pool::connection_freed(server_set const& servers) {
  if (upstream_.servers.get() != &servers) {
    return;
  }
  if (!limit_.has_waiting()) {
    if (limit_.others_wait()) {
      (void)close_idle();  // for a request of another thread
    }
    return;
  }
  limit_.resume_waiting([&] {
    return limit_.may_open() || std::ranges::any_of(slots_, [](auto const& slot) {
             return !slot->idle.empty() ||
                    std::ranges::any_of(slot->http2, &http2_upstream_connection::has_room);
           });
  });
}

}  // namespace tidegate::gateway
