// SPDX-License-Identifier: Apache-2.0
#include "client/completion_queue.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace tidegate::app {

auto completion_queue::open(client::session_options options)
    -> result<std::unique_ptr<completion_queue>, std::string> {
  std::unique_ptr<completion_queue> made(new completion_queue);
  // Before the thread of the session begins, so that it takes no signal either.
  sigemptyset(&made->ending_);
  sigaddset(&made->ending_, SIGINT);
  sigaddset(&made->ending_, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &made->ending_, nullptr);
  made->signals_ = engine::descriptor(::signalfd(-1, &made->ending_, SFD_CLOEXEC));
  made->came_ = engine::descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made->signals_.is_open() || !made->came_.is_open()) {
    return failure(std::string("cannot make a descriptor for signals"));
  }
  auto opened = client::session::open(std::move(options));
  if (!opened) {
    return failure(to_string(opened.error()));
  }
  made->session_ = *std::move(opened);
  return made;
}

auto completion_queue::send(client::request wanted, std::uint64_t tag)
    -> result<void, client::client_error> {
  TIDEGATE_TRY_VOID(session_->send(
      std::move(wanted), [this, tag](result<client::response, client::client_error> answer) {
        std::lock_guard const lock(mutex_);
        queue_.push_back({tag, std::move(answer)});
        ::eventfd_write(came_.get(), 1);
      }));
  return {};
}

void completion_queue::take_signal() {
  signalfd_siginfo taken{};
  (void)!::read(signals_.get(), &taken, sizeof taken);
  interrupted_ = true;
  // A second signal ends the program at once.
  pthread_sigmask(SIG_UNBLOCK, &ending_, nullptr);
}

auto completion_queue::is_interrupted_now() -> bool {
  pollfd polled{signals_.get(), POLLIN, 0};
  if (!interrupted_ && ::poll(&polled, 1, 0) > 0) {
    take_signal();
  }
  return interrupted_;
}

auto completion_queue::wait(std::chrono::milliseconds time, int input)
    -> std::optional<completion> {
  std::array<pollfd, 3> polled{{{came_.get(), POLLIN, 0},
                                {interrupted_ ? -1 : signals_.get(), POLLIN, 0},
                                {input, POLLIN, 0}}};
  {
    std::lock_guard const lock(mutex_);
    time = queue_.empty() ? time : std::chrono::milliseconds(0);
  }
  ::poll(polled.data(), polled.size(), static_cast<int>(time.count()));
  has_input_ = polled[2].revents != 0;
  if (polled[1].revents != 0) {
    take_signal();
    return std::nullopt;
  }
  eventfd_t count = 0;
  (void)::eventfd_read(came_.get(), &count);
  std::lock_guard const lock(mutex_);
  if (queue_.empty()) {
    return std::nullopt;
  }
  auto first = std::move(queue_.front());
  queue_.pop_front();
  return first;
}

}  // namespace tidegate::app
