// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/filter_sql.hpp>

#include "filter/filter_plan.hpp"

#include <algorithm>

namespace tidegate::TIDEGATE_ABI::scim {

namespace {

/// Writes a plan as a condition. Sets of rids are subqueries of `IN`: SQLite and PostgreSQL read
/// them first and then look the resources up.
class sql_writer {
 public:
  sql_writer(std::vector<std::int64_t> const& index_ids, std::vector<std::int64_t> const& more_ids,
             std::vector<std::int64_t> const& id_index_ids, sql_dialect dialect,
             std::size_t first_placeholder)
      : index_ids_(index_ids),
        more_ids_(more_ids),
        id_index_ids_(id_index_ids),
        mark_(dialect == sql_dialect::sqlite ? '?' : '$'),
        placeholder_(first_placeholder) {}

  void write(filter_plan const& plan) {
    if (is_set(plan)) {
      write_set(plan);
      rids_ = text_;
      text_ = "resource.rid IN (" + rids_ + ')';
    } else {
      write_condition(plan, false);
    }
  }

  [[nodiscard]] auto finish(bool exact) && -> filter_sql {
    return {std::move(text_), std::move(rids_), std::move(values_), exact};
  }

 private:
  void write_condition(filter_plan const& plan, bool negated) {
    switch (plan.kind) {
      case plan_kind::negation: write_condition(plan.operands.front(), !negated); return;
      case plan_kind::any_member:
      case plan_kind::in_any_group: write_exists(plan, negated); return;
      case plan_kind::has_member:
      case plan_kind::in_group:
        if (plan.asked_each) {
          write_exists(plan, negated);
          return;
        }
        break;
      case plan_kind::all_of: write_joined(plan, " AND ", negated); return;
      case plan_kind::any_of:
        if (!is_set(plan)) {
          write_joined(plan, " OR ", negated);
          return;
        }
        break;
      case plan_kind::keys:
      case plan_kind::range: break;
    }
    text_ += negated ? "resource.rid NOT IN (" : "resource.rid IN (";
    write_set(plan);
    text_ += ')';
  }

  void write_joined(filter_plan const& plan, std::string_view word, bool negated) {
    text_ += negated ? "NOT (" : "(";
    for (auto const& operand : plan.operands) {
      text_ += &operand == &plan.operands.front() ? "" : word;
      write_condition(operand, false);
    }
    text_ += ')';
  }

  /// Whether it can be written as one query for rids.
  static auto is_set(filter_plan const& plan) noexcept -> bool {
    switch (plan.kind) {
      case plan_kind::any_of: return std::ranges::all_of(plan.operands, is_set);
      case plan_kind::keys:
      case plan_kind::range: return true;
      case plan_kind::has_member:
      case plan_kind::in_group: return !plan.asked_each;
      default: return false;
    }
  }

  void write_set(filter_plan const& plan) {
    switch (plan.kind) {
      case plan_kind::keys:
        write_entries_of(plan.index);
        text_ += " AND key";
        put_any_of(plan.keys);
        break;
      case plan_kind::range:
        write_entries_of(plan.index);
        text_ += " AND key >= ";
        put(plan.from);
        text_ += " AND key < ";
        put(plan.to);
        break;
      case plan_kind::has_member:
        text_ += "SELECT group_rid FROM member WHERE member_rid IN (";
        write_rids_of_id(plan);
        text_ += ')';
        break;
      case plan_kind::in_group:
        text_ += "SELECT member_rid FROM member WHERE group_rid IN (";
        write_rids_of_id(plan);
        text_ += ')';
        break;
      default:
        for (auto const& operand : plan.operands) {
          text_ += &operand == &plan.operands.front() ? "" : " UNION ALL ";
          write_set(operand);
        }
        break;
    }
  }

  void write_entries_of(std::size_t index) {
    std::vector<std::int64_t> ids{index_ids_[index]};
    if (!more_ids_.empty() && more_ids_[index] != ids.front()) {
      ids.push_back(more_ids_[index]);
    }
    text_ += "SELECT rid FROM entry WHERE index_id";
    put_any_of(ids);
  }

  void write_exists(filter_plan const& plan, bool negated) {
    bool const group = plan.kind == plan_kind::has_member || plan.kind == plan_kind::any_member;
    text_ += negated ? "NOT EXISTS (" : "EXISTS (";
    text_ += "SELECT 1 FROM member WHERE ";
    text_ += group ? "group_rid" : "member_rid";
    text_ += " = resource.rid";
    if (!plan.keys.empty()) {
      text_ += group ? " AND member_rid IN (" : " AND group_rid IN (";
      write_rids_of_id(plan);
      text_ += ')';
    }
    text_ += ')';
  }

  void write_rids_of_id(filter_plan const& plan) {
    text_ += "SELECT rid FROM entry WHERE index_id";
    put_any_of(id_index_ids_);
    text_ += " AND key";
    put_any_of(plan.keys);
  }

  void put(sql_value value) {
    text_ += mark_;
    text_ += std::to_string(placeholder_++);
    values_.push_back(std::move(value));
  }

  template <class Value>
  void put_any_of(std::vector<Value> const& values) {
    if (values.size() == 1) {
      text_ += " = ";
      put(values.front());
      return;
    }
    text_ += " IN (";
    for (auto const& value : values) {
      text_ += &value == &values.front() ? "" : ", ";
      put(value);
    }
    text_ += ')';
  }

  std::vector<std::int64_t> const& index_ids_;
  std::vector<std::int64_t> const& more_ids_;
  std::vector<std::int64_t> const& id_index_ids_;
  char mark_;
  std::size_t placeholder_;
  std::string text_;
  std::string rids_;
  std::vector<sql_value> values_;
};

}  // namespace

auto compile_filter(filter const& f, model_type const& type,
                    std::vector<std::int64_t> const& index_ids, sql_dialect dialect,
                    std::size_t first_placeholder, std::vector<std::int64_t> const& id_index_ids,
                    std::vector<std::int64_t> const& more_ids) -> filter_sql {
  auto const plan = plan_filter(f, type, !id_index_ids.empty());
  if (!plan) {
    return {};
  }
  sql_writer writer(index_ids, more_ids, id_index_ids, dialect, first_placeholder);
  writer.write(*plan);
  return std::move(writer).finish(plan->exact);
}

}  // namespace tidegate::TIDEGATE_ABI::scim
