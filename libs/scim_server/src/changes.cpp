// SPDX-License-Identifier: Apache-2.0
#include "changes.hpp"
#include "group_members.hpp"

#include <tidegate/http/date.hpp>
#include <tidegate/json/parse.hpp>
#include <tidegate/scim/resource.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace tidegate::gateway {

namespace {

using scim::error;
using scim::scim_type;

/// A group with more members than this is not sent back whole after it was made, replaced or
/// changed.
constexpr std::size_t shown_members_max = 1000;

// ---- what is kept ----

/// `2011-05-13T04:42:34.123Z`
auto date_time_text(scim::wall_time time) -> std::string {
  auto const seconds = std::chrono::floor<std::chrono::seconds>(time);
  std::string out;
  out.reserve(24);
  http::append_rfc3339(out, seconds);
  auto const digits = std::to_string(1000 + (time - seconds).count());
  out.back() = '.';
  out.append(digits, 1).push_back('Z');
  return out;
}

/// What no client may read is not kept: nothing here has a use for it.
auto is_kept(scim::attribute const& a) -> bool {
  return a.returned != scim::attribute_returned::never &&
         a.mutability != scim::attribute_mutability::write_only;
}

void drop_unkept(json::object& from, std::span<scim::attribute const> attributes) {
  for (auto const& a : attributes) {
    if (!is_kept(a)) {
      from.erase(a.name);
      continue;
    }
    auto* const value =
        std::ranges::all_of(a.sub_attributes, is_kept) ? nullptr : from.find(a.name);
    if (value == nullptr) {
      continue;
    }
    if (auto* const one = value->if_object()) {
      drop_unkept(*one, a.sub_attributes);
    } else if (auto* const many = value->if_array()) {
      for (auto& each : *many) {
        if (auto* const object = each.if_object()) {
          drop_unkept(*object, a.sub_attributes);
        }
      }
    }
  }
}

void drop_unkept(json::value& resource, scim::resource_definition const& definition) {
  auto& object = *resource.if_object();
  drop_unkept(object, definition.base().attributes);
  for (auto const& extension : definition.extensions()) {
    if (auto* const data = object.find(extension.id); data != nullptr && data->if_object()) {
      drop_unkept(*data->if_object(), extension.attributes);
    }
  }
}

/// What a resource has from here: its `id` and its `meta`.
auto own_members(scim::model_type const& type, std::string const& id, std::string const& created,
                 std::string const& modified, std::uint64_t version) -> json::value {
  json::object meta;
  meta.members().reserve(4);
  meta.append("resourceType", type.definition.type().name);
  meta.append("created", created);
  meta.append("lastModified", modified);
  meta.append("version", etag_of(version));
  json::object own;
  own.members().reserve(2);
  own.append("id", id);
  own.append("meta", std::move(meta));
  return own;
}

auto own_members_of_new(scim::model_type const& type, std::string const& id, scim::wall_time now)
    -> json::value {
  auto const text = date_time_text(now);
  return own_members(type, id, text, text, 1);
}

/// `resource` with its id and, at the end, its meta.
auto kept_form_of(json::value resource, scim::model_type const& type, json::value own)
    -> scim::kept_form {
  json::object whole;
  auto& members = resource.if_object()->members();
  auto& given = own.if_object()->members();
  whole.members().reserve(members.size() + given.size());
  for (auto& member : members) {
    if (member.name == "id" || member.name == "meta") {
      continue;
    }
    auto const& added = whole.members().emplace_back(std::move(member));
    if (added.name == "schemas") {
      whole.members().push_back(std::move(given.front()));
    }
  }
  whole.members().push_back(std::move(given.back()));
  json::value const made(std::move(whole));
  scim::kept_form form;
  form.text.reserve(2048);  // most are shorter
  json::append(form.text, made);
  form.entries = scim::index_entries(type, made);
  return form;
}

auto created_of(json::value const& resource) -> std::string {
  auto const* const meta = resource.find("meta");
  return meta == nullptr ? std::string() : std::string(text_of(*meta, "created"));
}

// ---- conditions ----

auto is_unique(scim::index_definition const& index, scim_change const& change) -> bool {
  if (index.name == "id") {
    return false;  // made here, and never given again
  }
  return index.unique ||
         (change.unique_group_names && change.type->has_members && index.name == "displayname");
}

auto check_unique(store::directory_writer& in, scim_change const& change, std::string const& id,
                  std::span<scim::index_entry const> entries) -> result<void, error> {
  for (auto const& entry : entries) {
    auto const& index = change.type->indexes[entry.index];
    if (entry.key == scim::missing_key || !is_unique(index, change)) {
      continue;
    }
    TIDEGATE_TRY(auto const other,
                 or_unavailable(in.find_unique(*change.type, entry.index, entry.key, id)));
    if (other) {
      return failure(error{409, scim_type::uniqueness,
                           "Another resource has the same " + index.path.leaf()->name + "."});
    }
  }
  return {};
}

auto check_version(scim_change const& change, std::uint64_t version) -> result<void, error> {
  if ((!change.if_match.empty() && !names_version(change.if_match, version)) ||
      (!change.if_none_match.empty() && names_version(change.if_none_match, version))) {
    return failure(error{412, scim_type::none, "The resource has another version."});
  }
  return {};
}

// ---- the four changes ----

auto create(store::directory_writer& in, scim_change const& change, std::string const& id)
    -> result<scim_changed, error> {
  auto const& form = change.created;
  TIDEGATE_TRY_VOID(check_unique(in, change, id, form.entries));
  scim_changed made{201, {}, {}};
  TIDEGATE_TRY(auto const members, find_members(in, change.members, change, id, made.left_out));
  TIDEGATE_TRY(made.resource.rid,
               or_unavailable(in.insert(*change.type, id, form.text, form.entries)));
  TIDEGATE_TRY_VOID(add_members(in, made.resource.rid, members));
  made.resource.id = id;
  made.resource.version = 1;
  made.resource.text = form.text;
  return made;
}

/// Writes what `resource` has become.
auto update(store::directory_writer& in, scim_change const& change, json::value after,
            std::string const& created, store::directory_resource& resource)
    -> result<void, error> {
  auto form = kept_form_of(std::move(after), *change.type,
                           own_members(*change.type, resource.id, created,
                                       date_time_text(change.now), resource.version + 1));
  TIDEGATE_TRY_VOID(check_unique(in, change, resource.id, form.entries));
  TIDEGATE_TRY_VOID(or_unavailable(in.update(*change.type, resource.rid, form.text, form.entries)));
  resource.text = std::move(form.text);
  ++resource.version;
  return {};
}

auto parse_kept(std::string const& text) -> result<json::value, error> {
  auto kept = json::parse(text, {.octets_max = text.size()});
  if (!kept) {
    return failure(unavailable({store::store_fault::damaged, "a resource that is not JSON"}));
  }
  return *std::move(kept);
}

/// Whether a kept resource is what a client sends, but for the id and the meta, which are given
/// here.
auto is_same_resource(json::value before, json::value const& sent) -> bool {
  auto* const object = before.if_object();
  if (object == nullptr) {
    return false;
  }
  object->erase("id");
  object->erase("meta");
  return before == sent;
}

auto replace(store::directory_writer& in, scim_change const& change,
             store::directory_resource resource) -> result<scim_changed, error> {
  TIDEGATE_TRY(auto const before, parse_kept(resource.text));
  auto const checked = scim::check_immutable(before, change.resource, change.type->definition);
  if (!checked) {
    return failure(
        bad_request(scim::scim_type_of(checked.error().fault), to_string(checked.error())));
  }
  scim_changed made{200, std::move(resource), {}};
  TIDEGATE_TRY(auto const members,
               find_members(in, change.members, change, made.resource.id, made.left_out));
  bool members_stay = true;
  if (change.type->has_members) {
    TIDEGATE_TRY(members_stay, has_exactly(in, made.resource.rid, members));
  }
  if (members_stay && is_same_resource(before, change.resource)) {
    return made;
  }
  TIDEGATE_TRY_VOID(update(in, change, change.resource, created_of(before), made.resource));
  if (!members_stay) {
    TIDEGATE_TRY_VOID(or_unavailable(in.remove_members(made.resource.rid)));
    TIDEGATE_TRY_VOID(add_members(in, made.resource.rid, members));
  }
  return made;
}

auto patch(store::directory_writer& in, scim_change const& change,
           store::directory_resource resource) -> result<scim_changed, error> {
  TIDEGATE_TRY(auto const before, parse_kept(resource.text));
  TIDEGATE_TRY(auto after, scim::apply_patch(before, change.patch.rest, change.type->definition));
  drop_unkept(after, change.type->definition);
  scim_changed made{200, std::move(resource), {}};
  TIDEGATE_TRY(auto const steps, find_steps(in, change, made.resource.id, made.left_out));
  auto const rid = made.resource.rid;
  // What can be refused comes first: a unique value that is taken.
  bool changed = before != after;
  if (changed) {
    TIDEGATE_TRY_VOID(update(in, change, after, created_of(before), made.resource));
  }
  bool members_changed = false;
  for (auto const& step : steps) {
    TIDEGATE_TRY(bool const stepped, make_step(in, rid, step));
    members_changed = members_changed || stepped;
  }
  if (members_changed && !changed) {
    TIDEGATE_TRY_VOID(update(in, change, after, created_of(before), made.resource));
  }
  return made;
}

auto has_many_members(store::directory_reader& from, std::uint64_t group) -> result<bool, error> {
  std::size_t count = 0;
  TIDEGATE_TRY_VOID(or_unavailable(from.members(
      group, [&](store::directory_member const&) { return ++count <= shown_members_max; })));
  return count > shown_members_max;
}

auto kind_of(std::string_view method) -> change_kind {
  return method == "POST"    ? change_kind::create
         : method == "PUT"   ? change_kind::replace
         : method == "PATCH" ? change_kind::patch
                             : change_kind::remove;
}

}  // namespace

