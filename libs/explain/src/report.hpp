// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules.hpp"
#include "words.hpp"

#include <tidegate/explain/fields.hpp>
#include <tidegate/ratelimit/fields.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::TIDEGATE_ABI::explain {

/// Collects findings, up to `findings_max`.
class report {
 public:
  void say(std::string_view field, std::string text) {
    add({.level = severity::info,
         .rule = {},
         .field = std::string(field),
         .specification = {},
         .section = {},
         .text = std::move(text)});
  }

  /// `version` decides which draft the finding names, where both have the rule.
  void break_rule(rule const& broken, std::string_view field, std::string text,
                  ratelimit::draft version = ratelimit::draft::draft_09) {
    bool const is_older = version == ratelimit::draft::draft_07 && !broken.section_07.empty();
    add({.level = broken.level,
         .rule = broken.id,
         .field = std::string(field),
         .specification = is_older ? specification::ratelimit_07 : broken.specification,
         .section = is_older ? broken.section_07 : broken.section,
         .text = std::move(text)});
  }

  /// The same where the section is known better than the rule knows it.
  void break_rule_at(rule const& broken, std::string_view of, std::string_view section,
                     std::string_view field, std::string text) {
    add({.level = broken.level,
         .rule = broken.id,
         .field = std::string(field),
         .specification = of,
         .section = section,
         .text = std::move(text)});
  }

  /// All of them; when there were more than may be, the last one says how many are left out.
  [[nodiscard]] auto take() && -> std::vector<finding> {
    if (left_out_ > 0) {
      auto field = std::move(findings_.back().field);
      findings_.pop_back();
      say(field, "and " + std::to_string(left_out_ + 1) + " more findings, which are left out");
    }
    return std::move(findings_);
  }

 private:
  void add(finding&& one) {
    if (findings_.size() < findings_max) {
      findings_.push_back(std::move(one));
    } else {
      ++left_out_;
    }
  }

  std::vector<finding> findings_;
  std::size_t left_out_ = 0;
};

/// What one kind of field said, for those that are judged together with it.
struct told_limits {
  bool is_there = false;  ///< RateLimit, well-formed or not
  std::optional<ratelimit::policy_field> policies{};
  std::optional<ratelimit::limit_field> limits{};
};

/// The waits that fields of a message ask for.
class told_waits {
 public:
  /// `is_order`: Retry-After, which wins over resets.
  void add(std::string_view field, std::int64_t seconds, bool is_order) {
    if (waits_.size() < waits_max) {
      waits_.push_back({std::string(field), seconds, is_order});
    }
  }
  /// `field` counts from now, and so wins over `other`, which says something else: `what`.
  void overrule(std::string_view field, std::int64_t seconds, std::string_view other,
                std::string what) {
    overruled_ = "wait " + duration_words(seconds) + ", as " + std::string(field) +
                 " says, which counts from now; " + std::string(other) + " says " + what;
  }
  /// What to do where they differ; empty where they do not.
  [[nodiscard]] auto bottom_line() const -> std::string;

 private:
  struct wait {
    std::string field;
    std::int64_t seconds;
    bool is_order;
  };
  static constexpr std::size_t waits_max = 64;
  std::vector<wait> waits_;
  std::string overruled_;
};

/// The values of all lines of that name, in their order.
[[nodiscard]] auto lines_of(message_view const& message, std::string_view name)
    -> std::vector<std::string_view>;

[[nodiscard]] auto explain_ratelimit(message_view const& message, report& out) -> told_limits;
void explain_retry_after(message_view const& message, std::chrono::sys_seconds now,
                         told_limits const& told, told_waits& waits, report& out);
void explain_legacy(message_view const& message, std::chrono::sys_seconds now,
                    told_limits const& told, told_waits& waits, report& out);
/// Whether `explain_legacy` looks at a field of that name.
[[nodiscard]] auto is_legacy_name(std::string_view name) -> bool;
void explain_vendors(message_view const& message, std::chrono::sys_seconds now, told_waits& waits,
                     report& out);
void explain_idempotency_key(message_view const& message, report& out);

}  // namespace tidegate::TIDEGATE_ABI::explain
