// SPDX-License-Identifier: Apache-2.0
#include "socket_set.hpp"

#include <curl/curl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace tidegate::TIDEGATE_ABI::client {

using std::chrono::nanoseconds;

socket_set::socket_set()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  epoll_event added{.events = EPOLLIN, .data = {.fd = wake_}};
  is_usable_ = epoll_ >= 0 && wake_ >= 0 && ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &added) == 0;
}

socket_set::~socket_set() {
  ::close(epoll_);
  ::close(wake_);
}

void socket_set::wake() const {
  (void)::eventfd_write(wake_, 1);
}

void socket_set::want(int socket, int events) {
  auto& known = sockets_[socket];
  known.wanted = events == CURL_POLL_REMOVE ? 0U
                                            : ((events & CURL_POLL_IN) != 0 ? EPOLLIN : 0U) |
                                                  ((events & CURL_POLL_OUT) != 0 ? EPOLLOUT : 0U);
  if (!known.is_changed) {
    known.is_changed = true;
    changed_.push_back(socket);
  }
}

auto socket_set::wait(nanoseconds time) -> std::span<epoll_event const> {
  register_changes();
  auto const seconds = std::chrono::floor<std::chrono::seconds>(time);
  timespec const bound{seconds.count(), (time - seconds).count()};
  auto const size = static_cast<int>(events_.size());
  auto count = ::epoll_pwait2(epoll_, events_.data(), size, &bound, nullptr);
  if (count < 0 && errno == ENOSYS) {  // a kernel before 5.11
    auto const milliseconds = std::chrono::ceil<std::chrono::milliseconds>(time).count();
    count = ::epoll_wait(epoll_, events_.data(), size, static_cast<int>(milliseconds));
  }
  auto const came = std::span(events_).first(static_cast<std::size_t>(std::max(count, 0)));
  auto const kept =
      std::ranges::remove_if(came, [this](auto const& each) { return !is_wanted(each.data.fd); });
  return came.first(came.size() - kept.size());
}

auto socket_set::is_wanted(int socket) -> bool {
  if (socket == wake_) {
    eventfd_t times = 0;
    (void)::eventfd_read(wake_, &times);
    return false;
  }
  auto const found = sockets_.find(socket);
  if (found != sockets_.end() && found->second.wanted == 0) {
    // An idle connection was closed by its peer; curl notices when it wants to use it.
    (void)::epoll_ctl(epoll_, EPOLL_CTL_DEL, socket, nullptr);
    found->second.registered = 0;
  }
  return found != sockets_.end() && found->second.wanted != 0;
}

void socket_set::register_changes() {
  for (auto const socket : changed_) {
    if (auto const found = sockets_.find(socket); found != sockets_.end()) {
      register_change(socket, found->second);
      if (found->second.wanted == 0 && !found->second.is_ours) {
        sockets_.erase(found);
      }
    }
  }
  changed_.clear();
}

void socket_set::register_change(int socket, known_socket& known) const {
  known.is_changed = false;
  // An idle one of ours stays in the epoll until it is used again. The number of another may be
  // that of a new socket by now.
  if (known.is_ours && (known.wanted == known.registered || known.wanted == 0)) {
    return;
  }
  epoll_event event{.events = known.wanted, .data = {.fd = socket}};
  if (known.wanted == 0) {
    (void)::epoll_ctl(epoll_, EPOLL_CTL_DEL, socket, nullptr);
  } else if (::epoll_ctl(epoll_, known.registered == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, socket,
                         &event) != 0) {
    (void)::epoll_ctl(epoll_, errno == EEXIST ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &event);
  }
  known.registered = known.wanted;
}

}  // namespace tidegate::TIDEGATE_ABI::client
