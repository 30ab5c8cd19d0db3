// SPDX-License-Identifier: Apache-2.0
#include "serve/stores.hpp"

#include "serve/secrets.hpp"

#include <tidegate/base/hex.hpp>
#include <tidegate/base/sha256.hpp>
#include <tidegate/http/date.hpp>
#include <tidegate/store/memory_idempotency_store.hpp>
#include <tidegate/store/seal.hpp>
#include <tidegate/store_postgres/directory.hpp>
#include <tidegate/store_postgres/idempotency_store.hpp>
#include <tidegate/store_postgres/server_url.hpp>
#include <tidegate/store_redis/idempotency_store.hpp>
#include <tidegate/store_redis/quota_store.hpp>
#include <tidegate/store_redis/server_url.hpp>
#include <tidegate/store_sqlite/directory.hpp>
#include <tidegate/store_sqlite/idempotency_store.hpp>

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace tidegate::app {

namespace {

using gateway::config;
using gateway::store_kind;

/// What a store of responses is sealed by.
auto seal_key_of(master_secret const& secret) -> store::seal_key {
  hmac_sha256 derive{std::span<std::byte const>(secret)};
  derive.update("tidegate idempotency seal");
  return {1, derive.finish()};
}

/// By which a store knows the secret that it was made with. Says nothing about the secret itself.
auto digest_of(master_secret const& secret) -> std::string {
  hmac_sha256 derive{std::span<std::byte const>(secret)};
  derive.update("tidegate secret digest");
  auto const digest = derive.finish();
  return {reinterpret_cast<char const*>(digest.data()), digest.size()};
}

/// The same without whatever the error is about.
template <class Store, class Made>
auto as_store(result<std::unique_ptr<Made>, store::store_error> opened)
    -> result<std::unique_ptr<Store>, std::string> {
  if (!opened) {
    return failure(opened.error().text);
  }
  return std::unique_ptr<Store>(*std::move(opened));
}

/// Opens something in PostgreSQL. A server that was started a moment ago is waited for: it accepts
/// no connection before it has recovered.
template <class Open>
auto open_when_ready(Open open) {
  auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  for (;;) {
    auto opened = open();
    if (opened || opened.error().fault != store::store_fault::unavailable ||
        std::chrono::steady_clock::now() >= end) {
      return opened;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

auto open_sqlite_keys(std::string const& file, master_secret const& secret, std::int64_t octets_max,
                      gateway::event_log& events)
    -> result<std::unique_ptr<store::idempotency_store>, std::string> {
  auto const now =
      std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  auto opened =
      store_sqlite::idempotency_store::open({.file = file,
                                             .octets_max = static_cast<std::size_t>(octets_max),
                                             .seal_keys = {seal_key_of(secret)},
                                             .secret_digest = digest_of(secret)},
                                            now);
  if (opened && (*opened)->newest() > now + std::chrono::minutes(1)) {
    std::string newest;
    http::append_rfc3339(newest, std::chrono::floor<std::chrono::seconds>((*opened)->newest()));
    events.warning(
        file + " has records of " + newest +
        ", which is yet to come: the clock was set back, and keys are remembered that much longer");
  }
  if (opened && (*opened)->is_new()) {
    events.info(file + ": a new store of idempotency keys was made, without any key");
  }
  return as_store<store::idempotency_store>(std::move(opened));
}

/// Gateways that share a store have to share the secret as well: one that each made for itself
/// would let every gateway run the same key.
auto check_shared_secret(config const& settings) -> result<void, std::string> {
  if (::access(settings.secrets.c_str(), F_OK) != 0) {
    return failure(settings.secrets +
                   " is not there; gateways that share a store need the same secret: make it once "
                   "(head -c 32 /dev/urandom > FILE; chmod 600 FILE) and give it to each");
  }
  return {};
}

auto secret_of(config const& settings, gateway::store_location const& place)
    -> result<master_secret, std::string> {
  if (place.kind == store_kind::redis || place.kind == store_kind::postgres) {
    TIDEGATE_TRY_VOID(check_shared_secret(settings));
  }
  return read_secret(settings.secrets);
}

/// A new secret beside keys that were stored with another one would let each of them run again.
auto check_secret_of_keys(config const& settings) -> result<void, std::string> {
  auto const& place = settings.stores.idempotency;
  if (place.kind == store_kind::sqlite && ::access(settings.secrets.c_str(), F_OK) != 0 &&
      ::access(place.where.c_str(), F_OK) == 0) {
    return failure(settings.secrets + " is not there, and " + place.where +
                   " has keys that were stored with it: restore it, or remove both the store and " +
                   place.where + ".commits to begin again");
  }
  return {};
}

/// The store of idempotency keys that the configuration names, with what it is sealed by.
auto open_idempotency(config const& settings, std::function<idempotency::wall_time()> clock,
                      gateway::event_log& events)
    -> result<gateway::idempotency_parts, std::string> {
  TIDEGATE_TRY_VOID(make_data_folder(settings.data));
  gateway::idempotency_parts parts;
  auto const& place = settings.stores.idempotency;
  TIDEGATE_TRY_VOID(check_secret_of_keys(settings));
  TIDEGATE_TRY(parts.secret, secret_of(settings, place));
  auto const seal = seal_key_of(parts.secret);
  switch (place.kind) {
    case store_kind::memory:
      parts.store = std::make_unique<store::memory_idempotency_store>(
          store::memory_idempotency_store::options{
              .octets_max = static_cast<std::size_t>(settings.stores.idempotency_size)});
      break;
    case store_kind::sqlite: {
      TIDEGATE_TRY(parts.store, open_sqlite_keys(place.where, parts.secret,
                                                 settings.stores.idempotency_size, events));
      break;
    }
    case store_kind::redis: {
      TIDEGATE_TRY(auto url, store_redis::parse_server_url(place.where));
      store_redis::idempotency_options options{.where = std::move(url), .seal_keys = {seal}};
      options.clock = std::move(clock);
      options.secret_digest = digest_of(parts.secret);
      options.replicas_min = static_cast<std::uint32_t>(settings.stores.idempotency_replicas);
      TIDEGATE_TRY(parts.store, as_store<store::idempotency_store>(
                                    store_redis::open_idempotency_store(std::move(options))));
      break;
    }
    case store_kind::postgres: {
      auto opened = open_when_ready([&] {
        return store_postgres::open_idempotency_store({.url = place.where,
                                                       .seal_keys = {seal},
                                                       .clock = clock,
                                                       .secret_digest = digest_of(parts.secret)});
      });
      TIDEGATE_TRY(parts.store, as_store<store::idempotency_store>(std::move(opened)));
      break;
    }
  }
  return parts;
}

/// The directory of SCIM resources that the configuration names.
auto open_directory(config const& settings, std::shared_ptr<scim::model const> model)
    -> result<gateway::directory_parts, std::string> {
  TIDEGATE_TRY_VOID(make_data_folder(settings.data));
  gateway::directory_parts parts;
  auto const& place = settings.stores.directory;
  TIDEGATE_TRY(parts.secret, secret_of(settings, place));
  if (place.kind == store_kind::postgres) {
    auto opened = open_when_ready(
        [&] { return store_postgres::open_directory({.url = place.where}, model); });
    TIDEGATE_TRY(parts.directory, as_store<store::directory>(std::move(opened)));
  } else {
    auto const loops = settings.workers.value_or(std::max(std::thread::hardware_concurrency(), 1U));
    store_sqlite::directory_options options{.file = place.where};
    options.readers_here = static_cast<std::size_t>(loops);
    TIDEGATE_TRY(parts.directory, as_store<store::directory>(store_sqlite::open_directory(
                                      std::move(options), std::move(model))));
  }
  return parts;
}

/// The secret of the gateway, made when there is none yet.
auto open_secret(config const& settings) -> result<master_secret, std::string> {
  TIDEGATE_TRY_VOID(make_data_folder(settings.data));
  return read_secret(settings.secrets);
}

/// A name that no other gateway has, nor this one had before.
auto gateway_name() -> result<std::string, std::string> {
  std::array<unsigned char, 12> octets{};
  if (::getrandom(octets.data(), octets.size(), 0) != static_cast<ssize_t>(octets.size())) {
    return failure(std::string("cannot get random numbers from the system"));
  }
  return to_hex(std::as_bytes(std::span(octets)));
}

}  // namespace

auto store_openers(std::shared_ptr<gateway::event_log> events) -> gateway::store_openers {
  auto const name = std::make_shared<std::string>();  // one for all threads
  gateway::store_openers openers;
  openers.idempotency = [events](config const& settings,
                                 std::function<idempotency::wall_time()> clock) {
    return open_idempotency(settings, std::move(clock), *events);
  };
  openers.directory = open_directory;
  openers.secret = open_secret;
  openers.quotas =
      [name](config const& settings,
             engine::loop& on) -> result<std::unique_ptr<store::quota_store>, std::string> {
    if (name->empty()) {
      TIDEGATE_TRY(*name, gateway_name());
    }
    TIDEGATE_TRY(auto const url, store_redis::parse_server_url(settings.stores.quota.where));
    auto const threads = settings.workers.value_or(
        static_cast<std::int64_t>(std::max(std::thread::hardware_concurrency(), 1U)));
    return store_redis::open_quota_store(
        on, url, {.gateway = *name, .stores = static_cast<std::size_t>(threads)});
  };
  return openers;
}

namespace {

/// Whether a folder is there that can be written to, or can be made.
auto check_folder(std::string const& folder) -> result<void, std::string> {
  std::filesystem::path at = folder;
  std::error_code fault;
  while (!at.empty() && !std::filesystem::exists(at, fault)) {
    at = at.parent_path();
  }
  auto const nearest = at.empty() ? std::string(".") : at.string();
  if (!std::filesystem::is_directory(nearest, fault)) {
    return failure(nearest + " is not a folder");
  }
  if (::access(nearest.c_str(), W_OK | X_OK) != 0) {
    return failure("cannot write to the folder " + nearest + ": " +
                   std::system_category().message(errno));
  }
  return {};
}

/// Whether a file can be made in the folder that it is named in. Of folders only `data` is made,
/// with those above it.
auto check_folder_of(std::string const& file, config const& settings) -> result<void, std::string> {
  auto folder = std::filesystem::path(file).parent_path();
  auto const normal = [](std::filesystem::path const& of) {
    return (of / "").lexically_normal().string();
  };
  if (!folder.empty() && normal(settings.data).starts_with(normal(folder))) {
    return {};  // it was looked at
  }
  folder = folder.empty() ? std::filesystem::path(".") : folder;
  if (!std::filesystem::is_directory(folder)) {
    return failure("the folder " + folder.string() + " is not there");
  }
  return check_folder(folder.string());
}

/// Whether the certificates of a server can be read.
auto check_certificates(gateway::store_location const& place) -> result<void, std::string> {
  auto const url = place.kind == store_kind::redis ? store_redis::parse_server_url(place.where)
                                                   : store_redis::server_url();
  if (url && url->ca && ::access(url->ca->c_str(), R_OK) != 0) {
    return failure("cannot read " + *url->ca + ": " + std::system_category().message(errno));
  }
  return {};
}

/// Whether a store can be opened, as far as that can be told without opening it.
auto check_place(gateway::store_location const& place, config const& settings)
    -> result<void, std::string> {
  if (place.kind == store_kind::redis || place.kind == store_kind::postgres) {
    TIDEGATE_TRY_VOID(check_certificates(place));
    return check_shared_secret(settings);
  }
  if (place.kind != store_kind::sqlite) {
    return {};
  }
  TIDEGATE_TRY_VOID(check_folder_of(place.where, settings));
  bool const is_there = ::access(place.where.c_str(), F_OK) == 0;
  if (is_there && std::filesystem::is_directory(place.where)) {
    return failure(place.where + " is a folder");
  }
  if (is_there && ::access(place.where.c_str(), R_OK | W_OK) != 0) {
    return failure("cannot write " + place.where + ": " + std::system_category().message(errno));
  }
  return {};
}

}  // namespace

auto check_state(config const& settings) -> result<void, state_fault> {
  bool has_keys = false;
  bool has_directory = false;
  bool has_bridge = false;
  for (auto const& route : settings.routes) {
    has_keys = has_keys || route.idempotency.has_value();
    has_directory = has_directory || route.scim.has_value();
    has_bridge = has_bridge || route.bridge.has_value();
  }
  // Says which option it is about, by its path and its key.
  auto const about = [](std::string const& option, std::string const& key,
                        result<void, std::string> const& checked) -> result<void, state_fault> {
    if (!checked) {
      return failure(state_fault{option, key + ": " + checked.error()});
    }
    return {};
  };
  TIDEGATE_TRY_VOID(about("stores.quota", "quota", check_certificates(settings.stores.quota)));
  if (!has_keys && !has_directory && !has_bridge) {
    return {};
  }
  TIDEGATE_TRY_VOID(about("data", "data", check_folder(settings.data)));
  if (::access(settings.secrets.c_str(), F_OK) == 0) {
    auto const secret = read_secret(settings.secrets);
    TIDEGATE_TRY_VOID(about("secrets", "secrets",
                            secret ? result<void, std::string>() : failure(secret.error())));
  } else {
    TIDEGATE_TRY_VOID(about("secrets", "secrets: cannot make " + settings.secrets,
                            check_folder_of(settings.secrets, settings)));
  }
  if (has_keys) {
    auto const& place = settings.stores.idempotency;
    TIDEGATE_TRY_VOID(about("stores.idempotency", "idempotency", check_place(place, settings)));
    TIDEGATE_TRY_VOID(about("secrets", "secrets", check_secret_of_keys(settings)));
    if (place.kind == store_kind::sqlite && ::access(place.where.c_str(), F_OK) != 0 &&
        ::access((place.where + ".commits").c_str(), F_OK) == 0) {
      return failure(
          state_fault{"stores.idempotency", "idempotency: " + place.where +
                                                " is missing, and its mark " + place.where +
                                                ".commits is there: restore it, or remove the mark "
                                                "to begin with an empty store"});
    }
  }
  return has_directory ? about("stores.directory", "directory",
                               check_place(settings.stores.directory, settings))
                       : result<void, state_fault>();
}

auto check_stores(config const& settings) -> result<void, std::string> {
  for (auto const& [name, place] : {std::pair("stores.quota", settings.stores.quota),
                                    std::pair("stores.idempotency", settings.stores.idempotency),
                                    std::pair("stores.directory", settings.stores.directory)}) {
    std::string fault;
    if (place.kind == store_kind::redis) {
      auto const url = store_redis::parse_server_url(place.where);
      fault = url ? "" : url.error();
    } else if (place.kind == store_kind::postgres) {
      auto const url = store_postgres::check_url(place.where);
      fault = url ? "" : url.error();
    }
    if (!fault.empty()) {
      return failure(std::string(name) + ": " + fault);
    }
  }
  return {};
}

}  // namespace tidegate::app
