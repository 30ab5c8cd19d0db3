// SPDX-License-Identifier: Apache-2.0
//
// Bulk requests (RFC 7644, section 3.7). All operations are one piece of work for the directory: it
// is durable as a whole, and an operation that fails leaves nothing behind.
//
// New resources get their ids before anything is done, so that a `bulkId` can be replaced wherever
// it stands. Operations run in the order of the request, but for those that others refer to, which
// run before them. Where groups have each other as members, the last of these memberships is made
// when both are there.
#include "changes.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/json/string.hpp>
#include <tidegate/scim/error.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

namespace tidegate::gateway {

namespace {

using scim::error;
using scim::scim_type;

constexpr std::string_view bulk_request_schema =
    "urn:ietf:params:scim:api:messages:2.0:BulkRequest";
constexpr std::string_view bulk_response_schema =
    "urn:ietf:params:scim:api:messages:2.0:BulkResponse";
constexpr std::string_view reference = "bulkId:";

/// Others wait while a bulk request runs.
constexpr auto bulk_time_max = std::chrono::seconds(5);

struct bulk_operation {
  std::string method;
  std::string bulk_id;
  scim::model_type const* type = nullptr;
  std::string id;  ///< of the resource
  scim_change change;
  std::optional<error> fault;      ///< found before the directory was asked
  std::vector<std::size_t> needs;  ///< the operations that it refers to
};

struct bulk_plan {
  std::shared_ptr<scim_call const> call;
  std::uint64_t errors_max = UINT64_MAX;
  std::vector<bulk_operation> operations;
  std::vector<std::size_t> order;
};

using ids_by_bulk_id = std::map<std::string, std::size_t, std::less<>>;

/// Replaces what refers to operations by the ids that these make.
class reference_resolver {
 public:
  reference_resolver(bulk_plan const& plan, ids_by_bulk_id const& known)
      : plan_(plan), known_(known) {}

  /// The text itself when it is not a reference.
  auto resolve(std::string text, bulk_operation& of) const -> std::string {
    if (!text.starts_with(reference)) {
      return text;
    }
    auto const found = known_.find(std::string_view(text).substr(reference.size()));
    if (found == known_.end()) {
      of.fault = error{409, scim_type::invalid_value,
                       "There is no operation that makes \"" + text + "\"."};
      return text;
    }
    of.needs.push_back(found->second);
    return plan_.operations[found->second].id;
  }

  [[nodiscard]] auto resolve(json::value const& value, bulk_operation& of) const -> json::value {
    if (auto const* const text = value.if_string()) {
      return resolve(*text, of);
    }
    if (auto const* const array = value.if_array()) {
      json::array out;
      for (auto const& each : *array) {
        out.push_back(resolve(each, of));
      }
      return out;
    }
    if (auto const* const object = value.if_object()) {
      json::object out;
      for (auto const& member : object->members()) {
        out.append(member.name, resolve(member.value, of));
      }
      return out;
    }
    return value;
  }