auto read_body(std::string_view content, std::size_t octets_max) -> result<json::value, error> {
  auto body = json::parse(content, {.octets_max = octets_max});
  if (!body) {
    return failure(bad_request(scim_type::invalid_syntax, to_string(body.error())));
  }
  return *std::move(body);
}

auto read_change(change_kind kind, scim::model_type const& type, json::value body,
                 scim::unknown_attributes unknown) -> result<scim_change, error> {
  scim_change made;
  made.kind = kind;
  made.type = &type;
  if (kind == change_kind::remove) {
    return made;
  }
  if (kind == change_kind::patch) {
    TIDEGATE_TRY(auto operations, scim::parse_patch(body, type.definition, unknown, &made.ignored));
    if (type.has_members) {
      TIDEGATE_TRY(made.patch, scim::split_members(std::move(operations), type.definition));
    } else {
      made.patch.rest = std::move(operations);
    }
    return made;
  }
  auto read = scim::read_resource(std::move(body), type.definition, unknown, &made.ignored);
  if (!read) {
    return failure(bad_request(scim::scim_type_of(read.error().fault), to_string(read.error())));
  }
  made.resource = *std::move(read);
  auto& object = *made.resource.if_object();
  if (type.has_members) {
    auto const* const array = object.find<json::array>("members");
    for (auto const& each : array == nullptr ? json::array() : *array) {
      TIDEGATE_TRY(auto member, read_member(each));
      made.members.push_back(std::move(member));
    }
    object.erase("members");
  }
  drop_unkept(made.resource, type.definition);
  return made;
}

