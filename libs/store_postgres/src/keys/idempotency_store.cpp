// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_postgres/idempotency_store.hpp>

#include "keys/idempotency_worker.hpp"
#include "server_schema.hpp"

#include <utility>

namespace tidegate::store_postgres {

using store::store_error;

auto idempotency_store::open(idempotency_options options)
    -> result<std::unique_ptr<idempotency_store>, store_error> {
  TIDEGATE_TRY(auto settings, read_url(options.url));
  TIDEGATE_TRY_VOID(prepare_schema(settings));
  TIDEGATE_TRY(auto made, worker::make(std::move(options), std::move(settings)));
  return std::unique_ptr<idempotency_store>(new idempotency_store(std::move(made)));
}

idempotency_store::idempotency_store(std::unique_ptr<worker> worker) : worker_(std::move(worker)) {}
idempotency_store::~idempotency_store() = default;

void idempotency_store::find(idempotency::lookup_key const& key,
                             std::move_only_function<void(store::find_answer)> answer) {
  worker_->find(key, std::move(answer));
}

void idempotency_store::apply(idempotency::change change,
                              std::move_only_function<void(store::apply_answer)> answer) {
  worker_->apply(std::move(change), std::move(answer));
}

void idempotency_store::list_unknown(std::size_t records,
                                     std::move_only_function<void(store::list_answer)> answer) {
  worker_->list_unknown(records, std::move(answer));
}

void idempotency_store::sweep(idempotency::wall_time now, std::size_t records) {
  worker_->sweep(now, records);
}

auto idempotency_store::used() const -> usage {
  return worker_->used();
}

auto idempotency_store::counted() const -> counts {
  return worker_->counted();
}

}  // namespace tidegate::store_postgres
