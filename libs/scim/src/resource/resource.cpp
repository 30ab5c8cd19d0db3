// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/resource.hpp>

#include "resource/read_value.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/scim/date_time.hpp>

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

namespace tidegate::TIDEGATE_ABI::scim {

namespace {

auto fail(resource_fault fault, std::string path) -> std::unexpected<resource_error> {
  return failure(resource_error{fault, std::move(path)});
}

/// An error in what is at `where`; so no path is made for what is in order.
auto within(std::string where, resource_error const& error) -> std::unexpected<resource_error> {
  return fail(error.fault, std::move(where) + error.path);
}

auto item(std::size_t index) -> std::string {
  return "[" + std::to_string(index) + "]";
}

/// Base64 in either alphabet of RFC 4648; padding may be missing (RFC 7643, section 2.3.6).
auto is_base64(std::string_view text) noexcept -> bool {
  auto const padding = text.ends_with("==") ? 2U : text.ends_with('=') ? 1U : 0U;
  if (padding != 0 && text.size() % 4 != 0) {
    return false;
  }
  text.remove_suffix(padding);
  return text.size() % 4 != 1 && std::ranges::all_of(text, [](char c) {
           return is_letter_or_digit(c) || c == '+' || c == '/' || c == '-' || c == '_';
         });
}

/// Makes the value of a simple attribute what is kept of it. False when it is of another type.
auto read_simple(json::value& value, attribute_type type) -> bool {
  auto const* const text = value.if_string();
  switch (type) {
    case attribute_type::string:
    case attribute_type::reference: return text != nullptr;
    case attribute_type::boolean:
      if (text != nullptr) {
        bool const is_true = equal_ignoring_case(*text, "true");
        if (!is_true && !equal_ignoring_case(*text, "false")) {
          return false;
        }
        value = is_true;
      }
      return value.if_bool() != nullptr;
    case attribute_type::integer: return value.if_integer() != nullptr;
    case attribute_type::decimal:
      return value.if_integer() != nullptr || value.if_decimal() != nullptr;
    case attribute_type::date_time: return text != nullptr && parse_date_time(*text);
    case attribute_type::binary: return text != nullptr && is_base64(*text);
    case attribute_type::complex: break;
  }
  return false;
}

/// What no two values of an attribute have in common (RFC 7643, section 2.4).
auto type_and_value(json::value const& one) -> std::string {
  auto const* const type = one.find("type");
  return to_string(json::array{type == nullptr ? json::value() : *type, *one.find("value")});
}

/// Makes values what is kept of them, in their place. Paths of errors begin with what is read.
class resource_reader {
 public:
  enum class part : std::uint8_t { whole, fragment };  // a fragment may lack what is required

  resource_reader(unknown_attributes unknown, ignored_names* ignored, part p = part::whole)
      : unknown_(unknown), ignored_(ignored), part_(p) {}

  /// Of `attributes`, which are those of `owner`; each must come that is required.
  auto read_members(json::object& object, std::span<attribute const> attributes,
                    std::string_view owner) const -> result<void, resource_error> {
    for (auto& m : object.members()) {
      attribute const* const a = find_by_name(attributes, m.name);
      if (a == nullptr) {
        if (!m.value.is_null() && unknown_ == unknown_attributes::refuse) {
          return fail(resource_fault::unknown_attribute, m.name);
        }
        if (!m.value.is_null() && ignored_ != nullptr) {
          ignored_->note_attribute(owner, m.name);
        }
        m.value = json::value();
        continue;
      }
      if (a->mutability == attribute_mutability::read_only) {
        m.value = json::value();
        continue;
      }
      if (auto const read = read_attribute(m.value, *a); !read) {
        return within(a->name, read.error());
      }
      if (m.name != a->name) {
        m.name = a->name;
      }
    }
    std::erase_if(object.members(), [](json::member const& m) { return m.value.is_null(); });
    for (auto const& a : attributes) {
      if (part_ == part::whole && a.required && a.mutability != attribute_mutability::read_only) {
        auto const* const value = object.find(a.name);
        if (value == nullptr || !is_present(*value)) {
          return fail(resource_fault::required_missing, a.name);
        }
      }
    }
    return {};
  }

  /// Null when there is no value.
  auto read_one(json::value& value, attribute const& a) const -> result<void, resource_error> {
    if (value.is_null()) {
      return {};
    }
    if (a.type != attribute_type::complex) {
      if (!read_simple(value, a.type)) {
        return fail(resource_fault::wrong_type, "");
      }
      return {};
    }
    auto* const object = value.if_object();
    if (object == nullptr) {
      return fail(resource_fault::wrong_type, "");
    }
    if (auto const read = read_members(*object, a.sub_attributes, a.name); !read) {
      return within(".", read.error());
    }
    if (object->empty() || is_empty_reference(value, a)) {
      value = json::value();
    }
    return {};
  }

