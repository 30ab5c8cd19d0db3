// SPDX-License-Identifier: Apache-2.0
#include "scim/import_journal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace tidegate::app {
namespace {

using testing::HasSubstr;

/// A folder of its own, with the settings of an import of a file in it.
class import_journal_test : public testing::Test {
 protected:
  import_journal_test() {
    folder_ = (std::filesystem::temp_directory_path() / "tidegate_journal_XXXXXX").string();
    EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
    settings.url = "https://example.com/scim/v2/Users";
    settings.file = folder_ + "/users.jsonl";
  }
  ~import_journal_test() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] static auto read(std::string const& name) -> std::string {
    std::ifstream file(name);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  [[nodiscard]] static auto identity() -> import_identity {
    return {.digest = "d", .seed = "s", .bulk = {10, 1000}};
  }
  /// Begins an import, in which line 1 is created and line 2 rejected.
  void begin() const {
    import_journal journal(settings);
    ASSERT_TRUE(journal.open(identity()));
    ASSERT_TRUE(journal.open_rejects());
    ASSERT_TRUE(journal.settle(1, settled::created));
    json::value const none;
    std::string const text = "\xff{";
    client::scim_error const error{.detail = "not valid"};
    ASSERT_TRUE(journal.reject({2, text, none, error}, settled::rejected));
    ASSERT_TRUE(journal.sync());
  }

  import_settings settings;

 private:
  std::string folder_;
};

TEST_F(import_journal_test, keeps_what_is_settled_for_the_next_run) {
  begin();
  settings.resume = true;
  import_journal journal(settings);
  auto const resumed = journal.open({.digest = "d", .seed = "another"});
  ASSERT_TRUE(resumed) << resumed.error();
  EXPECT_EQ(resumed->seed, "s") << "keys are those of the first run";
  EXPECT_EQ(resumed->bulk.operations, 10U);
  EXPECT_TRUE(journal.was_settled(1));
  EXPECT_TRUE(journal.was_settled(2));
  EXPECT_FALSE(journal.was_settled(3));
  EXPECT_EQ(journal.counts().count(settled::created), 1U);
  EXPECT_EQ(journal.counts().count(settled::rejected), 1U);
  EXPECT_EQ(journal.counts().all, 2U);
}

TEST_F(import_journal_test, drops_an_entry_and_rejects_that_were_not_written_whole) {
  begin();
  auto const rejects = read(settings.file + ".rejects");
  EXPECT_EQ(rejects, "{\"line\":2,\"error\":\"not valid\",\"text\":\"\xef\xbf\xbd{\"}\n");
  std::ofstream(settings.file + ".import", std::ios::app) << "3 c";
  std::ofstream(settings.file + ".rejects", std::ios::app) << "{\"line\":3";
  settings.resume = true;
  import_journal journal(settings);
  ASSERT_TRUE(journal.open({.digest = "d", .seed = "x"}));
  ASSERT_TRUE(journal.open_rejects());
  EXPECT_FALSE(journal.was_settled(3));
  EXPECT_EQ(read(settings.file + ".rejects"), rejects);
  EXPECT_EQ(journal.close_rejects(), settings.file + ".rejects");
}

TEST_F(import_journal_test, is_of_one_file_one_server_and_one_format) {
  begin();
  auto const error_of = [](import_settings const& given, std::string digest) {
    import_journal journal(given);
    auto const opened = journal.open({.digest = std::move(digest), .seed = "x"});
    return opened ? std::string() : opened.error();
  };
  EXPECT_THAT(error_of(settings, "d"), HasSubstr("use --resume to continue"));
  settings.resume = true;
  EXPECT_THAT(error_of(settings, "other"), HasSubstr("has changed since its import began"));
  auto other = settings;
  other.url = "https://example.com/scim/v2/Groups";
  EXPECT_THAT(error_of(other, "d"), HasSubstr("is of an import to " + settings.url));
  other = settings;
  other.format = scim_format::csv;
  EXPECT_THAT(error_of(other, "d"), HasSubstr("is of an import with --format jsonl"));
  other = settings;
  other.file += ".none";
  EXPECT_THAT(error_of(other, "d"), HasSubstr("nothing to resume: "));
  std::ofstream(settings.file + ".import") << "x\n";
  EXPECT_THAT(error_of(settings, "d"), HasSubstr("invalid journal "));
}

TEST_F(import_journal_test, does_not_write_rejects_over_a_file_that_is_needed) {
  auto const error = [&] {
    auto const checked = import_journal(settings).check_rejects();
    return checked ? std::string() : checked.error();
  };
  EXPECT_EQ(error(), "");
  settings.rejects = settings.file;
  EXPECT_THAT(error(), HasSubstr("the import reads it"));
  settings.rejects = settings.file + ".import";
  EXPECT_THAT(error(), HasSubstr("the import reads it"));
  settings.rejects = settings.file + ".old";
  std::ofstream(settings.rejects) << "{}\n";
  EXPECT_THAT(error(), HasSubstr("exists and would be overwritten"));
  settings.resume = true;
  EXPECT_EQ(error(), "");
}

}  // namespace
}  // namespace tidegate::app
