// SPDX-License-Identifier: Apache-2.0

#include "observe/prometheus_text.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace tidegate::gateway::prometheus {

namespace {

/// How many descriptors are open. Linux 6.2 and later say so at once; else they are counted, which
/// takes a while where there are many, so not every time.
auto open_descriptors() -> std::optional<std::uint64_t> {
  struct stat about {};
  if (::stat("/proc/self/fd", &about) == 0 && about.st_size > 0) {
    return static_cast<std::uint64_t>(about.st_size);
  }
  using clock = std::chrono::steady_clock;
  constexpr auto good_for = std::chrono::seconds(10);
  static std::mutex mutex;
  static std::optional<std::pair<clock::time_point, std::uint64_t>> counted;
  std::lock_guard const lock(mutex);
  if (!counted || clock::now() >= counted->first + good_for) {
    std::error_code fault;
    auto const begin = std::filesystem::directory_iterator("/proc/self/fd", fault);
    if (fault) {
      return std::nullopt;
    }
    // Less the one that looks.
    auto const count = std::distance(begin, std::filesystem::directory_iterator()) - 1;
    counted = {clock::now(), static_cast<std::uint64_t>(count)};
  }
  return counted->second;
}

}  // namespace

void append_process_metrics(std::string& out, std::chrono::system_clock::time_point started) {
  single(out, "process_start_time_seconds", "gauge", "When the process was started.",
         seconds_of(started));
  if (auto const count = open_descriptors()) {
    single(out, "process_open_fds", "gauge", "Descriptors that are open.",
           static_cast<double>(*count));
  }
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    single(out, "process_max_fds", "gauge", "Descriptors that may be open.",
           static_cast<double>(limit.rlim_cur));
  }
  std::size_t pages = 0;
  std::size_t resident = 0;
  if (std::ifstream("/proc/self/statm") >> pages >> resident) {
    single(out, "process_virtual_memory_bytes", "gauge", "Addresses that the process has.",
           static_cast<double>(pages) * static_cast<double>(::sysconf(_SC_PAGESIZE)));
    single(out, "process_resident_memory_bytes", "gauge", "Memory of the process.",
           static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  }
  rusage used{};
  if (::getrusage(RUSAGE_SELF, &used) == 0) {
    auto const seconds = [](timeval const& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    single(out, "process_cpu_seconds_total", "counter", "CPU time of the process.",
           seconds(used.ru_utime) + seconds(used.ru_stime));
  }
}

}  // namespace tidegate::gateway::prometheus
