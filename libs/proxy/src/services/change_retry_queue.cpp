// SPDX-License-Identifier: Apache-2.0
#include "services/change_retry_queue.hpp"

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;

constexpr auto again_after = 1s;
constexpr std::size_t waiting_max = 10'000;
constexpr std::size_t waiting_octets_max = std::size_t{64} << 20;

auto octets_of(idempotency::change const& change) -> std::size_t {
  return change.response ? change.response->body.size() : 0;
}

}  // namespace

change_retry_queue::change_retry_queue(engine::loop& on, std::shared_ptr<idempotency_service> of)
    : loop_(on), state_(std::move(of)), self_(std::make_shared<change_retry_queue*>(this)) {}

void change_retry_queue::add(idempotency::change change) {
  if (waiting_.size() == waiting_max) {
    octets_ -= octets_of(waiting_.front());
    waiting_.pop_front();
  }
  if (octets_ + octets_of(change) > waiting_octets_max && change.response) {
    // That it was carried out is worth more than what was answered.
    change.response->body.clear();
    change.response->body_kept = false;
    change.next->replayable = false;
  }
  octets_ += octets_of(change);
  waiting_.push_back(std::move(change));
  set(loop_.timers(), loop_.now() + again_after);
}

void change_retry_queue::expired() {
  octets_ = 0;
  for (auto& change : std::exchange(waiting_, {})) {
    auto again = change;
    // No answer owns the store: the last one to let it go must not be a thread of its own.
    state_->store->apply(std::move(change),
                         [loop = &loop_, self = std::weak_ptr(self_), again = std::move(again),
                          keys = state_.get()](store::apply_answer const& answer) {
                           keys->note(answer ? nullptr : &answer.error());
                           loop->post([self, again, made = answer.has_value()] {
                             auto const there = self.lock();
                             if (there && made) {
                               (*there)->state_->waiters.wake(again.key);
                             } else if (there) {
                               (*there)->add(again);
                             }
                           });
                         });
  }
}

}  // namespace tidegate::gateway
