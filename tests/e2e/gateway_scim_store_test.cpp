// SPDX-License-Identifier: Apache-2.0
//
// The SCIM service over directories that fail or take their time, in a gateway in this process.
#include "scim.hpp"

#include <tidegate/gateway/server.hpp>
#include <tidegate/store/directory.hpp>

#include <mutex>
#include <stdexcept>

namespace tidegate::e2e {
namespace {

auto failed() -> std::unexpected<store::store_error> {
  return failure(store::store_error{store::store_fault::unavailable, "as the test says"});
}

class directory_that_is_down final : public store::directory {
 public:
  void read(std::string_view /*tenant*/, read_transaction transaction) override {
    transaction(failed());
  }
  void write(std::string_view /*tenant*/, write_transaction /*transaction*/,
             write_answer answer) override {
    answer(failed());
  }
};

/// What a directory was asked for and has not answered.
struct waiting_work {
  std::mutex mutex;
  std::vector<store::directory::read_transaction> reads;
  std::vector<store::directory::write_answer> writes;

  auto count() -> std::size_t {
    std::lock_guard const lock(mutex);
    return reads.size() + writes.size();
  }
  /// Answers all of it, with errors.
  void answer() {
    std::lock_guard const lock(mutex);
    for (auto& transaction : std::exchange(reads, {})) {
      transaction(failed());
    }
    for (auto& each : std::exchange(writes, {})) {
      each(failed());
    }
  }
};

/// Answers when the test says so, and at its end.
class directory_that_waits final : public store::directory {
 public:
  explicit directory_that_waits(std::shared_ptr<waiting_work> work) : work_(std::move(work)) {}
  ~directory_that_waits() override { work_->answer(); }
  void read(std::string_view tenant, read_transaction transaction) override {
    if (tenant.empty()) {  // the gateway only asks how it is
      transaction(failed());
      return;
    }
    std::lock_guard const lock(work_->mutex);
    work_->reads.push_back(std::move(transaction));
  }
  void write(std::string_view /*tenant*/, write_transaction /*transaction*/,
             write_answer answer) override {
    std::lock_guard const lock(work_->mutex);
    work_->writes.push_back(std::move(answer));
  }

 private:
  std::shared_ptr<waiting_work> work_;
};

class inner_gateway {
 public:
  explicit inner_gateway(std::function<std::unique_ptr<store::directory>()> make) {
    constexpr std::array<std::uint64_t, 4> randomness{1, 2, 3, 4};
    tidegate::gateway::server_options options;
    auto& open = options.stores;
    open.directory = [make = std::move(make)](tidegate::gateway::config const&,
                                              std::shared_ptr<scim::model const> const&) {
      tidegate::gateway::directory_parts parts;
      parts.directory = make();
      return result<tidegate::gateway::directory_parts, std::string>(std::move(parts));
    };
    options.load = [this]()
        -> result<tidegate::gateway::config, std::vector<tidegate::gateway::config_fault>> {
      return settings(page_size_);
    };
    auto started =
        tidegate::gateway::server::start(settings(page_size_), randomness, std::move(options));
    if (!started) {
      throw std::runtime_error(started.error());
    }
    server_ = *std::move(started);
  }

  static auto settings(std::string const& page_size) -> tidegate::gateway::config {
    return *tidegate::gateway::parse_config(
        "listen: \"127.0.0.1:0\"\nadmin: \"127.0.0.1:0\"\nworkers: 2\nroutes: [{name: people, "
        "match: {path: /scim/v2/**}, service: scim, scim: {default-page-size: " +
            page_size + "}}]\n",
        "test.yaml");
  }

  [[nodiscard]] auto connect() const -> connection {
    return connect_at(server_->addresses().front());
  }
  [[nodiscard]] auto connect_admin() const -> connection {
    return connect_at(server_->admin_address());
  }
  [[nodiscard]] auto server() const -> tidegate::gateway::server& { return *server_; }
  /// Serves by another page size from now on. True when that was taken over.
  [[nodiscard]] auto reload(std::string const& page_size) -> bool {
    page_size_ = page_size;
    return server_->reload().has_value();
  }

