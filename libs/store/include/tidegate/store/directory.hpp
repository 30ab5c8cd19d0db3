// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/scim/cursor.hpp>
#include <tidegate/scim/filter.hpp>
#include <tidegate/scim/index_key.hpp>
#include <tidegate/scim/model.hpp>
#include <tidegate/scim/walk.hpp>
#include <tidegate/store/idempotency_store.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Where the resources of a SCIM service live.
///
/// The service brings transactions that read or write, written as if there were no others; a
/// directory runs each on a thread where it may wait, against one state, and makes what it wrote
/// durable all at once. It knows resources as texts with entries in indexes; what they mean is the
/// service's business.
namespace tidegate::TIDEGATE_ABI::store {

/// What a directory answers.
template <class T>
using directory_outcome = result<T, store_error>;

/// A resource as it is kept.
struct directory_resource {
  std::uint64_t rid = 0;  ///< its place in the order of creation; never given again
  std::string id;
  std::uint64_t version = 0;  ///< from 1, one more with each change
  /// A JSON object that ends with `meta`, which has all but `location`; without `members` and
  /// `groups`.
  std::string text;
  bool maybe_in_groups = false;  ///< false: it is a member of nothing
};

/// A row of a list, with its place in the order that was asked for.
struct directory_row {
  scim::position at;
  std::string_view id;
  std::string_view text;
  bool maybe_in_groups = false;
  std::shared_ptr<void const> texts;  ///< what `id` and `text` are in; rows share it
};

/// A row where it stands; good during the call it is shown in.
struct directory_row_view {
  std::uint64_t rid = 0;
  std::string_view sort_key;
  std::string_view id;
  std::string_view text;
  bool maybe_in_groups = false;
};

/// A member of a group, or a group that something is a member of.
struct directory_member {
  std::uint64_t rid = 0;
  std::string id;
  std::string type;  ///< name of its resource type
  /// Of a member: what the client called it, may be empty; of a group: its displayName.
  std::string display;
};

/// What is asked of a list.
struct directory_query {
  scim::model_type const* type = nullptr;
  scim::filter const* filter = nullptr;  ///< nothing: all
  std::optional<std::size_t>
      sort_index{};  ///< the number of an index of the type; nothing: order of creation
  bool descending = false;
  std::uint64_t rid_max = UINT64_MAX;  ///< what was created later is left out
  scim::scan scan{};
  std::uint64_t skip = 0;  ///< rows to leave out at the start, of the index method
  /// Asked every now and then while rows are read that do not match; true ends the scan with
  /// `stopped`.
  std::function<bool()> spent{};
  /// Where it is set, rows are shown to it one after the other, and the answer of the scan has
  /// none; false ends the scan. It may read from the directory.
  std::function<bool(directory_row_view const&)> each{};
};

/// How many there are. Nothing when it could not be found out before `spent`.
struct directory_count {
  std::optional<std::uint64_t> total;
};

/// Which resources are members of which groups.
class directory_relations {
 public:
  directory_relations() = default;
  virtual ~directory_relations() = default;
  directory_relations(directory_relations const&) = delete;
  auto operator=(directory_relations const&) -> directory_relations& = delete;

  /// Calls `each` for the members of a group in the order in which they were added, until it
  /// returns false.
  [[nodiscard]] virtual auto members(std::uint64_t group_rid,
                                     std::function<bool(directory_member const&)> const& each)
      -> directory_outcome<void> = 0;
  /// The groups that have it as a direct member.
  [[nodiscard]] virtual auto groups_of(std::uint64_t rid)
      -> directory_outcome<std::vector<directory_member>> = 0;
};

/// The resources of one tenant in one state. Not for several threads; good during the
/// transaction it is given to.
class directory_reader : public directory_relations {
 public:
  /// The resource of that type and id.
  [[nodiscard]] virtual auto find(scim::model_type const& type, std::string_view id)
      -> directory_outcome<std::optional<directory_resource>> = 0;

