// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/patch.hpp>

#include "resource/read_value.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/scim/case_fold.hpp>
#include <tidegate/scim/resource.hpp>

#include <algorithm>
#include <numeric>
#include <span>

namespace tidegate::TIDEGATE_ABI::scim {

namespace {

auto fail(scim_type type, std::string detail) -> std::unexpected<error> {
  return failure(error{.status = 400, .type = type, .detail = std::move(detail)});
}

auto fail(resource_error const& e) -> std::unexpected<error> {
  return fail(scim_type_of(e.fault), to_string(e));
}

/// The values that an operation brings, as they are kept: one, or each of an array.
auto read_values(json::value const& value, attribute const& a) -> result<json::array, error> {
  json::array out;
  auto const read = [&](json::value const& one) -> result<void, error> {
    auto kept = read_value(as_object(one, a), a, a.name);
    if (!kept) {
      return fail(kept.error());
    }
    if (!kept->is_null()) {
      out.push_back(*std::move(kept));
    }
    return {};
  };
  auto const* const array = a.multi_valued ? value.if_array() : nullptr;
  for (auto const& one : array == nullptr ? std::span(&value, 1) : std::span(*array)) {
    TIDEGATE_TRY_VOID(read(one));
  }
  return out;
}

/// Whether both are the same value of `a`, as a filter would say.
auto is_same(json::value const& x, json::value const& y, attribute const& a) -> bool {
  auto const* const left = x.if_string();
  auto const* const right = y.if_string();
  if (a.case_exact || left == nullptr || right == nullptr) {
    return x == y;
  }
  return case_fold(*left) == case_fold(*right);
}

/// Whether `value` has all that `wanted` has.
auto has_all(json::value const& value, json::value const& wanted, attribute const& a) -> bool {
  auto const* const object = wanted.if_object();
  if (object == nullptr) {
    return is_same(value, wanted, a);
  }
  return std::ranges::all_of(object->members(), [&](json::member const& m) {
    auto const* const mine = value.find(m.name);
    auto const* const sub = a.find(m.name);
    return mine != nullptr && sub != nullptr && is_same(*mine, m.value, *sub);
  });
}

/// How many comparisons a filter makes.
auto terms_in(filter const& f) -> std::size_t {
  return std::accumulate(
      f.operands.begin(), f.operands.end(), std::size_t{f.operands.empty() ? 1U : 0U},
      [](std::size_t sum, filter const& operand) { return sum + terms_in(operand); });
}

/// Collects what the filter says with `eq` of every value that matches it; `literals` are those of
/// the comparisons to come.
void collect_equal(json::object& out, filter const& f, bool holds,
                   std::span<json::value const>& literals) {
  if (f.kind == filter_kind::compare) {
    auto const& literal = literals.front();
    literals = literals.subspan(1);
    if (holds && f.op == compare_op::eq && !literal.is_null()) {
      out.set(f.path.sub->name,
              f.path.sub->multi_valued ? json::value(json::array{literal}) : literal);
    }
  }
  for (auto const& operand : f.operands) {
    collect_equal(out, operand, holds && f.kind == filter_kind::all_of, literals);
  }
}

auto weight_of(json::value const& value) -> std::size_t;

auto weight_of(json::array const& values) -> std::size_t {
  std::size_t weight = 0;
  for (auto const& v : values) {
    weight += weight_of(v);
  }
  return weight;
}

/// Roughly the octets of a value: what it takes to look at it. Those beyond ASCII take longer to
/// fold.
auto weight_of(json::value const& value) -> std::size_t {
  std::size_t weight = 16;
  if (auto const* const text = value.if_string()) {
    auto const beyond = std::ranges::count_if(*text, [](char c) { return (c & 0x80) != 0; });
    weight += text->size() + 15 * static_cast<std::size_t>(beyond);
  } else if (auto const* const array = value.if_array()) {
    weight += weight_of(*array);
  } else if (auto const* const object = value.if_object()) {
    for (auto const& m : object->members()) {
      weight += weight_of(m.value);
    }
  }
  return weight;
}

/// A resource while operations are applied to it, one after another. After an error it is of no
/// use.
class patcher {
 public:
  patcher(json::object resource, resource_definition const& definition)
      : resource_(std::move(resource)), definition_(definition) {}

