// SPDX-License-Identifier: Apache-2.0
//
// How resources are shown, and the answers that have one.
#include <tidegate/scim_server/call.hpp>

#include <tidegate/http/field.hpp>
#include <tidegate/json/parse.hpp>
#include <tidegate/json/string.hpp>
#include <tidegate/scim/list_request.hpp>

#include <algorithm>
#include <cassert>
#include <utility>

namespace tidegate::gateway {

namespace {

using scim::error;

/// The end of every text: that of `meta`, and that of the resource.
constexpr std::string_view text_end = "}}";

auto too_large() -> error {
  return bad_request(scim::scim_type::too_many,
                     "The answer would be too large; ask for fewer resources, or with "
                     "excludedAttributes=members.");
}

auto endpoint_of(scim::model_type const& type) -> std::string const& {
  return type.definition.type().endpoint;
}

/// `https://api.example.com/scim/v2/Users/1`
void append_uri(std::string& out, std::string_view base, std::string_view endpoint,
                std::string_view id) {
  out.append(base).append(endpoint).append("/");
  out.append(id);  // which is one that this service has made
}

/// The endpoint of the resources of that type; that of Users when the type is gone from the model.
auto endpoint_named(scim::model const& model, std::string_view type) -> std::string_view {
  auto const* const found = model.find(type);
  return found != nullptr ? std::string_view(endpoint_of(*found)) : "/Users";
}

void append_member(std::string& out, resource_view const& view,
                   store::directory_member const& member) {
  out.append(R"({"value":")").append(member.id).append(R"(","$ref":")");
  append_uri(out, view.base, endpoint_named(*view.model, member.type), member.id);
  out.append(R"(","type":)");
  json::append_string(out, member.type);
  if (!member.display.empty()) {
    out.append(R"(,"display":)");
    json::append_string(out, member.display);
  }
  out.append("}");
}

void append_group(std::string& out, resource_view const& view,
                  store::directory_member const& group) {
  out.append(R"({"value":")").append(group.id).append(R"(","$ref":")");
  append_uri(out, view.base, endpoint_named(*view.model, group.type), group.id);
  out.append(R"(","display":)");
  json::append_string(out, group.display);
  out.append(R"(,"type":"direct"})");
}

/// Appends `,"members":[…]` or `,"groups":[…]`, as far as the client gets them and there are any.
auto append_relations(std::string& out, store::directory_reader& from, resource_view const& view,
                      kept_resource const& resource) -> result<void, error> {
  if (view.type->has_members && view.shows.wants("members")) {
    bool is_first = true;
    bool is_too_large = false;
    TIDEGATE_TRY_VOID(
        or_unavailable(from.members(resource.rid, [&](store::directory_member const& member) {
          out.append(std::exchange(is_first, false) ? R"(,"members":[)" : ",");
          append_member(out, view, member);
          is_too_large = out.size() > view.octets_max;
          return !is_too_large;
        })));
    if (is_too_large) {
      return failure(too_large());
    }
    out.append(is_first ? "" : "]");
  }
  if (view.type->has_groups && resource.maybe_in_groups && view.shows.wants("groups")) {
    TIDEGATE_TRY(auto const groups, or_unavailable(from.groups_of(resource.rid)));
    for (bool is_first = true; auto const& group : groups) {
      out.append(std::exchange(is_first, false) ? R"(,"groups":[)" : ",");
      append_group(out, view, group);
    }
    out.append(groups.empty() ? "" : "]");
  }
  return {};
}

}  // namespace

auto json_escaped(std::string_view text) -> std::string {
  std::string out;
  json::append_string(out, text);
  return out.substr(1, out.size() - 2);
}

auto etag_of(std::uint64_t version) -> std::string {
  return "W/\"" + std::to_string(version) + "\"";
}

auto names_version(std::string_view etags, std::uint64_t version) -> bool {
  auto const wanted = std::to_string(version);
  while (!etags.empty()) {
    auto tag = http::take_element(etags);
    if (tag == "*") {
      return true;
    }
    if (tag.starts_with("W/")) {
      tag.remove_prefix(2);
    }
    if (tag.size() >= 2 && tag.front() == '"' && tag.back() == '"') {
      tag = tag.substr(1, tag.size() - 2);
    }
    if (tag == wanted) {
      return true;
    }
  }
  return false;
}

auto make_view(scim_call const& call, scim::model_type const& type, scim::projection shows)
    -> resource_view {
  resource_view made{&call.model(),      &type,
                     std::move(shows),   json_escaped(call.request.base),
                     R"(,"location":")", call.request.answer_octets_max};
  append_uri(made.location, made.base, endpoint_of(type), "");
  return made;
}

auto view_of(scim_call const& call, scim::model_type const& type) -> result<resource_view, error> {
  TIDEGATE_TRY(auto const asked,
               scim::parse_list_query(call.request.query, call.request.options->pagination));
  TIDEGATE_TRY(auto shows, scim::projection::make(asked.attributes, asked.excluded_attributes,
                                                  type.definition));
  return make_view(call, type, std::move(shows));
}

auto is_shown_as_kept(resource_view const& view) -> bool {
  return view.shows.is_default() && !view.type->has_request_only;
}

auto append_shown(std::string& out, store::directory_reader& from, resource_view const& view,
                  kept_resource const& resource) -> result<void, error> {
  assert(resource.text.ends_with(text_end));
  auto const begin = out.size();
  out.append(resource.text.data(), resource.text.size() - text_end.size());
  out.append(view.location).append(resource.id);
  if (view.type->has_members || (view.type->has_groups && resource.maybe_in_groups)) {
    out.append("\"}");
    TIDEGATE_TRY_VOID(append_relations(out, from, view, resource));
    out.append("}");
  } else {
    out.append("\"}}");
  }
  if (out.size() > view.octets_max) {
    return failure(too_large());
  }
  if (is_shown_as_kept(view)) {
    return {};
  }
  auto const whole =
      json::parse(std::string_view(out).substr(begin), {.octets_max = view.octets_max});
  if (!whole) {
    return failure(unavailable({store::store_fault::damaged, "a resource that is not JSON"}));
  }
  out.resize(begin);
  json::append(out, view.shows.apply(*whole));
  return {};
}

auto resource_answer(int status, store::directory_reader& from, resource_view const& view,
                     std::string const& base, store::directory_resource const& resource)
    -> result<scim_answer, error> {
  std::string content;
  content.reserve(resource.text.size() + view.location.size() + resource.id.size());
  TIDEGATE_TRY_VOID(append_shown(
      content, from, view, {resource.rid, resource.id, resource.text, resource.maybe_in_groups}));
  auto answer = json_answer(status, std::move(content));
  answer.fields.push_back({"ETag", etag_of(resource.version)});
  std::string location;
  location.reserve(base.size() + endpoint_of(*view.type).size() + 1 + resource.id.size());
  append_uri(location, base, endpoint_of(*view.type), resource.id);
  answer.fields.push_back({"Location", location});
  answer.fields.push_back({"Content-Location", std::move(location)});  // RFC 7643, section 3.1
  return answer;
}

auto find_me(scim_call const& call, store::directory_reader& in)
    -> result<store::directory_resource, error> {
  auto const none = failure(not_found("user with the name of this token"));
  auto const* const users = call.model().find("User");
  if (users == nullptr || call.request.principal.empty()) {
    return none;
  }
  auto const name = users->definition.resolve("userName");
  auto const index = name ? users->find_index(*name) : std::nullopt;
  if (!index) {
    return none;
  }
  auto const key = scim::index_key(*name->leaf(), json::value(call.request.principal));
  TIDEGATE_TRY(auto const id, or_unavailable(in.find_unique(*users, *index, key, "")));
  if (!id) {
    return none;
  }
  TIDEGATE_TRY(auto found, or_unavailable(in.find(*users, *id)));
  if (!found) {
    return none;
  }
  return *std::move(found);
}

auto plan_get(std::shared_ptr<scim_call const> call) -> result<scim_read, error> {
  bool const is_me = call->target.endpoint == scim_endpoint::me;
  auto const* const type = is_me ? call->model().find("User") : call->target.type;
  if (type == nullptr) {
    return failure(not_found("resource"));
  }
  TIDEGATE_TRY(auto view, view_of(*call, *type));
  bool const looks_quick = is_shown_as_kept(view) && !type->has_members;
  auto answer = [call = std::move(call), view = std::move(view), is_me](
                    store::directory_reader& from,
                    read_effort effort) -> std::optional<result<scim_answer, error>> {
    auto const& request = call->request;
    store::directory_resource resource;
    if (is_me) {
      TIDEGATE_TRY(resource, find_me(*call, from));
    } else {
      TIDEGATE_TRY(auto found, or_unavailable(from.find(*view.type, call->target.name)));
      if (!found) {
        return failure(not_found("resource"));
      }
      resource = *std::move(found);
    }
    if (!request.if_match.empty() && !names_version(request.if_match, resource.version)) {
      return failure(error{412, scim::scim_type::none, "The resource has another version."});
    }
    if (!request.if_none_match.empty() && names_version(request.if_none_match, resource.version)) {
      return scim_answer{304, {{"ETag", etag_of(resource.version)}}, ""};
    }
    if (effort == read_effort::quick && view.type->has_groups && resource.maybe_in_groups) {
      return std::nullopt;
    }
    return resource_answer(200, from, view, request.base, resource);
  };
  return scim_read{std::move(answer), looks_quick};
}

}  // namespace tidegate::gateway
