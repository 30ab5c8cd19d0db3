// SPDX-License-Identifier: Apache-2.0
#include "api/api_history.hpp"

#include <tidegate/http/query.hpp>
#include <tidegate/json/writer.hpp>

#include <charconv>
#include <functional>
#include <optional>
#include <system_error>

namespace tidegate::gateway {

namespace {

using sample = traffic_history::sample;

/// Writes series of some of the samples.
class series_writer {
 public:
  series_writer(json::writer& out, traffic_history const& history, std::size_t first)
      : out_(out), history_(history), first_(first) {}

  /// True where `of(sample)` is not 0 in one of the samples.
  [[nodiscard]] auto has(auto const& value_of) const -> bool {
    for (auto i = first_; i < history_.size(); ++i) {
      if (value_of(history_.at(i)) != 0) {
        return true;
      }
    }
    return false;
  }
  void write(std::string_view name, auto const& value_of) {
    out_.begin_array(name);
    for (auto i = first_; i < history_.size(); ++i) {
      out_.value(value_of(history_.at(i)));
    }
    out_.end_array();
  }
  void write_unless_zero(std::string_view name, auto const& value_of) {
    if (has(value_of)) {
      write(name, value_of);
    }
  }

 private:
  json::writer& out_;
  traffic_history const& history_;
  std::size_t first_;
};

void write_policies(json::writer& out, series_writer& series, traffic_history const& history) {
  using counts = traffic_history::policy_counts;
  out.begin_array("policies");
  for (std::size_t i = 0; i < traffic_history::policies_max; ++i) {
    auto const count = [i](std::uint32_t counts::*member) {
      return [i, member](sample const& each) { return each.policies[i].*member; };
    };
    if (series.has(count(&counts::admitted)) || series.has(count(&counts::refused)) ||
        series.has(count(&counts::shadow_refused))) {
      out.begin_object().member("name", history.policy_name(i));
      series.write_unless_zero("admitted", count(&counts::admitted));
      series.write_unless_zero("refused", count(&counts::refused));
      series.write_unless_zero("shadow-refused", count(&counts::shadow_refused));
      out.end_object();
    }
  }
  out.end_array();
}

}  // namespace

auto history_json(traffic_history const& history, std::size_t first, two_clocks now)
    -> std::string {
  std::string text;
  json::writer out(text);
  series_writer series(out, history, first);
  out.begin_object().member("interval", traffic_history::interval.count());
  out.member("first", history.dropped() + first);
  series.write("at", [&](sample const& each) {
    auto const ended = now.wall - std::chrono::duration_cast<std::chrono::system_clock::duration>(
                                      now.steady - each.at);
    return std::chrono::duration_cast<std::chrono::milliseconds>(ended.time_since_epoch()).count();
  });
  out.begin_object("responses");
  for (std::size_t i = 0; i < traffic_sums::response_names.size(); ++i) {
    series.write_unless_zero(traffic_sums::response_names[i],
                             [i](sample const& each) { return each.responses[i]; });
  }
  out.end_object().begin_object("latency");
  for (std::size_t i = 0; i < traffic_history::latency_shares.size(); ++i) {
    series.write("p" + std::to_string(traffic_history::latency_shares[i]), [i](sample const& each) {
      auto const known = each.latency[i];
      return known == traffic_history::no_latency ? std::nullopt : std::optional(known);
    });
  }
  out.end_object().begin_object("keys");
  for (std::size_t i = 0; i < traffic_sums::key_names.size(); ++i) {
    series.write_unless_zero(traffic_sums::key_names[i],
                             [i](sample const& each) { return each.keys[i]; });
  }
  out.end_object();
  series.write_unless_zero("upstream-failures",
                           [](sample const& each) { return each.upstream_failures; });
  write_policies(out, series, history);
  out.end_object();
  return text;
}

auto answer_history(traffic_history const& history, admin_request const& request, two_clocks now)
    -> admin_answer {
  std::int64_t seconds = traffic_history::kept.count();
  std::string scratch;
  if (auto const text = http::query_value(request.query, "seconds", scratch)) {
    auto const [end, fault] = std::from_chars(text->data(), text->data() + text->size(), seconds);
    if (fault != std::errc{} || end != text->data() + text->size() || seconds < 1 ||
        seconds > traffic_history::kept.count()) {
      return admin_problem(400, "seconds is a number from 1 to 3600.");
    }
  }
  auto const first = history.first_after(now.steady - std::chrono::seconds(seconds));
  return admin_json(history_json(history, first, now));
}

}  // namespace tidegate::gateway
