// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_redis/idempotency_store.hpp>

#include "keys/idempotency_session.hpp"

#include <utility>

namespace tidegate::store_redis {

auto idempotency_store::open(idempotency_options options)
    -> result<std::unique_ptr<idempotency_store>, store::store_error> {
  auto loop = engine::loop::make();
  if (!loop) {
    return failure(
        store::store_error{store::store_fault::unavailable, engine::to_string(loop.error())});
  }
  auto made = std::make_unique<session>(std::move(options), *std::move(loop));
  TIDEGATE_TRY_VOID(made->open());
  return std::unique_ptr<idempotency_store>(new idempotency_store(std::move(made)));
}

idempotency_store::idempotency_store(std::unique_ptr<session> session)
    : session_(std::move(session)) {}

idempotency_store::~idempotency_store() = default;

void idempotency_store::find(idempotency::lookup_key const& key,
                             std::move_only_function<void(store::find_answer)> answer) {
  session_->find(key, std::move(answer));
}

void idempotency_store::apply(idempotency::change change,
                              std::move_only_function<void(store::apply_answer)> answer) {
  session_->apply(std::move(change), std::move(answer));
}

void idempotency_store::list_unknown(std::size_t records,
                                     std::move_only_function<void(store::list_answer)> answer) {
  session_->list_unknown(records, std::move(answer));
}

void idempotency_store::sweep(idempotency::wall_time now, std::size_t records) {
  session_->sweep(now, records);
}

auto idempotency_store::used() const -> usage {
  return session_->used();
}

}  // namespace tidegate::store_redis
