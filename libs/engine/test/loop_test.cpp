// SPDX-License-Identifier: Apache-2.0
#include <tidegate/engine/loop.hpp>

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace tidegate::engine {
namespace {

using namespace std::chrono_literals;

TEST(engine_address, reads_what_it_writes) {
  for (auto const* const text : {"127.0.0.1:8080", "[::1]:443", "[2001:db8::1]:0", "unix:/tmp/x"}) {
    auto const address = socket_address::parse(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->to_string(), text);
  }
  EXPECT_EQ(socket_address::parse(":80")->to_string(), "[::]:80");
  for (auto const* const text : {"", "127.0.0.1", "host:80", "1.2.3:80", "[::1:80", "::1:80",
                                 "1.2.3.4:", "1.2.3.4:70000", "1.2.3.4:+1", "unix:"}) {
    EXPECT_FALSE(socket_address::parse(text)) << text;
  }
}

/// Sends back what it reads.
class echo : public watched {
 public:
  echo(loop& on, descriptor socket) : on_(on), socket_(std::move(socket)) {
    EXPECT_TRUE(on_.watch(socket_, *this));
  }

 private:
  void ready(readiness what) override {
    char text[100];  // NOLINT
    while (what.readable) {
      auto const size = ::read(socket_.get(), text, sizeof text);
      if (size < 0) {
        return;
      }
      if (size == 0) {
        on_.dispose(std::unique_ptr<watched>(this));
        on_.stop();
        return;
      }
      EXPECT_EQ(::write(socket_.get(), text, static_cast<std::size_t>(size)), size);
    }
  }
  loop& on_;
  descriptor socket_;
};

class accepting : public watched {
 public:
  accepting(loop& on, descriptor socket) : on_(on), socket_(std::move(socket)) {
    EXPECT_TRUE(on_.watch(socket_, *this));
  }
  [[nodiscard]] auto socket() const -> descriptor const& { return socket_; }

 private:
  void ready(readiness /*what*/) override {
    descriptor accepted(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (accepted.is_open()) {
      new echo(on_, std::move(accepted));  // NOLINT: disposes of itself
    }
  }
  loop& on_;
  descriptor socket_;
};

TEST(engine_loop, serves_a_real_socket_and_stops) {
  auto const on = *loop::make();
  accepting listener(*on, *listen_on(*socket_address::parse("127.0.0.1:0"), true));
  auto const address = *local_address(listener.socket());
  EXPECT_NE(address.port(), 0);
  std::string got;
  std::thread client([&] {
    descriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
    ASSERT_EQ(::connect(socket.get(), static_cast<sockaddr const*>(address.data()),
                        static_cast<socklen_t>(address.size())),
              0);
    ASSERT_EQ(::write(socket.get(), "hello", 5), 5);
    char text[5];  // NOLINT
    ASSERT_EQ(::recv(socket.get(), text, 5, MSG_WAITALL), 5);
    got.assign(text, 5);
  });
  on->run();
  client.join();
  EXPECT_EQ(got, "hello");
}

TEST(engine_loop, does_what_other_threads_post) {
  auto const on = *loop::make();
  int sum = 0;
  std::thread other([&] {
    for (int i = 1; i <= 100; ++i) {
      on->post([&sum, i] { sum += i; });
    }
    on->stop();
  });
  on->run();
  other.join();
  EXPECT_EQ(sum, 5050);
}

TEST(engine_loop, copies_no_task) {
  // A copy may need memory, for want of which the process would end.
  struct counting {
    explicit counting(int& to) : copies(&to) {}
    counting(counting const& other) : copies(other.copies) { ++*copies; }
    counting(counting&&) = default;
    auto operator=(counting const&) -> counting& = delete;
    ~counting() = default;
    int* copies;
  };
  auto const on = *loop::make();
  int copies = 0;
  std::function<void()> task = [what = counting(copies), &on] { on->stop(); };
  auto const before = copies;
  on->post(std::move(task));
  on->run();
  EXPECT_EQ(copies, before);
}

TEST(engine_loop, says_why_a_port_cannot_be_had) {
  auto const first = listen_on(*socket_address::parse("127.0.0.1:0"), false);
  ASSERT_TRUE(first);
  auto const second = listen_on(*local_address(*first), false);
  ASSERT_FALSE(second);
  EXPECT_EQ(to_string(second.error()), "bind: Address already in use");
}

class engine_listening : public testing::Test {
 protected:
  engine_listening() {
    auto name = (std::filesystem::temp_directory_path() / "tidegate_engine_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~engine_listening() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] auto at(std::string const& name) const -> socket_address {
    return *socket_address::parse("unix:" + (folder_ / name).string());
  }
  [[nodiscard]] static auto why_not(socket_address const& address) -> std::string {
    auto const checked = check_listening(address);
    return checked ? "" : to_string(checked.error());
  }
  std::filesystem::path folder_;
};

TEST_F(engine_listening, replaces_a_socket_that_was_left_behind_and_no_other_file) {
  (void)listen_on(at("left"), false);
  EXPECT_TRUE(std::filesystem::is_socket(folder_ / "left"));
  EXPECT_TRUE(listen_on(at("left"), false));
  std::ofstream(folder_ / "file") << "of another";
  auto const refused = listen_on(at("file"), false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(to_string(refused.error()), "bind: Address already in use");
  EXPECT_EQ(std::filesystem::file_size(folder_ / "file"), 10U);
}

TEST_F(engine_listening, is_told_beforehand_to_be_impossible) {
  EXPECT_EQ(why_not(at("new")), "");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "new"));
  EXPECT_EQ(why_not(at("none/new")), "bind: No such file or directory");
  std::ofstream(folder_ / "file") << "x";
  EXPECT_EQ(why_not(at("file")), "bind: Address already in use");
  auto const first = listen_on(*socket_address::parse("127.0.0.1:0"), false);
  EXPECT_EQ(why_not(*local_address(*first)), "") << "it may be the one that is replaced";
  EXPECT_TRUE(is_listened_on(*local_address(*first)));
  auto const shared = listen_on(*socket_address::parse("127.0.0.1:0"), true);
  EXPECT_TRUE(is_listened_on(*local_address(*shared))) << "also where others may";
  EXPECT_TRUE(listen_on(*local_address(*shared), true)) << "to look changes nothing";
  EXPECT_FALSE(is_listened_on(*socket_address::parse("127.0.0.1:0")));
  EXPECT_EQ(why_not(*socket_address::parse("192.0.2.1:0")),
            "bind: Cannot assign requested address");
}

}  // namespace
}  // namespace tidegate::engine
