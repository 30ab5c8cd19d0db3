// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "observe/metrics.hpp"

/// The text format of Prometheus, version 0.0.4.
namespace tidegate::gateway::prometheus {

/// `name="value"`, with the value escaped.
[[nodiscard]] auto label(std::string_view name, std::string_view value) -> std::string;

/// The lines HELP and TYPE, which come before the samples of a metric.
void describe(std::string& out, std::string_view name, std::string_view kind,
              std::string_view help);

/// One sample. `labels` is empty, or labels with commas between them.
void sample(std::string& out, std::string_view name, std::string_view labels, double value);

/// A metric with one sample that has no labels.
void single(std::string& out, std::string_view name, std::string_view kind, std::string_view help,
            double value);

/// Latencies of several threads together.
struct latency_sums {
  std::array<std::uint64_t, latency_bounds.size() + 1> by_bound{};
  std::uint64_t sum = 0;  // microseconds

  void add(latency_counts const& counted) noexcept;
};

/// The samples of a histogram, in seconds.
void histogram(std::string& out, std::string const& name, std::string const& labels,
               latency_sums const& sums);

/// Since 1970, with milliseconds.
[[nodiscard]] auto seconds_of(std::chrono::system_clock::time_point time) -> double;

/// What every program that Prometheus scrapes says of its process, by the same names.
void append_process_metrics(std::string& out, std::chrono::system_clock::time_point started);

}  // namespace tidegate::gateway::prometheus