  auto apply(patch_operation const& op) -> result<void, error> {
    auto const& path = op.path.path;
    for (auto const* const a : {path.parent, path.sub}) {
      if (a != nullptr && a->mutability == attribute_mutability::read_only) {
        return fail(scim_type::mutability, spelled_name(path) + ": the attribute is readOnly");
      }
    }
    if (path.extension == nullptr) {
      return change(resource_, op);
    }
    auto const& urn = path.extension->id;
    if (path.parent == nullptr) {
      return remove_extension(op.kind, urn);
    }
    json::object inner;
    if (auto* const there = resource_.find(urn);
        there != nullptr && there->if_object() != nullptr) {
      inner = std::move(*there->if_object());
    }
    TIDEGATE_TRY_VOID(change(inner, op));
    if (inner.empty()) {
      resource_.erase(urn);
    } else {
      resource_.set(urn, std::move(inner));
    }
    return {};
  }

  /// The resource as it is to be kept. What is readOnly is not judged and stays.
  auto finish(json::value const& before) && -> result<json::value, error> {
    json::value const patched(std::move(resource_));
    auto const judged = read_resource(patched, definition_, unknown_attributes::ignore);
    if (!judged) {
      return fail(judged.error());
    }
    if (auto const kept = check_immutable(before, *judged, definition_); !kept) {
      return fail(kept.error());
    }
    json::object out;
    for (auto const& m : patched.if_object()->members()) {
      auto const* const a = definition_.base().find(m.name);
      if (a != nullptr && a->mutability == attribute_mutability::read_only) {
        out.append(m.name, m.value);
      } else if (auto const* const value = judged->find(m.name)) {
        auto const* const extension = definition_.find_extension(m.name);
        out.append(extension != nullptr ? extension->id : a->name, *value);
      }
    }
    return json::value(std::move(out));
  }

 private:
  auto remove_extension(patch_kind kind, std::string_view urn) -> result<void, error> {
    bool const required =
        std::ranges::any_of(definition_.type().schema_extensions, [&](schema_extension const& e) {
          return e.required && equal_ignoring_case(e.schema, urn);
        });
    if (resource_.erase(urn) && required && kind == patch_kind::remove) {
      return fail(scim_type::mutability, std::string(urn) + ": this extension is required");
    }
    return {};
  }

  auto change(json::object& owner, patch_operation const& op) -> result<void, error> {
    auto const& a = *op.path.path.parent;
    bool const whole = op.path.path.sub == nullptr && !op.path.value_filter;
    // An object changes sub-attributes of a single complex value, and leaves the others.
    bool const merges = a.type == attribute_type::complex && !a.multi_valued &&
                        op.kind != patch_kind::remove && op.value.if_object() != nullptr;
    return change_values(owner, a, op.kind, [&](json::array& values) {
      return whole && !merges ? edit_whole(values, a, op.kind, op.value)
                              : edit_selected(values, a, op);
    });
  }

  /// Takes the values of `a` out of `owner`, a single one as an array of one, and puts back what
  /// `edit` makes of them.
  template <class Edit>
  auto change_values(json::object& owner, attribute const& a, patch_kind kind, Edit edit)
      -> result<void, error> {
    json::array values;
    if (auto* const there = owner.find(a.name); there != nullptr && !there->is_null()) {
      if (auto* const array = there->if_array()) {
        values = std::move(*array);
      } else {
        values.push_back(std::move(*there));
      }
    }
    bool const had = std::ranges::any_of(values, is_present);
    bool const immutable = had && a.mutability == attribute_mutability::immutable;
    auto const before = immutable ? values : json::array();
    TIDEGATE_TRY_VOID(edit(values));
    std::erase_if(values,
                  [](json::value const& v) { return v.if_object() && v.if_object()->empty(); });
    if (immutable && values != before) {
      return fail(scim_type::mutability, a.name + ": the value cannot be changed");
    }
    if (values.empty()) {
      owner.erase(a.name);
      if (had && a.required && kind == patch_kind::remove) {
        return fail(scim_type::mutability, a.name + ": a value is required");
      }
    } else {
      owner.set(a.name,
                a.multi_valued ? json::value(std::move(values)) : std::move(values.front()));
    }
    return {};
  }

