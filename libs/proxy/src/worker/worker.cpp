// SPDX-License-Identifier: Apache-2.0
#include "worker/worker.hpp"

#include "observe/access_log_line.hpp"
#include "services/change_retry_queue.hpp"

#include <new>

namespace tidegate::gateway {

worker::worker(engine::loop& on, shared_state& shared_by_all,
               std::shared_ptr<worker_metrics> counts, access_log::source& lines,
               std::uint64_t randomness)
    : loop(on),
      shared(shared_by_all),
      metrics(std::move(counts)),
      jitter(randomness),
      log_source_(lines) {
  loop.when_out_of_memory([this] { note_out_of_memory(); });
}

worker::~worker() = default;

void worker::use(std::unique_ptr<worker_config> made) {
  bool const is_logged = made->active->config.access_log.to != access_log_config::destination::off;
  log = is_logged ? &log_source_ : nullptr;
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

auto worker::first_byte_timeout() const -> std::chrono::nanoseconds {
  constexpr std::chrono::nanoseconds while_draining = std::chrono::seconds(2);
  auto const& configured = current->active->config.http.header_timeout;
  return shared.drain.draining.load(std::memory_order_relaxed)
             ? std::min(configured, while_draining)
             : configured;
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

void worker::tell_waiting(std::shared_ptr<server_set> const& servers) {
  for (auto* const each : shared.workers) {
    each->loop.post([each, servers] {
      for (auto const& config : each->configs_) {
        for (auto const& pool : config->pools) {
          pool->connection_freed(*servers);
        }
      }
    });
  }
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
                " connections to upstreams, the most that the limit of open files allows: requests "
                "that need another one get 503 (see ulimit -n, LimitNOFILE=)");
  }
  return false;
}

void worker::remove_client(client_place at) {
  clients.erase(at);
  metrics->connections_open.subtract();
  if (shared.connections.clients.fetch_sub(1, std::memory_order_relaxed) == 1) {
    shared.drain.last_has_gone();
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

void worker::retry_later(idempotency::change change) {
  if (!retry_queue_) {
    retry_queue_ = std::make_unique<change_retry_queue>(loop, shared.idempotency);
  }
  retry_queue_->add(std::move(change));
}

}  // namespace tidegate::gateway
