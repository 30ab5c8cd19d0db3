// SPDX-License-Identifier: Apache-2.0
//
// Decisions of the limiters in the quota table: on one hot key, on a million keys, with one and two
// threads, for one and three policies; the memory that a partition takes; and the fields of a
// response. Every case prints its bar beside its own figure, measured in the same run where it is
// not a constant. Times are CPU time of the thread, but for two threads.
#include "harness.hpp"

#include "support/allocations.hpp"

#include <tidegate/ratelimit/write.hpp>
#include <tidegate/store_quota/quota_table.hpp>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <unordered_map>

namespace {

using namespace tidegate;
using namespace std::chrono_literals;

constexpr std::size_t million = 1'000'000;
constexpr std::size_t key_size = 32;

/// Quotas that no run spends: a refusal is another path, and takes another time.
auto make_policies() -> std::array<ratelimit::policy, 3> {
  using enum ratelimit::algorithm;
  auto make = [](std::int64_t quota, std::chrono::seconds window, ratelimit::algorithm a) {
    return *ratelimit::policy::make({quota, window, ratelimit::quota_unit::requests, a, {}});
  };
  return {make(1'000'000'000, 60s, sliding), make(1'000'000'000, 24h, fixed),
          make(100'000'000, 1s, gcra)};
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

/// One decision on every one of the policies.
template <std::size_t N>
auto decide(store::quota_table& table, std::span<ratelimit::policy const, N> policies,
            std::string_view key, std::int64_t now) -> bool {
  std::array<store::charge, N> charges;
  std::array<store::charged, N> results;
  for (std::size_t i = 0; i < N; ++i) {
    charges[i].policy = &policies[i];
    charges[i].policy_id = static_cast<std::uint32_t>(i);
    charges[i].partition = key;
  }
  bool const admitted = table.spend(charges, instant(std::chrono::nanoseconds(now)), results);
  bench::keep(results.data());
  return admitted;
}

auto wall_ns() -> double {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// What this thread has worked: what others do on the machine counts less.
auto cpu_ns() -> double {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

/// The best of several runs: the one that the machine disturbed least.
auto ns_of(auto work, std::size_t times) -> double {
  auto best = 1e30;
  for (int i = 0; i < 7; ++i) {
    auto const begin = cpu_ns();
    work();
    best = std::min(best, cpu_ns() - begin);
  }
  return best / static_cast<double>(times);
}

constexpr std::string_view hot = "an-api-key-of-thirty-two-octets!";
constexpr std::int64_t start = 1'000'000'000'000;
constexpr std::int64_t step = 100;

/// Gcra as one writes it in ten minutes, for one thread, without a bound on its memory.
class peer {
 public:
  auto decide(std::string_view key, std::int64_t now) -> bool {
    auto& full_at = full_at_[std::string(key)];
    auto const next = std::max(full_at, now) + interval;
    if (next - now > burst * interval) {
      return false;
    }
    full_at = next;
    return true;
  }

 private:
  static constexpr std::int64_t interval = 60;
  static constexpr std::int64_t burst = 1'000'000;
  std::unordered_map<std::string, std::int64_t> full_at_;
};

template <std::size_t N>
void hot_key(std::span<ratelimit::policy const, N> policies, char const* name) {
  store::quota_table table({1000, {1, 2, 3, 4}});
  std::int64_t now = start;
  auto const ns = ns_of(
      [&] {
        for (std::size_t i = 0; i < million; ++i) {
          bench::keep(decide(table, policies, hot, now += step));
        }
      },
      million);
  std::printf("bench ratelimit/%s ns=%.1f decisions_per_s=%.0f", name, ns, 1e9 / ns);
  if (N == 1) {
    peer naive;
    auto const peer_ns = ns_of(
        [&] {
          for (std::size_t i = 0; i < million; ++i) {
            bench::keep(naive.decide(hot, now += step));
          }
        },
        million);
    std::printf(" bar=40 peer_ns=%.1f", peer_ns);
  }
  std::printf("\n");
}

/// A key whose times are kept, ten thousand of them: one ends for each that comes. And the memory
/// that they take.
void hot_log() {
  auto const log = *ratelimit::policy::make({ratelimit::log_quota_max,
                                             60s,
                                             ratelimit::quota_unit::requests,
                                             ratelimit::algorithm::log,
                                             {}});
  std::span<ratelimit::policy const, 1> const one(&log, 1);
  constexpr std::int64_t interval = 6'000'000;  // a quota in 60 seconds
  store::quota_table table({10'000, {1, 2, 3, 4}});
  std::int64_t now = start;
  auto const before = table.memory();
  for (std::int64_t i = 0; i < ratelimit::log_quota_max; ++i) {
    bench::keep(decide(table, one, hot, now += interval));
  }
  auto const ns = ns_of(
      [&] {
        for (std::size_t i = 0; i < million; ++i) {
          bench::keep(decide(table, one, hot, now += interval));
        }
      },
      million);
  std::printf(
      "bench ratelimit/hot-log ns=%.1f decisions_per_s=%.0f bytes_per_unit=%.1f\n", ns, 1e9 / ns,
      static_cast<double>(table.memory() - before) / static_cast<double>(ratelimit::log_quota_max));
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

template <std::size_t N>
void many_keys(std::string const& keys, std::span<ratelimit::policy const, N> policies,
               std::vector<std::uint32_t> const& order, char const* name, bool with_bars) {
  store::quota_table table({million * N, {1, 2, 3, 4}});
  std::int64_t now = start;
  for (std::size_t i = 0; i < million; ++i) {
    bench::keep(decide(table, policies, key_at(keys, i), now));
  }
  auto const memory = table.memory();
  // A request's key is in the cache when it is looked up: here, by being copied in order
  // beforehand.
  std::string ordered;
  ordered.reserve(order.size() * key_size);
  for (auto i : order) {
    ordered.append(key_at(keys, i));
  }
  auto const ns = ns_of(
      [&] {
        for (std::size_t i = 0; i < order.size(); ++i) {
          bench::keep(decide(table, policies, key_at(ordered, i), now += step));
        }
      },
      order.size());
  std::printf("bench ratelimit/%s ns=%.1f", name, ns);
  if (with_bars) {
    auto const read = random_read_ns(memory);
    std::printf(" random_read_ns=%.1f ratio=%.2f bar=2.00 bytes_per_partition=%.1f bytes_bar=100",
                read, ns / read, static_cast<double>(memory) / static_cast<double>(million * N));
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

/// How long `work` took, and whether it had a core to itself meanwhile.
struct timing {
  double ns = 0;
  bool is_undisturbed = false;
};

auto timed(auto work) -> timing {
  auto const cpu = cpu_ns();
  auto const wall = wall_ns();
  work();
  auto const took = wall_ns() - wall;
  return {took, cpu_ns() - cpu > took * 0.98};
}

/// How much faster two threads are than one, each on keys of its own. One thread and two take
/// turns, and a round counts when nothing else ran on the cores meanwhile; the median of the rounds
/// is printed.
template <std::size_t N>
void two_threads(std::string const& keys, std::span<ratelimit::policy const, N> policies,
                 char const* name) {
  store::quota_table table({million * N, {1, 2, 3, 4}});
  auto work = [&](std::size_t begin, std::size_t end) {
    std::int64_t now = start;
    for (auto i = begin; i < end; ++i) {
      bench::keep(decide(table, policies, key_at(keys, i), now += step));
    }
  };
  work(0, million);
  struct round {
    double one_ns;
    double two_ns;
    [[nodiscard]] auto speedup() const -> double { return one_ns / two_ns; }
  };
  std::vector<round> rounds;
  for (int tries = 0; tries < 60 && rounds.size() < 21; ++tries) {
    auto const one = timed([&] { work(0, million); });
    std::barrier<> begin(2);
    timing first;
    timing second;
    {
      std::jthread const other([&] {
        begin.arrive_and_wait();
        first = timed([&] { work(0, million / 2); });
      });
      begin.arrive_and_wait();
      second = timed([&] { work(million / 2, million); });
    }
    if (one.is_undisturbed && first.is_undisturbed && second.is_undisturbed) {
      // Until the slower one is done.
      rounds.push_back({one.ns / million, std::max(first.ns, second.ns) / million});
    }
  }
  if (rounds.empty()) {
    std::printf("ratelimit/%s: other work kept the cores busy, so nothing was measured\n", name);
    return;
  }
  std::ranges::sort(rounds, {}, &round::speedup);
  auto const& median = rounds[rounds.size() / 2];
  std::printf("bench ratelimit/%s ns=%.1f one_thread_ns=%.1f speedup=%.2f bar=1.80 rounds=%zu\n",
              name, median.two_ns, median.one_ns, median.speedup(), rounds.size());
}

/// Both fields of a response that three policies were met by.
class response {
 public:
  response() {
    policy_field_.reserve(256);
    limit_field_.reserve(256);
  }
  void write(std::int64_t i) {
    std::array<ratelimit::service_limit_view, 3> const limits = {{
        {999'999 - i % 1000, std::chrono::nanoseconds(60s) - i * 100ns},
        {99'999'999 - i % 1000, std::chrono::nanoseconds(24h) - i * 100ns},
        {1000 - i % 1000, std::chrono::nanoseconds(1s)},
    }};
    policy_field_.clear();
    limit_field_.clear();
    prepared_.append_policies(policy_field_, limits);
    prepared_.append_limits(limit_field_, limits);
    bench::keep(policy_field_.data());
    bench::keep(limit_field_.data());
  }

 private:
  static constexpr std::array<ratelimit::quota_policy_view, 3> policies = {{
      {"minute", 1'000'000, "requests", 60s},
      {"day", 100'000'000, "requests", 24h},
      {"burst", 1'000'000, "requests", 1s},
  }};
  ratelimit::prepared_fields prepared_{policies, ratelimit::draft::draft_09};
  std::string policy_field_;
  std::string limit_field_;
};

void fields() {
  response to;
  auto work = [&] {
    for (std::size_t i = 0; i < million; ++i) {
      to.write(static_cast<std::int64_t>(i));
    }
  };
  auto const before = test::allocations();
  auto const ns = ns_of(work, million);
  std::printf("bench ratelimit/fields ns=%.1f allocations=%llu bar=120\n", ns,
              static_cast<unsigned long long>(test::allocations() - before));
}

/// What `--instructions` counts; the harness runs one of them at a time under callgrind. What they
/// need is made beforehand.
auto counted_cases(std::span<ratelimit::policy const, 1> one,
                   std::span<ratelimit::policy const, 3> all) -> std::vector<bench::bench_case> {
  struct requests {
    store::quota_table table{{10'000, {1, 2, 3, 4}}};
    std::vector<std::string> keys;
    std::int64_t now = start;
  };
  auto on_keys = [](auto policies, std::size_t count) {
    auto const r = std::make_shared<requests>();
    for (std::size_t i = 0; i < count; ++i) {
      r->keys.push_back(std::to_string(1'000'000 + i) + "-and-25-octets-of-the-key");
      bench::keep(decide(r->table, policies, r->keys.back(), r->now));
    }
    return [r, policies](std::size_t times) {
      for (std::size_t i = 0; i < times; ++i) {
        bench::keep(decide(r->table, policies, r->keys[i % r->keys.size()], r->now += step));
      }
    };
  };
  auto fields = [to = std::make_shared<response>()](std::size_t times) {
    for (; times != 0; --times) {
      to->write(static_cast<std::int64_t>(times));
    }
  };
  return {{"ratelimit/hot-key", on_keys(one, 1)},
          {"ratelimit/hot-key-3", on_keys(all, 1)},
          {"ratelimit/uniform", on_keys(one, 4096)},
          {"ratelimit/fields", fields}};
}

}  // namespace

auto main(int argc, char** argv) -> int {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  auto const policies = make_policies();
  std::span<ratelimit::policy const, 3> const all(policies);
  auto const one = all.first<1>();
  if (argc > 1) {
    return bench::run_cases(counted_cases(one, all), argc, argv);
  }
  hot_key(one, "hot-key");
  hot_key(all, "hot-key-3");
  hot_log();
  fields();
  auto const keys = make_keys();
  many_keys(keys, one, uniform_order(), "uniform-1m", true);
  many_keys(keys, all, uniform_order(), "uniform-1m-3", false);
  many_keys(keys, one, zipf_order(), "zipf-1m", false);
  many_keys(keys, all, zipf_order(), "zipf-1m-3", false);
  two_threads(keys, one, "two-threads");
  two_threads(keys, all, "two-threads-3");
  return 0;
}
