// SPDX-License-Identifier: Apache-2.0
#include "observe/prometheus_text.hpp"

#include <charconv>
#include <cstdio>

namespace tidegate::gateway::prometheus {

namespace {

/// `,le="0.005"` for each bound of latency, and for what is above all of them.
auto latency_labels() -> std::array<std::string, latency_bounds.size() + 1> const& {
  static auto const made = [] {
    std::array<std::string, latency_bounds.size() + 1> labels;
    for (std::size_t i = 0; i < latency_bounds.size(); ++i) {
      std::array<char, 32> bound{};
      std::snprintf(bound.data(), bound.size(), ",le=\"%g\"", latency_bounds[i] / 1e6);
      labels[i] = bound.data();
    }
    labels.back() = ",le=\"+Inf\"";
    return labels;
  }();
  return made;
}

}  // namespace

auto label(std::string_view name, std::string_view value) -> std::string {
  std::string out(name);
  out.append("=\"");
  for (auto const c : value) {
    if (c == '\\' || c == '"') {
      out += '\\';
    }
    out += c == '\n' ? ' ' : c;
  }
  out += '"';
  return out;
}

void describe(std::string& out, std::string_view name, std::string_view kind,
              std::string_view help) {
  out.append("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ");
  out.append(name).append(" ").append(kind).append("\n");
}

void sample(std::string& out, std::string_view name, std::string_view labels, double value) {
  out.append(name);
  if (!labels.empty()) {
    out.append("{").append(labels).append("}");
  }
  // Nearly all are counts, and every open console has all of them written once a second.
  std::array<char, 40> text{};
  constexpr double counts_max = 1e15;
  auto const count = value >= 0 && value < counts_max ? static_cast<std::uint64_t>(value) : 0;
  if (static_cast<double>(count) == value) {
    auto const end = std::to_chars(text.data(), text.data() + text.size(), count).ptr;
    out.append(" ").append(text.data(), end).append("\n");
  } else {
    std::snprintf(text.data(), text.size(), " %.15g\n", value);
    out.append(text.data());
  }
}

void single(std::string& out, std::string_view name, std::string_view kind, std::string_view help,
            double value) {
  describe(out, name, kind, help);
  sample(out, name, "", value);
}

void latency_sums::add(latency_counts const& counted) noexcept {
  for (std::size_t i = 0; i < by_bound.size(); ++i) {
    by_bound[i] += counted.by_bound[i].value();
  }
  sum += counted.sum.value();
}

void histogram(std::string& out, std::string const& name, std::string const& labels,
               latency_sums const& sums) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < sums.by_bound.size(); ++i) {
    count += sums.by_bound[i];
    sample(out, name + "_bucket", labels + latency_labels()[i], static_cast<double>(count));
  }
  sample(out, name + "_sum", labels, static_cast<double>(sums.sum) / 1e6);
  sample(out, name + "_count", labels, static_cast<double>(count));
}

auto seconds_of(std::chrono::system_clock::time_point time) -> double {
  return std::chrono::duration<double>(
             std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()))
      .count();
}

}  // namespace tidegate::gateway::prometheus
