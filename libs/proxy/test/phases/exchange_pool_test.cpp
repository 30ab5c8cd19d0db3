// SPDX-License-Identifier: Apache-2.0
#include "phases/exchange_pool.hpp"

#include "phases/key/keyed_route.hpp"

namespace tidegate::gateway {
namespace {

TEST(proxy_exchange_pool, gives_out_again_what_came_back) {
  exchange_fixture with("routes: [{match: {path: /**}, service: echo}]\n");
  auto& pool = *with.on->exchanges;
  auto first = pool.take();
  auto second = pool.take();
  auto const* const name = first.get();
  EXPECT_NE(name, second.get());
  pool.recycle(std::move(first));
  EXPECT_EQ(pool.take().get(), name);
}

TEST(proxy_exchange_pool, keeps_what_runs_without_its_client_until_that_is_over) {
  scripted_upstream upstream;
  exchange_fixture with(keyed_route(upstream));
  one_request asked(with, pay(), paid);
  ASSERT_TRUE(with.turn_until([&] { return upstream.has(paid); }));
  asked.leave();
  EXPECT_EQ(with.shared.connections.detached.load(), 1);
  upstream.answer(created);
  EXPECT_TRUE(with.turn_until([&] { return with.shared.connections.detached.load() == 0; }));
}

}  // namespace
}  // namespace tidegate::gateway
