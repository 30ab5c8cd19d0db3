// SPDX-License-Identifier: Apache-2.0
#include <tidegate/lint/report.hpp>

#include <tidegate/json/string.hpp>

#include <algorithm>
#include <array>

namespace tidegate::TIDEGATE_ABI::lint {

namespace {

using explain::severity;

constexpr std::array<area, 4> areas = {area::ratelimit, area::problem_details, area::idempotency,
                                       area::scim};

/// Texts in colours, or plain.
class painter {
 public:
  explicit painter(explain::colours colour) noexcept : is_on_(colour == explain::colours::on) {}

  [[nodiscard]] auto paint(std::string_view how, std::string_view text) const -> std::string {
    return is_on_ ? "\x1b[" + std::string(how) + "m" + std::string(text) + "\x1b[0m"
                  : std::string(text);
  }
  [[nodiscard]] auto bold(std::string_view text) const -> std::string { return paint("1", text); }
  [[nodiscard]] auto faint(std::string_view text) const -> std::string { return paint("2", text); }
  [[nodiscard]] auto good(std::string_view text) const -> std::string { return paint("32", text); }
  [[nodiscard]] auto by_severity(severity level, std::string_view text) const -> std::string {
    return paint(level == severity::error ? "31" : level == severity::warning ? "33" : "36", text);
  }

