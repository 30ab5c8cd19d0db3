// SPDX-License-Identifier: Apache-2.0
#include "stores.hpp"

#include "secrets.hpp"

#include <tidegate/base/sha256.hpp>
#include <tidegate/http/date.hpp>
#include <tidegate/store/memory_idempotency_store.hpp>
#include <tidegate/store_sqlite/directory.hpp>
#include <tidegate/store_sqlite/idempotency_store.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace tidegate::app {

namespace {

using gateway::config;
using gateway::store_kind;
using gateway::store_place;

auto not_built(store_place const& place) -> std::string {
  return place.where + ": there is no such store in this version";
}

/// The store of idempotency keys that the configuration names, with what it is sealed by.
auto open_idempotency(config const& settings) -> result<gateway::idempotency_parts, std::string> {
  TIDEGATE_TRY_VOID(make_data_folder(settings.data));
  TIDEGATE_TRY(auto const secret, read_secret(settings.secrets));
  gateway::idempotency_parts parts;
  parts.secret = secret;
  auto const& place = settings.idempotency_store;
  if (place.kind == store_kind::memory) {
    parts.store = std::make_unique<store::memory_idempotency_store>(
        store::memory_idempotency_store::options{});
    return parts;
  }
  if (place.kind != store_kind::sqlite) {
    return failure(not_built(place));
  }
  hmac_sha256 derive{std::span<std::byte const>(secret)};
  derive.update("tidegate idempotency seal");
  store_sqlite::options options{.file = place.where};
  options.seal_keys.push_back({1, derive.finish()});
  auto const now =
      std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  auto opened = store_sqlite::idempotency_store::open(std::move(options), now);
  if (!opened) {
    return failure(opened.error().text);
  }
  if ((*opened)->newest() > now + std::chrono::minutes(1)) {
    std::string newest;
    http::append_rfc3339(newest, std::chrono::floor<std::chrono::seconds>((*opened)->newest()));
    std::cerr
        << "warning: " << place.where << " has records of " << newest
        << ", which is yet to come: the clock was set back, and keys are remembered that much "
           "longer\n";
  }
  parts.store = *std::move(opened);
  return parts;
}

/// The directory of SCIM resources that the configuration names.
auto open_directory(config const& settings, std::shared_ptr<scim::model const> model)
    -> result<gateway::directory_parts, std::string> {
  TIDEGATE_TRY_VOID(make_data_folder(settings.data));
  TIDEGATE_TRY(auto const secret, read_secret(settings.secrets));
  gateway::directory_parts parts;
  parts.secret = secret;
  auto opened =
      store_sqlite::directory::open({.file = settings.directory_store.where}, std::move(model));
  if (!opened) {
    return failure(opened.error().text);
  }
  parts.directory = *std::move(opened);
  return parts;
}

/// The secret of the gateway, made when there is none yet.
auto open_secret(config const& settings) -> result<std::array<std::byte, 32>, std::string> {
  TIDEGATE_TRY_VOID(make_data_folder(settings.data));
  return read_secret(settings.secrets);
}

/// The quotas that gateways share, for one thread.
auto open_quotas(config const& settings, engine::loop& /*on*/)
    -> result<std::unique_ptr<store::quota_store>, std::string> {
  return failure(not_built(settings.quota_store));
}

}  // namespace

auto store_openers() -> gateway::store_openers {
  return {open_idempotency, open_directory, open_secret, open_quotas};
}

auto check_stores(config const& settings) -> result<void, std::string> {
  for (auto const& place :
       {settings.quota_store, settings.idempotency_store, settings.directory_store}) {
    if (place.kind != store_kind::memory && place.kind != store_kind::sqlite) {
      return failure(not_built(place));
    }
  }
  return {};
}

}  // namespace tidegate::app
