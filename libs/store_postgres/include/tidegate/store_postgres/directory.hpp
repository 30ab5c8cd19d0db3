// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/scim/model.hpp>
#include <tidegate/store/directory.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

/// The resources of a SCIM service in PostgreSQL, for any number of gateways.
namespace tidegate::store_postgres {

struct directory_options {
  /// `postgres://user:password@host:port/database?sslmode=…`, as libpq reads it; several hosts are
  /// tried in order until one takes writes.
  std::string url;
  std::size_t connections = 8;  ///< and as many threads: 2 or more
  /// How long a statement may take, and a write may wait for other gateways.
  std::chrono::milliseconds timeout{30'000};
  std::size_t reads_max = 16'384;   ///< how many reads may wait for a connection
  std::size_t writes_max = 65'536;  ///< how many writes may wait for one
};

/// Connects, and makes the tables or brings them up to date. Every type that a transaction names is
/// one of `model`. Indexes that the tables have not, or that mean something else in `model`, are
/// built before this returns, and those that `model` has not any more are dropped; gateways with
/// another model get `unavailable` from then on.
///
/// Durable: a write is answered when the server has committed it with `synchronous_commit` on.
/// Writes of a tenant are made one after the other, whichever gateway they come to; those that wait
/// here share a transaction, and where that fails, each is tried alone. Reads have a transaction of
/// their own each, see one state, and wait for no other.
///
/// Work that writes is called again where the connection was lost before it was committed, or where
/// the server says that the transaction should be tried again. Where the connection is lost while
/// it is committed, the server is asked whether it was, for up to `timeout`; then the answer is
/// `in_doubt`.
///
/// Where too many wait, or the directory is being closed, `transaction` of a read and `answer` of a
/// write get the error before the call returns, and `transaction` of a write is not called.
/// The destructor does what was asked for, answers it, then closes the connections.
[[nodiscard]] auto open_directory(directory_options options,
                                  std::shared_ptr<scim::model const> model)
    -> result<std::unique_ptr<store::directory>, store::store_error>;

}  // namespace tidegate::store_postgres
