// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/store/idempotency_store.hpp>
#include <tidegate/store/seal.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// Records of idempotency keys in a file of SQLite, for one process.
namespace tidegate::store_sqlite {

using store::seal_key;

struct options {
  std::string file;
  std::size_t records_max = 1'000'000;
  /// Of all records and responses together; 0: any number. When it is reached, no key is added any
  /// more; answers to those that are there are still taken.
  std::size_t octets_max = 0;
  /// Of the file; 0: as much as the disk has. What is above it is a full disk.
  std::size_t file_octets_max = 0;
  std::size_t queue_max = 65'536;  ///< how many changes may wait for the disk
  std::size_t response_cache_octets_max = std::size_t{64}
                                          << 20;  ///< the others are read when asked for
  /// The first one seals what is to be sealed, all of them open. Without any, responses are stored
  /// in clear.
  // NOLINTNEXTLINE(readability-redundant-member-init): so that it may be left out
  std::vector<seal_key> seal_keys{};
  /// Of the secret that lookup keys are made with. A file that was made with another one is
  /// refused: none of its keys would be found. Empty: not compared.
  // NOLINTNEXTLINE(readability-redundant-member-init): so that it may be left out
  std::string secret_digest{};
};

/// Durable: a change is answered when it is on the disk (WAL, synchronous FULL). Changes that come
/// while the disk is busy share the next transaction. One thread writes; rows stay in the order in
/// which keys arrived, and every record, but not every response, is in memory, by its lookup key.
///
/// `find` answers before it returns, unless the response has to be read. Other answers come on the
/// thread that writes: what they do must be short and must not call the destructor. Where a
/// transaction fails, each of its changes is tried alone, so that an error is the error of that
/// change.
class idempotency_store final : public store::idempotency_store {
 public:
  /// Opens the file or makes a new one, with `FILE.commits` beside it, by which a file that was
  /// damaged, shortened or replaced is told from a new one: that is `store_fault::damaged`. No
  /// other process may have it open. What was dispatched when the last process ended has an unknown
  /// outcome from `now` on.
  [[nodiscard]] static auto open(options options, idempotency::wall_time now)
      -> result<std::unique_ptr<idempotency_store>, store::store_error>;

  /// Makes what was asked for, answers it, then closes the file.
  ~idempotency_store() override;

  void find(idempotency::lookup_key const& key,
            std::move_only_function<void(store::find_answer)> answer) override;
  void apply(idempotency::change change,
             std::move_only_function<void(store::apply_answer)> answer) override;
  void list_unknown(std::size_t records,
                    std::move_only_function<void(store::list_answer)> answer) override;
  void sweep(idempotency::wall_time now, std::size_t records) override;
  [[nodiscard]] auto used() const -> usage override;

  /// The latest time in what was there when it was opened; where there was nothing, the first of
  /// all. When it is in the future, the clock was set back, and records are kept that much longer.
  [[nodiscard]] auto newest() const -> idempotency::wall_time;

  /// Whether there was no file when it was opened.
  [[nodiscard]] auto is_new() const -> bool;

  /// How many transactions there were, and how many changes they made: with many clients a
  /// transaction makes many.
  struct counts {
    std::uint64_t transactions = 0;
    std::uint64_t changes = 0;
  };
  [[nodiscard]] auto counted() const -> counts;

 private:
  class key_log;
  explicit idempotency_store(std::unique_ptr<key_log> log);

  std::unique_ptr<key_log> log_;
};

}  // namespace tidegate::store_sqlite
