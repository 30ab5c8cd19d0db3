// SPDX-License-Identifier: Apache-2.0
#include "serving_worker.hpp"

namespace tidegate::gateway {

serving_worker::~serving_worker() {
  std::erase(shared.workers, static_cast<worker*>(this));  // none tells it anything any more
  listeners_.clear();
  while (!clients.empty()) {
    clients.front()->drop();
  }
  quotas.reset();  // before the configurations that its questions refer to
}

void serving_worker::use(std::shared_ptr<active_config const> active) {
  auto made = std::make_unique<worker_config>();
  std::vector<upstream_pool*> pools;
  for (auto const& upstream : active->upstreams) {
    auto pool = std::make_unique<upstream_pool>(*this, upstream);
    pools.push_back(pool.get());
    made->pools.push_back(std::move(pool));
  }
  auto const make_route = [&](route const& of, std::size_t upstream) {
    auto const& settings = *of.settings;
    bool const has_upstream = settings.service == route_service::upstream;
    worker_route added{&of,
                       has_upstream ? pools[upstream] : nullptr,
                       upstream,
                       &metrics->of_route(settings.name),
                       {}};
    if (settings.idempotency) {
      added.counts->has_keys = true;  // also when a reload takes them away: counters stay
    }
    for (auto const& limit : of.limits) {
      added.policies.push_back(&metrics->of_policy(limit.policy->name));
    }
    return added;
  };
  auto const make_whole = [&](route const& of) {
    auto added = make_route(of, of.settings->upstream);
    std::uint64_t sum = 0;
    for (auto const& [upstream, share] : of.settings->split) {
      sum += static_cast<std::uint64_t>(share);
      added.split.emplace_back(sum, std::make_unique<worker_route const>(make_route(of, upstream)));
    }
    return added;
  };
  for (auto const& route : active->routes) {
    auto& added = made->routes.emplace_back(make_whole(route));
    for (auto const& variant : route.by_plan) {
      added.by_plan.push_back(std::make_unique<worker_route const>(make_whole(variant.route)));
    }
    if (!route.refused.empty()) {
      added.refused = std::make_unique<worker_route const>(make_whole(route.refused.front().route));
    }
  }
  use_consumers(*made, active->consumers);
  for (auto const& each : listeners_) {
    each->use(*active);
  }
  made->active = std::move(active);
  worker::use(std::move(made));
}

void serving_worker::use_consumers(worker_config& on,
                                   std::shared_ptr<consumer_index const> const& consumers) {
  // With a count of its own, which no other thread changes.
  auto own = std::make_shared<std::shared_ptr<consumer_index const>>(consumers);
  auto const* const index = own->get();
  on.consumers = {std::move(own), index};
}

void serving_worker::add_listener(engine::descriptor socket, std::string address,
                                  bool shared_socket) {
  auto made = std::make_unique<listener>(*this, std::move(socket), std::move(address));
  made->use(*current->active);
  if (made->start(shared_socket)) {
    listeners_.push_back(std::move(made));
  }
}

void serving_worker::drain() {
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

}  // namespace tidegate::gateway
