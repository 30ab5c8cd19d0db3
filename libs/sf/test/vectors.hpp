// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "json_value.hpp"

#include <tidegate/sf.hpp>

#include <optional>
#include <string>
#include <vector>

/// Test records in the form of the public suite of Structured Fields, and what it takes to run
/// them.
namespace tidegate::TIDEGATE_ABI::sf::test {

struct vector_record {
  std::string name;
  std::string source;  ///< file and name, for messages
  field_type type = field_type::item;
  std::vector<std::string> raw;  ///< field lines, as bytes; empty in serialisation records
  bool has_raw = false;
  bool must_fail = false;
  bool can_fail = false;
  std::optional<detail::json_value> expected;
  std::optional<std::string>
      canonical;                      ///< the combined canonical value; empty: the field is omitted
  std::vector<dialect> dialects;      ///< our own records only; empty: the reader of them decides
  std::optional<std::size_t> offset;  ///< our own records only: where parsing must fail
};

/// Reads every record of a file; a file that cannot be read or understood fails the test.
[[nodiscard]] auto read_vectors(std::string const& path) -> std::vector<vector_record>;

struct run_counts {
  int parsed = 0;
  int failed_as_they_must = 0;
  int serialised = 0;
  int refused_as_they_must = 0;
};

/// Runs one record in one dialect; what goes wrong is reported with the record's name.
void run_parse(vector_record const& record, dialect d, run_counts& counts);
void run_serialise(vector_record const& record, dialect d, run_counts& counts);

}  // namespace tidegate::TIDEGATE_ABI::sf::test