 private:
  bool is_on_;
};

[[nodiscard]] auto place_of(std::string_view specification, std::string_view section)
    -> std::string {
  return std::string(specification) + (section.starts_with("appendix") ? ", " : ", section ") +
         std::string(section);
}

[[nodiscard]] auto counted(std::size_t count, std::string_view one, std::string_view many)
    -> std::string {
  return std::to_string(count) + " " + std::string(count == 1 ? one : many);
}

/// What is wrong first, the worst of it at the top.
void append_broken(std::string& out, judgement const& one, painter const& paint) {
  for (auto const& [what, where, times] : one.findings) {
    out.append("  ")
        .append(paint.by_severity(what.level, explain::name_of(what.level)))
        .append("  ");
    out.append(explain::printable(what.field))
        .append(": ")
        .append(explain::printable(what.text))
        .append("\n");
    auto place =
        "    " + std::string(one.rule.id) + " (" + place_of(what.specification, what.section) + ")";
    out.append(paint.faint(place)).append("\n");
    auto at = "    " + explain::printable(where);
    if (times > 1) {
      at += " and " + std::to_string(times - 1) + " more";
    }
    out.append(paint.faint(at)).append("\n");
  }
}

/// Why nothing was seen of an area.
[[nodiscard]] auto hint_for(area of) -> std::string_view {
  switch (of) {
    case area::ratelimit: return "nothing to judge";
    case area::problem_details: return "nothing to judge: there were no problem details";
    case area::idempotency: return "nothing to judge: --write sends requests that change something";
    case area::scim: break;
  }
  return "nothing to judge: --scim looks at it as a SCIM server";
}

void append_area(std::string& out, area of, std::span<judgement const> judgements, detail shown,
                 painter const& paint) {
  std::size_t held = 0;
  std::size_t not_seen = 0;
  std::string broken;
  std::string others;
  for (auto const level : {severity::error, severity::warning, severity::advice}) {
    for (auto const& one : judgements) {
      if (area_of(one.rule) != of || one.rule.level != level) {
        continue;
      }
      if (one.result == outcome::broken) {
        append_broken(broken, one, paint);
        continue;
      }
      bool const is_held = one.result == outcome::holds;
      ++(is_held ? held : not_seen);
      others.append("  ")
          .append(is_held ? paint.good("holds") : paint.faint("not seen"))
          .append("  ");
      others.append(one.rule.id).append(": ").append(one.rule.summary).append("\n");
    }
  }
  out.append("\n").append(paint.bold(title_of(of))).append("\n").append(broken);
  if (held == 0 && broken.empty()) {
    out.append("  ").append(paint.faint(hint_for(of))).append("\n");
  } else {
    out.append("  ").append(counted(held, "rule holds", "rules hold"));
    out.append(not_seen > 0 ? ", " + std::to_string(not_seen) + " not seen\n" : "\n");
  }
  if (shown == detail::every_rule) {
    out.append(others);
  }
}

void append_member(std::string& out, std::string_view name, std::string_view text) {
  out.append(out.ends_with('{') ? "\"" : ",\"").append(name).append("\":");
  json::append_string(out, text);
}

[[nodiscard]] auto word_of(area of) -> std::string_view {
  switch (of) {
    case area::ratelimit: return "ratelimit";
    case area::problem_details: return "problem-details";
    case area::idempotency: return "idempotency";
    case area::scim: break;
  }
  return "scim";
}

void append_json(std::string& out, judgement const& one) {
  out.append("{");
  append_member(out, "id", one.rule.id);
  append_member(out, "area", word_of(area_of(one.rule)));
  append_member(out, "severity", explain::name_of(one.rule.level));
  append_member(out, "specification", one.rule.specification);
  append_member(out, "section", one.rule.section);
  append_member(out, "summary", one.rule.summary);
  append_member(out, "outcome", name_of(one.result));
  out.append(",\"findings\":[");
  for (auto const& found : one.findings) {
    out.append(&found == one.findings.data() ? "{" : ",{");
    append_member(out, "field", found.finding.field);
    append_member(out, "text", found.finding.text);
    append_member(out, "specification", found.finding.specification);
    append_member(out, "section", found.finding.section);
    append_member(out, "where", found.where);
    out.append(",\"times\":").append(std::to_string(found.times)).append("}");
  }
  out.append("]}");
}

}  // namespace

auto to_text(std::string_view url, std::span<exchange const> exchanges,
             std::span<judgement const> judgements, detail shown, explain::colours colour)
    -> std::string {
  painter const paint(colour);
  std::string out = paint.bold(explain::printable(url)) + ": " +
                    counted(exchanges.size(), "request", "requests") + "\n";
  for (auto const of : areas) {
    append_area(out, of, judgements, shown, paint);
  }
  auto const errors = count_broken(judgements, severity::error);
  auto const warnings = count_broken(judgements, severity::warning);
  auto const summary = counted(errors, "error", "errors") + ", " +
                       counted(warnings, "warning", "warnings") + ", " +
                       std::to_string(count_broken(judgements, severity::advice)) + " advice";
  out.append("\n");
  auto const seen = [&](outcome result) {
    return static_cast<std::size_t>(std::ranges::count(judgements, result, &judgement::result));
  };
  bool const is_silent = std::ranges::none_of(judgements, [](judgement const& one) {
    return area_of(one.rule) == area::ratelimit && one.result == outcome::holds;
  });
  if (errors + warnings == 0 && is_silent) {
    out.append(paint.by_severity(severity::warning, "this API says nothing about its limits"));
    out.append(": ").append(counted(seen(outcome::holds), "rule holds", "rules hold"));
    out.append(", ").append(std::to_string(seen(outcome::not_seen))).append(" not seen; ");
    out.append(summary);
  } else if (errors + warnings == 0) {
    out.append(paint.good("nothing is wrong")).append(": ").append(summary);
  } else {
    out.append(paint.by_severity(errors > 0 ? severity::error : severity::warning, summary));
  }
  return out.append("\n");
}

auto to_json(std::string_view url, std::span<exchange const> exchanges,
             std::span<judgement const> judgements) -> std::string {
  std::string out = "{";
  append_member(out, "url", url);
  out.append(",\"requests\":").append(std::to_string(exchanges.size())).append(",\"rules\":[");
  for (auto const& one : judgements) {
    out.append(&one == judgements.data() ? "" : ",");
    append_json(out, one);
  }
  out.append("],\"errors\":").append(std::to_string(count_broken(judgements, severity::error)));
  out.append(",\"warnings\":").append(std::to_string(count_broken(judgements, severity::warning)));
  out.append(",\"advice\":").append(std::to_string(count_broken(judgements, severity::advice)));
  return out.append("}\n");
}

auto rules_page() -> std::string {
  auto const all = rules();
  std::string out =
      "# Rules of tidegate lint\n\n"
      "`tidegate lint --rules` prints this page; a test holds it against the code. `error` is a "
      "broken MUST, or something that\n"
      "recipients have to ignore; `warning` a SHOULD that is not met, or values that contradict "
      "each other; `advice` breaks no\n"
      "specification. How to use it: [looking at APIs](../guide/tools.md).\n";
  for (auto const of : areas) {
    out.append("\n## ").append(title_of(of)).append("\n\n");
    out.append("| rule | severity | what is right | specification |\n|---|---|---|---|\n");
    for (auto const& one : all) {
      if (area_of(one) != of) {
        continue;
      }
      out.append("| `")
          .append(one.id)
          .append("` | ")
          .append(explain::name_of(one.level))
          .append(" | ");
      out.append(one.summary).append(" | ").append(place_of(one.specification, one.section));
      bool const has_older =
          !one.section_07.empty() && one.specification != explain::specification::ratelimit_07;
      out.append(has_older ? "; draft-07, section " + std::string(one.section_07) : "")
          .append(" |\n");
    }
  }
  return out;
}

}  // namespace tidegate::TIDEGATE_ABI::lint
