// SPDX-License-Identifier: Apache-2.0
#include <tidegate/http/path_readings.hpp>

#include <tidegate/http/target.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace tidegate::TIDEGATE_ABI::http {
namespace {

/// What a path may be read as besides itself, by one who has normalised it.
auto readings_of(std::string_view raw) -> std::vector<std::string> {
  std::string path;
  EXPECT_TRUE(append_normal_path(path, raw)) << raw;
  std::vector<std::string> readings;
  EXPECT_FALSE(find_other_reading(path, [&](std::string_view reading) {
    readings.emplace_back(reading);
    return false;
  }));
  EXPECT_EQ(may_be_read_otherwise(path), !readings.empty()) << path;
  return readings;
}

TEST(http_path_readings, there_are_none_of_a_plain_path) {
  for (auto const* const path :
       {"/", "/a", "/a/b/", "/a/../b", "/a%20b", "/%61", "/a%252Fb", "/a%252f..%252fb",
        "/a,b=c:d@e", "/a/..b/.c/...", "/0123456789abcdef/0123456789abcdef/0123456789abcdef"}) {
    EXPECT_THAT(readings_of(path), testing::IsEmpty()) << path;
  }
}

TEST(http_path_readings, lead_wherever_some_server_is_led) {
  for (auto const* const path : {"//admin",
                                 "///admin",
                                 "/.//admin",
                                 "/x/..//admin",
                                 "/%2fadmin",
                                 "/%2Fadmin",
                                 "/x%2f..%2fadmin",
                                 "/x/..%2fadmin",
                                 "/x%2f../admin",
                                 "/x%2f..%2Fadmin",
                                 "/admin;x",
                                 "/admin;",
                                 "/admin;x=y;z",
                                 "/x/..;/admin",
                                 "/x/..;a/admin",
                                 "/;/admin",
                                 "/;x/admin",
                                 "/./;/admin",
                                 "/x;/..;/admin",
                                 "/%5cadmin",
                                 "/\\admin",
                                 "/x%5c..%5cadmin",
                                 "/x\\..\\admin",
                                 "/x%5c..%2fadmin",
                                 "/x%2f..;%2fadmin",
                                 "/x;a%2f..%2fadmin",
                                 "/admin%3b",
                                 "/admin%3Bx",
                                 "/x/..%3b/admin",
                                 "/x//..%2f..%2fadmin",
                                 "/x//..;/..;/admin",
                                 "/x%2f%2f..%2f..%2fadmin",
                                 "/..;//admin",
                                 "/admin;%2fx%2f..",
                                 "/%2f%2e%2e%2fadmin",
                                 "/x/y%2f..%2f..%2f%2fadmin",
                                 "/0123456789abcdef0123456789/..%2fadmin"}) {
    EXPECT_THAT(readings_of(path), testing::Contains("/admin")) << path;
  }
  for (auto const* const path :
       {"/admin%2f", "/admin%5C", "/admin//", "/admin/;", "/admin/x/..;/"}) {
    EXPECT_THAT(readings_of(path), testing::Contains("/admin/")) << path;
  }
}

TEST(http_path_readings, decode_what_may_stand_in_a_path_as_it_is) {
  struct row {
    std::string_view path, reading;
  };
  for (auto const& [path, reading] : {
           row{"/v1/users%3Apurge", "/v1/users:purge"},
           {"/v1/users%3apurge", "/v1/users:purge"},
           {"/u/%40me", "/u/@me"},
           {"/v1/a%2Cb", "/v1/a,b"},
           {"/v1/%28x%29", "/v1/(x)"},
           {"/v1/(x%29", "/v1/(x)"},
           {"/%21%24%26%27%28%29%2A%2B%2C%3D%3A%40", "/!$&'()*+,=:@"},
           {"/u%2F%40me", "/u/@me"},
           {"/u%2F%40me", "/u/%40me"},
           {"/u%5C%40me", "/u/@me"},
           {"//u/%40me", "/u/@me"},
           {"/u/%40me;x", "/u/@me"},
           {"/u/%40me%3Bx", "/u/@me"},
           {"/u/%40me%3Bx", "/u/@me;x"},
           {"/x/..%2Fu/%40me", "/u/@me"},
       }) {
    EXPECT_THAT(readings_of(path), testing::Contains(reading)) << path;
  }
  std::string plain;
  append_plain_path(plain, "/%21%24%26%27%28%29%2A%2B%2C%3B%3D%3A%40/%2F%5C%20%25%3F%7C%C3%A9");
  EXPECT_EQ(plain, "/!$&'()*+,;=:@/%2F%5C%20%25%3F%7C%C3%A9");
}

TEST(http_path_readings, are_seen_at_every_place_of_a_path) {
  for (std::size_t size = 1; size < 40; ++size) {
    for (std::size_t at = 0; at < size; ++at) {
      for (auto const* const mark : {";", "%2F", "%5C", "%3B", "//", "%3A", "%40", "%21"}) {
        auto const path = "/" + std::string(at, 'a') + mark + std::string(size - at, 'a');
        EXPECT_TRUE(may_be_read_otherwise(path)) << path;
      }
      for (auto const* const mark : {"%20", "/", "%2E", "%5B"}) {
        auto const path = "/a" + std::string(at, 'a') + mark + std::string(size - at, 'a');
        EXPECT_FALSE(may_be_read_otherwise(path)) << path;
      }
    }
  }
}

TEST(http_path_readings, are_few_however_odd_the_path_is) {
  std::string path;
  while (path.size() < 8000) {
    path += "/a;b%2F..%5C//..;x%3B%40";
  }
  std::size_t count = 0;
  EXPECT_FALSE(find_other_reading(path, [&](std::string_view) {
    ++count;
    return false;
  }));
  EXPECT_LE(count, 80U);
}

TEST(http_path_readings, are_shown_until_one_is_wanted) {
  std::size_t count = 0;
  EXPECT_TRUE(find_other_reading("/a%2Fb;c", [&](std::string_view) { return ++count == 2; }));
  EXPECT_EQ(count, 2U);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::http