 private:
  [[nodiscard]] static auto connect_at(std::string const& address) -> connection {
    return connect_to(
        static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  }

  std::string page_size_ = "100";
  std::unique_ptr<tidegate::gateway::server> server_;
};

constexpr std::string_view get_users = "GET /scim/v2/Users HTTP/1.1\r\nHost: a\r\n\r\n";

auto post_user() -> std::string {
  auto const body = user("x");
  return "POST /scim/v2/Users HTTP/1.1\r\nHost: a\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST(gateway_scim_store, answers_503_when_the_directory_is_down) {
  inner_gateway const with([] { return std::make_unique<directory_that_is_down>(); });
  auto to = with.connect();
  for (auto const& request : {std::string(get_users), post_user()}) {
    to.send(request);
    auto const answer = to.read_response();
    EXPECT_EQ(answer.status(), 503);
    EXPECT_EQ(answer.field("Content-Type"), "application/scim+json");
    EXPECT_EQ(answer.field("Retry-After"), "1");
    EXPECT_THAT(answer.body, testing::HasSubstr("\"status\":\"503\""));
    EXPECT_THAT(answer.body, testing::Not(testing::HasSubstr("as the test says")));
  }
}

TEST(gateway_scim_store, drops_answers_whose_client_has_left) {
  auto const work = std::make_shared<waiting_work>();
  inner_gateway const with([work] { return std::make_unique<directory_that_waits>(work); });
  for (int i = 0; i < 10; ++i) {
    auto to = with.connect();
    to.send(i % 2 == 0 ? std::string(get_users) : post_user());
    expect_eventually([&] { return work->count() == static_cast<std::size_t>(i) + 1; },
                      "the directory is asked");
    to.abort();
  }
  // Their exchanges serve others by now.
  auto to = with.connect();
  to.send(get_users);
  expect_eventually([&] { return work->count() == 11; }, "the directory is asked");
  work->answer();
  EXPECT_EQ(to.read_response().status(), 503);
  EXPECT_TRUE(to.is_silent());
}

TEST(gateway_scim_store, answers_by_the_settings_that_a_request_came_under) {
  auto const work = std::make_shared<waiting_work>();
  inner_gateway with([work] { return std::make_unique<directory_that_waits>(work); });
  auto to = with.connect();
  to.send(get_users);
  expect_eventually([&] { return work->count() == 1; }, "the directory is asked");
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(with.reload(std::to_string(50 + i)));
  }
  auto other = with.connect();
  other.send(get_users);
  expect_eventually([&] { return work->count() == 2; }, "the directory is asked");
  work->answer();
  EXPECT_EQ(to.read_response().status(), 503);
  EXPECT_EQ(other.read_response().status(), 503);
}

TEST(gateway_scim_store, ends_in_good_order_with_requests_under_way) {
  auto const work = std::make_shared<waiting_work>();
  std::vector<connection> clients;
  {
    inner_gateway const with([work] { return std::make_unique<directory_that_waits>(work); });
    for (int i = 0; i < 10; ++i) {
      clients.push_back(with.connect());
      clients.back().send(i % 2 == 0 ? std::string(get_users) : post_user());
    }
    expect_eventually([&] { return work->count() == 10; }, "the directory is asked");
    EXPECT_FALSE(with.server().drain(std::chrono::milliseconds(50)));
  }
  EXPECT_EQ(work->count(), 0U);
  for (auto& client : clients) {
    EXPECT_TRUE(client.is_closed());
  }
}

constexpr std::string_view get_users_as_admin =
    "GET /api/v1/directory/people/default/Users HTTP/1.1\r\nHost: localhost\r\n\r\n";

TEST(gateway_scim_store, is_not_waited_for_by_the_loop_of_the_admin_address) {
  auto const work = std::make_shared<waiting_work>();
  std::vector<connection> consoles;
  {
    inner_gateway const with([work] { return std::make_unique<directory_that_waits>(work); });
    for (std::size_t i = 0; i < 4; ++i) {
      consoles.push_back(with.connect_admin());
      consoles.back().send(get_users_as_admin);
      expect_eventually([&] { return work->count() == i + 1; }, "the directory is asked");
    }
    auto other = with.connect_admin();
    other.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(other.read_response().status(), 200);
    consoles.front().abort();
    work->answer();
    EXPECT_EQ(consoles[1].read_response().status(), 503);
    EXPECT_EQ(consoles[2].read_response().status(), 503);
    consoles[3].send("x");  // which is not read
    auto late = with.connect_admin();
    late.send(get_users_as_admin);
    expect_eventually([&] { return work->count() == 1; }, "the directory is asked");
    consoles.push_back(std::move(late));
  }
  EXPECT_EQ(work->count(), 0U);
  EXPECT_TRUE(consoles.back().is_closed());
}

}  // namespace
}  // namespace tidegate::e2e
