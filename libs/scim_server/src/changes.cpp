// SPDX-License-Identifier: Apache-2.0
#include "changes.hpp"

#include <tidegate/http/date.hpp>
#include <tidegate/json/parse.hpp>
#include <tidegate/scim/resource.hpp>

#include <pthread.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <span>
#include <unordered_map>
#include <utility>

namespace tidegate::gateway {

namespace {

using scim::error;
using scim::scim_type;

/// A group with more members than this is not sent back whole after it was made, replaced or changed.
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

/// What nobody may read is not kept: nothing here has a use for it.
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
  auto const* const created = meta == nullptr ? nullptr : meta->find("created");
  return created != nullptr && created->if_string() != nullptr ? *created->if_string() : "";
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
    TIDEGATE_TRY(auto const other, told(in.find_unique(*change.type, entry.index, entry.key, id)));
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

// ---- members ----

auto read_member(json::value const& given) -> result<given_member, error> {
  auto const* const value = given.find("value");
  auto const* const id = value != nullptr ? value->if_string() : given.if_string();
  if (id == nullptr || id->empty()) {
    return failure(bad_request(scim_type::invalid_value, "A member has its id as \"value\"."));
  }
  auto const* const display = given.find("display");
  return given_member{*id, display != nullptr && display->if_string() ? *display->if_string() : ""};
}

struct found_member {
  std::uint64_t rid = 0;
  std::string display;
};

/// Who they are. Everything is looked up before anything is written.
auto find_members(store::directory_writer& in, std::span<given_member const> given,
                  scim_change const& change, std::string const& group_id,
                  std::vector<given_member>& left_out) -> result<std::vector<found_member>, error> {
  std::vector<found_member> found;
  found.reserve(given.size());
  for (auto const& member : given) {
    if (std::ranges::find(change.made_later, member.id) != change.made_later.end()) {
      left_out.push_back(member);
      continue;
    }
    TIDEGATE_TRY(auto const there, told(in.find_any(member.id)));
    if (!there || member.id == group_id) {
      return failure(bad_request(
          scim_type::invalid_value,
          there ? "A group cannot be a member of itself."
                : "There is no resource with the id \"" + member.id + "\" to be a member."));
    }
    found.push_back({there->resource.rid, member.display});
  }
  return found;
}

auto add_members(store::directory_writer& in, std::uint64_t group,
                 std::span<found_member const> members) -> result<bool, error> {
  bool changed = false;
  for (auto const& member : members) {
    TIDEGATE_TRY(bool const added, told(in.add_member(group, member.rid, member.display)));
    changed = changed || added;
  }
  return changed;
}

/// A change of members, with everybody looked up.
struct member_step {
  scim::member_change const* change = nullptr;
  std::vector<found_member> members;
};

auto find_steps(store::directory_writer& in, scim_change const& change, std::string const& group_id,
                std::vector<given_member>& left_out) -> result<std::vector<member_step>, error> {
  using kind = scim::member_action;
  std::vector<member_step> steps;
  for (auto const& wanted : change.patch.members) {
    auto& step = steps.emplace_back(member_step{&wanted, {}});
    std::vector<given_member> given;
    for (auto const& member : wanted.members) {
      TIDEGATE_TRY(auto read, read_member(member));
      given.push_back(std::move(read));
    }
    if (wanted.action == kind::add || wanted.action == kind::replace_all) {
      TIDEGATE_TRY(step.members, find_members(in, given, change, group_id, left_out));
    } else if (wanted.action == kind::remove) {
      for (auto const& member : given) {
        TIDEGATE_TRY(auto const there, told(in.find_any(member.id)));
        if (there) {  // who does not exist is no member already
          step.members.push_back({there->resource.rid, ""});
        }
      }
    }
  }
  return steps;
}

auto remove_matching(store::directory_writer& in, std::uint64_t group, scim::filter const& which)
    -> result<bool, error> {
  std::vector<std::uint64_t> matching;
  TIDEGATE_TRY_VOID(told(in.members(group, [&](store::directory_member const& member) {
    json::object value{{"value", member.id}, {"type", member.type}};
    if (!member.display.empty()) {
      value.append("display", member.display);
    }
    if (scim::matches_value(which, json::value(std::move(value)))) {
      matching.push_back(member.rid);
    }
    return true;
  })));
  for (auto const rid : matching) {
    TIDEGATE_TRY_VOID(told(in.remove_member(group, rid)));
  }
  return !matching.empty();
}

/// Whether the members of a group are these already, each with the same name.
auto has_exactly(store::directory_reader& from, std::uint64_t group,
                 std::span<found_member const> members) -> result<bool, error> {
  std::unordered_map<std::uint64_t, std::string_view> wanted;
  for (auto const& member : members) {
    wanted[member.rid] = member.display;  // the last of several counts
  }
  std::size_t found = 0;
  bool differs = false;
  TIDEGATE_TRY_VOID(told(from.members(group, [&](store::directory_member const& member) {
    auto const there = wanted.find(member.rid);
    differs = there == wanted.end() || there->second != member.display;
    ++found;
    return !differs;
  })));
  return !differs && found == wanted.size();
}

auto make_step(store::directory_writer& in, std::uint64_t group, member_step const& step)
    -> result<bool, error> {
  using kind = scim::member_action;
  switch (step.change->action) {
    case kind::add: return add_members(in, group, step.members);
    case kind::remove: {
      bool changed = false;
      for (auto const& member : step.members) {
        TIDEGATE_TRY(bool const removed, told(in.remove_member(group, member.rid)));
        changed = changed || removed;
      }
      return changed;
    }
    case kind::remove_matching: return remove_matching(in, group, *step.change->value_filter);
    case kind::replace_all:
    case kind::remove_all: break;
  }
  TIDEGATE_TRY(bool const is_so, has_exactly(in, group, step.members));
  if (is_so) {
    return false;
  }
  TIDEGATE_TRY_VOID(told(in.remove_members(group)));
  TIDEGATE_TRY_VOID(add_members(in, group, step.members));
  return true;
}

// ---- the four changes ----

auto create(store::directory_writer& in, scim_change const& change, std::string const& id)
    -> result<scim_changed, error> {
  auto const& form = change.created;
  TIDEGATE_TRY_VOID(check_unique(in, change, id, form.entries));
  scim_changed made{201, {}, {}};
  TIDEGATE_TRY(auto const members, find_members(in, change.members, change, id, made.left_out));
  TIDEGATE_TRY(made.resource.rid, told(in.insert(*change.type, id, form.text, form.entries)));
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
  TIDEGATE_TRY_VOID(told(in.update(*change.type, resource.rid, form.text, form.entries)));
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

/// Whether a kept resource is what a client sends, but for the id and the meta, which are given here.
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
    TIDEGATE_TRY_VOID(told(in.remove_members(made.resource.rid)));
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
  TIDEGATE_TRY_VOID(told(from.members(
      group, [&](store::directory_member const&) { return ++count <= shown_members_max; })));
  return count > shown_members_max;
}

auto kind_of(std::string_view method) -> change_kind {
  return method == "POST"    ? change_kind::create
         : method == "PUT"   ? change_kind::replace
         : method == "PATCH" ? change_kind::patch
                             : change_kind::remove;
}

// ---- ids ----

std::atomic<unsigned> forks = 0;

/// Random octets of the system. It is asked for many at once, and a child of a process does not use what its parent
/// has asked for.
void take_random(std::span<unsigned char> out) {
  static bool const knows_forks = ::pthread_atfork(nullptr, nullptr, [] { ++forks; }) == 0;
  struct block {
    std::array<unsigned char, 240> octets{};
    std::size_t used = octets.size();
    unsigned of_fork = 0;
  };
  thread_local block some;
  if (some.octets.size() - some.used < out.size() || some.of_fork != forks || !knows_forks) {
    if (::getrandom(some.octets.data(), some.octets.size(), 0) !=
        static_cast<ssize_t>(some.octets.size())) {
      std::abort();  // the system gave some when the process began
    }
    some.used = 0;
    some.of_fork = forks;
  }
  std::ranges::copy(std::span(some.octets).subspan(some.used, out.size()), out.begin());
  some.used += out.size();
}

}  // namespace

auto make_resource_id(scim::wall_time now) -> std::string {
  std::array<unsigned char, 16> octets{};
  take_random(std::span(octets).subspan(6));
  auto time = static_cast<std::uint64_t>(now.time_since_epoch().count());
  for (int i = 5; i >= 0; --i, time >>= 8) {
    octets[static_cast<std::size_t>(i)] = static_cast<unsigned char>(time);
  }
  octets[6] = static_cast<unsigned char>(0x70 | (octets[6] & 0x0f));
  octets[8] = static_cast<unsigned char>(0x80 | (octets[8] & 0x3f));
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  out.reserve(36);
  for (std::size_t i = 0; i < octets.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) {
      out += '-';
    }
    out += digits[octets[i] >> 4];
    out += digits[octets[i] & 15];
  }
  return out;
}

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
    auto const* const members = object.find("members");
    auto const* const array = members == nullptr ? nullptr : members->if_array();
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
  TIDEGATE_TRY(auto found, told(in.find(*change.type, id)));
  if (!found) {
    return failure(not_found("resource"));
  }
  TIDEGATE_TRY_VOID(check_version(change, found->version));
  switch (change.kind) {
    case change_kind::replace: return replace(in, change, *std::move(found));
    case change_kind::patch: return patch(in, change, *std::move(found));
    default: break;
  }
  TIDEGATE_TRY_VOID(told(in.remove(*change.type, found->rid)));
  return scim_changed{204, *std::move(found), {}};
}