void prepare_create(scim_change& change, std::string const& id) {
  change.created = kept_form_of(std::exchange(change.resource, json::value()), *change.type,
                                own_members_of_new(*change.type, id, change.now));
}

auto carry_out(store::directory_writer& in, scim_change const& change, std::string const& id)
    -> result<scim_changed, error> {
  if (change.kind == change_kind::create) {
    return create(in, change, id);
  }
  TIDEGATE_TRY(auto found, or_unavailable(in.find(*change.type, id)));
  if (!found) {
    return failure(not_found("resource"));
  }
  TIDEGATE_TRY_VOID(check_version(change, found->version));
  switch (change.kind) {
    case change_kind::replace: return replace(in, change, *std::move(found));
    case change_kind::patch: return patch(in, change, *std::move(found));
    default: break;
  }
  TIDEGATE_TRY_VOID(or_unavailable(in.remove(*change.type, found->rid)));
  return scim_changed{204, *std::move(found), {}};
}

namespace {

/// The change that a request wants; `id` is that of the resource, also of a new one.
auto read_request(scim_call const& call, scim::model_type const& type, change_kind kind,
                  std::string const& id) -> result<scim_change, error> {
  auto const& request = call.request;
  auto plain =
      kind == change_kind::create
          ? scim::read_plain_resource(request.content, type, own_members_of_new(type, id, call.now))
          : std::nullopt;
  scim_change change;
  if (!plain) {
    json::value body;
    if (kind != change_kind::remove) {
      TIDEGATE_TRY(body, read_body(request.content, request.content_octets_max()));
    }
    TIDEGATE_TRY(change, read_change(kind, type, std::move(body), request.options->unknown));
    call.parts->ignored->note(request.route, change.ignored);
  }
  change.kind = kind;
  change.type = &type;
  change.now = call.now;
  change.unique_group_names = request.options->unique_group_names;
  if (plain) {
    change.created = *std::move(plain);
  } else if (kind == change_kind::create) {
    prepare_create(change, id);
  } else {
    change.if_match = request.if_match;
    change.if_none_match = request.if_none_match;
  }
  return change;
}

}  // namespace