 private:
  bulk_plan const& plan_;
  ids_by_bulk_id const& known_;
};

/// What the operation is about, or its fault.
auto read_operation(bulk_plan const& plan, json::value const& given, bulk_operation& made,
                    reference_resolver const& references) -> result<void, error> {
  auto const& request = plan.call->request;
  std::string path(text_of(given, "path"));
  if (path.starts_with(request.base)) {
    path.erase(0, request.base.size());
  }
  if (auto const at = path.find(reference); at != std::string::npos) {
    path.replace(at, path.size() - at, references.resolve(path.substr(at), made));
  }
  auto const target = find_scim_target(plan.call->model(), path);
  bool const makes = made.method == "POST";
  if (target.endpoint != (makes ? scim_endpoint::type : scim_endpoint::resource)) {
    return failure(target.endpoint == scim_endpoint::nothing
                       ? not_found("endpoint")
                       : error{405, scim_type::none, "This endpoint does not support the method."});
  }
  made.type = target.type;
  if (!makes) {
    made.id = target.name;
  }
  auto const kind = makes                    ? change_kind::create
                    : made.method == "PUT"   ? change_kind::replace
                    : made.method == "PATCH" ? change_kind::patch
                                             : change_kind::remove;
  static json::value const nothing;
  auto const* const data = given.find("data");
  auto body = references.resolve(data == nullptr ? nothing : *data, made);
  TIDEGATE_TRY(made.change,
               read_change(kind, *target.type, std::move(body), request.options->unknown));
  made.change.now = plan.call->now;
  made.change.unique_group_names = request.options->unique_group_names;
  made.change.if_match = makes ? "" : text_of(given, "version");
  if (makes) {
    prepare_create(made.change, made.id);
  }
  return {};
}

/// Each operation behind those that it needs, as far as they do not need each other.
void find_order(bulk_plan& plan) {
  auto const count = plan.operations.size();
  std::vector<bool> seen(count, false);
  std::vector<std::size_t> next_need(count, 0);
  std::vector<std::size_t> place(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    if (seen[i]) {
      continue;
    }
    seen[i] = true;
    std::vector<std::size_t> path{i};
    while (!path.empty()) {
      auto const at = path.back();
      auto const& needs = plan.operations[at].needs;
      if (next_need[at] < needs.size()) {
        auto const needed = needs[next_need[at]++];
        if (!seen[needed]) {
          seen[needed] = true;
          path.push_back(needed);
        }
        continue;
      }
      place[at] = plan.order.size();
      plan.order.push_back(at);
      path.pop_back();
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    auto& operation = plan.operations[i];
    std::erase_if(operation.needs, [&](std::size_t needed) {
      if (place[needed] > place[i]) {
        operation.change.made_later.push_back(plan.operations[needed].id);
      }
      return place[needed] >= place[i];
    });
  }
}

/// What became of an operation; status 0 when it was not tried.
struct bulk_result {
  int status = 0;
  std::optional<error> fault;
  store::directory_resource resource;
};

/// A membership that waits for both to be there.
struct late_member {
  std::size_t group;
  given_member member;
};

class bulk_run {
 public:
  bulk_run(bulk_plan const& plan, store::directory_writer& in)
      : plan_(plan), in_(in), results_(plan.operations.size()) {}

  auto answer() -> result<scim_answer, error> {
    for (auto const i : plan_.order) {
      if (errors_ >= plan_.errors_max) {
        break;
      }
      TIDEGATE_TRY_VOID(run(i));
      if (std::chrono::steady_clock::now() > until_) {
        return failure(error{413, scim_type::none,
                             "The request takes too long, and nothing of it is kept; send fewer "
                             "operations at once."});
      }
    }
    for (auto const& late : late_) {
      TIDEGATE_TRY_VOID(add(late));
    }
    return json_answer(200, text());
  }

 private:
  auto run(std::size_t i) -> result<void, error> {
    auto const& operation = plan_.operations[i];
    bool const has_all = std::ranges::all_of(
        operation.needs, [&](std::size_t needed) { return !results_[needed].fault; });
    if (operation.fault || !has_all) {
      fail(i, operation.fault.value_or(unresolved()));
      return {};
    }
    auto made = carry_out(in_, operation.change, operation.id);
    if (!made) {
      if (made.error().status >= 500) {
        return failure(made.error());  // the directory fails, and nothing is kept
      }
      fail(i, made.error());
      return {};
    }
    results_[i].status = made->status;
    results_[i].resource = std::move(made->resource);
    for (auto& member : made->left_out) {
      late_.push_back({i, std::move(member)});
    }
    return {};
  }

  auto add(late_member const& late) -> result<void, error> {
    auto const& group = results_[late.group];
    if (group.fault) {
      return {};
    }
    TIDEGATE_TRY(auto const there, or_unavailable(in_.find_any(late.member.id)));
    if (there) {
      TIDEGATE_TRY_VOID(or_unavailable(
          in_.add_member(group.resource.rid, there->resource.rid, late.member.display)));
      return {};
    }
    // Only a group that was made here can be part of a circle.
    TIDEGATE_TRY_VOID(
        or_unavailable(in_.remove(*plan_.operations[late.group].type, group.resource.rid)));
    fail(late.group, unresolved());
    return {};
  }

  static auto unresolved() -> error {
    return {409, scim_type::invalid_value, "An operation that this one refers to did not succeed."};
  }

  void fail(std::size_t i, error why) {
    ++errors_;
    results_[i].status = why.status;
    results_[i].fault = std::move(why);
  }

  auto text() const -> std::string {
    std::string out = R"({"schemas":[")";
    out.append(bulk_response_schema).append(R"("],"Operations":[)");
    for (bool is_first = true; auto const& result : results_) {
      if (result.status != 0) {
        out.append(std::exchange(is_first, false) ? "" : ",");
        append_result(out, plan_.operations[static_cast<std::size_t>(&result - results_.data())],
                      result);
      }
    }
    return out.append("]}");
  }

  void append_result(std::string& out, bulk_operation const& operation,
                     bulk_result const& result) const {
    out.append(R"({"method":)");
    json::append_string(out, operation.method);
    if (!operation.bulk_id.empty()) {
      out.append(R"(,"bulkId":)");
      json::append_string(out, operation.bulk_id);
    }
    bool const exists = operation.type != nullptr && (operation.method != "POST" || !result.fault);
    if (exists) {
      out.append(R"(,"location":)");
      json::append_string(out, plan_.call->request.base +
                                   operation.type->definition.type().endpoint + "/" + operation.id);
    }
    if (!result.fault && operation.method != "DELETE") {
      out.append(R"(,"version":)");
      json::append_string(out, etag_of(result.resource.version));
    }
    out.append(R"(,"status":")").append(std::to_string(result.status)).append("\"");
    if (result.fault) {
      out.append(R"(,"response":)");
      scim::append_error(out, *result.fault);
    }
    out.append("}");
  }

