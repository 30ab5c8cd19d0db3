// SPDX-License-Identifier: Apache-2.0
//
// Decisions of the limiters in the quota table: on one hot key, on a million keys, with one and two
// threads, for one and three policies; and the memory that a partition takes. The bars are those that
// every case prints beside its own figure, measured in the same run where they are not constants.
#include "harness.hpp"

#include <tidegate/store/quota_table.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <thread>

namespace {

using namespace tidegate;
using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

constexpr std::size_t million = 1'000'000;
constexpr std::size_t key_size = 32;

auto policies() -> std::vector<ratelimit::policy> {
  using enum ratelimit::algorithm;
  return {
      *ratelimit::policy::make({1'000'000, 60s, ratelimit::quota_unit::requests, sliding, {}}),
      *ratelimit::policy::make({100'000'000, 24h, ratelimit::quota_unit::requests, fixed, {}}),
      *ratelimit::policy::make({1'000'000, 1s, ratelimit::quota_unit::requests, gcra, {}}),
  };
}

/// A million keys of 32 bytes one after the other, in an order that says nothing of their hashes.
auto make_keys() -> std::string {
  std::mt19937_64 random(1);
  std::string keys(million * key_size, '\0');
  for (auto& c : keys) {
    c = static_cast<char>('a' + random() % 26);
  }
  return keys;
}

auto key_at(std::string const& keys, std::size_t i) -> std::string_view {
  return std::string_view(keys).substr(i * key_size, key_size);
}

/// One decision on `count` policies.
auto decide(store::quota_table& table, std::span<ratelimit::policy const> policies,
            std::string_view key, instant now) -> bool {
  std::array<store::charge, 3> charges;
  std::array<store::charged, 3> results;
  for (std::size_t i = 0; i < policies.size(); ++i) {
    charges[i] = {&policies[i], static_cast<std::uint32_t>(i), key, 1, true};
  }
  return table.spend({charges.data(), policies.size()}, now, {results.data(), policies.size()});
}

auto ns_of(auto work, std::size_t times) -> double {
  auto best = 1e30;
  for (int i = 0; i < 5; ++i) {
    auto const begin = clock_type::now();
    work();
    best =
        std::min(best, std::chrono::duration<double, std::nano>(clock_type::now() - begin).count());
  }
  return best / static_cast<double>(times);
}

void hot_key(std::span<ratelimit::policy const> policies, char const* name, double bar) {
  store::quota_table table({1000, {1, 2, 3, 4}});
  std::int64_t now = 1'000'000'000'000;
  auto const ns = ns_of(
      [&] {
        for (std::size_t i = 0; i < million; ++i) {
          now += 100;
          bench::keep(decide(table, policies, "an-api-key-of-thirty-two-octets!",
                             instant(std::chrono::nanoseconds(now))));
        }
      },
      million);
  std::printf("bench ratelimit/%s ns=%.1f decisions_per_s=%.0f", name, ns, 1e9 / ns);
  if (bar != 0) {
    std::printf(" bar=%.0f", bar);
  }
  std::printf("\n");
}

/// What one dependent read costs that lands anywhere in so many bytes.
auto random_read_ns(std::size_t bytes) -> double {
  struct alignas(64) line {
    std::size_t next;
  };
  std::vector<line> lines(bytes / sizeof(line));
  std::vector<std::size_t> order(lines.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937_64(2));
  for (std::size_t i = 0; i < order.size(); ++i) {
    lines[order[i]].next = order[(i + 1) % order.size()];
  }
  std::size_t at = 0;
  auto const ns = ns_of(
      [&] {
        for (std::size_t i = 0; i < million; ++i) {
          at = lines[at].next;
        }
        bench::keep(at);
      },
      million);
  return ns;
}

void many_keys(std::string const& keys, std::span<ratelimit::policy const> policies,
               std::vector<std::uint32_t> const& order, char const* name, bool with_memory) {
  store::quota_table table({million * policies.size(), {1, 2, 3, 4}});
  std::int64_t now = 1'000'000'000'000;
  for (std::size_t i = 0; i < million; ++i) {
    bench::keep(decide(table, policies, key_at(keys, i), instant(std::chrono::nanoseconds(now))));
  }
  auto const memory = table.memory();
  // A request's key is in the cache when it is looked up: here, by being copied in order beforehand.
  std::string ordered;
  ordered.reserve(order.size() * key_size);
  for (auto i : order) {
    ordered.append(key_at(keys, i));
  }
  auto const ns = ns_of(
      [&] {
        for (std::size_t i = 0; i < order.size(); ++i) {
          now += 100;
          bench::keep(
              decide(table, policies, key_at(ordered, i), instant(std::chrono::nanoseconds(now))));
        }
      },
      order.size());
  std::printf("bench ratelimit/%s ns=%.1f", name, ns);
  if (with_memory) {
    auto const read = random_read_ns(memory);
    std::printf(" random_read_ns=%.1f ratio=%.2f bar=2.00 bytes_per_partition=%.1f bytes_bar=100",
                read, ns / read,
                static_cast<double>(memory) / static_cast<double>(million * policies.size()));
  }
  std::printf("\n");
}

auto uniform_order() -> std::vector<std::uint32_t> {
  std::vector<std::uint32_t> order(million);
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(3));
  return order;
}

