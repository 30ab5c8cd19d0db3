// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the body of a PATCH of a user, of a group and of a thing with immutable and required
// attributes:
//
// - never a crash; the original stays as it was;
// - an error has one of the scimTypes of PATCH, and says why;
// - the result is a valid resource that is kept as it is, with the same id and meta and the same
//   immutable values;
// - applying is deterministic, and where one operation after the other can be applied, that gives
//   the same;
// - the members of a group are divided from the rest, and the rest does not touch them;
// - all of it also where unknown attributes are ignored; what is taken where they are refused does
//   the same there.
#include "check.hpp"

#include <tidegate/json/parse.hpp>
#include <tidegate/scim/patch.hpp>
#include <tidegate/scim/resource.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace json = tidegate::json;
using namespace tidegate::scim;
using tidegate::fuzz::check;

struct subject {
  resource_definition definition;
  json::value resource;
};

auto make_subject(std::size_t type, std::string_view text) -> subject {
  return {*resource_definition::make(builtin_resource_types()[type], builtin_schemas()),
          *json::parse(text)};
}

auto user() -> subject const& {
  static auto const s = make_subject(0,
                                     R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:User",
          "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],"id":"1","userName":"b",
          "name":{"givenName":"G","familyName":"F"},"active":true,
          "emails":[{"value":"w@x","type":"work","primary":true},{"value":"h@x","type":"home"}],
          "meta":{"version":"7"},
          "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":{"manager":{"value":"m"}}})");
  return s;
}

auto group() -> subject const& {
  static auto const s = make_subject(
      1, R"({"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],"id":"1","displayName":"G",
             "members":[{"value":"x","type":"User"},{"value":"y","display":"Y"}],"meta":{"version":"7"}})");
  return s;
}

auto thing() -> subject const& {
  static auto const s = [] {
    std::vector<schema> const schemas{
        *read_schema(*json::parse(R"({"id":"urn:x:T","attributes":[
          {"name":"a","mutability":"immutable"},{"name":"b","multiValued":true,"required":true},
          {"name":"i","type":"integer"},{"name":"d","type":"dateTime"},
          {"name":"c","type":"complex","multiValued":true,"subAttributes":[
            {"name":"value","mutability":"immutable"},{"name":"l","required":true},
            {"name":"m","multiValued":true},{"name":"n","type":"decimal"}]},
          {"name":"p","type":"complex","required":true,"subAttributes":[
            {"name":"value"},{"name":"f","mutability":"immutable"},{"name":"primary","type":"boolean"}]}]})")),
        *read_schema(
            *json::parse(R"({"id":"urn:x:E","attributes":[{"name":"n","mutability":"immutable"},
          {"name":"q","multiValued":true,"type":"complex","subAttributes":[{"name":"v"}]}]})")),
    };
    return subject{
        *resource_definition::make({"T", "T", "", "/T", "urn:x:T", {{"urn:x:E", true}}}, schemas),
        *json::parse(R"({"schemas":["urn:x:T","urn:x:E"],"id":"1","a":"A","b":["x","y"],
          "c":[{"value":"v","l":"l","m":["1"]},{"l":"k","n":1.5}],"p":{"value":"v","f":"f"},
          "meta":{"version":"7"},"urn:x:E":{"n":"n"}})")};
  }();
  return s;
}

void check_error(error const& e) {
  check(!e.detail.empty());
  switch (e.type) {
    case scim_type::none: check(e.status == 413); break;
    case scim_type::invalid_syntax:
    case scim_type::invalid_path:
    case scim_type::invalid_filter:
    case scim_type::invalid_value:
    case scim_type::no_target:
    case scim_type::mutability:
    case scim_type::too_many: check(e.status == 400); break;
    default: check(false, "a scimType that PATCH does not have");
  }
}

void check_result(json::value const& before, json::value const& after,
                  resource_definition const& definition) {
  auto const again = read_resource(after, definition);
  check(again.has_value());
  check(check_immutable(before, *again, definition).has_value());
  for (auto const* const name : {"id", "meta"}) {
    check(after.find(name) != nullptr && *after.find(name) == *before.find(name));
  }
  // But for what is readOnly, it is what a client could have sent.
  for (auto const& m : again->if_object()->members()) {
    check(after.find(m.name) != nullptr && *after.find(m.name) == m.value);
  }
}

auto apply_in_steps(subject const& s, std::vector<patch_operation> const& operations)
    -> std::optional<json::value> {
  auto resource = s.resource;
  for (auto const& op : operations) {
    auto next = apply_patch(resource, {op}, s.definition);
    if (!next) {
      return std::nullopt;
    }
    resource = *std::move(next);
  }
  return resource;
}

void check_patch(json::value const& body, subject const& s, unknown_attributes unknown) {
  ignored_names ignored;
  auto const operations = parse_patch(body, s.definition, unknown, &ignored);
  check(unknown == unknown_attributes::ignore || ignored == ignored_names());
  if (!operations) {
    check_error(operations.error());
    return;
  }
  check(operations->size() <= patch_operations_max);
  auto const before = to_string(s.resource);
  auto const after = apply_patch(s.resource, *operations, s.definition);
  check(to_string(s.resource) == before);
  auto const twice = apply_patch(s.resource, *operations, s.definition);
  check(after.has_value() == twice.has_value());
  if (!after) {
    check_error(after.error());
    check(after.error() == twice.error());
  } else {
    check(to_string(*after) == to_string(*twice));
    check_result(s.resource, *after, s.definition);
  }

  auto const in_steps = apply_in_steps(s, *operations);
  check(!in_steps || !after || *in_steps == *after);

  auto const split = split_members(*operations, s.definition);
  if (!split) {
    check_error(split.error());
    return;
  }
  check(split->rest.size() + split->members.size() == operations->size());
  if (auto const* const members = s.resource.find("members")) {
    auto const rest = apply_patch(s.resource, split->rest, s.definition);
    check(!rest || (rest->find("members") != nullptr && *rest->find("members") == *members));
  }
}

/// Whether it does the same both ways, as far as it is taken where unknown attributes are refused.
void check_both_ways(json::value const& body, subject const& s) {
  auto const strictly = parse_patch(body, s.definition);
  auto const after = strictly ? apply_patch(s.resource, *strictly, s.definition)
                              : tidegate::result<json::value, error>(json::value());
  if (strictly && after) {
    auto const liberally = parse_patch(body, s.definition, unknown_attributes::ignore);
    check(liberally.has_value());
    auto const same = apply_patch(s.resource, *liberally, s.definition);
    check(same && to_string(*same) == to_string(*after));
  }
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) -> int {
  auto const text = std::string_view(reinterpret_cast<char const*>(data), size);
  if (auto const body = json::parse(text)) {
    for (auto const* const s : {&user(), &group(), &thing()}) {
      check_patch(*body, *s, unknown_attributes::refuse);
      check_patch(*body, *s, unknown_attributes::ignore);
      check_both_ways(*body, *s);
    }
  }
  return 0;
}
