// SPDX-License-Identifier: Apache-2.0
#include <tidegate/gateway/server.hpp>

#include "admin.hpp"
#include "client_http1.hpp"
#include "runtime.hpp"
#include "worker.hpp"

#include <tidegate/engine/loop.hpp>
#include <tidegate/store/quota_table.hpp>

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

namespace tidegate::gateway {

namespace {

/// A thread with its loop and worker; the worker lives and dies on the thread.
struct worker_thread {
  std::unique_ptr<engine::loop> loop;
  std::unique_ptr<worker> works;
  std::thread thread;
};

}  // namespace

struct server::state {
  explicit state(store::quota_table::options const& options)
      : quotas(options), shared{quotas, {}} {}

  store::quota_table quotas;
  shared_state shared;
  policy_ids ids;
  std::vector<worker_thread> threads;
  std::unique_ptr<admin_service> admin;
  std::vector<std::string> addresses;
  std::string admin_address;
};

server::server(std::unique_ptr<state> made) : state_(std::move(made)) {}

auto server::start(config settings, std::span<std::uint64_t const, 4> randomness)
    -> result<std::unique_ptr<server>, std::string> {
  store::quota_table::options options;
  options.partitions_max = static_cast<std::size_t>(settings.quota_partitions);
  std::ranges::copy(randomness, options.randomness.begin());
  auto made = std::make_unique<state>(options);
  auto const count = static_cast<std::size_t>(settings.workers.value_or(
      static_cast<std::int64_t>(std::max(std::thread::hardware_concurrency(), 1U))));
  TIDEGATE_TRY(auto used, runtime::make(std::move(settings), made->ids));

  for (std::size_t i = 0; i < count; ++i) {
    auto loop = engine::loop::make();
    if (!loop) {
      return failure(engine::to_string(loop.error()));
    }
    auto counts = std::make_shared<worker_metrics>();
    made->shared.metrics.push_back(counts);
    auto& each = made->threads.emplace_back();
    each.loop = *std::move(loop);
    each.works = std::make_unique<worker>(*each.loop, made->shared, std::move(counts),
                                          randomness[i % 4] + i * 0x9e3779b97f4a7c15);
    each.works->use(used);
  }
  for (auto const& listen : used->settings.listen) {
    TIDEGATE_TRY(auto address, engine::socket_address::parse(listen.address));
    for (auto& each : made->threads) {
      auto socket = engine::listen_on(address, true);
      if (!socket) {
        return failure("cannot listen on " + address.to_string() + ": " +
                       engine::to_string(socket.error()));
      }
      if (&each == &made->threads.front()) {
        // All threads listen on the port that the first one got.
        address = engine::local_address(*socket).value_or(address);
        made->addresses.push_back(address.to_string());
      }
      each.works->add_listener(*std::move(socket), listen.address);
    }
  }
  if (used->settings.admin) {
    TIDEGATE_TRY(auto address, engine::socket_address::parse(*used->settings.admin));
    auto socket = engine::listen_on(address, false);
    if (!socket) {
      return failure("cannot listen on " + address.to_string() + ": " +
                     engine::to_string(socket.error()));
    }
    made->admin_address = engine::local_address(*socket).value_or(address).to_string();
    made->admin = std::make_unique<admin_service>(*made->threads.front().loop, *std::move(socket),
                                                  made->shared);
  }
  for (auto& each : made->threads) {
    each.thread = std::thread([&each] { each.loop->run(); });
  }
  return std::unique_ptr<server>(new server(std::move(made)));
}

server::~server() {
  for (auto& each : state_->threads) {
    each.loop->stop();
  }
  for (auto& each : state_->threads) {
    if (each.thread.joinable()) {
      each.thread.join();
    }
  }
  state_->admin.reset();
  for (auto& each : state_->threads) {
    each.works.reset();
  }
}

auto server::addresses() const -> std::vector<std::string> const& {
  return state_->addresses;
}

auto server::admin_address() const -> std::string const& {
  return state_->admin_address;
}

auto server::reload(config settings) -> result<void, std::string> {
  TIDEGATE_TRY(auto used, runtime::make(std::move(settings), state_->ids));
  for (auto& each : state_->threads) {
    each.loop->post([&each, used] { each.works->use(used); });
  }
  return {};
}

auto server::drain(std::chrono::milliseconds wait) -> bool {
  state_->shared.draining.store(true, std::memory_order_relaxed);
  auto const until = std::chrono::steady_clock::now() + wait;
  for (auto& each : state_->threads) {
    each.loop->post([&each] { each.works->drain(); });
  }
  for (auto& each : state_->threads) {
    for (;;) {
      std::promise<bool> done;
      each.loop->post([&] { done.set_value(each.works->drained()); });
      if (done.get_future().get()) {
        break;
      }
      if (std::chrono::steady_clock::now() >= until) {
        return false;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  return true;
}

}  // namespace tidegate::gateway