  /// The resource of any type with that id, and the name of its type.
  struct any_resource {
    std::string type;
    directory_resource resource;
  };
  /// The resource of that id, whatever its type.
  [[nodiscard]] virtual auto find_any(std::string_view id)
      -> directory_outcome<std::optional<any_resource>> = 0;

  /// The id of a resource that has `key` in a unique index, other than `except_id`.
  [[nodiscard]] virtual auto find_unique(scim::model_type const& type, std::size_t index,
                                         std::string_view key, std::string_view except_id)
      -> directory_outcome<std::optional<std::string>> = 0;

  /// The resources that a query asks for, in its order.
  [[nodiscard]] virtual auto scan(directory_query const& query)
      -> directory_outcome<scim::scan_answer<directory_row>> = 0;

  /// How many resources match, `query.scan` and order aside. Without a filter, and with one that
  /// indexes answer exactly, it is cheap.
  [[nodiscard]] virtual auto count(directory_query const& query)
      -> directory_outcome<directory_count> = 0;

  /// The highest rid that was given in this type.
  [[nodiscard]] virtual auto newest(scim::model_type const& type)
      -> directory_outcome<std::uint64_t> = 0;
};

/// The same, and what changes it. What is changed is seen by later reads of the same
/// transaction. After an error, the transaction is given up.
class directory_writer : public directory_reader {
 public:
  /// Adds a resource and returns its rid. The caller has looked for unique values. No two `entries`
  /// are of the same key in the same index, as `index_entries` makes them.
  [[nodiscard]] virtual auto insert(scim::model_type const& type, std::string_view id,
                                    std::string_view text,
                                    std::span<scim::index_entry const> entries)
      -> directory_outcome<std::uint64_t> = 0;

  /// Replaces text and entries, and makes the version one more.
  [[nodiscard]] virtual auto update(scim::model_type const& type, std::uint64_t rid,
                                    std::string_view text,
                                    std::span<scim::index_entry const> entries)
      -> directory_outcome<void> = 0;

  /// Takes it out, and out of all groups; a group loses its members.
  [[nodiscard]] virtual auto remove(scim::model_type const& type, std::uint64_t rid)
      -> directory_outcome<void> = 0;

  /// False when it was one already; then `display` is taken all the same.
  [[nodiscard]] virtual auto add_member(std::uint64_t group_rid, std::uint64_t member_rid,
                                        std::string_view display) -> directory_outcome<bool> = 0;
  [[nodiscard]] virtual auto remove_member(std::uint64_t group_rid, std::uint64_t member_rid)
      -> directory_outcome<bool> = 0;
  [[nodiscard]] virtual auto remove_members(std::uint64_t group_rid) -> directory_outcome<void> = 0;
};

/// Runs transactions. Every member may be called by any thread; transactions and answers run on
/// threads of the directory, unless it is said otherwise, and must be short, but for their reads
/// and writes.
class directory {
 public:
  /// Work that reads; it is given the reader, or the reason why there is none.
  using read_transaction = std::move_only_function<void(directory_outcome<directory_reader*>)>;
  /// True: keep what was written. It may be called more than once, after everything it wrote was
  /// undone.
  using write_transaction = std::move_only_function<bool(directory_writer&)>;
  using write_answer = std::move_only_function<void(directory_outcome<void>)>;

  directory() = default;
  virtual ~directory() = default;
  directory(directory const&) = delete;
  auto operator=(directory const&) -> directory& = delete;

  /// Calls `transaction` once, with an error when there is nothing to read from.
  virtual void read(std::string_view tenant, read_transaction transaction) = 0;

  /// Calls `transaction` before it returns, on the thread of the caller, which waits while
  /// something is read from the disk: for what reads little. False when it was not called, since
  /// `read` is the better way at the moment.
  [[nodiscard]] virtual auto read_here(
      std::string_view /*tenant*/, std::function<void(directory_reader&)> const& /*transaction*/)
      -> bool {
    return false;
  }

  /// Calls `transaction` and then, when what it wrote is as durable as it gets or was undone,
  /// `answer`, once.
  virtual void write(std::string_view tenant, write_transaction transaction,
                     write_answer answer) = 0;
};

}  // namespace tidegate::TIDEGATE_ABI::store
