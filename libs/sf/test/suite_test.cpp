// SPDX-License-Identifier: Apache-2.0
//
// The public test suite of Structured Fields, where it lies beside the project, and our own
// vectors.
#include "vectors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace tidegate::TIDEGATE_ABI::sf::test {
namespace {

namespace fs = std::filesystem;

auto suite_folder() -> fs::path {
  return fs::path(TIDEGATE_SOURCE_DIR) / ".." / "shared" / "data" / "structured-field-tests";
}

auto files_in(fs::path const& folder) -> std::vector<std::string> {
  std::vector<std::string> files;
  for (auto const& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") {
      files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

auto records_in(fs::path const& folder) -> std::vector<vector_record> {
  std::vector<vector_record> records;
  for (auto const& file : files_in(folder)) {
    for (auto& record : read_vectors(file)) {
      records.push_back(std::move(record));
    }
  }
  return records;
}

auto report(run_counts const& counts) -> std::string {
  return std::to_string(counts.parsed) + " parsed, " + std::to_string(counts.failed_as_they_must) +
         " refused as they must be, " + std::to_string(counts.serialised) + " serialised, " +
         std::to_string(counts.refused_as_they_must) + " not serialised as they must not be";
}

#define NEEDS_THE_PUBLIC_SUITE()                                                       \
  if (!fs::exists(suite_folder())) {                                                   \
    GTEST_SKIP() << "the public suite of Structured Fields is not beside the project"; \
  }

TEST(sf_suite, parses_every_record_of_the_public_suite_in_rfc9651) {
  NEEDS_THE_PUBLIC_SUITE();
  run_counts counts;
  for (auto const& record : records_in(suite_folder())) {
    run_parse(record, dialect::rfc9651, counts);
  }
  RecordProperty("counts", report(counts));
  EXPECT_EQ(counts.parsed + counts.failed_as_they_must, 1591) << report(counts);
}

TEST(sf_suite, serialises_every_record_of_the_public_suite_in_rfc9651) {
  NEEDS_THE_PUBLIC_SUITE();
  run_counts counts;
  for (auto const& record : records_in(suite_folder())) {
    if (record.expected.has_value() && !record.must_fail) {
      run_serialise(record, dialect::rfc9651, counts);
    }
  }
  for (auto const& record : records_in(suite_folder() / "serialisation-tests")) {
    run_serialise(record, dialect::rfc9651, counts);
  }
  RecordProperty("counts", report(counts));
  EXPECT_EQ(counts.serialised + counts.refused_as_they_must, 1271) << report(counts);
}

TEST(sf_suite, refuses_dates_and_display_strings_of_the_public_suite_in_rfc8941) {
  NEEDS_THE_PUBLIC_SUITE();
  run_counts unchanged;
  run_counts turned;
  for (auto const& file : files_in(suite_folder())) {
    auto const stem = fs::path(file).stem();
    bool const newer = stem == "date" || stem == "display-string";
    for (auto record : read_vectors(file)) {
      record.must_fail = record.must_fail || newer;
      run_parse(record, dialect::rfc8941, newer ? turned : unchanged);
    }
  }
  EXPECT_EQ(unchanged.parsed + unchanged.failed_as_they_must, 1552) << report(unchanged);
  EXPECT_EQ(turned.failed_as_they_must, 39) << report(turned);
}

void run_own(std::string const& file) {
  run_counts counts;
  auto const records =
      read_vectors((fs::path(TIDEGATE_SOURCE_DIR) / "libs/sf/test/vectors" / file).string());
  ASSERT_FALSE(records.empty());
  for (auto const& record : records) {
    ASSERT_FALSE(record.dialects.empty()) << record.source;
    for (auto d : record.dialects) {
      if (record.has_raw) {
        run_parse(record, d, counts);
      }
      if (record.expected.has_value() && (!record.must_fail || !record.has_raw)) {
        run_serialise(record, d, counts);
      }
    }
  }
}

TEST(sf_vectors, hold_for_every_step_of_draft11_parsing) {
  run_own("draft11.json");
}
TEST(sf_vectors, hold_for_every_step_of_draft11_serialising) {
  run_own("draft11-serialise.json");
}
TEST(sf_vectors, hold_for_what_the_public_suite_misses_in_parsing) {
  run_own("rfc9651.json");
}
TEST(sf_vectors, hold_for_what_the_public_suite_misses_in_serialising) {
  run_own("rfc9651-serialise.json");
}
TEST(sf_vectors, give_the_same_bytes_another_meaning_in_another_dialect) {
  run_own("same-bytes.json");
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::sf::test