 private:
  /// Null when there is no value.
  auto read_attribute(json::value& value, attribute const& a) const
      -> result<void, resource_error> {
    if (value.is_null()) {
      return {};
    }
    auto* const array = value.if_array();
    if (!a.multi_valued) {
      if (array != nullptr && array->size() > 1) {
        return fail(resource_fault::single_value_expected, "");
      }
      if (array != nullptr) {
        auto one = array->empty() ? json::value() : std::move(array->front());
        value = std::move(one);
      }
      value = as_object(std::move(value), a);
      return read_one(value, a);
    }
    if (array == nullptr) {
      return fail(resource_fault::array_expected, "");
    }
    bool primary = false;
    std::unordered_map<std::string, std::size_t> places;  // of values in the array
    for (std::size_t i = 0; i < array->size(); ++i) {
      auto& one = (*array)[i];
      if (auto const read = read_one(one, a); !read) {
        return within(item(i), read.error());
      }
      if (auto const* const flag = one.find("primary");
          flag != nullptr && *flag == json::value(true)) {
        if (primary) {
          return fail(resource_fault::primary_twice, item(i));
        }
        primary = true;
      }
      if (array->size() > 1 && one.find("value") != nullptr) {
        auto const [there, is_new] = places.try_emplace(type_and_value(one), i);
        if (!is_new) {
          (*array)[there->second] = std::exchange(one, json::value());
        }
      }
    }
    std::erase_if(*array, [](json::value const& one) { return one.is_null(); });
    if (array->empty()) {
      value = json::value();
    }
    return {};
  }