auto plan_write(std::shared_ptr<scim_call const> call) -> result<scim_write, error> {
  auto const& request = call->request;
  bool const is_me = call->target.endpoint == scim_endpoint::me;
  auto const* const type = is_me ? call->model().find("User") : call->target.type;
  if (type == nullptr) {
    return failure(not_found("resource"));
  }
  TIDEGATE_TRY(auto view, view_of(*call, *type));
  auto const kind = kind_of(request.method);
  auto id = kind == change_kind::create ? make_resource_id(call->now) : call->target.name;
  TIDEGATE_TRY(auto change, read_request(*call, *type, kind, id));
  return [call = std::move(call), view = std::move(view),
          change = std::make_shared<scim_change const>(std::move(change)), id = std::move(id),
          is_me](store::directory_writer& in) -> result<scim_answer, error> {
    auto which = id;
    if (is_me) {
      TIDEGATE_TRY(auto const me, find_me(*call, in));
      which = me.id;
    }
    TIDEGATE_TRY(auto const made, carry_out(in, *change, which));
    if (made.status == 204) {
      return scim_answer{204, {}, ""};
    }
    if (view.type->has_members && view.shows.is_default()) {
      TIDEGATE_TRY(bool const many, has_many_members(in, made.resource.rid));
      if (many && change->kind == change_kind::patch) {  // as section 3.5.2 lets it be
        return scim_answer{204, {{"ETag", etag_of(made.resource.version)}}, ""};
      }
      if (many) {  // POST and PUT want a representation (sections 3.3 and 3.5.1)
        auto without = view;
        std::array<std::string, 1> const members{"members"};
        TIDEGATE_TRY(without.shows, scim::projection::make({}, members, view.type->definition));
        return resource_answer(made.status, in, without, call->request.base, made.resource);
      }
    }
    return resource_answer(made.status, in, view, call->request.base, made.resource);
  };
}

}  // namespace tidegate::gateway
