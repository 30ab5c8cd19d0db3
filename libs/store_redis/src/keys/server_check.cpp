// SPDX-License-Identifier: Apache-2.0
#include "keys/server_check.hpp"

#include <string_view>
#include <utility>

namespace tidegate::store_redis {

namespace {

using store::store_error;
using store::store_fault;

/// The policy in the answer to INFO.
auto eviction_policy(std::string_view info) -> std::string_view {
  constexpr std::string_view label = "maxmemory_policy:";
  auto const at = info.find(label);
  if (at == std::string_view::npos) {
    return {};
  }
  info.remove_prefix(at + label.size());
  return info.substr(0, info.find('\r'));
}

}  // namespace

auto error_of(resp_value const& error, std::string const& name) -> store_error {
  // With noeviction, this is all that a full memory does.
  return {error.is_error("OOM") ? store_fault::no_space : store_fault::unavailable,
          name + ": " + error.text};
}

struct server_check::call {
  client& on;
  key_scripts& scripts;
  bucket_counts& counts;
  checked_function done;
};

void server_check::run(client& on, key_scripts& scripts, bucket_counts& counts,
                       checked_function done) {
  check({on, scripts, counts, std::move(done)}, 0);
}

/// Reads the digests of all buckets before it writes any: a gateway that is refused leaves nothing.
void server_check::check(call const& to, std::size_t bucket) {
  if (bucket == buckets) {
    is_secret_missing_ ? leave_secret(to, 0) : to.done({});
    return;
  }
  auto const key = due_key(bucket);
  command all{"INFO", "memory"};
  all.then({"SCRIPT", "LOAD", to.scripts.change.text()})
      .then({"SCRIPT", "LOAD", to.scripts.due.text()})
      .then({"SCRIPT", "LOAD", to.scripts.unknown.text()})
      .then({"ZCARD", key})
      .then({"GET", secret_key(bucket)});
  to.on.send(key, std::move(all), [this, bucket, to](answer const& got) {
    if (!got) {
      to.done(failure(got.error()));
      return;
    }
    for (auto const& each : got->items) {
      if (each.is_error()) {
        to.done(failure(error_of(each, name_)));
        return;
      }
    }
    to.scripts.change.take_name(got->items[1]);
    to.scripts.due.take_name(got->items[2]);
    to.scripts.unknown.take_name(got->items[3]);
    take_info(got->items[0]);
    if (drops_keys_) {
      to.done(failure(*drops_keys_));
      return;
    }
    if (is_other_secret(got->items[5])) {
      to.done(failure(store::stored_with_another_secret(name_)));
      return;
    }
    is_secret_missing_ =
        (is_secret_missing_ && bucket > 0) || (!secret_digest_.empty() && got->items[5].is_null());
    to.counts.set_records(bucket, got->items[4]);
    check(to, bucket + 1);
  });
}

auto server_check::is_other_secret(resp_value const& stored) const -> bool {
  return !secret_digest_.empty() && !stored.is_null() && stored.text != secret_digest_;
}

/// Every bucket has the digest, since those of a cluster are on several servers and a script reads
/// on one only. Gateways that start together take the buckets in the same order, so that one of
/// them has all. Where Redis takes no writes now, the first key brings it.
void server_check::leave_secret(call const& to, std::size_t bucket) {
  if (bucket == buckets) {
    to.done({});
    return;
  }
  auto const key = secret_key(bucket);
  command both{"SET", key, secret_digest_, "NX"};
  both.then({"GET", key});
  to.on.send(key, std::move(both), [this, bucket, to](answer const& got) {
    if (!got) {
      to.done(failure(got.error()));
    } else if (auto const& stored = got->items.at(1); stored.is_error()) {
      to.done(failure(error_of(stored, name_)));
    } else if (is_other_secret(stored)) {
      take_secret_back(to, std::move(secret_left_));
    } else {
      if (!got->items[0].is_null() && !got->items[0].is_error()) {
        secret_left_.push_back(bucket);
      }
      leave_secret(to, bucket + 1);
    }
  });
}

/// A running gateway has left its digest meanwhile, and must find it in the other buckets too.
void server_check::take_secret_back(call const& to, std::vector<std::size_t> from) {
  if (from.empty()) {
    to.done(failure(store::stored_with_another_secret(name_)));
    return;
  }
  auto const key = secret_key(from.back());
  from.pop_back();
  command remove{"EVAL",
                 "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end "
                 "return 1",
                 "1", key, secret_digest_};
  to.on.send(key, std::move(remove), [this, to, from = std::move(from)](answer const&) mutable {
    take_secret_back(to, std::move(from));
  });
}

void server_check::take_info(resp_value const& info) {
  auto const policy = eviction_policy(info.text);
  drops_keys_.reset();
  if (policy != "noeviction") {
    drops_keys_ = store_error{store_fault::unavailable,
                              name_ + ": its maxmemory-policy is \"" + std::string(policy) +
                                  "\", by which it may drop keys: it has to be "
                                  "noeviction"};
  }
}

}  // namespace tidegate::store_redis
