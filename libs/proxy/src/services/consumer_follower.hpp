// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/proxy/consumers.hpp>
#include <tidegate/proxy/event_log.hpp>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace tidegate::gateway {

/// Looks on its own thread whether a file of consumers has changed, and reads it again. One that is
/// broken, or is gone, changes nothing but what metrics and the log say.
class consumer_follower {
 public:
  using receiver = std::function<void(std::shared_ptr<consumer_index const>)>;

  /// `take` gets each new content, on the thread of the follower.
  consumer_follower(event_log& events, receiver take) : events_(events), take_(std::move(take)) {}
  consumer_follower(consumer_follower const&) = delete;
  auto operator=(consumer_follower const&) -> consumer_follower& = delete;
  ~consumer_follower();

  /// From now on `settings` say where they are, and `read` is what was found there. `tell` is for
  /// who has to learn of that: `take` is called before it or after it, and then with what is newer.
  void use(
      consumers_config const& settings, std::shared_ptr<consumer_index const> read,
      std::function<void()> const& tell = [] {});
  [[nodiscard]] auto figures() const -> consumer_figures;
  /// The last content.
  [[nodiscard]] auto current() const -> std::shared_ptr<consumer_index const>;

  /// How often the file is looked at. A change is taken when it has lasted as long, so that a file
  /// that is being written is not read.
  static constexpr std::chrono::milliseconds pause{150};

 private:
  /// What tells one content of a file from another, without its bytes.
  struct stamp {
    std::int64_t modified = 0;
    std::int64_t changed = 0;
    std::int64_t size = -1;
    std::uint64_t inode = 0;
    auto operator==(stamp const&) const -> bool = default;
  };
  [[nodiscard]] static auto stamp_of(std::string const& file) -> stamp;

  void run();
  void read(std::unique_lock<std::mutex>& lock);

  event_log& events_;
  receiver take_;
  mutable std::mutex mutex_;
  std::condition_variable stopped_;
  consumers_config settings_;
  std::uint64_t used_ = 0;  // how often `use` was called
  stamp read_;              // of the content that was read last
  stamp seen_;
  std::shared_ptr<consumer_index const> current_;
  consumer_figures figures_;
  bool stops_ = false;
  std::thread thread_;  // from the first file on
};

}  // namespace tidegate::gateway
