// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as JSON; as a schema, a resource type and a user:
//
// - never a crash; the place of an error is in the text or behind it;
// - a value that was written is read as the same value;
// - a schema and a resource type that were written are read as the same, and all names of a schema
//   can be resolved;
// - a resource that was accepted is accepted again, unchanged, and so are its immutable values;
// - what is accepted where unknown attributes are refused is the same where they are ignored, and
//   nothing is ignored then;
// - what is read in one pass is what it is the long way, however unknown attributes are taken.
#include "check.hpp"

#include <tidegate/json/parse.hpp>
#include <tidegate/scim/plain_resource.hpp>
#include <tidegate/scim/resource.hpp>

#include <string>
#include <string_view>

namespace {

namespace json = tidegate::json;
using namespace tidegate::scim;
using tidegate::fuzz::check;

void check_resource(json::value const& value, resource_definition const& definition) {
  for (auto const unknown : {unknown_attributes::refuse, unknown_attributes::ignore}) {
    auto const resource = read_resource(value, definition, unknown);
    if (!resource) {
      check(!to_string(resource.error()).empty());
      continue;
    }
    auto const again = read_resource(*resource, definition);
    check(again.has_value() && to_string(*again) == to_string(*resource));
    check(check_immutable(*resource, *resource, definition).has_value());
  }
  ignored_names ignored;
  auto const strictly = read_resource(value, definition);
  auto const liberally = read_resource(value, definition, unknown_attributes::ignore, &ignored);
  bool const is_nothing_ignored = ignored == ignored_names();
  check(!strictly || (liberally && to_string(*liberally) == to_string(*strictly)));
  check(!liberally || strictly.has_value() == is_nothing_ignored);
  check(ignored.names.size() <= ignored_names::names_max);
}

/// Reads a user in one pass, and compares.
void check_plain(std::string_view text) {
  static auto const all = *model::make({}, {}, {});
  static auto const own = *json::parse(R"({"id":"7","meta":{"version":"1"}})");
  auto const& type = *all.find("User");
  auto const plain = read_plain_resource(text, type, own);
  if (!plain) {
    return;
  }
  auto const value = json::parse(text);
  check(value.has_value());
  for (auto const unknown : {unknown_attributes::refuse, unknown_attributes::ignore}) {
    auto const resource = read_resource(*value, type.definition, unknown);
    check(resource.has_value());
    json::object whole = *resource->if_object();
    whole.members().insert(whole.members().begin() + 1, {"id", *own.find("id")});
    whole.append("meta", *own.find("meta"));
    json::value const made(std::move(whole));
    check(plain->text == to_string(made) && plain->entries == index_entries(type, made));
  }
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) -> int {
  auto const text = std::string_view(reinterpret_cast<char const*>(data), size);
  check_plain(text);
  auto const value = json::parse(text);
  if (!value) {
    check(value.error().offset <= size);
    check(!to_string(value.error()).empty());
    return 0;
  }
  auto const again = json::parse(to_string(*value), {.octets_max = 16 * (size + 16)});
  check(again.has_value() && *again == *value);

  static auto const users =
      *resource_definition::make(builtin_resource_types()[0], builtin_schemas());
  check_resource(*value, users);

  if (auto const type = read_resource_type(*value)) {
    check(read_resource_type(to_json(*type)) == type);
  }
  auto const s = read_schema(*value);
  if (!s) {
    check(!to_string(s.error()).empty());
    return 0;
  }
  check(read_schema(to_json(*s)) == s);
  auto const definition =
      resource_definition::make({"X", "X", "", "/X", s->id, {}}, std::span(&*s, 1));
  check(definition.has_value());
  for (auto const& a : s->attributes) {
    auto const path = definition->resolve(s->id + ":" + a.name);
    check(path.has_value() && path->sub == nullptr);
  }
  check_resource(*value, *definition);
  return 0;
}