  auto edit_whole(json::array& values, attribute const& a, patch_kind kind,
                  json::value const& value) -> result<void, error> {
    if (value.is_null() || (kind == patch_kind::remove && !a.multi_valued)) {
      if (kind != patch_kind::add) {
        values.clear();
      }
      return {};
    }
    TIDEGATE_TRY(auto given, read_values(value, a));
    if (kind == patch_kind::remove) {
      TIDEGATE_TRY_VOID(spend(weight_of(values) * given.size()));
      std::erase_if(values, [&](json::value const& v) {
        return std::ranges::any_of(given, [&](json::value const& g) { return has_all(v, g, a); });
      });
      return {};
    }
    std::vector<std::size_t> changed;
    if (kind == patch_kind::replace || !a.multi_valued) {
      values.clear();
    }
    for (auto& g : given) {
      if (kind == patch_kind::add) {
        TIDEGATE_TRY_VOID(spend(16 * values.size()));
        if (std::ranges::find(values, g) != values.end()) {
          continue;
        }
      }
      changed.push_back(values.size());
      values.push_back(std::move(g));
    }
    return settle_primary(values, a, changed);
  }

  /// Edits the complex values that the path selects: those that match its filter, or all.
  auto edit_selected(json::array& values, attribute const& a, patch_operation const& op)
      -> result<void, error> {
    auto const* const sub = op.path.path.sub;
    auto const* const f = op.path.value_filter ? &*op.path.value_filter : nullptr;
    if (f != nullptr) {
      TIDEGATE_TRY_VOID(spend(weight_of(values) * terms_in(*f)));
    }
    std::vector<std::size_t> selected;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i].if_object() != nullptr && (f == nullptr || matches_value(*f, values[i]))) {
        selected.push_back(i);
      }
    }
    if (f != nullptr && selected.empty() && op.kind == patch_kind::replace) {
      return no_target(op);
    }
    bool const removes = op.kind == patch_kind::remove || op.value.is_null();
    if (op.kind == patch_kind::add && removes) {
      return {};
    }
    bool doubtful = false;  // whether a new value is one that the filter selects
    if (selected.empty() && !removes) {
      TIDEGATE_TRY(auto made, make_value(a, op.path));
      doubtful = f != nullptr && !matches_value(*f, made);
      selected.push_back(values.size());
      values.push_back(std::move(made));
    }
    for (auto const i : selected) {
      auto& value = values[i];
      if (sub != nullptr) {
        TIDEGATE_TRY_VOID(change_member(*value.if_object(), *sub, op.kind, op.value));
      } else if (removes) {
        value = json::object();
      } else if (f != nullptr && op.kind == patch_kind::replace) {
        TIDEGATE_TRY_VOID(replace_value(value, a, op.value));
      } else {
        TIDEGATE_TRY_VOID(merge(*value.if_object(), a, op.kind, as_object(op.value, a)));
      }
    }
    if (doubtful && !matches_value(*f, values.back())) {
      return no_target(op);
    }
    return settle_primary(values, a, selected);
  }

  auto change_member(json::object& owner, attribute const& a, patch_kind kind,
                     json::value const& value) -> result<void, error> {
    return change_values(owner, a, kind,
                         [&](json::array& values) { return edit_whole(values, a, kind, value); });
  }

  auto merge(json::object& owner, attribute const& a, patch_kind kind, json::value const& value)
      -> result<void, error> {
    auto const* const object = value.if_object();
    if (object == nullptr) {
      return fail({resource_fault::wrong_type, a.name});
    }
    for (auto const& m : object->members()) {
      auto const* const sub = a.find(m.name);
      if (sub == nullptr) {
        return fail({resource_fault::unknown_attribute, a.name + "." + m.name});
      }
      if (sub->mutability != attribute_mutability::read_only) {
        TIDEGATE_TRY_VOID(change_member(owner, *sub, kind, m.value));
      }
    }
    return {};
  }

  /// Puts another value in the place of one, but for what is immutable in it.
  static auto replace_value(json::value& value, attribute const& a, json::value const& by)
      -> result<void, error> {
    auto next = read_value(as_object(by, a), a, a.name);
    if (!next) {
      return fail(next.error());
    }
    for (auto const& sub : a.sub_attributes) {
      auto const* const old = value.find(sub.name);
      auto const* const now = next->find(sub.name);
      if (sub.mutability == attribute_mutability::immutable && old != nullptr && is_present(*old) &&
          (now == nullptr || *now != *old)) {
        return fail({resource_fault::immutable_changed, a.name + "." + sub.name});
      }
    }
    value = next->is_null() ? json::value(json::object()) : *std::move(next);
    return {};
  }

  /// A new value that the filter of the path matches, as far as it says what that is.
  static auto make_value(attribute const& a, patch_path const& path) -> result<json::value, error> {
    json::object equal;
    if (path.value_filter) {
      std::span literals(path.literals);
      collect_equal(equal, *path.value_filter, true, literals);
    }
    auto made = read_value(json::value(std::move(equal)), a, a.name);
    if (!made) {
      return fail(made.error());
    }
    return made->is_null() ? json::value(json::object()) : *std::move(made);
  }

  /// When one of the values that were changed is the primary one, no other is.
  static auto settle_primary(json::array& values, attribute const& a,
                             std::span<std::size_t const> changed) -> result<void, error> {
    if (!a.multi_valued || a.find("primary") == nullptr) {
      return {};
    }
    std::optional<std::size_t> primary;
    for (auto const i : changed) {
      if (is_true(values[i], "primary")) {
        if (primary) {
          return fail({resource_fault::primary_twice, a.name});
        }
        primary = i;
      }
    }
    for (std::size_t i = 0; primary && i < values.size(); ++i) {
      if (i != *primary && is_true(values[i], "primary")) {
        values[i].if_object()->set("primary", false);
      }
    }
    return {};
  }

  static auto no_target(patch_operation const& op) -> std::unexpected<error> {
    return fail(scim_type::no_target,
                spelled_name(op.path.path) + ": no value matches the filter of the path");
  }

  auto spend(std::size_t work) -> result<void, error> {
    if (work > work_left_) {
      return fail(scim_type::too_many, "the operations compare too many values");
    }
    work_left_ -= work;
    return {};
  }

  json::object resource_;
  resource_definition const& definition_;
  std::size_t work_left_ = patch_work_max;
};