namespace {

/// The change that a request wants; `id` is that of the resource, also of a new one.
auto read_request(scim_job const& job, scim::model_type const& type, change_kind kind,
                  std::string const& id) -> result<scim_change, error> {
  auto const& request = job.request;
  auto plain =
      kind == change_kind::create
          ? scim::read_plain_resource(request.content, type, own_members_of_new(type, id, job.now))
          : std::nullopt;
  scim_change change;
  if (!plain) {
    json::value body;
    if (kind != change_kind::remove) {
      TIDEGATE_TRY(body, read_body(request.content, request.content_octets_max()));
    }
    TIDEGATE_TRY(change, read_change(kind, type, std::move(body), request.how->unknown));
    job.parts->ignored->note(request.route, change.ignored);
  }
  change.kind = kind;
  change.type = &type;
  change.now = job.now;
  change.unique_group_names = request.how->unique_group_names;
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

auto plan_write(std::shared_ptr<scim_job const> job) -> result<scim_write, error> {
  auto const& request = job->request;
  bool const is_me = job->target.place == scim_place::me;
  auto const* const type = is_me ? job->model().find("User") : job->target.type;
  if (type == nullptr) {
    return failure(not_found("resource"));
  }
  TIDEGATE_TRY(auto view, view_of(*job, *type));
  auto const kind = kind_of(request.method);
  auto id = kind == change_kind::create ? make_resource_id(job->now) : job->target.name;
  TIDEGATE_TRY(auto change, read_request(*job, *type, kind, id));
  return [job = std::move(job), view = std::move(view),
          change = std::make_shared<scim_change const>(std::move(change)), id = std::move(id),
          is_me](store::directory_writer& in) -> result<scim_answer, error> {
    auto which = id;
    if (is_me) {
      TIDEGATE_TRY(auto const me, find_me(*job, in));
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
        return resource_answer(made.status, in, without, job->request.base, made.resource);
      }
    }
    return resource_answer(made.status, in, view, job->request.base, made.resource);
  };
}

}  // namespace tidegate::gateway
