// SPDX-License-Identifier: Apache-2.0
#include "top/view.hpp"

#include <tidegate/http/date.hpp>
#include <tidegate/json/writer.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <utility>

namespace tidegate::app::top {

namespace {

/// With so many digits behind the point.
[[nodiscard]] auto fixed_words(double number, int digits) -> std::string {
  std::array<char, 400> text{};  // more than the largest number takes
  auto const end = std::to_chars(text.data(), text.data() + text.size(), number,
                                 std::chars_format::fixed, digits);
  return {text.data(), end.ptr};
}

/// Five or six characters, whatever the size.
[[nodiscard]] auto short_number(double number) -> std::string {
  if (number < 100) {
    return fixed_words(number, 1);
  }
  if (number < 100'000) {
    return fixed_words(number, 0);
  }
  return number < 1e8 ? fixed_words(number / 1e3, 0) + "k" : fixed_words(number / 1e6, 0) + "M";
}

/// Of what is counted, which has no parts.
[[nodiscard]] auto short_count(std::int64_t number) -> std::string {
  return number < 100'000 ? std::to_string(number) : short_number(static_cast<double>(number));
}

[[nodiscard]] auto octets(double number) -> std::string {
  return number < (1 << 30) ? fixed_words(number / (1 << 20), 1) + " MiB"
                            : fixed_words(number / (1 << 30), 1) + " GiB";
}

[[nodiscard]] auto window_words(std::int64_t seconds) -> std::string {
  constexpr std::array<std::pair<std::int64_t, char>, 3> units = {
      {{86'400, 'd'}, {3600, 'h'}, {60, 'm'}}};
  for (auto const& [length, name] : units) {
    if (seconds >= length && seconds % length == 0) {
      return std::to_string(seconds / length) + name;
    }
  }
  return std::to_string(seconds) + "s";
}

/// What was counted between two snapshots. A counter that went back belongs to a
/// gateway that was restarted.
class difference {
 public:
  difference(snapshot const& now, snapshot const* before)
      : before_(before),
        seconds_(before == nullptr
                     ? 0
                     : std::chrono::duration<double>(now.taken - before->taken).count()) {}

  [[nodiscard]] auto has_rates() const noexcept -> bool { return seconds_ > 0; }
  [[nodiscard]] auto seconds() const noexcept -> double { return seconds_; }
  [[nodiscard]] auto before() const noexcept -> snapshot const* { return before_; }

  [[nodiscard]] static auto grown(std::uint64_t now, std::uint64_t before) noexcept
      -> std::uint64_t {
    return now >= before ? now - before : now;
  }
  [[nodiscard]] auto rate(std::uint64_t now, std::uint64_t before) const noexcept -> double {
    return has_rates() ? static_cast<double>(grown(now, before)) / seconds_ : 0;
  }
  [[nodiscard]] auto rate_words(double rate) const -> std::string {
    return has_rates() ? short_number(rate) : "-";
  }

  /// The figures of the same name before; zeros where there were none.
  template <class Figures>
  [[nodiscard]] auto old(std::map<std::string, Figures> snapshot::*of,
                         std::string const& name) const -> Figures {
    if (before_ == nullptr) {
      return {};
    }
    auto const found = (before_->*of).find(name);
    return found == (before_->*of).end() ? Figures() : found->second;
  }

 private:
  snapshot const* before_;
  double seconds_;
};

/// How long requests took since the snapshot before, in milliseconds.
struct latency {
  std::optional<double> mean{};
  std::optional<double>
      most{};  ///< 99 of 100 took at most this; without it, longer than was measured
  bool is_beyond = false;
};

[[nodiscard]] auto latency_of(route_figures const& now, route_figures const& before) -> latency {
  latency made;
  auto const requests = difference::grown(now.requests, before.requests);
  if (requests == 0) {
    return made;
  }
  auto const is_anew = now.requests < before.requests;
  made.mean = std::max(0.0, now.seconds - (is_anew ? 0 : before.seconds)) * 1000 /
              static_cast<double>(requests);
  auto const wanted = static_cast<double>(requests) * 0.99;
  made.is_beyond = true;
  for (auto const& [bound, count] : now.within) {
    auto const found = before.within.find(bound);
    auto const grown = difference::grown(count, found == before.within.end() ? 0 : found->second);
    if (static_cast<double>(grown) >= wanted) {
      made.most = bound * 1000;
      made.is_beyond = false;
      break;
    }
  }
  return made;
}

/// Rows under a head; the first column takes the room that is left, and is cut where it has to be.
class table {
 public:
  using row = std::vector<std::string>;

  explicit table(row head) : head_(std::move(head)) {}
  void add(row cells) { rows_.push_back(std::move(cells)); }
  /// What is in this column stands out, unless it is nothing.
  void mark(std::size_t column) { marked_ = column; }
  [[nodiscard]] auto size() const noexcept -> std::size_t { return rows_.size(); }

  void append_to(std::string& out, std::size_t columns, std::size_t rows_most,
                 explain::colours colour) const {
    auto const widths = widths_for(columns);
    bool const is_coloured = colour == explain::colours::on;
    out += is_coloured ? "\x1b[7m" : "";
    append_row(out, head_, widths, 0);
    out += is_coloured ? "\x1b[0m\n" : "\n";
    for (std::size_t i = 0; i < std::min(rows_most, rows_.size()); ++i) {
      append_row(out, rows_[i], widths, is_coloured ? marked_ : 0);
      out += "\n";
    }
  }

 private:
  /// How wide columns are; those at the end that find no room are left out.
  [[nodiscard]] auto widths_for(std::size_t columns) const -> std::vector<std::size_t> {
    constexpr std::size_t first_min = 12;
    std::vector<std::size_t> widths(1, 0);
    std::size_t used = 0;
    for (std::size_t i = 1; i < head_.size(); ++i) {
      auto width = head_[i].size();
      for (auto const& each : rows_) {
        width = std::max(width, each[i].size());
      }
      if (used + width + 2 + first_min > columns) {
        break;
      }
      used += width + 2;
      widths.push_back(width);
    }
    widths[0] = std::max(columns, first_min) - used;
    return widths;
  }

  static void append_row(std::string& out, row const& cells, std::vector<std::size_t> const& widths,
                         std::size_t marked) {
    auto const& first = cells[0];
    bool const is_cut = first.size() > widths[0];
    out += is_cut ? first.substr(0, widths[0] - 1) + "+" : first;
    out.append(is_cut ? 0 : widths[0] - first.size(), ' ');
    for (std::size_t i = 1; i < widths.size(); ++i) {
      out.append(2 + widths[i] - std::min(widths[i], cells[i].size()), ' ');
      bool const stands_out =
          i == marked && cells[i].find_first_of("123456789") != std::string::npos;
      out += stands_out ? "\x1b[33m" + cells[i] + "\x1b[0m" : cells[i];
    }
  }

  row head_;
  std::size_t marked_ = 0;  // the first column never is
  std::vector<row> rows_;
};

/// The names of a map, the busiest first.
template <class Figures>
[[nodiscard]] auto busiest(std::map<std::string, Figures> const& of,
                           std::function<double(std::string const&, Figures const&)> const& rate)
    -> std::vector<std::string> {
  std::vector<std::pair<double, std::string>> ranked;
  for (auto const& [name, figures] : of) {
    ranked.emplace_back(-rate(name, figures), name);
  }
  std::ranges::sort(ranked);
  std::vector<std::string> names;
  for (auto& [rank, name] : ranked) {
    names.push_back(std::move(name));
  }
  return names;
}

[[nodiscard]] auto milliseconds(std::optional<double> time, bool is_beyond = false) -> std::string {
  return is_beyond ? ">5000" : time ? short_number(*time) : "-";
}

[[nodiscard]] auto routes_table(snapshot const& now, difference const& since) -> table {
  table made({"ROUTE", "req/s", "2xx/s", "4xx/s", "5xx/s", "429/s", "replay/s", "mean ms", "p99 ms",
              "requests"});
  made.mark(5);
  auto const names =
      busiest<route_figures>(now.routes, [&](std::string const& name, route_figures const& route) {
        auto const before = since.old(&snapshot::routes, name);
        return since.has_rates() ? since.rate(route.requests, before.requests)
                                 : static_cast<double>(route.requests);
      });
  for (auto const& name : names) {
    auto const& route = now.routes.at(name);
    auto const before = since.old(&snapshot::routes, name);
    auto const took = latency_of(route, before);
    auto const rate = [&](std::uint64_t count, std::uint64_t then) {
      return since.rate_words(since.rate(count, then));
    };
    made.add({explain::printable(name), rate(route.requests, before.requests),
              rate(route.by_class[2], before.by_class[2]),
              rate(route.by_class[4], before.by_class[4]),
              rate(route.by_class[5], before.by_class[5]), rate(route.throttled, before.throttled),
              rate(route.replayed, before.replayed), milliseconds(took.mean),
              milliseconds(took.most, took.is_beyond), std::to_string(route.requests)});
  }
  return made;
}

[[nodiscard]] auto quota_words(policy_figures const& policy) -> std::string {
  auto text = policy.unit == "content-bytes" ? octets(static_cast<double>(policy.quota))
                                             : std::to_string(policy.quota);
  if (policy.window) {
    text += "/" + window_words(*policy.window);
  } else if (policy.unit == "concurrent-requests") {
    text += " at once";
  }
  return policy.enforced ? text : text + " shadow";
}

[[nodiscard]] auto policies_table(snapshot const& now, difference const& since) -> table {
  table made({"POLICY", "quota", "admitted/s", "refused/s", "blocked/s", "admitted", "refused"});
  made.mark(3);
  auto const names = busiest<policy_figures>(
      now.policies, [&](std::string const& name, policy_figures const& policy) {
        auto const before = since.old(&snapshot::policies, name);
        return since.has_rates()
                   ? since.rate(policy.admitted + policy.refused, before.admitted + before.refused)
                   : static_cast<double>(policy.admitted + policy.refused);
      });
  for (auto const& name : names) {
    auto const& policy = now.policies.at(name);
    auto const before = since.old(&snapshot::policies, name);
    // What a shadow policy would have refused is what people want to know of it.
    auto const refused = policy.refused + policy.shadow_refused;
    made.add({explain::printable(name), quota_words(policy),
              since.rate_words(since.rate(policy.admitted, before.admitted)),
              since.rate_words(since.rate(refused, before.refused + before.shadow_refused)),
              since.rate_words(since.rate(policy.blocked, before.blocked)),
              std::to_string(policy.admitted), std::to_string(refused)});
  }
  return made;
}

/// `12 s`, `23 h 49 min`: the two largest units.
[[nodiscard]] auto duration_words(std::int64_t seconds) -> std::string {
  constexpr std::array<std::pair<std::int64_t, std::string_view>, 4> units = {
      {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}}};
  std::string out;
  std::size_t used = 0;
  for (auto const& [size, name] : units) {
    auto const number = seconds / size;
    if (number == 0 || used == 2) {
      used += used > 0 ? 1 : 0;
      continue;
    }
    out += (out.empty() ? "" : " ") + std::to_string(number) + " " + std::string(name);
    seconds -= number * size;
    ++used;
  }
  return out.empty() ? "0 s" : out;
}

[[nodiscard]] auto partitions_table(snapshot const& now) -> table {
  table made({"HOTTEST PARTITIONS", "policy", "req/s", "refused/s", "left", "of", "resets in"});
  auto const seconds = static_cast<double>(std::max<std::int64_t>(1, now.partition_window));
  for (auto const& each : now.partitions) {
    made.add({explain::printable(each.text), explain::printable(each.policy.substr(0, 20)),
              short_number(each.requests / seconds), short_number(each.refused / seconds),
              short_count(each.remaining), short_count(each.quota),
              each.reset ? duration_words(*each.reset) : "-"});
  }
  return made;
}

[[nodiscard]] auto first_line(snapshot const& now, difference const& since, view_options const& how)
    -> std::string {
  auto text = "tidegate " + explain::printable(how.address) + "  " +
              std::to_string(now.connections) +
              (now.connections == 1 ? " connection  " : " connections  ") +
              octets(static_cast<double>(now.memory_octets));
  if (since.has_rates() && now.cpu_seconds >= since.before()->cpu_seconds) {
    text +=
        "  cpu " +
        fixed_words((now.cpu_seconds - since.before()->cpu_seconds) / since.seconds() * 100, 1) +
        " %";
  }
  if (now.waiting > 0) {
    text += "  " + std::to_string(now.waiting) +
            (now.waiting == 1 ? " waits for a key" : " wait for a key");
  }
  return text.substr(0, how.columns);
}

// ── JSON ──

void rate_member(json::writer& out, std::string_view name, difference const& since,
                 std::uint64_t now, std::uint64_t before) {
  if (since.has_rates()) {
    out.member_raw(name, fixed_words(since.rate(now, before), 3));
  }
}

void append_json(json::writer& out, std::string const& name, route_figures const& route,
                 difference const& since) {
  auto const before = since.old(&snapshot::routes, name);
  auto const took = latency_of(route, before);
  out.begin_object().member("name", name).member("requests", route.requests);
  for (std::size_t i = 1; i < route.by_class.size(); ++i) {
    out.member(std::to_string(i) + "xx", route.by_class[i]);
  }
  out.member("throttled", route.throttled).member("replayed", route.replayed);
  out.member("key-conflicts", route.conflicts);
  rate_member(out, "requests-per-second", since, route.requests, before.requests);
  rate_member(out, "throttled-per-second", since, route.throttled, before.throttled);
  rate_member(out, "replayed-per-second", since, route.replayed, before.replayed);
  if (took.mean) {
    out.member_raw("mean-ms", fixed_words(*took.mean, 3));
  }
  if (took.most) {
    out.member_raw("p99-ms", fixed_words(*took.most, 3));
  }
  out.end_object();
}

void append_json(json::writer& out, std::string const& name, policy_figures const& policy,
                 difference const& since) {
  auto const before = since.old(&snapshot::policies, name);
  out.begin_object().member("name", name).member("quota", policy.quota);
  if (policy.window) {
    out.member("window", *policy.window);
  }
  out.member("unit", policy.unit)
      .member("enforced", policy.enforced)
      .member("admitted", policy.admitted)
      .member("refused", policy.refused)
      .member("shadow-refused", policy.shadow_refused)
      .member("blocked", policy.blocked);
  rate_member(out, "admitted-per-second", since, policy.admitted, before.admitted);
  rate_member(out, "refused-per-second", since, policy.refused, before.refused);
  out.end_object();
}

void append_json(json::writer& out, partition_figures const& each) {
  out.begin_object()
      .member("policy", each.policy)
      .member("partition", each.text)
      .member_raw("requests", fixed_words(each.requests, 1))
      .member_raw("refused", fixed_words(each.refused, 1))
      .member("quota", each.quota)
      .member("remaining", each.remaining);
  if (each.reset) {
    out.member("reset", *each.reset);
  }
  out.end_object();
}

}  // namespace

auto to_text(snapshot const& now, snapshot const* before, view_options const& how) -> std::string {
  difference const since(now, before);
  auto const routes = routes_table(now, since);
  auto const policies = policies_table(now, since);
  auto const partitions = partitions_table(now);
  std::string out = first_line(now, since, how) + "\n";
  // The first line, three heads and two empty lines before them; what is left is divided, and what
  // one does not need goes to those after it.
  constexpr std::size_t fixed = 7;
  auto left = how.rows == 0 ? SIZE_MAX : how.rows - std::min(how.rows, fixed);
  std::size_t tables = 3;
  for (auto const* each : {&routes, &policies, &partitions}) {
    auto const share = left == SIZE_MAX ? left : std::min(each->size(), left / tables);
    out += "\n";
    each->append_to(out, how.columns, share, how.colour);
    left -= left == SIZE_MAX ? 0 : share;
    --tables;
  }
  if (how.rows == 0) {
    return out;
  }
  // A terminal that is lower than the heads alone shows their beginning.
  std::size_t end = 0;
  for (std::size_t line = 0; line < how.rows && end < out.size(); ++line) {
    end = std::min(out.find('\n', end), out.size() - 1) + 1;
  }
  return out.substr(0, end);
}

auto to_json(snapshot const& now, snapshot const* before, std::chrono::sys_seconds time)
    -> std::string {
  difference const since(now, before);
  std::string moment;
  http::append_rfc3339(moment, time);
  std::string line;
  json::writer out(line);
  out.begin_object()
      .member("time", moment)
      .member_raw("seconds", since.has_rates() ? fixed_words(since.seconds(), 3) : "null")
      .member("connections", now.connections)
      .member("memory", now.memory_octets)
      .member_raw("cpu-seconds", fixed_words(now.cpu_seconds, 3));
  auto const list = [&](std::string_view name, auto const& of) {
    out.begin_array(name);
    for (auto const& [key, figures] : of) {
      append_json(out, key, figures, since);
    }
    out.end_array();
  };
  list("routes", now.routes);
  list("policies", now.policies);
  out.begin_array("partitions");
  for (auto const& each : now.partitions) {
    append_json(out, each);
  }
  out.end_array().end_object();
  return line + "\n";
}

}  // namespace tidegate::app::top