  bulk_plan const& plan_;
  store::directory_writer& in_;
  std::vector<bulk_result> results_;
  std::vector<late_member> late_;
  std::uint64_t errors_ = 0;
  std::chrono::steady_clock::time_point until_ = std::chrono::steady_clock::now() + bulk_time_max;
};

/// Method and bulkId of each operation; those that make something get their ids.
auto read_names(bulk_plan& plan, json::array const& given) -> ids_by_bulk_id {
  ids_by_bulk_id made;
  for (std::size_t i = 0; i < given.size(); ++i) {
    auto& operation = plan.operations[i];
    operation.method = text_of(given[i], "method");
    std::ranges::transform(operation.method, operation.method.begin(), [](char c) {
      return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
    operation.bulk_id = text_of(given[i], "bulkId");
    if (operation.method == "POST") {
      operation.id = make_resource_id(plan.call->now);
      if (operation.bulk_id.empty()) {
        operation.fault = bad_request(scim_type::invalid_syntax, "A POST needs a bulkId.");
      } else if (!made.try_emplace(operation.bulk_id, i).second) {
        operation.fault = bad_request(scim_type::invalid_value, "The bulkId is used twice.");
      }
    } else if (operation.method != "PUT" && operation.method != "PATCH" &&
               operation.method != "DELETE") {
      operation.fault =
          bad_request(scim_type::invalid_syntax, "The method must be POST, PUT, PATCH or DELETE.");
    }
  }
  return made;
}

}  // namespace

auto plan_bulk(std::shared_ptr<scim_call const> call) -> result<scim_write, error> {
  auto const plan = std::make_shared<bulk_plan>();
  plan->call = std::move(call);
  auto const& request = plan->call->request;
  TIDEGATE_TRY(auto const body, read_body(request.content, request.content_octets_max()));
  auto const* const operations = body.find<json::array>("Operations");
  if (!scim::has_schema(body, bulk_request_schema) || operations == nullptr) {
    return failure(bad_request(scim_type::invalid_syntax,
                               "The body must be a BulkRequest with an array of Operations."));
  }
  if (auto const* const limit = body.find("failOnErrors"); limit != nullptr && !limit->is_null()) {
    if (limit->if_integer() == nullptr || *limit->if_integer() < 1) {
      return failure(bad_request(scim_type::invalid_value, "failOnErrors must be 1 or more."));
    }
    plan->errors_max = static_cast<std::uint64_t>(*limit->if_integer());
  }
  auto const& given = *operations;
  if (given.size() > static_cast<std::uint64_t>(request.options->bulk_max_operations)) {
    return failure(error{413, scim_type::none,
                         "The request has more than the " +
                             std::to_string(request.options->bulk_max_operations) +
                             " operations that are allowed (maxOperations)."});
  }
  plan->operations.resize(given.size());
  auto const made = read_names(*plan, given);
  reference_resolver const references(*plan, made);
  for (std::size_t i = 0; i < given.size(); ++i) {
    auto& operation = plan->operations[i];
    if (operation.fault) {
      continue;
    }
    auto read = read_operation(*plan, given[i], operation, references);
    if (!read && !operation.fault) {
      operation.fault = std::move(read).error();
    }
  }
  scim::ignored_names ignored;
  for (auto const& operation : plan->operations) {
    ignored.add(operation.change.ignored);
  }
  plan->call->parts->ignored->note(request.route, ignored);
  find_order(*plan);
  return [plan](store::directory_writer& in) { return bulk_run(*plan, in).answer(); };
}

}  // namespace tidegate::gateway
