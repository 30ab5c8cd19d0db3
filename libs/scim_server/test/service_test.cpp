// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim_server/service.hpp>

#include <tidegate/scim/schema.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::gateway {
namespace {

/// Keeps all work and begins none of it.
class directory_that_is_busy final : public store::directory {
 public:
  struct queue {
    std::vector<read_transaction> reads;
    std::vector<write_answer> writes;
  };

  explicit directory_that_is_busy(queue& to) : to_(to) {}
  void read(std::string_view /*tenant*/, read_transaction transaction) override {
    to_.reads.push_back(std::move(transaction));
  }
  void write(std::string_view /*tenant*/, write_transaction /*transaction*/,
             write_answer answer) override {
    to_.writes.push_back(std::move(answer));
  }

 private:
  queue& to_;
};

TEST(gateway_scim_service, answers_503_when_too_much_content_waits_for_the_directory) {
  scim_config how;
  how.max_body = 1 << 20;
  auto model = make_scim_model(how);
  ASSERT_TRUE(model) << model.error();
  directory_that_is_busy::queue waiting;
  std::array<std::byte, 32> const secret{};
  scim_service service(*model, std::make_unique<directory_that_is_busy>(waiting), secret);

  std::vector<int> statuses;
  std::vector<bool> not_run;
  auto const post = [&] {
    scim_request request;
    request.options = &how;
    request.method = "POST";
    request.path = "/Users";
    request.content = R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"a")";
    request.content.append((1 << 20) - 1 - request.content.size(), ' ').append("}");
    service.handle(std::move(request), false, [&](scim_answer answer) {
      statuses.push_back(answer.status);
      not_run.push_back(answer.was_not_run);
    });
  };
  for (int i = 0; i < 64; ++i) {
    post();
  }
  EXPECT_EQ(waiting.writes.size(), 64U);
  EXPECT_EQ(statuses, std::vector<int>());
  post();
  EXPECT_EQ(statuses, std::vector<int>{503});

  // One that was answered makes room for the next.
  waiting.writes.front()({});
  waiting.writes.erase(waiting.writes.begin());
  post();
  EXPECT_EQ(waiting.writes.size(), 64U);
  EXPECT_EQ(statuses, (std::vector{503, 200}));
  // A key of a request that was not run is free again; one in doubt is not.
  waiting.writes[0](failure(store::store_error{store::store_fault::unavailable, "full"}));
  waiting.writes[1](failure(store::store_error{store::store_fault::in_doubt, "lost"}));
  EXPECT_EQ(statuses, (std::vector{503, 200, 503, 503}));
  EXPECT_EQ(not_run, (std::vector{true, false, true, false}));
}

}  // namespace
}  // namespace tidegate::gateway
