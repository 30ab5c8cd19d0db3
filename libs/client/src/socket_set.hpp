// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <sys/epoll.h>

#include <array>
#include <chrono>
#include <span>
#include <unordered_map>
#include <vector>

namespace tidegate::TIDEGATE_ABI::client {

/// The sockets whose events curl asks for, in an epoll.
///
/// Between two requests curl forgets a connection and asks for it again. So what it asks for is
/// gathered, and the epoll gets the changes before the next wait.
class socket_set {
 public:
  socket_set();
  socket_set(socket_set const&) = delete;
  auto operator=(socket_set const&) -> socket_set& = delete;
  ~socket_set();

  [[nodiscard]] auto is_usable() const noexcept -> bool { return is_usable_; }
  /// Ends a wait. From any thread.
  void wake() const;

  /// A connection that we opened, and whose end `remove` says.
  void add(int socket) { sockets_[socket] = {.is_ours = true}; }
  void remove(int socket) { sockets_.erase(socket); }
  /// `events` as curl says them: CURL_POLL_IN and the like.
  void want(int socket, int events);

  /// What has happened, at most so long from now.
  [[nodiscard]] auto wait(std::chrono::nanoseconds time) -> std::span<epoll_event const>;

 private:
  struct known_socket {
    unsigned wanted = 0;
    unsigned registered = 0;  // in the epoll
    bool is_ours = false;
    bool is_changed = false;
  };

  [[nodiscard]] auto is_wanted(int socket) -> bool;
  void register_changes();
  void register_change(int socket, known_socket& known) const;

  int epoll_;
  int wake_;
  bool is_usable_ = false;
  std::unordered_map<int, known_socket> sockets_;
  std::vector<int> changed_;
  std::array<epoll_event, 64> events_{};
};

}  // namespace tidegate::TIDEGATE_ABI::client
