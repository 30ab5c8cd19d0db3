// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/cut_proxy.hpp"
#include "support/idempotency_store_contract.hpp"
#include "support/sanitized.hpp"

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>

/// What a store of idempotency keys makes of a connection that is cut in the middle of a change.
namespace tidegate::store::contract {

using test_support::cut_proxy;

/// Asks until the store answers: how long it takes after a cut is up to its backoff.
[[nodiscard]] inline auto apply_in_the_end(idempotency_store& store, change const& what)
    -> applied {
  for (;;) {
    if (auto answer = apply(store, what)) {
      return *std::move(answer);
    }
  }
}

/// Claims, completes and gives back keys, each change cut behind one octet after the other, in both directions. What was
/// answered is what is there; what was not answered is there once or not at all, and asked again it goes well. How many
/// cuts there were.
///
/// `open` makes a store whose connections go through `proxy`; `direct` has connections of its own. Unless
/// TIDEGATE_EVERY_OCTET is set, octets are taken in steps.
inline auto change_behind_every_cut(cut_proxy& proxy, idempotency_store& direct,
                                    std::function<std::unique_ptr<idempotency_store>()> const& open)
    -> std::size_t {
  bool const all = std::getenv("TIDEGATE_EVERY_OCTET") != nullptr;
  enum class kind : std::uint8_t { claim, complete, give_back };
  std::size_t cuts = 0;
  int count = 10'000;
  for (auto const which : {cut_proxy::direction::to_client, cut_proxy::direction::to_server}) {
    for (auto const what : {kind::claim, kind::complete, kind::give_back}) {
      std::size_t octets = 1;  // known after the first time, which is not cut
      bool is_first = true;
      for (std::size_t k = 0; k < octets;) {
        auto const key = key_of("key" + std::to_string(++count));
        auto const claim = claim_of(key, 1);
        auto const through = open();
        if (through == nullptr) {
          return cuts;
        }
        if (what != kind::claim) {
          EXPECT_TRUE(made(*through, claim));
        } else {
          EXPECT_EQ(record_in(*through, key), std::nullopt);  // it is connected
        }
        auto const change = what == kind::claim ? claim
                            : what == kind::complete
                                ? complete(key, *claim.next, response_of("body"), start)
                                : give_back(key, *claim.next, start);
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
        bool const is_changed = what == kind::claim ? is_there
                                : what == kind::complete
                                    ? is_there && (*found)->record.state == record_state::completed
                                    : !is_there;
        if (answer) {
          EXPECT_TRUE(answer->made) << "no other has changed it";
          EXPECT_TRUE(is_changed);
        }
        if (is_there) {
          EXPECT_EQ((*found)->record.token, 1U);
        }
        if (what == kind::complete) {
          EXPECT_TRUE(is_there) << "nothing was given back";
        }
        // As a gateway does when it was not answered: the same again.
        auto const again = apply_in_the_end(direct, change);
        auto const after = find(direct, key);
        EXPECT_TRUE(after.has_value());
        switch (what) {
          case kind::claim:
            EXPECT_EQ(again.made, !is_changed);
            EXPECT_TRUE(after && *after && (*after)->record.token == 1U);
            break;
          case kind::complete:
            EXPECT_TRUE(after && *after && (*after)->response &&
                        (*after)->response->body == "body");
            break;
          case kind::give_back: EXPECT_TRUE(after && !*after); break;
        }
        // Another attempt sees what there is.
        auto const other = apply_in_the_end(direct, claim_of(key, 2));
        EXPECT_EQ(other.made, what == kind::give_back);
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
    }
  }
  return cuts;
}

}  // namespace tidegate::store::contract
