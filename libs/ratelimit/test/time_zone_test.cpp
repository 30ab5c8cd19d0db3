// SPDX-License-Identifier: Apache-2.0
//
// Time zones and windows by the calendar, against what the C library says of every zone of this
// system.
#include <tidegate/ratelimit/calendar.hpp>
#include <tidegate/ratelimit/limiter.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace tidegate::TIDEGATE_ABI::ratelimit {
namespace {

using namespace std::chrono_literals;
using std::chrono::sys_days;
using std::chrono::sys_seconds;

std::string const folder = "/usr/share/zoneinfo/";

auto octets_of(std::string const& path) -> std::string {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

auto parsed(std::string_view octets) -> result<time_zone, time_zone_fault> {
  return time_zone::parse(std::as_bytes(std::span(octets)));
}

auto zone_of(std::string const& name) -> time_zone {
  return parsed(octets_of(folder + name)).value();
}

/// Zones that differ, by one of their names.
auto all_zones() -> std::map<std::string, std::string> const& {
  static auto const zones = [] {
    std::map<std::string, std::string> found;
    std::set<std::string> known;
    if (!std::filesystem::is_directory(folder)) {
      return found;
    }
    for (auto const& each : std::filesystem::recursive_directory_iterator(folder)) {
      auto const name = each.path().string().substr(folder.size());
      if (!each.is_regular_file() || name.starts_with("right/")) {
        continue;
      }
      auto octets = octets_of(each.path());
      if (octets.starts_with("TZif") && known.insert(octets).second) {
        found.emplace(name, std::move(octets));
      }
    }
    return found;
  }();
  return zones;
}

/// What the C library takes for the local time, while it lives.
class c_zone {
 public:
  explicit c_zone(std::string const& name) {
    ::setenv("TZ", (":" + name).c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    ::tzset();
  }
  ~c_zone() {
    ::unsetenv("TZ");  // NOLINT(concurrency-mt-unsafe)
    ::tzset();
  }
  c_zone(c_zone const&) = delete;
  auto operator=(c_zone const&) -> c_zone& = delete;

  [[nodiscard]] static auto shown(std::int64_t at) -> std::tm {
    std::time_t const time = at;
    std::tm fields{};
    ::localtime_r(&time, &fields);
    return fields;
  }
};

class ratelimit_time_zone : public testing::Test {
 protected:
  void SetUp() override {
    if (all_zones().empty()) {
      GTEST_SKIP() << "tzdata is not installed";
    }
  }
};

TEST_F(ratelimit_time_zone, has_the_offsets_of_every_zone_of_the_system_until_2200) {
  constexpr std::int64_t until = 7'258'118'400;
  std::mt19937_64 random(1);
  std::size_t compared = 0;
  for (auto const& [name, octets] : all_zones()) {
    auto const zone = parsed(octets);
    ASSERT_TRUE(zone.has_value()) << name << ": " << message(zone.error());
    c_zone const c(name);
    auto const compare = [&](std::int64_t at) {
      ++compared;
      ASSERT_EQ(zone->changes()[zone->at(at)].offset, c_zone::shown(at).tm_gmtoff)
          << name << " at " << at;
    };
    for (auto const& change : zone->changes()) {
      if (change.since > -3'000'000'000 && change.since < until) {
        compare(change.since - 1);
        compare(change.since);
      }
    }
    for (int i = 0; i < 500; ++i) {
      compare(static_cast<std::int64_t>(random() % until));
    }
    if (HasFatalFailure()) {
      return;
    }
  }
  std::cout << "[          ] " << all_zones().size() << " zones, " << compared << " offsets\n";
}

TEST_F(ratelimit_time_zone, has_windows_of_23_and_25_hours_where_clocks_change) {
  auto const berlin = zone_of("Europe/Berlin");
  using namespace std::chrono;
  struct row {
    sys_seconds at;
    calendar_unit unit;
    sys_seconds begin;
    seconds length;
  };
  auto const local = [](year_month_day day, int hour, int offset) {
    return sys_seconds(sys_days(day)) + hours(hour - offset);
  };
  for (auto const& [at, unit, begin, length] : {
           row{local(2026y / March / 29, 12, 2), calendar_unit::day, local(2026y / 3 / 29, 0, 1),
               23h},
           {local(2026y / October / 25, 23, 1), calendar_unit::day, local(2026y / 10 / 25, 0, 2),
            25h},
           {local(2026y / October / 25, 12, 1), calendar_unit::week, local(2026y / 10 / 19, 0, 2),
            7 * 24h + 1h},
           {local(2026y / October / 31, 12, 1), calendar_unit::month, local(2026y / 10 / 1, 0, 2),
            31 * 24h + 1h},
           {local(2028y / February / 29, 12, 1), calendar_unit::month, local(2028y / 2 / 1, 0, 1),
            29 * 24h},
           {local(2027y / February / 1, 0, 1), calendar_unit::month, local(2027y / 2 / 1, 0, 1),
            28 * 24h},
           // The hour from 2 to 3 comes twice.
           {local(2026y / October / 25, 2, 2), calendar_unit::hour, local(2026y / 10 / 25, 2, 2),
            1h},
           {local(2026y / October / 25, 2, 1), calendar_unit::hour, local(2026y / 10 / 25, 2, 1),
            1h},
           {local(2026y / March / 29, 1, 1), calendar_unit::hour, local(2026y / 3 / 29, 1, 1), 1h},
       }) {
    EXPECT_EQ(window_at(berlin, unit, at), (calendar_window{begin, begin + length}))
        << at.time_since_epoch().count() << " " << name_of(unit);
  }
  auto const kolkata = zone_of("Asia/Kolkata");
  auto const noon = sys_seconds(sys_days(2026y / 7 / 1)) + 12h;
  EXPECT_EQ(window_at(kolkata, calendar_unit::hour, noon),
            (calendar_window{noon - 30min, noon + 30min}));
  // Clocks of Lord Howe are changed by half an hour: forward over 2:00, back to 1:30.
  auto const lord_howe = zone_of("Australia/Lord_Howe");
  auto const forward = sys_seconds(sys_days(2026y / 10 / 3)) + 15h + 30min;
  EXPECT_EQ(window_at(lord_howe, calendar_unit::hour, forward),
            (calendar_window{forward, forward + 30min}));
  auto const back = sys_seconds(sys_days(2026y / 4 / 4)) + 15h;
  EXPECT_EQ(window_at(lord_howe, calendar_unit::hour, back),
            (calendar_window{back - 1h, back + 30min}));
  // Samoa had no 30th of December in 2011.
  auto const apia = zone_of("Pacific/Apia");
  auto const last = sys_seconds(sys_days(2011y / 12 / 30)) + 9h;
  EXPECT_EQ(window_at(apia, calendar_unit::day, last), (calendar_window{last - 23h, last + 1h}));
  EXPECT_EQ(window_at(apia, calendar_unit::day, last + 1h),
            (calendar_window{last + 1h, last + 25h}));
}

/// What windows there are, in steps of five minutes, from what clocks show alone: a day, week or
/// month is a new one when its date is later than any before; an hour when it begins or one was
/// left out.
class steps {
 public:
  steps(std::int64_t begin, std::int64_t end) : begin_(begin) {
    std::array<std::int64_t, 4> latest{};
    std::array<std::size_t, 4> number{};
    std::int64_t hour_before = 0;
    for (auto at = begin; at < end; at += step) {
      auto const fields = c_zone::shown(at);
      auto const local = at + fields.tm_gmtoff;
      auto const days = local >= 0 ? local / 86'400 : (local - 86'399) / 86'400;
      auto const hours = local >= 0 ? local / 3600 : (local - 3599) / 3600;
      std::array<std::int64_t, 4> const shown = {
          hours, days, (days + 3) / 7,
          static_cast<std::int64_t>(fields.tm_year) * 12 + fields.tm_mon};
      for (std::size_t unit = 1; unit < 4; ++unit) {
        if (at == begin || shown[unit] > latest[unit]) {
          latest[unit] = shown[unit];
          ++number[unit];
        }
      }
      if (at == begin || local % 3600 == 0 || hours > hour_before) {
        ++number[0];
      }
      hour_before = hours;
      for (std::size_t unit = 0; unit < 4; ++unit) {
        numbers_[unit].push_back(number[unit]);
      }
    }
  }

  [[nodiscard]] auto number_at(std::size_t unit, std::int64_t at) const -> std::size_t {
    return numbers_[unit][static_cast<std::size_t>((at - begin_) / step)];
  }
  /// When the next window begins; nothing behind the end.
  [[nodiscard]] auto end_of(std::size_t unit, std::int64_t at) const
      -> std::optional<std::int64_t> {
    auto const& all = numbers_[unit];
    auto const later = std::ranges::upper_bound(all, number_at(unit, at));
    return later == all.end() ? std::nullopt : std::optional(begin_ + (later - all.begin()) * step);
  }

  static constexpr std::int64_t step = 300;

 private:
  std::int64_t begin_;
  std::array<std::vector<std::size_t>, 4> numbers_;
};

TEST_F(ratelimit_time_zone, decides_by_the_calendar_of_every_zone_of_the_system) {
  constexpr std::int64_t day = 86'400;
  std::mt19937_64 random(2);
  auto const below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  constexpr std::array units = {calendar_unit::hour, calendar_unit::day, calendar_unit::week,
                                calendar_unit::month};
  std::size_t decisions = 0;
  std::size_t refused = 0;
  for (auto const& [name, octets] : all_zones()) {
    auto const zone = std::make_shared<time_zone const>(parsed(octets).value());
    c_zone const c(name);
    // Around two changes of its clocks since 1970, and a leap day.
    std::vector<std::int64_t> middles{
        sys_seconds(sys_days(std::chrono::year(2028) / 2 / 29)).time_since_epoch().count()};
    auto const changes = zone->changes();
    for (int i = 0; i < 2; ++i) {
      auto const& any = changes[static_cast<std::size_t>(below(std::ssize(changes)))];
      if (any.since > 0 && any.since < 4'000'000'000 && any.since % steps::step == 0 &&
          any.offset % steps::step == 0) {
        middles.push_back(any.since);
      }
    }
    for (auto const middle : middles) {
      auto const begin = (middle - 40 * day) / steps::step * steps::step;
      auto const end = begin + 80 * day;
      steps const expected(begin, end);
      for (std::size_t unit = 0; unit < 4; ++unit) {
        auto const length = usual_length(units[unit]).count();
        auto const p = policy::make({.quota = 3,
                                     .window = usual_length(units[unit]),
                                     .algorithm = algorithm::fixed,
                                     .is_calendar = true})
                           .value();
        calendar_rule const rule{units[unit], name, zone};
        bucket b;
        std::map<std::size_t, std::int64_t> used;
        auto at = begin + (unit == 0 ? day : unit == 1 ? 2 * day : unit == 2 ? 8 * day : 32 * day);
        auto const step = std::min(length / 3, 80 * day / 250);
        for (; at < end - steps::step; at += below(2 * step)) {
          // The clock of decisions began at some other time.
          instant const now{std::chrono::seconds(at - 1'000'000) + 500ms};
          auto const wall =
              std::chrono::sys_time<std::chrono::nanoseconds>(std::chrono::seconds(at) + 500ms);
          auto const current = in_window_of(p, rule, now, wall);
          auto& spent = used[expected.number_at(unit, at)];
          auto const verdict = spend(current, b, now, 1);
          ASSERT_EQ(verdict.admitted, spent < 3) << name << " " << name_of(rule.unit) << " " << at;
          spent += verdict.admitted ? 1 : 0;
          ++decisions;
          refused += verdict.admitted ? 0 : 1;
          if (auto const next = expected.end_of(unit, at)) {
            ASSERT_EQ(verdict.left.reset, std::chrono::seconds(*next - at) - 500ms)
                << name << " " << name_of(rule.unit) << " " << at;
          }
        }
      }
    }
  }
  std::cout << "[          ] " << decisions << " decisions, " << refused << " refused\n";
  EXPECT_GT(decisions, 1'000'000U);
  EXPECT_GT(refused, decisions / 10);
}

// ---- files ----

/// A file of version 2 with no changes of its own, and a rule.
auto with_rule(std::string const& rule) -> std::string {
  auto const head = [](char version, char kinds) {
    return std::string("TZif") + version + std::string(15, '\0') + std::string(19, '\0') + kinds +
           std::string(3, '\0') + '\4';
  };
  std::string const kind("\0\0\0\0\0\0ABC\0", 10);
  return head('2', '\1') + kind + head('2', '\1') + kind + "\n" + rule + "\n";
}

TEST(ratelimit_time_zone_rule, is_read_as_posix_writes_it) {
  struct row {
    char const* rule;
    std::int64_t at;
    int offset;
  };
  constexpr std::int64_t winter = 1'767'225'600;  // the first of January 2026
  constexpr std::int64_t march = 1'772'344'800;   // the first, at six
  constexpr std::int64_t summer = 1'782'864'000;  // the first of July
  for (auto const& [rule, at, offset] : {
           row{"UTC0", winter, 0},
           {"<+0330>-3:30", winter, 12'600},
           {"CET-1CEST,M3.5.0,M10.5.0/3", winter, 3600},
           {"CET-1CEST,M3.5.0,M10.5.0/3", summer, 7200},
           {"IST-1GMT0,M10.5.0,M3.5.0/1", winter, 0},
           {"IST-1GMT0,M10.5.0,M3.5.0/1", summer, 3600},
           {"EST5EDT,0/0,J365/25", winter, -14'400},
           {"EST5EDT,0/0,J365/25", winter - 1, -14'400},
           {"EST5EDT,0/0,J365/25", summer, -14'400},
           {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", summer, -3600},
           {"AAA3BBB,J60,J61", march, -7200},
           {"AAA3BBB,59,60", march, -7200},
       }) {
    auto const zone = parsed(with_rule(rule));
    ASSERT_TRUE(zone.has_value()) << rule;
    EXPECT_EQ(zone->changes()[zone->at(at)].offset, offset) << rule << " at " << at;
  }
}

TEST(ratelimit_time_zone_rule, is_refused_when_it_is_written_otherwise) {
  for (auto const* const rule :
       {"X", "CET", "CET-25", "CET-1CEST", "CET-1CEST,", "CET-1CEST,M3.5.0", "CET-1CEST,M13.5.0,J1",
        "CET-1CEST,M3.6.0,J1", "CET-1CEST,M3.5.7,J1", "CET-1CEST,J0,J1", "CET-1CEST,J366,J1",
        "CET-1CEST,M3.5.0/168,J1", "CET-1CEST,M3.5.0,M10.5.0/3x", "<+03-3", "<>-3", "CET-1:60",
        "CET--1", "CET-99999999999999999999"}) {
    auto const zone = parsed(with_rule(rule));
    ASSERT_FALSE(zone.has_value()) << rule;
    EXPECT_EQ(zone.error(), time_zone_fault::bad_rule) << rule;
  }
}

TEST_F(ratelimit_time_zone, is_refused_when_its_file_is_cut_off_anywhere) {
  auto const whole = octets_of(folder + "Europe/Berlin");
  ASSERT_TRUE(parsed(whole).has_value());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(parsed(std::string_view(whole).substr(0, size)).has_value()) << size;
  }
}

TEST(ratelimit_time_zone_file, is_refused_with_what_is_wrong) {
  auto const changed = [](std::size_t at, std::string_view octets) {
    auto file = with_rule("UTC0");
    return file.replace(at, octets.size(), octets);
  };
  using namespace std::string_view_literals;
  struct row {
    std::string file;
    time_zone_fault fault;
  };
  for (auto const& [file, fault] : {
           row{"", time_zone_fault::cut_off},
           {std::string(100, 'x'), time_zone_fault::not_tzif},
           {changed(4, "1"), time_zone_fault::not_tzif},
           {changed(32, "\xff\xff\xff\xff"sv), time_zone_fault::too_large},
           {changed(36, "\0\0\0\0"sv), time_zone_fault::bad_change},
           {changed(54 + 44, "\x7f"sv), time_zone_fault::bad_offset},
           {changed(54 + 44, "\x80\0\0\0"sv), time_zone_fault::bad_offset},
           {std::string(70'000, '\0'), time_zone_fault::too_large},
       }) {
    auto const zone = parsed(file);
    ASSERT_FALSE(zone.has_value());
    EXPECT_EQ(zone.error(), fault) << message(zone.error());
  }
}

// ---- the limiter ----

TEST(ratelimit_calendar, keeps_a_window_though_its_clock_is_set_a_little) {
  auto const p =
      policy::make({.quota = 2, .window = 24h, .algorithm = algorithm::fixed, .is_calendar = true})
          .value();
  calendar_rule const rule{calendar_unit::day, "UTC", std::make_shared<time_zone const>()};
  using wall_time = std::chrono::sys_time<std::chrono::nanoseconds>;
  auto const midnight = wall_time(sys_days(std::chrono::year(2026) / 5 / 5));
  auto const at = [&](std::chrono::nanoseconds now, std::chrono::nanoseconds wall) {
    return in_window_of(p, rule, instant(now), midnight + wall);
  };
  bucket b;
  EXPECT_TRUE(spend(at(10h, -2h), b, instant(10h), 1).admitted);
  EXPECT_TRUE(spend(at(11h, -59min), b, instant(11h), 1).admitted);
  auto const refused = spend(at(11h, -30min), b, instant(11h), 1);
  EXPECT_FALSE(refused.admitted);
  EXPECT_EQ(refused.retry, 30min);
  EXPECT_TRUE(spend(at(11h + 40min, 10min), b, instant(11h + 40min), 2).admitted);
  // Back before midnight: the new window has begun all the same.
  EXPECT_FALSE(spend(at(11h + 41min, -10min), b, instant(11h + 41min), 1).admitted);
  b = settle(at(12h, 30min), b, instant(11h), instant(12h), -1);
  EXPECT_EQ(look(at(12h, 30min), b, instant(12h)).remaining, 0) << "that was the day before";
  b = settle(at(12h, 30min), b, instant(11h + 40min), instant(12h), -1);
  EXPECT_EQ(look(at(12h, 30min), b, instant(12h)).remaining, 1);
  EXPECT_EQ(look(at(12h, 30min), b, instant(12h)).reset, 23h + 30min);
  b = settle(at(36h, 24h + 30min), b, instant(11h + 40min), instant(36h), 1);
  EXPECT_EQ(look(at(36h, 24h + 30min), b, instant(36h)).remaining, 1)
      << "counts against what follows";
}

TEST(ratelimit_calendar, is_for_fixed_windows) {
  EXPECT_EQ(policy::make({.quota = 2, .window = 24h, .is_calendar = true}).error(),
            policy_fault::calendar_not_allowed);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::ratelimit