/// `members`, when it is what a group has.
auto members_of(resource_definition const& definition) noexcept -> attribute const* {
  auto const* const a = definition.base().find("members");
  return a != nullptr && a->multi_valued && a->find("value") != nullptr &&
                 a->mutability != attribute_mutability::read_only
             ? a
             : nullptr;
}

/// Members that an operation brings, each with its `value`.
auto read_members(json::value const& value, attribute const& a)
    -> result<std::vector<json::value>, error> {
  TIDEGATE_TRY(auto members, read_values(value, a));
  for (auto const& m : members) {
    if (auto const* const id = m.find("value"); id == nullptr || !is_present(*id)) {
      return fail({resource_fault::required_missing, a.name + ".value"});
    }
  }
  return members;
}

auto change_of_members(patch_operation op, attribute const& a) -> result<member_change, error> {
  using enum member_action;
  bool const removes = op.kind == patch_kind::remove;
  if (op.path.path.sub != nullptr || (op.path.value_filter && !removes)) {
    return fail({resource_fault::immutable_changed, a.name});
  }
  if (auto& f = op.path.value_filter) {
    if (f->kind == filter_kind::compare && f->op == compare_op::eq &&
        equal_ignoring_case(f->path.sub->name, "value") && op.path.literals.front().if_string()) {
      return member_change{remove, {json::object{{"value", op.path.literals.front()}}}, {}};
    }
    return member_change{remove_matching, {}, std::move(f)};
  }
  if (op.value.is_null() && op.kind != patch_kind::add) {
    return member_change{remove_all, {}, {}};
  }
  TIDEGATE_TRY(auto members, read_members(op.value, a));
  auto const action = removes ? remove : op.kind == patch_kind::add ? add : replace_all;
  return member_change{action, std::move(members), {}};
}

}  // namespace

auto apply_patch(json::value const& resource, std::vector<patch_operation> const& operations,
                 resource_definition const& definition) -> result<json::value, error> {
  auto const* const object = resource.if_object();
  if (object == nullptr) {
    return fail({resource_fault::object_expected, ""});
  }
  patcher p(*object, definition);
  for (auto const& op : operations) {
    TIDEGATE_TRY_VOID(p.apply(op));
  }
  return std::move(p).finish(resource);
}

auto split_members(std::vector<patch_operation> operations, resource_definition const& definition)
    -> result<group_patch, error> {
  group_patch out;
  auto const* const members = members_of(definition);
  for (auto& op : operations) {
    if (members == nullptr || op.path.path.parent != members) {
      out.rest.push_back(std::move(op));
      continue;
    }
    TIDEGATE_TRY(auto change, change_of_members(std::move(op), *members));
    out.members.push_back(std::move(change));
  }
  return out;
}

}  // namespace tidegate::TIDEGATE_ABI::scim
