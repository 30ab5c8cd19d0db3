// SPDX-License-Identifier: Apache-2.0
#include "scim/import_summary.hpp"

#include "client/progress.hpp"

#include <tidegate/json/value.hpp>

#include <string_view>
#include <utility>

namespace tidegate::app {

auto to_json(import_summary const& summary) -> std::string {
  json::object out;
  auto const add = [&out](std::string_view name, std::uint64_t value) {
    out.append(std::string(name), static_cast<std::int64_t>(value));
  };
  out.append("ok", summary.is_ok);
  add("created", summary.counts.count(settled::created));
  add("replaced", summary.counts.count(settled::replaced));
  add("skipped", summary.counts.count(settled::skipped));
  add("conflicts", summary.counts.count(settled::conflict));
  add("rejected", summary.counts.count(settled::rejected));
  add("replayed", summary.replayed);
  add("retries", summary.retries);
  out.append("seconds", summary.took.count());
  if (!summary.rejects.empty()) {
    out.append("rejects", summary.rejects);
  }
  if (summary.error) {
    out.append("error", *summary.error);
  }
  out.append("interrupted", summary.is_interrupted);
  out.append("resumable", summary.is_resumable);
  return to_string(json::value(std::move(out))) + "\n";
}

auto to_text(import_summary const& summary) -> std::string {
  auto const number = [&](settled as) { return std::to_string(summary.counts.count(as)); };
  std::string out = summary.error ? "error: " + *summary.error + "\n" : "";
  out += number(settled::created) + " created, " + number(settled::replaced) + " replaced, " +
         number(settled::skipped) + " skipped, " +
         counted(summary.counts.count(settled::conflict), "conflict") + ", " +
         number(settled::rejected) + " rejected, " + std::to_string(summary.retries) +
         (summary.retries == 1 ? " retry\n" : " retries\n");
  if (!summary.rejects.empty()) {
    out += "rejected lines are in " + summary.rejects + "\n";
  }
  if (summary.is_resumable) {
    out += "not complete; use --resume to continue\n";
  }
  return out;
}

}  // namespace tidegate::app