  unknown_attributes unknown_;
  ignored_names* ignored_;
  part part_;
};

/// `schemas` must be there, with the base schema. One that the resource type lacks is refused or
/// ignored.
auto check_schemas(json::object const& object, resource_definition const& definition,
                   unknown_attributes unknown, ignored_names* ignored)
    -> result<void, resource_error> {
  auto const* const array = object.find<json::array>("schemas");
  if (array == nullptr || array->empty()) {
    return fail(resource_fault::schemas_missing, "schemas");
  }
  bool base = false;
  for (std::size_t i = 0; i < array->size(); ++i) {
    auto const* const urn = (*array)[i].if_string();
    if (urn == nullptr) {
      return fail(resource_fault::wrong_type, "schemas" + item(i));
    }
    bool const is_base = equal_ignoring_case(*urn, definition.base().id);
    if (!is_base && definition.find_extension(*urn) == nullptr) {
      if (unknown == unknown_attributes::refuse) {
        return fail(resource_fault::unknown_schema, "schemas" + item(i));
      }
      if (ignored != nullptr) {
        ignored->note_schema(*urn);
      }
    }
    base = base || is_base;
  }
  if (!base) {
    return fail(resource_fault::base_schema_missing, "schemas");
  }
  return {};
}

/// The extension whose attribute a name alone means: the only one that has it, where the base
/// schema has none.
auto extension_with(json::member const& m, resource_definition const& definition) -> schema const* {
  if (m.value.is_null() || m.name.find_first_of(".:") != std::string::npos) {
    return nullptr;
  }
  auto const path = definition.resolve(m.name);
  return path ? path->extension : nullptr;
}

/// Puts attributes that stand beside those of the base schema into the extension that has them,
/// unless they are in it already.
void move_to_extensions(json::object& object, resource_definition const& definition) {
  for (std::size_t i = 0, size = object.members().size(); i < size; ++i) {
    auto& member = object.members()[i];
    auto const* const extension = extension_with(member, definition);
    if (extension == nullptr) {
      continue;
    }
    auto const name = member.name;
    auto value = std::exchange(member.value, json::value());  // null says nothing
    auto const* const there = object.find(extension->id);
    if (there == nullptr || there->is_null()) {
      object.set(extension->id, json::object());
    }
    auto* const own = object.find(extension->id)->if_object();
    auto const* const same = own == nullptr ? nullptr : own->find(name);
    if (own != nullptr && (same == nullptr || same->is_null())) {
      own->set(name, std::move(value));
    }
  }
}

/// Whether an immutable attribute among `attributes` has another value in `after` than in `before`.
auto check_members(json::value const& before, json::value const& after,
                   std::span<attribute const> attributes, std::string const& path)
    -> result<void, resource_error> {
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

auto is_present(json::value const& value) -> bool {
  if (auto const* const text = value.if_string()) {
    return !text->empty();
  }
  if (auto const* const array = value.if_array()) {
    return std::ranges::any_of(*array, is_present);
  }
  if (auto const* const object = value.if_object()) {
    return std::ranges::any_of(object->members(),
                               [](json::member const& m) { return is_present(m.value); });
  }
  return !value.is_null();
}

void ignored_names::note_attribute(std::string_view owner, std::string_view name) {
  ++attributes;
  if (names.size() < names_max) {
    keep(owner.empty() ? std::string(name) : std::string(owner) + "." + std::string(name));
  }
}

void ignored_names::note_schema(std::string_view urn) {
  ++schemas;
  if (names.size() < names_max) {
    keep(std::string(urn));
  }
}

void ignored_names::keep(std::string name) {
  name.resize(std::min(name.size(), name_octets_max));
  std::ranges::replace_if(
      name, [](char c) { return c < ' ' || c > '~' || c == '"'; }, '?');
  if (std::ranges::find(names, name) == names.end()) {
    names.push_back(std::move(name));
  }
}

void ignored_names::add(ignored_names const& others) {
  attributes += others.attributes;
  schemas += others.schemas;
  for (auto const& name : others.names) {
    if (names.size() < names_max) {
      keep(name);
    }
  }
}

auto as_object(json::value value, attribute const& a) -> json::value {
  bool const plain =
      !value.is_null() && value.if_object() == nullptr && value.if_array() == nullptr;
  if (!plain || a.type != attribute_type::complex || a.find("value") == nullptr) {
    return value;
  }
  if (auto const* const text = value.if_string(); text != nullptr && text->empty()) {
    return {};
  }
  return json::object{{"value", std::move(value)}};
}

auto is_empty_reference(json::value const& value, attribute const& a) -> bool {
  auto const* const object = value.if_object();
  return object != nullptr && !a.multi_valued && a.find("value") != nullptr &&
         std::ranges::any_of(object->members(),
                             [](json::member const& m) {
                               return equal_ignoring_case(m.name, "value") &&
                                      m.value == json::value("");
                             }) &&
         !is_present(value);
}

auto read_resource(json::value value, resource_definition const& definition,
                   unknown_attributes unknown, ignored_names* ignored)
    -> result<json::value, resource_error> {
  auto* const object = value.if_object();
  if (object == nullptr) {
    return fail(resource_fault::object_expected, "");
  }
  TIDEGATE_TRY_VOID(check_schemas(*object, definition, unknown, ignored));
  move_to_extensions(*object, definition);

  auto& members = object->members();
  json::array schemas;
  schemas.emplace_back(definition.base().id);
  json::object extensions;
  resource_reader const reader(unknown, ignored);
  for (auto& m : members) {
    auto const* const extension = definition.find_extension(m.name);
    if (extension == nullptr || m.value.is_null()) {
      continue;
    }
    auto* const inner = m.value.if_object();
    if (inner == nullptr) {
      return fail(resource_fault::object_expected, extension->id);
    }
    if (extension->find("schemas") == nullptr) {
      inner->erase("schemas");  // some clients list the extension itself there
    }
    if (auto const read = reader.read_members(*inner, extension->attributes, extension->id);
        !read) {
      return within(extension->id + ":", read.error());
    }
    if (!inner->empty()) {
      schemas.emplace_back(extension->id);
      extensions.append(extension->id, std::move(m.value));
    }
  }
  for (auto const& e : definition.type().schema_extensions) {
    if (e.required && extensions.find(e.schema) == nullptr) {
      return fail(resource_fault::extension_missing, e.schema);
    }
  }
  std::erase_if(
      members, [&](json::member const& m) { return definition.find_extension(m.name) != nullptr; });
  TIDEGATE_TRY_VOID(reader.read_members(*object, definition.base().attributes, ""));
  auto const at = std::ranges::find(members, "schemas", &json::member::name);
  at->value = std::move(schemas);
  std::rotate(members.begin(), at, at + 1);
  std::ranges::move(extensions.members(), std::back_inserter(members));
  return value;
}

auto read_value(json::value value, attribute const& a, std::string const& path)
    -> result<json::value, resource_error> {
  resource_reader const reader(unknown_attributes::refuse, nullptr,
                               resource_reader::part::fragment);
  if (auto const read = reader.read_one(value, a); !read) {
    return within(path, read.error());
  }
  return value;
}

auto check_immutable(json::value const& before, json::value const& after,
                     resource_definition const& definition) -> result<void, resource_error> {
  TIDEGATE_TRY_VOID(check_members(before, after, definition.base().attributes, ""));
  static json::value const nothing = json::object();
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

}  // namespace tidegate::TIDEGATE_ABI::scim
