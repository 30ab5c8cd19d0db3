// SPDX-License-Identifier: Apache-2.0
#include "worker/shed_slow_clients.hpp"

#include "worker/worker.hpp"

#include <iterator>
#include <new>

namespace tidegate::gateway {

void slow_client_shedder::shed_largest() {
  std::size_t most = 0;
  for (auto const* const client : worker_.clients) {
    most = std::max(most, client != nullptr ? client->waiting_octets() : 0);
  }
  if (most == 0) {
    return;
  }
  for (auto at = worker_.clients.begin(); at != worker_.clients.end();) {
    auto* const client = *at++;  // it may go
    if (client != nullptr && client->waiting_octets() >= most - most / 2) {
      worker_.metrics->connections_shed.add();
      client->drop();
    }
  }
}

void slow_client_shedder::recount(std::size_t& counted, std::size_t octets) {
  auto const change = static_cast<std::int64_t>(octets) - static_cast<std::int64_t>(counted);
  counted = octets;
  auto const all =
      worker_.shared.memory.buffered.fetch_add(change, std::memory_order_relaxed) + change;
  if (change <= 0 || all <= worker_.current->active->config.http.max_buffered) {
    return;
  }
  if (worker_.shared.memory.shed_requests.fetch_add(1) == 0) {
    begin_to_shed();
  }
}

auto slow_client_shedder::hold_text(std::string_view text) -> held_text {
  auto& count = texts_[text.data()];
  ++count.holders;
  worker_.count_buffered(count.counted, text.size());
  return {*this, text.data()};
}

void slow_client_shedder::let_text_go(void const* text) noexcept {
  auto const found = texts_.find(text);
  if (found != texts_.end() && --found->second.holders == 0) {
    worker_.count_buffered(found->second.counted, 0);
    texts_.erase(found);
  }
}

/// A client as it is ranked.
struct slow_client_shedder::slow_client {
  double cost;  ///< what waits for it, multiplied by the time for which it has been waited for
  std::size_t octets;
  client_connection* client;  ///< for its own thread only
};

/// Goes from thread to thread: first to rank the clients of all of them, then to drop those at the
/// top. So no thread drops a client that reads while another one has clients that do not.
struct slow_client_shedder::shed_round {
  explicit shed_round(shared_state& state) : shared(state) {}
  shed_round(shed_round const&) = delete;
  auto operator=(shed_round const&) -> shed_round& = delete;
  ~shed_round() {
    if (!has_ended) {  // there was no memory for going on
      shared.memory.shed_requests.store(0);
    }
  }

  shared_state& shared;
  instant at{};                    ///< the time by which clients are ranked
  std::uint64_t requests_met = 1;  ///< those that came later ask for another round
  std::vector<slow_client> found;
  double cost_min = 0;  ///< of those that are dropped
  bool has_dropped = false;
  bool has_ended = false;
};

auto slow_client_shedder::has_too_much() const -> bool {
  return worker_.shared.memory.buffered.load(std::memory_order_relaxed) >
         worker_.current->active->config.http.max_buffered;
}

void slow_client_shedder::begin_to_shed() {
  std::shared_ptr<shed_round> round;
  try {
    round = std::make_shared<shed_round>(worker_.shared);
  } catch (std::bad_alloc const&) {
    worker_.shared.memory.shed_requests.store(0);
    throw;
  }
  start(round);
}

void slow_client_shedder::start(std::shared_ptr<shed_round> const& round) {
  round->at = worker_.loop.now();
  round->found.clear();
  round->has_dropped = false;
  round->cost_min = std::numeric_limits<double>::infinity();
  auto* const first = worker_.shared.workers.front();
  first->loop.post([first, round] { first->shedder.rank_clients(round, 0); });
}

/// Those of this thread for whom more waits than half of an equal share: others are not the reason.
auto slow_client_shedder::find_slow(instant now) const -> std::vector<slow_client> {
  auto const share =
      worker_.current->active->config.http.max_buffered /
      std::max<std::int64_t>(worker_.shared.connections.clients.load(std::memory_order_relaxed), 1);
  std::vector<slow_client> found;
  for (auto* const client : worker_.clients) {
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

void slow_client_shedder::rank_clients(std::shared_ptr<shed_round> const& round, std::size_t at) {
  std::ranges::copy(find_slow(round->at), std::back_inserter(round->found));
  if (at + 1 < worker_.shared.workers.size()) {
    auto* const next = worker_.shared.workers[at + 1];
    next->loop.post([next, round, at] { next->shedder.rank_clients(round, at + 1); });
    return;
  }
  auto too_much = worker_.shared.memory.buffered.load(std::memory_order_relaxed) -
                  worker_.current->active->config.http.max_buffered;
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

void slow_client_shedder::drop_slowest(std::shared_ptr<shed_round> const& round, std::size_t at) {
  for (auto const& each : find_slow(round->at)) {
    if (each.cost < round->cost_min || !has_too_much()) {
      break;
    }
    worker_.metrics->connections_shed.add();
    round->has_dropped = true;
    each.client->drop();
  }
  if (at > 0) {
    auto* const next = worker_.shared.workers[at - 1];
    next->loop.post([next, round, at] { next->shedder.drop_slowest(round, at - 1); });
    return;
  }
  if (round->has_dropped && may_note(worker_.shared.memory.shed_noted, worker_.loop.now())) {
    worker_.shared.warn(
        "more than " + std::to_string(worker_.current->active->config.http.max_buffered) +
        " bytes wait for slow clients (http.max-buffered): the slowest connections are closed");
  }
  end_or_repeat(round);
}

void slow_client_shedder::end_or_repeat(std::shared_ptr<shed_round> const& round) {
  bool again = round->has_dropped && has_too_much();
  while (!again) {
    if (worker_.shared.memory.shed_requests.compare_exchange_strong(round->requests_met, 0)) {
      round->has_ended = true;
      return;
    }
    again = has_too_much();
  }
  start(round);
}

}  // namespace tidegate::gateway
