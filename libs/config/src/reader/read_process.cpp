// SPDX-License-Identifier: Apache-2.0
#include "reader/parts.hpp"

#include <filesystem>

namespace tidegate::gateway {

namespace {

auto take_store(option_reader& in, section const& from, std::string_view key) -> store_location {
  auto place = in.take_or_default(from, key, read_store);
  if (place.kind == store_kind::sqlite) {
    place.where = in.beside_file(place.where);
  }
  return place;
}

/// `stores`; what is left out lies in the folder `data`.
auto read_stores(option_reader& in, section const& from, std::string const& data) -> stores_config {
  stores_config made;
  made.quota = take_store(in, from, "quota");
  made.quota_partitions = in.take_or_default(from, "quota-partitions", read_integer);
  auto const in_data = [&](char const* file) {
    return store_location{store_kind::sqlite, (std::filesystem::path(data) / file).string()};
  };
  bool const has_idempotency = from.has("idempotency");
  bool const has_directory = from.has("directory");
  made.idempotency =
      has_idempotency ? take_store(in, from, "idempotency") : in_data("idempotency.db");
  made.idempotency_size = in.take_or_default(from, "idempotency-size", read_size);
  if (made.idempotency.kind == store_kind::redis || made.idempotency.kind == store_kind::postgres) {
    made.idempotency_size = 0;
    if (from.has("idempotency-size")) {
      in.fault(from.place_of("idempotency-size"),
               "idempotency-size: only where \"idempotency\" is in memory or in SQLite; Redis is "
               "bounded by its maxmemory, PostgreSQL by its disk");
    }
  }
  made.idempotency_replicas = in.take_or_default(from, "idempotency-replicas", read_integer);
  if (made.idempotency_replicas != 0 && made.idempotency.kind != store_kind::redis) {
    in.fault(from.place_of("idempotency-replicas"),
             "idempotency-replicas: only where \"idempotency\" is in Redis");
  }
  made.directory = has_directory ? take_store(in, from, "directory") : in_data("directory.db");
  if (made.directory == made.idempotency && made.directory.kind == store_kind::sqlite) {
    in.fault(from.place_of(has_directory ? "directory" : "idempotency"),
             "directory: the file of \"idempotency\" too (expected another file)");
  }
  return made;
}

void read_access_log(option_reader& in, section const& top, config& made) {
  bool const is_mapping = top.has_mapping("access-log");
  auto const from = is_mapping ? in.open_at(top, "access-log") : top;
  auto const* const key = is_mapping ? "file" : "access-log";
  if (auto const file = in.take(from, key, read_file)) {
    made.access_log = {access_log_config::destination::file, in.beside_file(*file)};
  } else if (auto const* const word = from.find(key);
             word != nullptr && word->value->text == "stdout") {
    made.access_log.to = access_log_config::destination::standard_output;
  }
  made.access_log.query = is_mapping && in.take_or_default(from, "query", read_boolean);
}

}  // namespace

void read_process(option_reader& in, section const& top, config& made) {
  made.workers = in.take(top, "workers", read_integer);
  made.log = log_level_named(in.take(top, "log-level", read_choice).value_or(""))
                 .value_or(log_level::info);
  made.drain_delay = in.take_or_default(top, "drain-delay", read_duration);
  made.data = in.beside_file(in.take_or_default(top, "data", read_file));
  auto const secrets = in.take(top, "secrets", read_file);
  made.secrets = secrets ? in.beside_file(*secrets)
                         : (std::filesystem::path(made.data) / "secrets.key").string();
  made.stores = read_stores(in, in.open_at(top, "stores"), made.data);
  read_access_log(in, top, made);
}

}  // namespace tidegate::gateway
