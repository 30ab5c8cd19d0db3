// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/consumers.hpp>

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
constexpr std::chrono::sys_seconds noon{1'000'000s};

auto digest_of(std::string const& key) -> sha256_digest {
  return sha256::of(std::string_view(key));
}

TEST(proxy_consumers, finds_each_of_many_keys_and_no_other) {
  std::vector<consumer_config> listed;
  for (int i = 0; i < 1000; ++i) {
    auto const name = std::to_string(i);
    listed.push_back(
        {.name = name,
         .keys = {{"a", digest_of("a" + name), {}}, {"b", digest_of("b" + name), {}}}});
  }
  consumer_index const index(listed);
  EXPECT_EQ(index.keys_count(), 2000U);
  for (int i = 0; i < 1000; ++i) {
    auto const name = std::to_string(i);
    for (auto const* const begin : {"a", "b"}) {
      auto const* const found = index.find_by_key(digest_of(begin + name), noon);
      ASSERT_NE(found, nullptr);
      EXPECT_EQ(found->name, name);
    }
    EXPECT_EQ(index.find_by_key(digest_of("c" + name), noon), nullptr);
    ASSERT_NE(index.find_by_name(name), nullptr);
    EXPECT_EQ(index.find_by_name(name)->name, name);
  }
  EXPECT_EQ(index.find_by_name("1000"), nullptr);
}

TEST(proxy_consumers, finds_nothing_where_there_are_none) {
  EXPECT_EQ(consumer_index().find_by_key(digest_of("a"), noon), nullptr);
  EXPECT_EQ(consumer_index(std::vector<consumer_config>()).find_by_key(digest_of("a"), noon),
            nullptr);
  EXPECT_EQ(consumer_index().find_by_name("a"), nullptr);
}

TEST(proxy_consumers, takes_a_key_for_a_wrong_one_from_its_end_on) {
  consumer_index const index({{.name = "a", .keys = {{"k", digest_of("k"), noon}}}});
  EXPECT_NE(index.find_by_key(digest_of("k"), noon - 1s), nullptr);
  EXPECT_EQ(index.find_by_key(digest_of("k"), noon), nullptr);
  EXPECT_EQ(index.find_by_key(digest_of("k")), nullptr);  // that was in 1970
  auto const later =
      std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()) + 1h;
  consumer_index const lasting({{.name = "a", .keys = {{"k", digest_of("k"), later}}}});
  EXPECT_NE(lasting.find_by_key(digest_of("k")), nullptr);
}

TEST(proxy_consumers, says_why_their_file_cannot_be_read) {
  auto const missing = load_consumers({.given = true, .file = "/nowhere/who.yaml"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(to_string(missing.error().front()),
            "/nowhere/who.yaml:1:1: cannot read the file: No such file or directory");
}

TEST(proxy_consumers, waits_for_no_pipe_and_reads_no_device) {
  auto const pipe = std::filesystem::temp_directory_path() /
                    ("tidegate-consumers-pipe-" + std::to_string(::getpid()));
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (auto const& file : {pipe.string(), std::string("/dev/zero"), std::string("/tmp")}) {
    auto const made = load_consumers({.given = true, .file = file});
    ASSERT_FALSE(made) << file;
    EXPECT_EQ(to_string(made.error().front()),
              file + ":1:1: cannot read the file: it is not a regular file");
  }
  std::filesystem::remove(pipe);
}

}  // namespace
}  // namespace tidegate::gateway