auto zipf_order() -> std::vector<std::uint32_t> {
  std::vector<double> sums(million);
  double sum = 0;
  for (std::size_t i = 0; i < million; ++i) {
    sum += 1 / static_cast<double>(i + 1);
    sums[i] = sum;
  }
  std::mt19937_64 random(4);
  std::uniform_real_distribution<double> any(0, sum);
  std::vector<std::uint32_t> order(million);
  for (auto& i : order) {
    i = static_cast<std::uint32_t>(std::lower_bound(sums.begin(), sums.end(), any(random)) -
                                   sums.begin());
  }
  return order;
}

/// How much faster two threads are than one, each on keys of its own.
void two_threads(std::string const& keys, std::span<ratelimit::policy const> policies) {
  store::quota_table table({million, {1, 2, 3, 4}});
  auto work = [&](std::size_t begin, std::size_t end) {
    std::int64_t now = 1'000'000'000'000;
    for (int round = 0; round < 3; ++round) {
      for (auto i = begin; i < end; ++i) {
        now += 100;
        bench::keep(
            decide(table, policies, key_at(keys, i), instant(std::chrono::nanoseconds(now))));
      }
    }
  };
  work(0, million);
  auto const one = ns_of([&] { work(0, million); }, 3 * million);
  auto const two = ns_of(
      [&] {
        std::jthread other([&] { work(0, million / 2); });
        work(million / 2, million);
      },
      3 * million);
  std::printf("bench ratelimit/two-threads ns=%.1f one_thread_ns=%.1f speedup=%.2f bar=1.80\n", two,
              one, one / two);
}

}  // namespace

auto main(int argc, char** argv) -> int {
  auto const all = policies();
  auto const one = std::span(all).first(1);
  if (argc > 1 && std::string_view(argv[1]) == "--instructions") {
    std::vector<bench::bench_case> cases;
    auto add = [&](char const* name, std::span<ratelimit::policy const> p) {
      cases.push_back({std::string("ratelimit/") + name, [p](std::size_t times) {
                         store::quota_table table({1000, {1, 2, 3, 4}});
                         std::int64_t now = 1'000'000'000'000;
                         for (; times != 0; --times) {
                           now += 100;
                           bench::keep(decide(table, p, "an-api-key-of-thirty-two-octets!",
                                              instant(std::chrono::nanoseconds(now))));
                         }
                       }});
    };
    add("hot-key", one);
    add("hot-key-3", all);
    return bench::run_cases(cases, argc, argv);
  }
  hot_key(one, "hot-key", 40);
  hot_key(all, "hot-key-3", 0);
  auto const keys = make_keys();
  many_keys(keys, one, uniform_order(), "uniform-1m", true);
  many_keys(keys, all, uniform_order(), "uniform-1m-3", false);
  many_keys(keys, one, zipf_order(), "zipf-1m", false);
  two_threads(keys, one);
  return 0;
}
