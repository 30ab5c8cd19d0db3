// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/running_keys.hpp>

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace tidegate::gateway {
namespace {

class proxy_running_keys : public testing::Test {
 protected:
  [[nodiscard]] auto key(int n) const -> idempotency::lookup_key {
    return secret_.lookup("scope", std::to_string(n));
  }
  [[nodiscard]] static auto claim(idempotency::fencing_token token) -> idempotency::record {
    idempotency::record made;
    made.token = token;
    return made;
  }

  idempotency::secret secret_{{}};
  running_keys keys_;
};

TEST_F(proxy_running_keys, are_found_until_their_claim_is_over) {
  EXPECT_EQ(keys_.find(key(1)), std::nullopt);
  keys_.add(key(1), claim(7));
  EXPECT_EQ(keys_.find(key(1)), claim(7));
  EXPECT_EQ(keys_.find(key(2)), std::nullopt);
  keys_.remove(key(1), 7);
  EXPECT_EQ(keys_.find(key(1)), std::nullopt);
}

TEST_F(proxy_running_keys, stay_when_an_older_claim_ends) {
  keys_.add(key(1), claim(7));
  keys_.add(key(1), claim(8));
  keys_.remove(key(1), 7);
  EXPECT_EQ(keys_.find(key(1)), claim(8));
  keys_.remove(key(1), 8);
  EXPECT_EQ(keys_.find(key(1)), std::nullopt);
}

TEST_F(proxy_running_keys, are_forgotten_by_an_operator_whatever_their_token) {
  keys_.add(key(1), claim(7));
  keys_.forget(key(1));
  EXPECT_EQ(keys_.find(key(1)), std::nullopt);
  keys_.forget(key(1));
  keys_.remove(key(1), 7);
}

TEST_F(proxy_running_keys, are_kept_apart) {
  constexpr int many = 200;  // more than there are parts
  for (int i = 0; i < many; ++i) {
    keys_.add(key(i), claim(static_cast<idempotency::fencing_token>(i)));
  }
  for (int i = 0; i < many; i += 2) {
    keys_.remove(key(i), static_cast<idempotency::fencing_token>(i));
  }
  for (int i = 0; i < many; ++i) {
    EXPECT_EQ(keys_.find(key(i)).has_value(), i % 2 == 1) << i;
  }
}

TEST_F(proxy_running_keys, may_be_used_by_several_threads) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([this, thread] {
      for (int i = 0; i < 100; ++i) {
        auto const name = thread * 1000 + i;
        auto const token = static_cast<idempotency::fencing_token>(name);
        keys_.add(key(name), claim(token));
        EXPECT_EQ(keys_.find(key(name)), claim(token));
        keys_.remove(key(name), token);
      }
    });
  }
  for (auto& each : threads) {
    each.join();
  }
  EXPECT_EQ(keys_.find(key(1)), std::nullopt);
}

}  // namespace
}  // namespace tidegate::gateway
