// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_sqlite/idempotency_store.hpp>

#include "keys/key_log.hpp"

#include <utility>

namespace tidegate::store_sqlite {

auto idempotency_store::open(options options, idempotency::wall_time now)
    -> result<std::unique_ptr<idempotency_store>, store::store_error> {
  TIDEGATE_TRY(auto opened,
               key_file::open(options.file, options.file_octets_max, options.secret_digest));
  auto made = std::make_unique<key_log>(std::move(options), std::move(opened));
  TIDEGATE_TRY_VOID(made->load(now));
  made->start();
  return std::unique_ptr<idempotency_store>(new idempotency_store(std::move(made)));
}

idempotency_store::idempotency_store(std::unique_ptr<key_log> log) : log_(std::move(log)) {}

idempotency_store::~idempotency_store() = default;

void idempotency_store::find(idempotency::lookup_key const& key,
                             std::move_only_function<void(store::find_answer)> answer) {
  log_->find(key, std::move(answer));
}

void idempotency_store::apply(idempotency::change change,
                              std::move_only_function<void(store::apply_answer)> answer) {
  log_->apply(std::move(change), std::move(answer));
}

void idempotency_store::list_unknown(std::size_t records,
                                     std::move_only_function<void(store::list_answer)> answer) {
  log_->list_unknown(records, std::move(answer));
}

void idempotency_store::sweep(idempotency::wall_time now, std::size_t records) {
  log_->sweep(now, records);
}

auto idempotency_store::used() const -> usage {
  return log_->used();
}

auto idempotency_store::newest() const -> idempotency::wall_time {
  return log_->newest();
}

auto idempotency_store::is_new() const -> bool {
  return log_->is_new();
}

auto idempotency_store::counted() const -> counts {
  return log_->counted();
}

}  // namespace tidegate::store_sqlite
