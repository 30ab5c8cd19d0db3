// SPDX-License-Identifier: Apache-2.0
#include "protocol/resolver.hpp"

#include <netdb.h>
#include <sys/socket.h>

#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace tidegate::store_redis {

/// Shared with the thread, which cannot be stopped and may outlive the resolver.
struct resolver::lookup {
  std::mutex mutex;
  engine::loop* loop = nullptr;  // null: the resolver is gone
  // Both of the loop's thread only.
  std::move_only_function<void(addresses)> answer;
  bool is_done = false;
};

namespace {

auto look_up(server_address const& server) -> addresses {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  auto const code =
      ::getaddrinfo(server.host.c_str(), std::to_string(server.port).c_str(), &hints, &found);
  if (code != 0) {
    return failure(std::string("the name cannot be resolved: ") + ::gai_strerror(code));
  }
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> const owner(found, &::freeaddrinfo);
  std::vector<engine::socket_address> out;
  for (auto const* each = found; each != nullptr; each = each->ai_next) {
    out.push_back(engine::socket_address::from_bytes(each->ai_addr, each->ai_addrlen));
  }
  return out;
}

}  // namespace

resolver::resolver(engine::loop& on) : loop_(on) {}

resolver::~resolver() {
  if (lookup_ != nullptr) {
    std::lock_guard const lock(lookup_->mutex);
    lookup_->loop = nullptr;
    lookup_->answer = nullptr;
  }
}

void resolver::forget() noexcept {
  if (lookup_ != nullptr) {
    lookup_->answer = nullptr;
  }
}

void resolver::find(server_address const& server, std::move_only_function<void(addresses)> answer) {
  if (auto const address = engine::socket_address::parse(to_string(server))) {
    answer(std::vector{*address});
    return;
  }
  if (lookup_ != nullptr && !lookup_->is_done) {
    lookup_->answer = std::move(answer);
    return;
  }
  lookup_ = std::make_shared<lookup>();
  lookup_->loop = &loop_;
  lookup_->answer = std::move(answer);
  try {
    std::thread([shared = lookup_, server] {
      auto found = look_up(server);
      std::lock_guard const lock(shared->mutex);
      if (shared->loop != nullptr) {
        shared->loop->post([shared, found = std::move(found)] {
          shared->is_done = true;
          if (auto waiting = std::exchange(shared->answer, nullptr)) {
            waiting(found);
          }
        });
      }
    }).detach();
  } catch (std::system_error const&) {
    lookup_->is_done = true;
    if (auto waiting = std::exchange(lookup_->answer, nullptr)) {
      waiting(failure(std::string("no thread to look the name up with")));
    }
  }
}

}  // namespace tidegate::store_redis
