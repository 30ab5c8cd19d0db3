// SPDX-License-Identifier: Apache-2.0
#include "late_records.hpp"

#include <utility>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;

constexpr auto again_after = 1s;
constexpr std::size_t waiting_max = 10'000;

}  // namespace

late_records::late_records(engine::loop& on, std::shared_ptr<idempotency_state> of)
    : loop_(on), state_(std::move(of)), self_(std::make_shared<late_records*>(this)) {}

void late_records::add(idempotency::change change) {
  if (waiting_.size() == waiting_max) {
    waiting_.pop_front();
  }
  waiting_.push_back(std::move(change));
  set(loop_.timers(), loop_.now() + again_after);
}

void late_records::expired() {
  for (auto& change : std::exchange(waiting_, {})) {
    auto again = change;
    state_->store->apply(std::move(change),
                         [loop = &loop_, self = std::weak_ptr(self_),
                          again = std::move(again)](store::apply_answer const& answer) {
                           loop->post([self, again, made = answer.has_value()] {
                             auto const there = self.lock();
                             if (there && made) {
                               (*there)->state_->room.wake(again.key);
                             } else if (there) {
                               (*there)->add(again);
                             }
                           });
                         });
  }
}

}  // namespace tidegate::gateway
