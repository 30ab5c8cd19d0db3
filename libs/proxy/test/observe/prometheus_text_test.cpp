// SPDX-License-Identifier: Apache-2.0
#include "observe/prometheus_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <string>
#include <string_view>

namespace tidegate::gateway::prometheus {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST(proxy_prometheus_text, escapes_the_values_of_labels) {
  struct row {
    std::string_view name;
    std::string_view value;
    std::string_view expected;
  };
  for (auto const& each : {
           row{"plain", "orders", "l=\"orders\""},
           row{"empty", "", "l=\"\""},
           row{"a quote", "a\"b", "l=\"a\\\"b\""},
           row{"a backslash", "a\\b", "l=\"a\\\\b\""},
           row{"both", "\\\"", "l=\"\\\\\\\"\""},
           row{"an end of line", "a\nb", "l=\"a b\""},
           row{"braces and commas", "{a,b}", "l=\"{a,b}\""},
           row{"UTF-8", "M\xC3\xBCnchen", "l=\"M\xC3\xBCnchen\""},
       }) {
    EXPECT_EQ(label("l", each.value), each.expected) << each.name;
  }
}

TEST(proxy_prometheus_text, describes_a_metric_before_its_samples) {
  std::string out;
  describe(out, "a_total", "counter", "How many.");
  EXPECT_EQ(out, "# HELP a_total How many.\n# TYPE a_total counter\n");
}

TEST(proxy_prometheus_text, writes_counts_as_whole_numbers_and_others_with_their_fraction) {
  struct row {
    std::string_view name;
    double value;
    std::string_view expected;
  };
  for (auto const& each : {
           row{"nothing", 0, "m 0\n"},
           row{"one", 1, "m 1\n"},
           row{"more than 32 bits", 5e9, "m 5000000000\n"},
           row{"the largest count", 999'999'999'999'999.0, "m 999999999999999\n"},
           row{"above all counts", 1e18, "m 1e+18\n"},
           row{"a fraction", 0.25, "m 0.25\n"},
           row{"milliseconds", 1'700'000'000.125, "m 1700000000.125\n"},
           row{"below zero", -2, "m -2\n"},
       }) {
    std::string out;
    sample(out, "m", "", each.value);
    EXPECT_EQ(out, each.expected) << each.name;
  }
}

TEST(proxy_prometheus_text, puts_labels_in_braces) {
  std::string out;
  sample(out, "m", label("a", "1") + "," + label("b", "2"), 3);
  EXPECT_EQ(out, "m{a=\"1\",b=\"2\"} 3\n");
}

TEST(proxy_prometheus_text, writes_a_single_sample_with_its_description) {
  std::string out;
  single(out, "m", "gauge", "What it is.", 7);
  EXPECT_EQ(out, "# HELP m What it is.\n# TYPE m gauge\nm 7\n");
}

TEST(proxy_prometheus_text, adds_up_the_buckets_of_a_histogram) {
  latency_counts counted;
  counted.count(50us);
  counted.count(100us);  // a bound belongs to its bucket
  counted.count(2ms);
  counted.count(10s);
  latency_sums sums;
  sums.add(counted);
  std::string out;
  histogram(out, "d_seconds", "route=\"a\"", sums);
  EXPECT_THAT(out, StartsWith("d_seconds_bucket{route=\"a\",le=\"0.0001\"} 2\n"));
  EXPECT_THAT(out, HasSubstr("d_seconds_bucket{route=\"a\",le=\"0.001\"} 2\n"));
  EXPECT_THAT(out, HasSubstr("d_seconds_bucket{route=\"a\",le=\"0.0025\"} 3\n"));
  EXPECT_THAT(out, HasSubstr("d_seconds_bucket{route=\"a\",le=\"5\"} 3\n"));
  EXPECT_THAT(out, EndsWith("d_seconds_bucket{route=\"a\",le=\"+Inf\"} 4\n"
                            "d_seconds_sum{route=\"a\"} 10.00215\n"
                            "d_seconds_count{route=\"a\"} 4\n"));
}

TEST(proxy_prometheus_text, adds_up_latencies_of_several_threads) {
  latency_counts first;
  latency_counts second;
  first.count(1ms);
  second.count(1ms);
  second.count(3ms);
  latency_sums sums;
  sums.add(first);
  sums.add(second);
  EXPECT_EQ(sums.sum, 5000U);
  std::string out;
  histogram(out, "d", "x=\"y\"", sums);
  EXPECT_THAT(out, HasSubstr("d_count{x=\"y\"} 3\n"));
}

TEST(proxy_prometheus_text, says_times_in_seconds_with_milliseconds) {
  EXPECT_EQ(seconds_of(std::chrono::system_clock::time_point(1500ms)), 1.5);
  EXPECT_EQ(seconds_of(std::chrono::system_clock::time_point(1234567us)), 1.234);
}

}  // namespace
}  // namespace tidegate::gateway::prometheus
