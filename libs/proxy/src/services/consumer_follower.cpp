// SPDX-License-Identifier: Apache-2.0
#include "services/consumer_follower.hpp"

#include <sys/stat.h>

#include <utility>

namespace tidegate::gateway {

consumer_follower::~consumer_follower() {
  {
    std::lock_guard const lock(mutex_);
    stops_ = true;
  }
  stopped_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void consumer_follower::use(consumers_config const& settings,
                            std::shared_ptr<consumer_index const> read,
                            std::function<void()> const& tell) {
  std::lock_guard const lock(mutex_);
  tell();
  settings_ = settings;
  settings_.listed.clear();
  ++used_;
  current_ = std::move(read);
  figures_.are_used = settings.given;
  figures_.last_reload_is_good = true;
  // What changed while it was read is read again.
  read_ = {};
  seen_ = {};
  if (!settings_.file.empty() && !thread_.joinable()) {
    thread_ = std::thread([this] { run(); });
  }
}

auto consumer_follower::figures() const -> consumer_figures {
  std::lock_guard const lock(mutex_);
  auto out = figures_;
  if (current_) {
    out.consumers = current_->all().size();
    out.keys = current_->keys_count();
  }
  return out;
}

auto consumer_follower::current() const -> std::shared_ptr<consumer_index const> {
  std::lock_guard const lock(mutex_);
  return current_;
}

auto consumer_follower::stamp_of(std::string const& file) -> stamp {
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0) {
    return {};
  }
  auto const nanoseconds = [](timespec const& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  return {nanoseconds(found.st_mtim), nanoseconds(found.st_ctim), found.st_size, found.st_ino};
}

void consumer_follower::run() {
  std::unique_lock lock(mutex_);
  while (!stops_) {
    (void)stopped_.wait_for(lock, pause, [this] { return stops_; });
    if (stops_ || settings_.file.empty()) {
      continue;
    }
    auto const now = stamp_of(settings_.file);
    if (now == std::exchange(seen_, now) && now != read_) {
      read_ = now;
      read(lock);
    }
  }
}

void consumer_follower::read(std::unique_lock<std::mutex>& lock) {
  auto const settings = settings_;
  auto const used = used_;
  lock.unlock();
  auto loaded = load_consumers(settings);
  lock.lock();
  if (used != used_) {
    return;  // another file is followed by now
  }
  if (!loaded) {
    ++figures_.reload_failures;
    figures_.last_reload_is_good = false;
    for (auto const& fault : loaded.error()) {
      events_.error(to_string(fault));
    }
    events_.error("the consumers in " + settings.file +
                  " were not read again: the last good version stays in use");
    return;
  }
  bool const was_broken = !std::exchange(figures_.last_reload_is_good, true);
  bool const is_other = current_ == nullptr || current_->all() != (*loaded)->all();
  if (was_broken || is_other) {
    current_ = *loaded;
    take_(*std::move(loaded));
    events_.info("the consumers in " + settings.file +
                 " were read again: " + std::to_string(current_->all().size()) + " consumers, " +
                 std::to_string(current_->keys_count()) + " keys");
  }
}

}  // namespace tidegate::gateway
