// SPDX-License-Identifier: Apache-2.0
//
// Lists of resources (RFC 7644, sections 3.4.2 and 3.4.3; RFC 9865): of one type, or of all types
// one after the other.
#include "list_reader.hpp"

#include <memory>
#include <span>
#include <utility>

namespace tidegate::gateway {

namespace {

using scim::error;
using scim::scim_type;

auto asked_for(scim_call const& call) -> result<scim::list_request, error> {
  auto const& options = call.request.options->pagination;
  return call.target.endpoint == scim_endpoint::search
             ? scim::parse_search_request(call.request.content, options)
             : scim::parse_list_query(call.request.query, options);
}

/// One part for each type that may have what is asked for, and at least one.
auto find_parts(list_plan& plan, std::span<scim::model_type const> types) -> result<void, error> {
  for (auto const& type : types) {
    std::optional<scim::filter> where;
    if (plan.asked.filter) {
      auto read = types.size() == 1
                      ? scim::parse_filter(*plan.asked.filter, type.definition)
                      : scim::parse_filter_among_types(*plan.asked.filter, type.definition);
      if (!read) {
        return failure(error{400, scim_type::invalid_filter, to_string(read.error())});
      }
      plan.canonical_filter.append(type.definition.type().name).append(" ");
      plan.canonical_filter.append(canonical_text(*read)).append("\n");
      bool const is_last = &type == &types.back();
      if (never_matches(*read) && !(is_last && plan.parts.empty())) {
        continue;
      }
      where = *std::move(read);
    }
    TIDEGATE_TRY(auto shows,
                 scim::projection::make(plan.asked.attributes, plan.asked.excluded_attributes,
                                        type.definition));
    plan.parts.push_back({make_view(*plan.call, type, std::move(shows)), std::move(where)});
  }
  return {};
}

auto find_order(list_plan& plan) -> result<void, error> {
  auto const& asked = plan.asked.sort_by;
  if (asked.empty()) {
    return {};
  }
  auto const wrong = [&](std::string_view why) {
    return failure(bad_request(scim_type::invalid_value, "sortBy: " + std::string(why)));
  };
  if (plan.call->target.type == nullptr) {
    return wrong("resources of several types have no common order; ask at one endpoint");
  }
  auto const& type = *plan.call->target.type;
  auto path = type.definition.resolve(asked);
  if (!path || path->leaf() == nullptr ||
      path->leaf()->returned == scim::attribute_returned::never) {
    return wrong("there is no such attribute");
  }
  if (path->leaf()->type == scim::attribute_type::complex) {
    path->sub = path->parent->find("value");
    if (path->sub == nullptr) {
      return wrong("a sub-attribute of \"" + path->parent->name + "\" is needed");
    }
  }
  plan.sort_index = type.find_index(*path);
  if (!plan.sort_index) {
    plan.sorted_by = type;
    plan.sorted_by->indexes = {{canonical_name(*path), *path, false}};
  }
  return {};
}

/// Whether it is likely that little has to be read.
auto looks_quick(list_plan const& plan) -> bool {
  auto const& part = plan.parts.front();
  if (plan.parts.size() > 1 || plan.sorted_by || plan.count > quick_rows_max ||
      !is_shown_as_kept(part.view) || part.view.type->has_members) {
    return false;
  }
  return part.where ? asks_for_one(*part.where, *part.view.type)
                    : plan.is_walk() || plan.asked.start_index <= 1;
}

}  // namespace

auto plan_list(std::shared_ptr<scim_call const> call) -> result<scim_read, error> {
  auto const plan = std::make_shared<list_plan>();
  plan->call = std::move(call);
  auto const& model = plan->call->model();
  auto const& request = plan->call->request;
  TIDEGATE_TRY(plan->asked, asked_for(*plan->call));
  auto const* const type = plan->call->target.type;
  TIDEGATE_TRY_VOID(find_parts(*plan, type != nullptr ? std::span(type, 1) : model.types()));
  TIDEGATE_TRY_VOID(find_order(*plan));
  if (!plan->asked.cursor.empty()) {
    auto opened =
        plan->call->parts->cursors.open(plan->asked.cursor, plan->binding(), plan->call->now);
    if (!opened) {
      return failure(scim::error_of(opened.error()));
    }
    plan->from = *std::move(opened);
  }
  TIDEGATE_TRY(plan->count, scim::page_size(plan->asked, plan->from ? &*plan->from : nullptr,
                                            request.options->pagination));
  return scim_read{[plan](store::directory_reader& from, read_effort effort) {
                     return read_list(*plan, from, effort);
                   },
                   looks_quick(*plan)};
}

}  // namespace tidegate::gateway
