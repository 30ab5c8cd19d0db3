// SPDX-License-Identifier: Apache-2.0
#include "services/consumer_follower.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <thread>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;

/// A file of consumers that is followed.
class proxy_consumer_follower : public testing::Test {
 protected:
  proxy_consumer_follower() {
    std::filesystem::create_directories(folder_);
    settings_.given = true;
    settings_.file = (folder_ / "who.yaml").string();
  }
  ~proxy_consumer_follower() override { std::filesystem::remove_all(folder_); }

  void write(std::string const& text) { std::ofstream(settings_.file) << text; }
  /// As editors and orchestrators do it.
  void replace(std::string const& text) {
    std::ofstream(settings_.file + ".new") << text;
    std::filesystem::rename(settings_.file + ".new", settings_.file);
  }
  void follow() {
    auto read = load_consumers(settings_);
    ASSERT_TRUE(read);
    follower_.use(settings_, *std::move(read));
  }
  /// Waits until that is so; it takes less than a second unless the machine is busy.
  template <class Condition>
  void await(Condition const& is_so) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, 30s, is_so));
  }
  [[nodiscard]] auto names() const -> std::string {
    std::string out;
    for (auto const& each : follower_.current()->all()) {
      out += each.name + " ";
    }
    return out;
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("tidegate-consumers-" + std::to_string(::getpid()));
  consumers_config settings_;
  event_log events_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::size_t> taken_;  // how many consumers each content had
  consumer_follower follower_{events_, [this](auto const& index) {
                                std::lock_guard const lock(mutex_);
                                taken_.push_back(index->all().size());
                                changed_.notify_all();
                              }};
};

TEST_F(proxy_consumer_follower, reads_a_file_again_when_it_changes) {
  write("a: {}\n");
  follow();
  EXPECT_EQ(names(), "a ");
  write("a: {}\nb: {}\n");
  await([&] { return !taken_.empty() && taken_.back() == 2; });
  EXPECT_EQ(names(), "a b ");
  replace("c: {}\n");
  await([&] { return taken_.back() == 1; });
  EXPECT_EQ(names(), "c ");
  EXPECT_TRUE(follower_.figures().last_reload_is_good);
}

TEST_F(proxy_consumer_follower, keeps_the_last_good_content_while_the_file_is_broken_or_gone) {
  write("a: {}\n");
  follow();
  auto const failures = [&] { return follower_.figures().reload_failures; };
  auto const await_failure = [&](std::uint64_t count) {
    for (int i = 0; i < 3000 && failures() < count; ++i) {
      std::unique_lock lock(mutex_);
      (void)changed_.wait_for(lock, 10ms);
    }
    EXPECT_EQ(failures(), count);
  };
  write("a: [\n");
  await_failure(1);
  EXPECT_EQ(names(), "a ");
  EXPECT_FALSE(follower_.figures().last_reload_is_good);
  write("");
  await_failure(2);
  std::filesystem::remove(settings_.file);
  await_failure(3);
  EXPECT_EQ(names(), "a ");
  write("b: {}\n");
  await([&] { return !taken_.empty(); });
  EXPECT_EQ(names(), "b ");
  EXPECT_TRUE(follower_.figures().last_reload_is_good);
}

TEST_F(proxy_consumer_follower, gives_nothing_of_an_earlier_file_behind_a_later_one) {
  write("a: {}\n");
  follow();
  write("a: {}\nb: {}\nc: {}\n");  // which would be taken soon
  settings_.file += ".other";
  write("d: {}\n");
  auto read = load_consumers(settings_);
  ASSERT_TRUE(read);
  follower_.use(settings_, *read,
                [] { std::this_thread::sleep_for(4 * consumer_follower::pause); });
  write("d: {}\ne: {}\n");
  await([&] { return !taken_.empty(); });
  EXPECT_THAT(taken_, testing::ElementsAre(2U));
}

}  // namespace
}  // namespace tidegate::gateway
