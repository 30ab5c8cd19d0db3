// SPDX-License-Identifier: Apache-2.0
#include "upstream/upstream_pool.hpp"

namespace tidegate::gateway {

namespace {

/// How long a server gets no requests after too many failures in a row.
constexpr auto ejected_for = std::chrono::seconds(10);
/// With so many connections of HTTP/2 to a server, no more are made because it refuses requests.
constexpr std::size_t http2_retry_max = 8;

}  // namespace

upstream_pool::upstream_pool(worker& on, upstream const& to)
    : worker_(on), upstream_(to), servers_(to.servers.size()) {
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    servers_[i].counts = &on.metrics->of_server(to.settings->name, to.servers[i].authority);
    servers_[i].counts->out_until.store(instant::min(), std::memory_order_relaxed);
    servers_[i].report = &on.shared.upstreams.of(to.settings->name, to.servers[i].authority);
    servers_[i].idle.reserve(idle_max);  // nothing may fail where a connection becomes idle
    servers_[i].speaks_http2 = to.settings->http2 == upstream_http2::always;
  }
}

upstream_pool::~upstream_pool() {
  while (!all_.empty()) {
    all_.back()->close();
  }
  for (auto& each : servers_) {
    while (!each.http2.empty()) {
      each.http2.back()->close();
    }
  }
}

auto upstream_pool::pick() const -> std::size_t {
  auto const now = worker_.loop.now();
  auto const size = servers_.size();
  auto best = size;
  for (std::size_t i = 0; i < size; ++i) {
    auto const at = (turn_ + i) % size;
    if (servers_[at].ejected_until <= now &&
        (best == size || servers_[at].in_flight < servers_[best].in_flight)) {
      best = at;
    }
  }
  if (best == size) {  // all are ejected: the one that has been so for longest
    best = static_cast<std::size_t>(
        std::ranges::min_element(servers_, {}, &server_state::ejected_until) - servers_.begin());
  }
  turn_ = best + 1;
  return best;
}

void upstream_pool::note_answer(std::size_t server) {
  auto& state = servers_[server];
  auto& counts = *state.counts;
  if (state.failures != 0 || counts.failures_in_a_row.value() != 0) {
    state.failures = 0;
    state.ejected_until = instant::min();
    counts.failures_in_a_row.subtract(counts.failures_in_a_row.value());
    counts.out_until.store(instant::min(), std::memory_order_relaxed);
  }
  if (state.report->awaits_answer()) {
    state.report->answered(worker_.loop.now());
  }
}

void upstream_pool::note_failure(std::size_t server, std::string_view what) {
  auto& state = servers_[server];
  auto& counts = *state.counts;
  auto const now = worker_.loop.now();
  counts.failures.add();
  counts.failures_in_a_row.add();
  bool const has_others = servers_.size() > 1;
  if (++state.failures >= server_report::failures_max && has_others) {
    state.ejected_until = now + ejected_for;
    counts.out_until.store(state.ejected_until, std::memory_order_relaxed);
  }
  state.report->failed(what, state.failures, has_others ? std::optional(ejected_for) : std::nullopt,
                       now);
}

auto upstream_pool::close_idle() -> bool {
  for (auto const& each : servers_) {
    if (!each.idle.empty()) {
      each.idle.front()->close();
      return true;
    }
    auto const found = std::ranges::find_if(each.http2, &http2_upstream_connection::is_idle);
    if (found != each.http2.end()) {
      (*found)->close();
      return true;
    }
  }
  return false;
}

auto upstream_pool::connect(std::size_t server) -> result<engine::transport, upstream_failure> {
  if (!worker_.has_room_for_upstream()) {
    return failure(upstream_failure::no_descriptor);
  }
  auto socket = engine::connect_to(upstream_.servers[server].address);
  if (!socket) {
    note_failure(server, engine::to_string(socket.error()));
    return failure(upstream_failure::connect_refused);
  }
  auto const& name = upstream_.servers[server].tls_name;
  return name ? engine::transport(*std::move(socket), *upstream_.tls, *name)
              : engine::transport(*std::move(socket));
}

auto upstream_pool::take(bool fresh) -> result<upstream_stream*, upstream_failure> {
  auto const server = pick();
  auto& state = servers_[server];
  auto const taken = state.speaks_http2 ? take_http2(server, fresh) : take_http1(server, fresh);
  if (taken) {
    ++state.in_flight;
    ++in_flight_;
    state.counts->in_flight.add();
  }
  return taken;
}

auto upstream_pool::take_http1(std::size_t server, bool fresh)
    -> result<upstream_stream*, upstream_failure> {
  auto& idle = servers_[server].idle;
  if (!fresh && !idle.empty()) {
    auto* const connection = idle.back();
    idle.pop_back();
    return connection;
  }
  TIDEGATE_TRY(auto transport, connect(server));
  auto made = std::make_unique<upstream_connection>(worker_, *this, server, std::move(transport));
  if (!worker_.loop.watch(made->transport_.socket(), *made)) {
    return failure(upstream_failure::connect_refused);
  }
  all_.push_back(made.get());
  worker_.shared.connections.upstreams.fetch_add(1, std::memory_order_relaxed);
  return made.release();
}

auto upstream_pool::take_http2(std::size_t server, bool fresh)
    -> result<upstream_stream*, upstream_failure> {
  auto& connections = servers_[server].http2;
  bool const may_connect = connections.size() < http2_retry_max;
  for (auto* const each : connections) {
    if (each->has_room() && !(fresh && may_connect && each->has_refused())) {
      return &each->add_stream();
    }
  }
  TIDEGATE_TRY(auto transport, connect(server));
  auto made =
      std::make_unique<http2_upstream_connection>(worker_, *this, server, std::move(transport));
  if (!worker_.loop.watch(made->socket(), *made)) {
    return failure(upstream_failure::connect_refused);
  }
  connections.push_back(made.get());
  worker_.shared.connections.upstreams.fetch_add(1, std::memory_order_relaxed);
  made->connect();
  return &made.release()->add_stream();
}

auto upstream_pool::add_http2(std::size_t server, engine::transport transport)
    -> http2_upstream_connection* {
  auto made =
      std::make_unique<http2_upstream_connection>(worker_, *this, server, std::move(transport));
  if (!worker_.loop.watch_instead(made->socket(), *made)) {
    return nullptr;
  }
  servers_[server].http2.push_back(made.get());
  worker_.shared.connections.upstreams.fetch_add(1, std::memory_order_relaxed);
  return made.release();
}

void upstream_pool::remove_http2(std::size_t server, http2_upstream_connection& gone) {
  std::erase(servers_[server].http2, &gone);
  worker_.shared.connections.upstreams.fetch_sub(1, std::memory_order_relaxed);
}

void upstream_pool::note_protocol(std::size_t server, bool is_http2) {
  if (upstream_.settings->http2 == upstream_http2::by_alpn) {
    servers_[server].speaks_http2 = is_http2;
  }
}

void upstream_pool::note_latency(std::size_t server, std::chrono::nanoseconds latency) {
  servers_[server].counts->latency.count(latency);
}

void upstream_pool::note_late(std::size_t server, std::string_view what) {
  servers_[server].report->failed(what, 0, std::nullopt, worker_.loop.now());
}

}  // namespace tidegate::gateway
