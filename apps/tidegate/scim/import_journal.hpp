// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scim/durable_file.hpp"
#include "scim/settings.hpp"

#include <tidegate/base/result.hpp>
#include <tidegate/client/scim_walk.hpp>
#include <tidegate/idempotency/make_key.hpp>
#include <tidegate/json/value.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace tidegate::app {

/// What becomes of a line, as the journal has it.
enum class settled : char {
  created = 'c',
  replaced = 'u',
  skipped = 's',
  conflict = 'x',
  rejected = 'r',
};

struct settled_counts {
  std::map<settled, std::uint64_t> by_result;
  std::uint64_t all = 0;

  void add(settled as) {
    ++by_result[as];
    ++all;
  }
  [[nodiscard]] auto count(settled as) const -> std::uint64_t {
    auto const found = by_result.find(as);
    return found == by_result.end() ? 0 : found->second;
  }
};

/// What the server takes in one bulk request; 0: it takes none.
struct bulk_limits {
  std::size_t operations = 0;
  std::size_t octets = 0;
};

/// What makes the requests of an import the same when it is resumed.
struct import_identity {
  std::string digest;  ///< of the file
  std::string seed;    ///< of keys
  idempotency::wall_time began{};
  bulk_limits bulk{};
};

/// A line that was not taken, and why.
struct rejected_line {
  std::uint64_t line = 0;
  std::string const& text;
  json::value const& resource;  ///< null when the text could not be read
  client::scim_error const& error;
};

/// What people are told about an error of a line.
[[nodiscard]] auto message_of(client::scim_error const& error) -> std::string;

/// The two files that an import writes: the journal, and the lines that were rejected. An entry of
/// the journal is `LINE RESULT OCTETS`, where OCTETS is the length of the file of rejects.
class import_journal {
 public:
  explicit import_journal(import_settings const& settings) : settings_(settings) {}

  /// Whether there is a journal, of a run before this one.
  [[nodiscard]] auto exists() const -> bool;
  /// The file of rejects must not be one that is needed still. Writes nothing.
  [[nodiscard]] auto check_rejects() const -> result<void, error_text>;
  /// Opens the journal and reads what was settled before. The identity is that of the journal, or
  /// `fresh` when the journal is new.
  [[nodiscard]] auto open(import_identity fresh) -> result<import_identity, error_text>;
  /// After `open`, which says how much of it is kept.
  [[nodiscard]] auto open_rejects() -> result<void, error_text>;

  [[nodiscard]] auto was_settled(std::uint64_t line) const -> bool {
    return settled_before_.contains(line);
  }
  [[nodiscard]] auto counts() const -> settled_counts const& { return counts_; }
  [[nodiscard]] auto settle(std::uint64_t line, settled as) -> result<void, error_text>;
  [[nodiscard]] auto reject(rejected_line const& rejected, settled as) -> result<void, error_text>;

  [[nodiscard]] auto sync() -> result<void, error_text>;
  /// Syncs when the last time was a while ago.
  [[nodiscard]] auto sync_sometimes() -> result<void, error_text>;

  [[nodiscard]] auto is_open() const -> bool { return journal_.has_value(); }
  void remove();
  /// Removes the file of rejects when it is empty; else its name.
  [[nodiscard]] auto close_rejects() -> std::string;

 private:
  using clock = std::chrono::steady_clock;

  [[nodiscard]] auto has_file() const -> bool { return settings_.file != "-"; }
  [[nodiscard]] auto name() const -> std::string { return settings_.file + ".import"; }
  [[nodiscard]] auto rejects_name() const -> std::string;
  [[nodiscard]] auto heading(import_identity const& identity) const -> std::string;
  [[nodiscard]] auto parse_heading(std::string_view line, std::string const& digest) const
      -> result<import_identity, error_text>;
  [[nodiscard]] auto take_entry(std::string_view text) -> bool;
  [[nodiscard]] auto invalid() const -> std::unexpected<error_text>;

  import_settings const& settings_;
  std::optional<durable_file> journal_;
  std::optional<durable_file> rejects_;
  std::uint64_t rejects_octets_ = 0;
  clock::time_point synced_{};
  std::set<std::uint64_t> settled_before_;  // before this run
  settled_counts counts_;
};

}  // namespace tidegate::app
