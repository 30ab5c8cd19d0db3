// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_directory/session.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace tidegate::store_directory {
namespace {

using store::store_error;
using store::store_fault;

/// A tenant with one resource, or with a database that fails.
class one_resource final : public session {
 public:
  explicit one_resource(std::shared_ptr<scim::model const> model) : session(std::move(model)) {}

  std::optional<store_error> fails{};
  int asked = 0;
  using session::forget_failure;

  [[nodiscard]] auto find_unique(scim::model_type const& /*type*/, std::size_t /*index*/,
                                 std::string_view /*key*/, std::string_view /*except_id*/)
      -> outcome<std::optional<std::string>> override {
    return std::nullopt;
  }
  [[nodiscard]] auto newest(scim::model_type const& /*type*/) -> outcome<std::uint64_t> override {
    return 0;
  }
  [[nodiscard]] auto members(std::uint64_t /*group_rid*/,
                             std::function<bool(store::directory_member const&)> const& /*each*/)
      -> outcome<void> override {
    return {};
  }
  [[nodiscard]] auto groups_of(std::uint64_t /*rid*/)
      -> outcome<std::vector<store::directory_member>> override {
    return std::vector<store::directory_member>{};
  }
  [[nodiscard]] auto insert(scim::model_type const& /*type*/, std::string_view /*id*/,
                            std::string_view /*text*/,
                            std::span<scim::index_entry const> /*entries*/)
      -> outcome<std::uint64_t> override {
    return 0;
  }
  [[nodiscard]] auto update(scim::model_type const& /*type*/, std::uint64_t /*rid*/,
                            std::string_view /*text*/,
                            std::span<scim::index_entry const> /*entries*/)
      -> outcome<void> override {
    return {};
  }
  [[nodiscard]] auto remove(scim::model_type const& /*type*/, std::uint64_t /*rid*/)
      -> outcome<void> override {
    return {};
  }
  [[nodiscard]] auto add_member(std::uint64_t /*group_rid*/, std::uint64_t /*member_rid*/,
                                std::string_view /*display*/) -> outcome<bool> override {
    return false;
  }
  [[nodiscard]] auto remove_member(std::uint64_t /*group_rid*/, std::uint64_t /*member_rid*/)
      -> outcome<bool> override {
    return false;
  }
  [[nodiscard]] auto remove_members(std::uint64_t /*group_rid*/) -> outcome<void> override {
    return {};
  }

 protected:
  [[nodiscard]] auto find_in_type(scim::model_type const& type, std::string_view id)
      -> outcome<std::optional<store::directory_resource>> override {
    ++asked;
    if (fails) {
      return failure(*fails);
    }
    if (&type != model().find("Group") || id != "g") {
      return std::nullopt;
    }
    return store::directory_resource{1, "g", 1, "{}", false};
  }
  [[nodiscard]] auto with_part(store::directory_query const& /*query*/, part_use /*use*/)
      -> outcome<void> override {
    return {};
  }
};

class store_directory_session : public ::testing::Test {
 protected:
  std::shared_ptr<scim::model const> model_ =
      std::make_shared<scim::model const>(*scim::model::make({}, {}, {}));
  one_resource session_{model_};
};

TEST_F(store_directory_session, finds_a_resource_of_any_type) {
  auto const found = session_.find_any("g");
  ASSERT_TRUE(found.has_value() && found->has_value());
  EXPECT_EQ((*found)->type, "Group");
  EXPECT_EQ((*found)->resource.rid, 1U);
  EXPECT_EQ(*session_.find_any("h"), std::nullopt);
  EXPECT_EQ(*session_.find(*model_->find("User"), "g"), std::nullopt);
}

TEST_F(store_directory_session, has_nothing_of_a_type_of_which_the_tenant_has_none) {
  store::directory_query const query{.type = model_->find("User"), .scan = {{}, 10}};
  EXPECT_TRUE(session_.scan(query)->rows.empty());
  EXPECT_EQ(session_.count(query)->total, 0U);
}

TEST_F(store_directory_session, runs_nothing_more_after_a_failure) {
  session_.fails = store_error{store_fault::unavailable, "the disk is full"};
  EXPECT_FALSE(session_.find_any("g").has_value());
  ASSERT_TRUE(session_.failed().has_value());
  EXPECT_EQ(session_.failed()->text, "the disk is full");
  session_.fails.reset();
  auto const asked = session_.asked;
  auto const again = session_.find_any("g");
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().text, "the disk is full");
  EXPECT_EQ(session_.asked, asked);
  session_.forget_failure();
  EXPECT_TRUE(session_.find_any("g").has_value());
}

}  // namespace
}  // namespace tidegate::store_directory
