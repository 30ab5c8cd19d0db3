// SPDX-License-Identifier: Apache-2.0
#include <tidegate/admin/config_reloader.hpp>

#include <memory>

namespace tidegate::gateway {

config_reloader::~config_reloader() {
  {
    std::lock_guard const lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) {
    thread_.join();
  }
}

auto config_reloader::ask(engine::loop& on, reload_mode mode, reply_function reply) -> bool {
  std::lock_guard const lock(mutex_);
  if (jobs_.size() >= jobs_max || stopping_) {
    return false;
  }
  jobs_.push_back({&on, mode, std::move(reply)});
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { work(); });
  }
  changed_.notify_one();
  return true;
}

void config_reloader::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (stopping_) {
      return;
    }
    auto next = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    auto const outcome = std::make_shared<reload_outcome const>(run_(next.mode));
    auto const reply = std::make_shared<reply_function>(std::move(next.reply));
    next.on->post([outcome, reply, mode = next.mode] { (*reply)(mode, *outcome); });
    lock.lock();
  }
}

}  // namespace tidegate::gateway
