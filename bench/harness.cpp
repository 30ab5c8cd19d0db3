// SPDX-License-Identifier: Apache-2.0
#include "harness.hpp"

#include "support/allocations.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

namespace tidegate::bench {
namespace {

using clock = std::chrono::steady_clock;

[[nodiscard]] auto seconds_of(bench_case const& c, std::size_t iterations) -> double {
  auto const begin = clock::now();
  c.run(iterations);
  return std::chrono::duration<double>(clock::now() - begin).count();
}

/// The best of several runs of at least 20 ms each: the one that the machine disturbed least.
[[nodiscard]] auto nanoseconds_of(bench_case const& c) -> double {
  std::size_t iterations = 1;
  while (seconds_of(c, iterations) < 0.02) {
    iterations *= 2;
  }
  double best = 1e30;
  for (int i = 0; i < 7; ++i) {
    best = std::min(best, seconds_of(c, iterations));
  }
  return best * 1e9 / static_cast<double>(iterations);
}

[[nodiscard]] auto allocations_of(bench_case const& c) -> double {
  constexpr std::size_t iterations = 16;
  c.run(iterations);
  auto const before = test::allocations();
  c.run(iterations);
  return static_cast<double>(test::allocations() - before) / iterations;
}

/// Instructions that callgrind collects when this program runs one case so many times.
[[nodiscard]] auto collected(std::string const& program, std::string const& name,
                             std::size_t iterations) -> std::optional<double> {
  auto const command = "valgrind --tool=callgrind --callgrind-out-file=/dev/null '" + program +
                       "' --only '" + name + "' " + std::to_string(iterations) + " 2>&1";
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (!pipe) {
    return std::nullopt;
  }
  std::array<char, 512> line{};
  std::optional<double> count;
  while (std::fgets(line.data(), static_cast<int>(line.size()), pipe.get()) != nullptr) {
    if (auto const* at = std::strstr(line.data(), "Collected :")) {
      count = std::strtod(at + std::strlen("Collected :"), nullptr);
    }
  }
  return count;
}

/// The difference of a short and a long run, so that starting the program does not count.
[[nodiscard]] auto instructions_of(std::string const& program, bench_case const& c)
    -> std::optional<double> {
  std::size_t const few = c.bytes > 100'000 ? 1 : 10;
  std::size_t const many = c.bytes > 100'000 ? 3 : 110;
  auto const short_run = collected(program, c.name, few);
  auto const long_run = collected(program, c.name, many);
  if (!short_run || !long_run) {
    return std::nullopt;
  }
  return (*long_run - *short_run) / static_cast<double>(many - few);
}

[[nodiscard]] auto seconds_of(std::function<void()> const& work, std::size_t times) -> double {
  return seconds_of({"",
                     [&](std::size_t left) {
                       for (; left != 0; --left) {
                         work();
                       }
                     }},
                    times);
}

}  // namespace

void compare(std::vector<comparison> const& all) {
  for (auto const& each : all) {
    std::size_t times = 1;
    // Slices so short that most of them have the core for themselves.
    while (seconds_of(each.ours, times) < 0.0005) {
      times *= 2;
    }
    double ours = 1e30;
    std::vector<double> others(each.rivals.size(), ours);
    for (int round = 0; round < 300; ++round) {
      ours = std::min(ours, seconds_of(each.ours, times));
      for (std::size_t i = 0; i < others.size(); ++i) {
        others[i] = std::min(others[i], seconds_of(each.rivals[i].run, times));
      }
    }
    auto const scale = 1e9 / static_cast<double>(times);
    std::printf("bench %s octets=%zu ns=%.0f", each.name.c_str(), each.octets, ours * scale);
    for (std::size_t i = 0; i < others.size(); ++i) {
      std::printf(" %s_ns=%.0f", each.rivals[i].name.c_str(), others[i] * scale);
    }
    std::printf(" ratio=%.2f\n", *std::ranges::min_element(others) / ours);
    std::fflush(stdout);
  }
}

auto run_cases(std::vector<bench_case> const& cases, int argc, char** argv) -> int {
  if (argc == 4 && std::string_view(argv[1]) == "--only") {
    for (auto const& c : cases) {
      if (c.name == argv[2]) {
        c.run(std::strtoul(argv[3], nullptr, 10));
      }
    }
    return 0;
  }
  bool count = false;
  std::string prefix;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--instructions") {
      count = true;
    } else if (argv[i][0] == '-') {
      std::fprintf(stderr, "usage: %s [--instructions] [CASE-PREFIX]\n", argv[0]);
      return 2;
    } else {
      prefix = argv[i];
    }
  }
  bool missed = false;
  for (auto const& c : cases) {
    if (!c.name.starts_with(prefix)) {
      continue;
    }
    std::printf("bench %s ns=%.1f allocations=%g", c.name.c_str(), nanoseconds_of(c),
                allocations_of(c));
    if (count) {
      auto const instructions = instructions_of(argv[0], c);
      if (!instructions) {
        std::printf("\n");
        std::fprintf(stderr, "callgrind did not count: is valgrind installed?\n");
        return 2;
      }
      std::printf(" instructions=%.0f", *instructions);
      if (c.bytes != 0) {
        std::printf(" instructions_per_byte=%.2f", *instructions / static_cast<double>(c.bytes));
      }
      if (c.instructions_bar != 0) {
        auto const ratio = *instructions / c.instructions_bar;
        std::printf(" bar=%.0f ratio=%.2f", c.instructions_bar, ratio);
        missed = missed || ratio >= 1;
      }
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  return missed ? 1 : 0;
}

}  // namespace tidegate::bench
