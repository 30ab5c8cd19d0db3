// SPDX-License-Identifier: Apache-2.0
#include <tidegate/explain/finding.hpp>

#include <tidegate/json/string.hpp>

#include "rules.hpp"

#include <algorithm>
#include <vector>

namespace tidegate::TIDEGATE_ABI::explain {

auto name_of(severity level) noexcept -> std::string_view {
  switch (level) {
    case severity::info: return "info";
    case severity::advice: return "advice";
    case severity::warning: return "warning";
    case severity::error: break;
  }
  return "error";
}

auto field_rules() noexcept -> std::span<rule const> {
  return rule_table;
}

namespace {

constexpr std::string_view bold = "\x1b[1m";
constexpr std::string_view faint = "\x1b[2m";
constexpr std::string_view plain = "\x1b[0m";

[[nodiscard]] auto colour_of(severity level) noexcept -> std::string_view {
  switch (level) {
    case severity::error: return "\x1b[31m";
    case severity::warning: return "\x1b[33m";
    case severity::advice: return "\x1b[36m";
    case severity::info: break;
  }
  return {};
}

void append_member(std::string& out, std::string_view name, std::string_view text) {
  if (text.empty()) {
    return;
  }
  out.append(out.ends_with('{') ? "\"" : ",\"").append(name).append("\":");
  json::append_string(out, text);
}

void append_text(std::string& out, finding const& one, colours colour) {
  bool const is_coloured = colour == colours::on;
  out.append("  ");
  if (one.level == severity::info) {
    out.append(printable(one.text)).append("\n");
    return;
  }
  out.append(is_coloured ? colour_of(one.level) : "").append(name_of(one.level)).append(":");
  out.append(is_coloured ? plain : "").append(" ").append(printable(one.text)).append("\n");
  out.append(is_coloured ? faint : "").append("    ").append(one.rule);
  if (!one.specification.empty()) {
    out.append(" (").append(one.specification);
    out.append(one.section.starts_with("appendix") ? ", " : ", section ").append(one.section);
    out.append(")");
  }
  out.append(is_coloured ? plain : "").append("\n");
}

}  // namespace

auto count(std::span<finding const> findings, severity level) noexcept -> std::size_t {
  return static_cast<std::size_t>(std::ranges::count(findings, level, &finding::level));
}

auto printable(std::string_view text) -> std::string {
  std::string out(text);
  for (std::size_t i = 0; i < out.size(); ++i) {
    auto const c = static_cast<unsigned char>(out[i]);
    // Terminals also take U+0080 to U+009F as controls, which UTF-8 writes as C2 and one of those
    // octets.
    bool const is_c1 = c == 0xC2 && i + 1 < out.size() && (out[i + 1] & '\xE0') == '\x80';
    if (c < 0x20 || c == 0x7F || is_c1) {
      out[i] = '?';
    }
    if (is_c1) {
      out[++i] = '?';
    }
  }
  return out;
}

auto to_text(std::span<finding const> findings, colours colour) -> std::string {
  std::string out;
  bool const is_coloured = colour == colours::on;
  auto const append_heading = [&](std::string_view text) {
    out.append(is_coloured ? bold : "").append(printable(text));
    out.append(is_coloured ? plain : "").append("\n");
  };
  auto const append_group = [&](bool advises) {
    std::vector<std::string_view> fields;
    for (auto const& one : findings) {
      if ((one.level == severity::advice) == advises &&
          std::ranges::find(fields, one.field) == fields.end()) {
        fields.emplace_back(one.field);
      }
    }
    for (auto const field : fields) {
      append_heading(field);
      for (auto const& one : findings) {
        if (one.field == field && (one.level == severity::advice) == advises) {
          append_text(out, one, colour);
        }
      }
    }
  };
  append_group(false);
  if (count(findings, severity::advice) > 0) {
    out.append(out.empty() ? "" : "\n").append("For the authors of this API:\n");
    append_group(true);
  }
  return out;
}

void append_json(std::string& out, finding const& one) {
  out.append("{");
  append_member(out, "severity", name_of(one.level));
  append_member(out, "rule", one.rule);
  append_member(out, "field", one.field);
  append_member(out, "specification", one.specification);
  append_member(out, "section", one.section);
  append_member(out, "text", one.text);
  out.append("}");
}

auto to_json(std::span<finding const> findings) -> std::string {
  std::string out = "{\"findings\":[";
  for (auto const& one : findings) {
    out.append(&one == findings.data() ? "" : ",");
    append_json(out, one);
  }
  out.append("],\"errors\":").append(std::to_string(count(findings, severity::error)));
  out.append(",\"warnings\":").append(std::to_string(count(findings, severity::warning)));
  return out.append("}\n");
}

}  // namespace tidegate::TIDEGATE_ABI::explain
