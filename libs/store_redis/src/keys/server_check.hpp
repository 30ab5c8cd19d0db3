// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "keys/bucket_counts.hpp"
#include "keys/stored_record.hpp"
#include "protocol/client.hpp"
#include "protocol/script.hpp"

#include <tidegate/base/result.hpp>
#include <tidegate/store/idempotency_store.hpp>
#include <tidegate/store_redis/resp.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tidegate::store_redis {

/// The scripts of `stored_record.hpp`.
struct key_scripts {
  script change{change_script()};
  script due{due_script()};
  script unknown{unknown_script()};
};

/// What an error of a server means for a store that is called `name`.
[[nodiscard]] auto error_of(resp_value const& error, std::string const& name) -> store::store_error;

/// Whether a server may keep keys: it drops none, and has those of the same secret.
class server_check {
 public:
  /// An empty digest is not compared.
  server_check(std::string name, std::string secret_digest)
      : name_(std::move(name)), secret_digest_(std::move(secret_digest)) {}

  using checked_function = std::function<void(result<void, store::store_error>)>;
  /// Checks all buckets and leaves the digest of the secret where there is none. Loads the scripts
  /// on the way. All that it is given lives until `done` is called; it may be run again when it
  /// failed.
  void run(client& on, key_scripts& scripts, bucket_counts& counts, checked_function done);

  /// Takes the answer to INFO.
  void take_info(resp_value const& info);
  /// Set while the server may drop keys when its memory is full.
  [[nodiscard]] auto drops_keys() const noexcept -> std::optional<store::store_error> const& {
    return drops_keys_;
  }
  /// Whether that is the digest of another secret.
  [[nodiscard]] auto is_other_secret(resp_value const& stored) const -> bool;

 private:
  struct call;
  void check(call const& to, std::size_t bucket);
  void leave_secret(call const& to, std::size_t bucket);
  void take_secret_back(call const& to, std::vector<std::size_t> from);

  std::string name_;
  std::string secret_digest_;
  std::optional<store::store_error> drops_keys_;
  bool is_secret_missing_ = false;        // in a bucket, when it was opened
  std::vector<std::size_t> secret_left_;  // the buckets that had none before
};

}  // namespace tidegate::store_redis
