// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include "support/cut_proxy.hpp"
#include "support/idempotency_store_contract.hpp"
#include "support/sanitized.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// What a store of idempotency keys makes of a connection that is cut in the middle of a change.
namespace tidegate::TIDEGATE_ABI::store::contract {

using test_support::cut_proxy;

/// Asks until the store answers: how long it takes after a cut is up to its backoff. After a minute
/// the answer is the error.
template <class Ask>
[[nodiscard]] auto answer_in_the_end(Ask ask) {
  auto const end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  for (;;) {
    auto answer = ask();
    if (answer || std::chrono::steady_clock::now() >= end) {
      EXPECT_TRUE(answer.has_value()) << (answer ? "" : answer.error().text);
      return answer;
    }
  }
}
[[nodiscard]] inline auto apply_in_the_end(idempotency_store& store, change const& what)
    -> applied {
  return answer_in_the_end([&] { return apply(store, what); }).value_or(applied{});
}

/// How stores are cut.
struct cut_stores {
  std::uint16_t server_port = 0;
  /// Opens a store whose connections go through a port of this machine.
  std::function<std::shared_ptr<idempotency_store>(std::uint16_t port)> open;
  /// Another one for each cut: for a store that waits the longer, the more connections it loses
  /// soon. Else one comes back from all cuts, which is quicker where a connection is dear.
  bool reopens = false;
};

enum class cut_change : std::uint8_t { claim, complete, release };

/// One change, cut in one direction. How many cuts there were.
inline auto change_behind_every_cut(cut_stores const& stores, idempotency_store& direct,
                                    cut_proxy::direction which, cut_change what) -> std::size_t {
  bool const all = std::getenv("TIDEGATE_EVERY_OCTET") != nullptr;
  cut_proxy proxy(stores.server_port);
  auto const name = "key" + std::to_string(static_cast<int>(which)) +
                    std::to_string(static_cast<int>(what)) + "-";
  std::size_t cuts = 0;
  int count = 10'000;
  std::size_t octets = 1;  // known after the first time, which is not cut
  bool is_first = true;
  std::shared_ptr<idempotency_store> through;
  for (std::size_t k = 0; k < octets;) {
    auto const key = key_of(name + std::to_string(++count));
    auto const claim = claim_of(key, 1);
    if (through == nullptr || stores.reopens) {
      through = stores.open(proxy.port());
    }
    if (through == nullptr) {
      return cuts;
    }
    if (what != cut_change::claim) {
      EXPECT_TRUE(apply_in_the_end(*through, claim).made);
    } else {  // so that it is connected
      auto const none = answer_in_the_end([&] { return find(*through, key); });
      EXPECT_TRUE(none && !*none);
    }
    auto const change = what == cut_change::claim ? claim
                        : what == cut_change::complete
                            ? complete(key, *claim.next, response_of("body"), start)
                            : release(key, *claim.next, start);
    auto const before = proxy.octets(which);
    if (!is_first) {
      proxy.cut_behind(which, k);
    }
    auto const answer = apply(*through, change);
    if (std::exchange(is_first, false)) {
      octets = proxy.octets(which) - before;
      EXPECT_TRUE(answer && answer->made);
      continue;
    }
    cuts += proxy.has_cut() ? 1U : 0U;
    auto const found = find(direct, key);
    EXPECT_TRUE(found.has_value());
    bool const is_there = found && *found;
    bool const is_changed = what == cut_change::claim ? is_there
                            : what == cut_change::complete
                                ? is_there && (*found)->record.state == record_state::completed
                                : !is_there;
    if (answer) {
      EXPECT_TRUE(answer->made) << "no other has changed it";
      EXPECT_TRUE(is_changed);
    }
    if (is_there) {
      EXPECT_EQ((*found)->record.token, 1U);
    }
    if (what == cut_change::complete) {
      EXPECT_TRUE(is_there) << "nothing was given back";
    }
    // As a gateway does when it was not answered: the same again.
    auto const again = apply_in_the_end(direct, change);
    auto const after = find(direct, key);
    EXPECT_TRUE(after.has_value());
    switch (what) {
      case cut_change::claim:
        EXPECT_EQ(again.made, !is_changed);
        EXPECT_TRUE(after && *after && (*after)->record.token == 1U);
        break;
      case cut_change::complete:
        EXPECT_TRUE(after && *after && (*after)->response && (*after)->response->body == "body");
        break;
      case cut_change::release: EXPECT_TRUE(after && !*after); break;
    }
    // Another attempt sees what there is.
    auto const other = apply_in_the_end(direct, claim_of(key, 2));
    EXPECT_EQ(other.made, what == cut_change::release);
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << "change " << static_cast<int>(what)
                    << (which == cut_proxy::direction::to_client ? " to the client"
                                                                 : " to the server")
                    << " cut behind " << k << " of " << octets;
      return cuts;
    }
    std::size_t const step = which == cut_proxy::direction::to_client ? 3U : 13U;
    k += all ? 1U : test_support::sanitized ? 23U : step;
  }
  return cuts;
}

/// Claims, completes and releases keys, each change cut behind one octet after the other, in both
/// directions. What was answered is what is there; what was not answered is there once or not at
/// all, and asked again it goes well. How many cuts there were.
///
/// `direct` has connections of its own. All changes are cut at the same time, since a cut is mostly
/// waiting: for processes of a server that start, on a machine that has other things to do. Unless
/// TIDEGATE_EVERY_OCTET is set, octets are taken in steps.
inline auto change_behind_every_cut(cut_stores const& stores, idempotency_store& direct)
    -> std::size_t {
  std::vector<std::future<std::size_t>> parts;
  for (auto const which : {cut_proxy::direction::to_client, cut_proxy::direction::to_server}) {
    for (auto const what : {cut_change::claim, cut_change::complete, cut_change::release}) {
      parts.push_back(std::async(std::launch::async, [&stores, &direct, which, what] {
        return change_behind_every_cut(stores, direct, which, what);
      }));
    }
  }
  std::size_t cuts = 0;
  for (auto& part : parts) {
    cuts += part.get();
  }
  return cuts;
}

}  // namespace tidegate::TIDEGATE_ABI::store::contract
