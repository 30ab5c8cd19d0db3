// SPDX-License-Identifier: Apache-2.0
#include <tidegate/engine/loop.hpp>
#include <tidegate/engine/memory_wait.hpp>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <ctime>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <optional>
#include <utility>

namespace tidegate::engine {

namespace {

constexpr std::uint32_t all_events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

auto read_clock() noexcept -> instant {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return instant(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

/// Has the memory of the next one to be told come near while this one works. What the system does
/// for a connection in between is enough to drive out what ours was; without this, waiting for it
/// takes as long as reading a head.
void prefetch(void const* who) noexcept {
  constexpr std::uintptr_t line = 64;
  constexpr std::uintptr_t size = 5 * line;  // most of a connection; what is behind it does no harm
  auto const begin = reinterpret_cast<std::uintptr_t>(who);
  for (auto at = begin; at < begin + size; at += line) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a pointer must not go beyond what it points to
    __builtin_prefetch(reinterpret_cast<void const*>(at), 1);
  }
}

}  // namespace

auto loop::make() -> result<std::unique_ptr<loop>, system_error> {
  descriptor poll(::epoll_create1(EPOLL_CLOEXEC));
  if (!poll.is_open()) {
    return failure(system_error{"epoll_create1", errno});
  }
  descriptor wake(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wake.is_open()) {
    return failure(system_error{"eventfd", errno});
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;
  if (::epoll_ctl(poll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) {
    return failure(system_error{"epoll_ctl", errno});
  }
  return std::unique_ptr<loop>(new loop(std::move(poll), std::move(wake)));
}

loop::loop(descriptor poll, descriptor wake)
    : poll_(std::move(poll)), wake_(std::move(wake)), now_(read_clock()), timers_(now_) {}

loop::~loop() {
  destroy_disposed();
}

auto loop::control(int operation, descriptor const& socket, watched& who, std::uint32_t events)
    -> result<void, system_error> {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &who;
  if (::epoll_ctl(poll_.get(), operation, socket.get(), &event) != 0) {
    return failure(system_error{"epoll_ctl", errno});
  }
  return {};
}

auto loop::watch(descriptor const& socket, watched& who) -> result<void, system_error> {
  return control(EPOLL_CTL_ADD, socket, who, all_events);
}

auto loop::watch_listening(descriptor const& socket, watched& who, bool shared)
    -> result<void, system_error> {
  return control(EPOLL_CTL_ADD, socket, who,
                 shared ? std::uint32_t{EPOLLIN} | EPOLLEXCLUSIVE : std::uint32_t{EPOLLIN});
}

void loop::unwatch(descriptor const& socket) noexcept {
  (void)::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, socket.get(), nullptr);
}

auto loop::watch_instead(descriptor const& socket, watched& who) -> result<void, system_error> {
  return control(EPOLL_CTL_MOD, socket, who, all_events);
}

void loop::dispose(std::unique_ptr<watched> who) noexcept {
  auto& gone = *who.release();
  gone.disposed_ = true;
  if (std::exchange(gone.ends_turn_, false) && !ending_.remove(gone)) {
    ending_now_.remove(gone);
  }
  disposed_.push_back(gone);
}

void loop::destroy_disposed() noexcept {
  // What is destroyed may dispose of others.
  while (auto* const who = disposed_.pop_front()) {
    delete who;
  }
}

template <class Work>
void loop::guarded(watched* who, Work const& work) {
  try {
    work();
    return;
  } catch (std::bad_alloc const&) {
  }
  try {
    if (who != nullptr && !who->disposed_) {
      who->out_of_memory();
    }
  } catch (std::bad_alloc const&) {  // it stays until its peer ends it
  }
  if (out_of_memory_) {
    out_of_memory_();
  }
}

void loop::run_posted() {
  std::uint64_t count = 0;
  (void)!::read(wake_.get(), &count, sizeof count);
  std::vector<std::function<void()>> tasks;
  {
    std::lock_guard const lock(posted_mutex_);
    tasks.swap(posted_);
  }
  for (auto const& task : tasks) {
    guarded(nullptr, task);
  }
}

void loop::post(std::function<void()> task) {
  {
    std::lock_guard const lock(posted_mutex_);
    posted_.push_back(std::move(task));
    if (posted_.size() > 1) {
      return;  // the first one has woken it, and it takes all of them
    }
  }
  std::uint64_t const one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

void loop::stop() noexcept {
  post([this] { stopped_ = true; });
}

void loop::turn(std::chrono::milliseconds wait) {
  auto const until_timer = timers_.next_in(now_);
  if (!ending_.empty()) {
    wait = std::chrono::milliseconds(0);
  }
  if (until_timer != timer_wheel::none) {
    wait = std::min(wait, std::chrono::ceil<std::chrono::milliseconds>(until_timer));
  }
  std::array<epoll_event, 256> events;  // NOLINT: filled by the system
  auto const count = ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()),
                                  static_cast<int>(wait.count()));
  now_ = read_clock();
  for (int i = 0; i < count; ++i) {
    auto const& event = events[static_cast<std::size_t>(i)];
    if (i + 1 < count) {
      prefetch(events[static_cast<std::size_t>(i) + 1].data.ptr);
    }
    auto* const who = static_cast<watched*>(event.data.ptr);
    if (who == nullptr) {
      run_posted();
    } else if (!who->disposed_) {
      guarded(who, [&] {
        who->ready({(event.events & (EPOLLIN | EPOLLRDHUP)) != 0, (event.events & EPOLLOUT) != 0,
                    (event.events & EPOLLRDHUP) != 0, (event.events & (EPOLLHUP | EPOLLERR)) != 0});
      });
    }
  }
  if (!timers_.advance(now_) && out_of_memory_) {
    out_of_memory_();
  }
  end_turn();
  destroy_disposed();
}

void loop::end_turn() {
  ending_now_.take(ending_);
  while (auto* const who = ending_now_.pop_front()) {
    who->ends_turn_ = false;
    guarded(who, [&] { who->turn_ends(); });
  }
}

void loop::run() {
  runner_ = std::this_thread::get_id();
  std::optional<no_memory_wait> throws;
  if (out_of_memory_) {
    throws.emplace();
  }
  while (!stopped_) {
    turn(std::chrono::seconds(60));
  }
}

}  // namespace tidegate::engine
