// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/resource.hpp>

#include "read_value.hpp"

#include <tidegate/scim/case_fold.hpp>
#include <tidegate/scim/date_time.hpp>

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace tidegate::scim {

namespace {

auto fail(resource_fault fault, std::string path) -> std::unexpected<resource_error> {
  return failure(resource_error{fault, std::move(path)});
}

/// Base64 in either alphabet of RFC 4648; padding may be missing (RFC 7643, section 2.3.6).
auto is_base64(std::string_view text) noexcept -> bool {
  auto const padding = text.ends_with("==") ? 2U : text.ends_with('=') ? 1U : 0U;
  if (padding != 0 && text.size() % 4 != 0) {
    return false;
  }
  text.remove_suffix(padding);
  return text.size() % 4 != 1 && std::ranges::all_of(text, [](char c) {
           return (fold_ascii(c) >= 'a' && fold_ascii(c) <= 'z') || (c >= '0' && c <= '9') ||
                  c == '+' || c == '/' || c == '-' || c == '_';
         });
}

/// The value of a simple attribute as it is kept; nothing when it is of another type.
auto read_simple(json const& value, attribute_type type) -> std::optional<json> {
  auto const* const text = value.if_string();
  bool fits = false;
  switch (type) {
    case attribute_type::string:
    case attribute_type::reference: fits = text != nullptr; break;
    case attribute_type::boolean:
      if (text != nullptr && equal_names(*text, "true")) {
        return json(true);
      }
      if (text != nullptr && equal_names(*text, "false")) {
        return json(false);
      }
      fits = value.if_bool() != nullptr;
      break;
    case attribute_type::integer: fits = value.if_integer() != nullptr; break;
    case attribute_type::decimal:
      fits = value.if_integer() != nullptr || value.if_decimal() != nullptr;
      break;
    case attribute_type::date_time: fits = text != nullptr && parse_date_time(*text); break;
    case attribute_type::binary: fits = text != nullptr && is_base64(*text); break;
    case attribute_type::complex: break;
  }
  return fits ? std::optional(value) : std::nullopt;
}

/// What no two values of an attribute have in common (RFC 7643, section 2.4).
auto type_and_value(json const& one) -> std::string {
  auto const* const type = one.find("type");
  return to_string(json_array{type == nullptr ? json() : *type, *one.find("value")});
}

/// Reads what stands in one object; `path` is empty or ends with what separates names.
class resource_reader {
 public:
  enum class part : std::uint8_t { whole, fragment };  // a fragment may lack what is required

  explicit resource_reader(unknown_attributes unknown, part p = part::whole)
      : unknown_(unknown), part_(p) {}

  /// Of the attributes that `find` knows; each must come that is required.
  template <class Find>
  auto read_members(json_object const& object, std::span<attribute const> attributes,
                    std::string const& path, Find find) -> result<json_object, resource_error> {
    json_object out;
    for (auto const& m : object.members()) {
      attribute const* const a = find(m.name);
      if (a == nullptr) {
        if (unknown_ == unknown_attributes::refuse) {
          return fail(resource_fault::unknown_attribute, path + m.name);
        }
        continue;
      }
      if (a->mutability == attribute_mutability::read_only) {
        continue;
      }
      TIDEGATE_TRY(auto value, read_attribute(m.value, *a, path + a->name));
      if (!value.is_null()) {
        out.append(a->name, std::move(value));
      }
    }
    for (auto const& a : attributes) {
      if (part_ == part::whole && a.required && a.mutability != attribute_mutability::read_only) {
        auto const* const value = out.find(a.name);
        if (value == nullptr || !is_present(*value)) {
          return fail(resource_fault::required_missing, path + a.name);
        }
      }
    }
    return out;
  }

  /// Null when there is no value.
  auto read_one(json const& value, attribute const& a, std::string const& path)
      -> result<json, resource_error> {
    if (value.is_null()) {
      return json();
    }
    if (a.type != attribute_type::complex) {
      auto simple = read_simple(value, a.type);
      if (!simple) {
        return fail(resource_fault::wrong_type, path);
      }
      return *std::move(simple);
    }
    auto const* const object = value.if_object();
    if (object == nullptr) {
      return fail(resource_fault::wrong_type, path);
    }
    TIDEGATE_TRY(auto members, read_members(*object, a.sub_attributes, path + ".",
                                            [&](std::string_view name) { return a.find(name); }));
    return members.empty() ? json() : json(std::move(members));
  }

 private:
  /// Null when there is no value.
  auto read_attribute(json const& value, attribute const& a, std::string const& path)
      -> result<json, resource_error> {
    if (value.is_null()) {
      return json();
    }
    auto const* const array = value.if_array();
    if (!a.multi_valued) {
      if (array != nullptr) {
        return fail(resource_fault::single_value_expected, path);
      }
      return read_one(value, a, path);
    }
    if (array == nullptr) {
      return fail(resource_fault::array_expected, path);
    }
    json_array out;
    bool primary = false;
    std::unordered_map<std::string, std::size_t> places;  // of what is in `out`
    for (std::size_t i = 0; i < array->size(); ++i) {
      auto const place = path + "[" + std::to_string(i) + "]";
      TIDEGATE_TRY(auto one, read_one((*array)[i], a, place));
      if (auto const* const flag = one.find("primary"); flag != nullptr && *flag == json(true)) {
        if (primary) {
          return fail(resource_fault::primary_twice, place);
        }
        primary = true;
      }
      if (one.is_null()) {
        continue;
      }
      if (one.find("value") != nullptr && array->size() > 1) {
        auto const [there, is_new] = places.try_emplace(type_and_value(one), out.size());
        if (!is_new) {
          out[there->second] = std::move(one);
          continue;
        }
      }
      out.push_back(std::move(one));
    }
    return out.empty() ? json() : json(std::move(out));
  }

  unknown_attributes unknown_;
  part part_;
};

/// `schemas` must be there, with the base schema and no schema that the resource type lacks.
auto check_schemas(json_object const& object, resource_definition const& definition)
    -> result<void, resource_error> {
  auto const* const schemas = object.find("schemas");
  auto const* const array = schemas == nullptr ? nullptr : schemas->if_array();
  if (array == nullptr || array->empty()) {
    return fail(resource_fault::schemas_missing, "schemas");
  }
  bool base = false;
  for (std::size_t i = 0; i < array->size(); ++i) {
    auto const path = "schemas[" + std::to_string(i) + "]";
    auto const* const urn = (*array)[i].if_string();
    if (urn == nullptr) {
      return fail(resource_fault::wrong_type, path);
    }
    bool const is_base = equal_names(*urn, definition.base().id);
    if (!is_base && definition.find_extension(*urn) == nullptr) {
      return fail(resource_fault::unknown_schema, path);
    }
    base = base || is_base;
  }
  if (!base) {
    return fail(resource_fault::base_schema_missing, "schemas");
  }
  return {};
}

/// Whether an immutable attribute among `attributes` has another value in `after` than in `before`.
auto check_members(json const& before, json const& after, std::span<attribute const> attributes,
                   std::string const& path) -> result<void, resource_error> {
  for (auto const& a : attributes) {
    auto const* const old = before.find(a.name);
    if (old == nullptr || !is_present(*old)) {
      continue;
    }
    auto const* const now = after.find(a.name);
    if (a.mutability == attribute_mutability::immutable && (now == nullptr || *now != *old)) {
      return fail(resource_fault::immutable_changed, path + a.name);
    }
    // A value of a multi-valued attribute may be taken out, and another one put in.
    if (a.type == attribute_type::complex && !a.multi_valued && now != nullptr) {
      TIDEGATE_TRY_VOID(check_members(*old, *now, a.sub_attributes, path + a.name + "."));
    }
  }
  return {};
}

}  // namespace

auto scim_type_of(resource_fault fault) noexcept -> scim_type {
  switch (fault) {
    case resource_fault::object_expected:
    case resource_fault::schemas_missing:
    case resource_fault::unknown_attribute: return scim_type::invalid_syntax;
    case resource_fault::immutable_changed: return scim_type::mutability;
    default: return scim_type::invalid_value;
  }
}

auto to_string(resource_error const& error) -> std::string {
  auto const what = [&]() -> std::string_view {
    switch (error.fault) {
      case resource_fault::object_expected: return "an object is expected";
      case resource_fault::schemas_missing: return "must list the schemas of the resource";
      case resource_fault::unknown_schema: return "not a schema of this resource type";
      case resource_fault::base_schema_missing: return "lacks the schema of this resource type";
      case resource_fault::extension_missing: return "this extension is required";
      case resource_fault::unknown_attribute: return "no such attribute";
      case resource_fault::required_missing: return "a value is required";
      case resource_fault::wrong_type: return "not a value of the type of the attribute";
      case resource_fault::array_expected: return "an array is expected";
      case resource_fault::single_value_expected: return "a single value is expected";
      case resource_fault::primary_twice: return "only one value can be the primary one";
      case resource_fault::immutable_changed: break;
    }
    return "the value cannot be changed";
  }();
  return (error.path.empty() ? "the resource" : error.path) + ": " + std::string(what);
}

auto is_present(json const& value) -> bool {
  if (auto const* const text = value.if_string()) {
    return !text->empty();
  }
  if (auto const* const array = value.if_array()) {
    return std::ranges::any_of(*array, is_present);
  }
  if (auto const* const object = value.if_object()) {
    return std::ranges::any_of(object->members(),
                               [](json_member const& m) { return is_present(m.value); });
  }
  return !value.is_null();
}

auto read_resource(json const& value, resource_definition const& definition,
                   unknown_attributes unknown) -> result<json, resource_error> {
  auto const* const object = value.if_object();
  if (object == nullptr) {
    return fail(resource_fault::object_expected, "");
  }
  TIDEGATE_TRY_VOID(check_schemas(*object, definition));

  json_object base;
  json_array schemas{definition.base().id};
  json_object extensions;
  resource_reader reader(unknown);
  for (auto const& m : object->members()) {
    auto const* const extension = definition.find_extension(m.name);
    if (extension == nullptr) {
      base.append(m.name, m.value);
      continue;
    }
    if (m.value.is_null()) {
      continue;
    }
    auto const* const inner = m.value.if_object();
    if (inner == nullptr) {
      return fail(resource_fault::object_expected, extension->id);
    }
    TIDEGATE_TRY(auto members,
                 reader.read_members(*inner, extension->attributes, extension->id + ":",
                                     [&](std::string_view name) { return extension->find(name); }));
    if (!members.empty()) {
      schemas.emplace_back(extension->id);
      extensions.append(extension->id, std::move(members));
    }
  }
  for (auto const& e : definition.type().schema_extensions) {
    if (e.required && extensions.find(e.schema) == nullptr) {
      return fail(resource_fault::extension_missing, e.schema);
    }
  }
  TIDEGATE_TRY(auto members, reader.read_members(base, definition.base().attributes, "",
                                                 [&](std::string_view name) {
                                                   return definition.base().find(name);
                                                 }));
  members.erase("schemas");
  json_object out{{"schemas", std::move(schemas)}};
  for (auto* const part : {&members, &extensions}) {
    for (auto& m : part->members()) {
      out.append(std::move(m.name), std::move(m.value));
    }
  }
  return json(std::move(out));
}

auto read_value(json const& value, attribute const& a, std::string const& path)
    -> result<json, resource_error> {
  return resource_reader(unknown_attributes::refuse, resource_reader::part::fragment)
      .read_one(value, a, path);
}

auto check_immutable(json const& before, json const& after, resource_definition const& definition)
    -> result<void, resource_error> {
  TIDEGATE_TRY_VOID(check_members(before, after, definition.base().attributes, ""));
  static json const nothing = json_object();
  for (auto const& extension : definition.extensions()) {
    auto const* const old = before.find(extension.id);
    auto const* const now = after.find(extension.id);
    if (old != nullptr) {
      TIDEGATE_TRY_VOID(check_members(*old, now == nullptr ? nothing : *now, extension.attributes,
                                      extension.id + ":"));
    }
  }
  return {};
}

}  // namespace tidegate::scim
