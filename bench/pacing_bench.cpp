// SPDX-License-Identifier: Apache-2.0
//
// A thousand clients and one quota, by a virtual clock: how much of the quota they use and how many
// of their requests are refused, with a pacer each and without; the same when the quota is spent as
// they begin. `--plot FILE` draws what happens second by second.
#include <pacing_simulation.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

namespace {

using namespace tidegate;
using ratelimit::algorithm;
using simulation::behaviour;
using simulation::pacing_outcome;

struct named_algorithm {
  algorithm which;
  char const* name;
};
constexpr std::array algorithms = {named_algorithm{algorithm::fixed, "fixed"},
                                   named_algorithm{algorithm::sliding, "sliding"},
                                   named_algorithm{algorithm::gcra, "gcra"}};

auto percent(double share) -> std::string {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %%", share * 100);
  return text.data();
}

/// A chart of requests a second, admitted and refused, in SVG.
class chart {
 public:
  static constexpr int width = 430;
  static constexpr int height = 150;

  chart(std::string& out, int left, int top) : out_(out), left_(left), top_(top) {}

  void draw(pacing_outcome const& outcome, std::string const& title) {
    text(0, -24, "t", title);
    text(0, -8, "s",
         percent(outcome.used) + " of the quota used, " + percent(outcome.refused_share) +
             " of the requests refused");
    for (int const rate : {0, 200, 400, 600}) {
      auto const y = std::to_string(top_ + y_of(rate));
      out_ += "<path class=\"g\" d=\"M" + std::to_string(left_) + " " + y + "h" +
              std::to_string(width) + "\"/>\n";
      text(-6, y_of(rate) + 4, "s e", std::to_string(rate));
    }
    for (int minute = 0; minute <= minutes; ++minute) {
      text(minute * width / minutes, height + 16, "s m", std::to_string(minute) + " min");
    }
    line(outcome, &simulation::second_counts::refused, "r");
    line(outcome, &simulation::second_counts::admitted, "a");
  }

 private:
  static constexpr int minutes = 6;
  static constexpr int rate_max = 600;

  static auto y_of(std::int64_t rate) -> int {
    return height - static_cast<int>(std::min<std::int64_t>(rate, rate_max) * height / rate_max);
  }
  void text(int x, int y, char const* style, std::string const& what) {
    out_ += "<text class=\"" + std::string(style) + "\" x=\"" + std::to_string(left_ + x) +
            "\" y=\"" + std::to_string(top_ + y) + "\">" + what + "</text>\n";
  }
  void line(pacing_outcome const& outcome, std::int64_t simulation::second_counts::*count,
            char const* style) {
    out_ += "<path class=\"" + std::string(style) + "\" d=\"";
    for (std::size_t i = 0; i < minutes * 60; ++i) {
      auto const x = left_ + static_cast<int>(i) * width / (minutes * 60);
      out_ += (i == 0 ? "M" : "L") + std::to_string(x) + " " +
              std::to_string(top_ + y_of(outcome.seconds[i].*count));
    }
    out_ += "\"/>\n";
  }

  std::string& out_;
  int left_;
  int top_;
};

constexpr std::string_view head =
    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1000 760\" "
    "font-family=\"sans-serif\">\n"
    "<style>.t{font-size:15px;font-weight:bold}.s{font-size:12px;fill:#555}.e{text-anchor:end}"
    ".m{text-anchor:middle}.g{stroke:#ddd;fill:none}.a{stroke:#1769aa;fill:none;stroke-width:1.5}"
    ".r{stroke:#c4342b;fill:none;stroke-width:1.5}</style>\n"
    "<rect width=\"1000\" height=\"760\" fill=\"#fff\"/>\n"
    "<text class=\"t\" x=\"45\" y=\"26\">1,000 clients share a quota of 10,000 requests a minute: "
    "requests a second, <tspan fill=\"#1769aa\">admitted</tspan> and "
    "<tspan fill=\"#c4342b\">refused</tspan></text>\n";

}  // namespace

auto main(int argc, char** argv) -> int {
  auto const* const plot = argc > 2 && std::string_view(argv[1]) == "--plot" ? argv[2] : nullptr;
  std::string svg(head);
  int top = 95;
  bool missed = false;
  for (auto const& each : algorithms) {
    auto const paced = simulation::run({.algorithm = each.which});
    auto const other =
        simulation::run({.algorithm = each.which, .clients_are = behaviour::backs_off});
    std::printf(
        "bench pacing/%s used=%.4f used_bar=0.98 refused=%.4f refused_bar=0.01 "
        "unpaced_used=%.4f unpaced_refused=%.4f\n",
        each.name, paced.used, paced.refused_share, other.used, other.refused_share);
    missed = missed || paced.used < 0.98 || paced.refused_share >= 0.01;
    // All of them begin when the quota is spent, and one alone does.
    using namespace std::chrono_literals;
    auto const spent = simulation::run({.algorithm = each.which, .spent_at = -20s});
    auto const alone = simulation::run({.algorithm = each.which,
                                        .clients = 1,
                                        .quota = 100,
                                        .window = 20s,
                                        .length = 200s,
                                        .start_within = 0ms,
                                        .spent_at = 0ms});
    std::printf(
        "bench pacing/%s-spent used=%.4f used_bar=0.9 refused=%.4f alone_used=%.4f "
        "alone_used_bar=0.9\n",
        each.name, spent.used_after_reset, spent.refused_share, alone.used_after_reset);
    missed = missed || spent.used_after_reset < 0.9 || alone.used_after_reset < 0.9;
    chart(svg, 45, top).draw(paced, std::string(each.name) + ", each with a pacer");
    chart(svg, 540, top).draw(other, std::string(each.name) + ", backing off after a 429");
    top += 235;
  }
  svg += "</svg>\n";
  if (plot != nullptr) {
    std::ofstream file(plot);
    file << svg;
    if (!file) {
      std::fprintf(stderr, "cannot write %s\n", plot);
      return 1;
    }
  }
  return missed ? 1 : 0;
}
