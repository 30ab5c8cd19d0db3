// SPDX-License-Identifier: Apache-2.0
#include "upstream/upstream_pool.hpp"

namespace tidegate::gateway {

namespace {

/// How long a server gets no requests after too many failures in a row.
constexpr auto ejected_for = std::chrono::seconds(10);

}  // namespace

upstream_pool::upstream_pool(worker& on, upstream const& to)
    : worker_(on), upstream_(to), servers_(to.servers.size()) {
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    servers_[i].counts = &on.metrics->of_server(to.settings->name, to.servers[i].authority);
    servers_[i].counts->out_until.store(instant::min(), std::memory_order_relaxed);
    servers_[i].report = &on.shared.upstreams.of(to.settings->name, to.servers[i].authority);
    servers_[i].idle.reserve(idle_max);  // nothing may fail where a connection becomes idle
  }
}

upstream_pool::~upstream_pool() {
  while (!all_.empty()) {
    all_.back()->close();
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
  auto const found =
      std::ranges::find_if(servers_, [](server_state const& each) { return !each.idle.empty(); });
  if (found == servers_.end()) {
    return false;
  }
  found->idle.front()->close();
  return true;
}

auto upstream_pool::take(bool fresh) -> result<upstream_connection*, upstream_failure> {
  auto const server = pick();
  auto& state = servers_[server];
  upstream_connection* connection = nullptr;
  if (!fresh && !state.idle.empty()) {
    connection = state.idle.back();
    state.idle.pop_back();
  } else {
    if (!worker_.has_room_for_upstream()) {
      return failure(upstream_failure::no_descriptor);
    }
    auto socket = engine::connect_to(upstream_.servers[server].address);
    if (!socket) {
      note_failure(server, engine::to_string(socket.error()));
      return failure(upstream_failure::connect_refused);
    }
    auto const& name = upstream_.servers[server].tls_name;
    auto transport = name ? engine::transport(*std::move(socket), *upstream_.tls, *name)
                          : engine::transport(*std::move(socket));
    auto made = std::make_unique<upstream_connection>(worker_, *this, server, std::move(transport));
    if (!worker_.loop.watch(made->transport_.socket(), *made)) {
      return failure(upstream_failure::connect_refused);
    }
    all_.push_back(made.get());
    worker_.shared.connections.upstreams.fetch_add(1, std::memory_order_relaxed);
    connection = made.release();
  }
  ++state.in_flight;
  ++in_flight_;
  state.counts->in_flight.add();
  return connection;
}

}  // namespace tidegate::gateway
