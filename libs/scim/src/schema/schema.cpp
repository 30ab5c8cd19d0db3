// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/schema.hpp>

#include <tidegate/base/ascii.hpp>

#include <algorithm>
#include <array>

namespace tidegate::TIDEGATE_ABI::scim {

auto find_by_name(std::span<attribute const> attributes, std::string_view name) noexcept
    -> attribute const* {
  auto const found = std::ranges::find_if(
      attributes, [&](auto const& a) { return equal_ignoring_case(a.name, name); });
  return found == attributes.end() ? nullptr : &*found;
}

namespace {

/// What a word of the RFC means here.
template <class Value>
struct word {
  std::string_view text;
  Value value;
};

constexpr auto types = std::to_array<word<attribute_type>>({
    {"string", attribute_type::string},
    {"boolean", attribute_type::boolean},
    {"decimal", attribute_type::decimal},
    {"integer", attribute_type::integer},
    {"dateTime", attribute_type::date_time},
    {"binary", attribute_type::binary},
    {"reference", attribute_type::reference},
    {"complex", attribute_type::complex},
});
constexpr auto mutabilities = std::to_array<word<attribute_mutability>>({
    {"readOnly", attribute_mutability::read_only},
    {"readWrite", attribute_mutability::read_write},
    {"immutable", attribute_mutability::immutable},
    {"writeOnly", attribute_mutability::write_only},
});
constexpr auto returneds = std::to_array<word<attribute_returned>>({
    {"always", attribute_returned::always},
    {"never", attribute_returned::never},
    {"default", attribute_returned::by_default},
    {"request", attribute_returned::request},
});
constexpr auto uniquenesses = std::to_array<word<attribute_uniqueness>>({
    {"none", attribute_uniqueness::none},
    {"server", attribute_uniqueness::server},
    {"global", attribute_uniqueness::global},
});

template <class Words, class Value>
auto text_of(Words const& words, Value value) -> std::string_view {
  return std::ranges::find_if(words, [&](auto const& w) { return w.value == value; })->text;
}

/// A URI with a scheme and no character that ends a path.
auto is_schema_uri(std::string_view uri) -> bool {
  constexpr std::string_view others = "-._~:/%+!'#@;=";
  auto const colon = uri.find(':');
  return colon != std::string_view::npos && colon != 0 && uri.back() != ':' &&
         std::ranges::all_of(uri, [&](char c) {
           return is_letter_or_digit(c) || others.find(c) != std::string_view::npos;
         });
}

auto fail(schema_fault fault, std::string path) -> std::unexpected<schema_error> {
  return failure(schema_error{fault, std::move(path)});
}

/// One object of a definition and where it stands; `path` is empty or ends with a dot.
class members_of {
 public:
  members_of(json::object const& object, std::string path)
      : object_(object), path_(std::move(path)) {}

  [[nodiscard]] auto path(std::string_view name) const -> std::string {
    return path_ + std::string(name);
  }

  auto read_text(std::string_view name, bool required) const -> result<std::string, schema_error> {
    auto const* const value = find(name);
    auto const* const text = value == nullptr ? nullptr : value->if_string();
    if (value != nullptr && text == nullptr) {
      return fail(schema_fault::string_expected, path(name));
    }
    if (required && (text == nullptr || text->empty())) {
      return fail(schema_fault::missing, path(name));
    }
    return text == nullptr ? std::string() : *text;
  }

  auto read_bool(std::string_view name, bool otherwise) const -> result<bool, schema_error> {
    auto const* const value = find(name);
    if (value == nullptr) {
      return otherwise;
    }
    if (value->if_bool() == nullptr) {
      return fail(schema_fault::boolean_expected, path(name));
    }
    return *value->if_bool();
  }

  template <class Words, class Value>
  auto read_word(std::string_view name, Words const& words, Value otherwise) const
      -> result<Value, schema_error> {
    TIDEGATE_TRY(auto const text, read_text(name, false));
    if (find(name) == nullptr) {
      return otherwise;
    }
    auto const found = std::ranges::find_if(
        words, [&](auto const& w) { return equal_ignoring_case(w.text, text); });
    if (found == words.end()) {
      return fail(schema_fault::unknown_value, path(name));
    }
    return found->value;
  }

  auto read_texts(std::string_view name) const -> result<std::vector<std::string>, schema_error> {
    std::vector<std::string> texts;
    TIDEGATE_TRY(auto const* const values, read_array(name));
    for (std::size_t i = 0; i < values->size(); ++i) {
      auto const* const text = (*values)[i].if_string();
      if (text == nullptr) {
        return fail(schema_fault::string_expected, item(name, i));
      }
      texts.push_back(*text);
    }
    return texts;
  }

  /// An empty array when there is none.
  auto read_array(std::string_view name) const -> result<json::array const*, schema_error> {
    static json::array const none;
    auto const* const value = find(name);
    if (value == nullptr) {
      return &none;
    }
    auto const* const array = value->if_array();
    if (array == nullptr) {
      return fail(schema_fault::array_expected, path(name));
    }
    if (array->size() > schema_attributes_max) {
      return fail(schema_fault::too_many, path(name));
    }
    return array;
  }

  [[nodiscard]] auto item(std::string_view name, std::size_t index) const -> std::string {
    return path(name) + "[" + std::to_string(index) + "]";
  }

 private:
  /// A member that is null is not there (section 2.5).
  [[nodiscard]] auto find(std::string_view name) const -> json::value const* {
    auto const* const value = object_.find(name);
    return value == nullptr || value->is_null() ? nullptr : value;
  }

  json::object const& object_;
  std::string path_;
};

auto read_attributes(members_of const& owner, std::string_view name, bool sub)
    -> result<std::vector<attribute>, schema_error>;

auto read_attribute(json::value const& value, std::string const& path, bool sub)
    -> result<attribute, schema_error> {
  auto const* const object = value.if_object();
  if (object == nullptr) {
    return fail(schema_fault::object_expected, path);
  }
  members_of const members(*object, path + ".");
  attribute a;
  TIDEGATE_TRY(a.name, members.read_text("name", true));
  if (!is_attribute_name(a.name)) {
    return fail(schema_fault::invalid_name, members.path("name"));
  }
  TIDEGATE_TRY(a.type, members.read_word("type", types, attribute_type::string));
  TIDEGATE_TRY(a.description, members.read_text("description", false));
  TIDEGATE_TRY(a.multi_valued, members.read_bool("multiValued", false));
  TIDEGATE_TRY(a.required, members.read_bool("required", false));
  // Binary values and references are case exact by their type (sections 2.3.6 and 2.3.7).
  bool const exact = a.type == attribute_type::binary || a.type == attribute_type::reference;
  TIDEGATE_TRY(a.case_exact, members.read_bool("caseExact", exact));
  TIDEGATE_TRY(a.mutability,
               members.read_word("mutability", mutabilities, attribute_mutability::read_write));
  TIDEGATE_TRY(a.returned,
               members.read_word("returned", returneds, attribute_returned::by_default));
  TIDEGATE_TRY(a.uniqueness,
               members.read_word("uniqueness", uniquenesses, attribute_uniqueness::none));
  TIDEGATE_TRY(a.canonical_values, members.read_texts("canonicalValues"));
  TIDEGATE_TRY(a.reference_types, members.read_texts("referenceTypes"));
  if (a.type == attribute_type::complex && sub) {
    return fail(schema_fault::nested_complex, members.path("type"));
  }
  TIDEGATE_TRY(auto const* const subs, members.read_array("subAttributes"));
  if (a.type != attribute_type::complex && !subs->empty()) {
    return fail(schema_fault::not_complex, members.path("subAttributes"));
  }
  if (a.type == attribute_type::complex && subs->empty()) {
    return fail(schema_fault::missing, members.path("subAttributes"));
  }
  if (!sub) {
    TIDEGATE_TRY(a.sub_attributes, read_attributes(members, "subAttributes", true));
  }
  return a;
}

auto read_attributes(members_of const& owner, std::string_view name, bool sub)
    -> result<std::vector<attribute>, schema_error> {
  std::vector<attribute> attributes;
  TIDEGATE_TRY(auto const* const values, owner.read_array(name));
  for (std::size_t i = 0; i < values->size(); ++i) {
    TIDEGATE_TRY(auto one, read_attribute((*values)[i], owner.item(name, i), sub));
    if (find_by_name(attributes, one.name) != nullptr) {
      return fail(schema_fault::name_twice, owner.item(name, i) + ".name");
    }
    attributes.push_back(std::move(one));
  }
  return attributes;
}

auto to_json(std::vector<std::string> const& texts) -> json::value {
  json::array array;
  for (auto const& text : texts) {
    array.emplace_back(text);
  }
  return array;
}

auto to_json(std::vector<attribute> const& attributes) -> json::value {
  json::array array;
  for (auto const& a : attributes) {
    json::object object{
        {"name", a.name},
        {"type", text_of(types, a.type)},
        {"multiValued", a.multi_valued},
        {"description", a.description},
        {"required", a.required},
        {"caseExact", a.case_exact},
        {"mutability", text_of(mutabilities, a.mutability)},
        {"returned", text_of(returneds, a.returned)},
        {"uniqueness", text_of(uniquenesses, a.uniqueness)},
    };
    if (!a.canonical_values.empty()) {
      object.append("canonicalValues", to_json(a.canonical_values));
    }
    if (!a.reference_types.empty()) {
      object.append("referenceTypes", to_json(a.reference_types));
    }
    if (!a.sub_attributes.empty()) {
      object.append("subAttributes", to_json(a.sub_attributes));
    }
    array.emplace_back(std::move(object));
  }
  return array;
}

/// Whether `path` is `urn`, or `urn` and a colon come first in it.
auto starts_with_urn(std::string_view path, std::string_view urn) noexcept -> bool {
  return path.size() > urn.size() && path[urn.size()] == ':' &&
         equal_ignoring_case(path.substr(0, urn.size()), urn);
}

}  // namespace

auto attribute::find(std::string_view sub_name) const noexcept -> attribute const* {
  return find_by_name(sub_attributes, sub_name);
}

auto schema::find(std::string_view attribute_name) const noexcept -> attribute const* {
  return find_by_name(attributes, attribute_name);
}

auto to_string(schema_error const& error) -> std::string {
  auto const what = [&]() -> std::string_view {
    switch (error.fault) {
      case schema_fault::object_expected: return "an object is expected";
      case schema_fault::array_expected: return "an array is expected";
      case schema_fault::string_expected: return "a string is expected";
      case schema_fault::boolean_expected: return "true or false is expected";
      case schema_fault::missing: return "missing or empty";
      case schema_fault::unknown_value: return "not a known value";
      case schema_fault::invalid_name: return "not a name of an attribute";
      case schema_fault::invalid_uri: return "not a URI";
      case schema_fault::name_twice: return "comes twice";
      case schema_fault::nested_complex: return "a sub-attribute must not be complex";
      case schema_fault::not_complex: return "only a complex attribute has sub-attributes";
      case schema_fault::too_many: return "too many";
      case schema_fault::unknown_schema: break;
    }
    return "no schema has this URN";
  }();
  return (error.path.empty() ? "the definition" : error.path) + ": " + std::string(what);
}

auto is_attribute_name(std::string_view name) noexcept -> bool {
  if (name.starts_with('$')) {
    name.remove_prefix(1);
  }
  return !name.empty() && is_letter(name.front()) && std::ranges::all_of(name, [&](char c) {
    return is_letter_or_digit(c) || c == '-' || c == '_' || c == '$';
  });
}

auto read_schema(json::value const& value) -> result<schema, schema_error> {
  auto const* const object = value.if_object();
  if (object == nullptr) {
    return fail(schema_fault::object_expected, "");
  }
  members_of const members(*object, "");
  schema s;
  TIDEGATE_TRY(s.id, members.read_text("id", true));
  if (!is_schema_uri(s.id)) {
    return fail(schema_fault::invalid_uri, "id");
  }
  TIDEGATE_TRY(s.name, members.read_text("name", false));
  TIDEGATE_TRY(s.description, members.read_text("description", false));
  TIDEGATE_TRY(s.attributes, read_attributes(members, "attributes", false));
  if (s.attributes.empty()) {
    return fail(schema_fault::missing, "attributes");
  }
  return s;
}

auto read_resource_type(json::value const& value) -> result<resource_type, schema_error> {
  auto const* const object = value.if_object();
  if (object == nullptr) {
    return fail(schema_fault::object_expected, "");
  }
  members_of const members(*object, "");
  resource_type t;
  TIDEGATE_TRY(t.name, members.read_text("name", true));
  TIDEGATE_TRY(t.id, members.read_text("id", false));
  if (t.id.empty()) {
    t.id = t.name;
  }
  TIDEGATE_TRY(t.description, members.read_text("description", false));
  TIDEGATE_TRY(t.endpoint, members.read_text("endpoint", true));
  if (t.endpoint.size() < 2 || t.endpoint[0] != '/' || !is_attribute_name(t.endpoint.substr(1))) {
    return fail(schema_fault::invalid_uri, "endpoint");
  }
  TIDEGATE_TRY(t.schema, members.read_text("schema", true));
  TIDEGATE_TRY(auto const* const extensions, members.read_array("schemaExtensions"));
  for (std::size_t i = 0; i < extensions->size(); ++i) {
    auto const path = members.item("schemaExtensions", i);
    auto const* const extension = (*extensions)[i].if_object();
    if (extension == nullptr) {
      return fail(schema_fault::object_expected, path);
    }
    members_of const inner(*extension, path + ".");
    schema_extension one;
    TIDEGATE_TRY(one.schema, inner.read_text("schema", true));
    TIDEGATE_TRY(one.required, inner.read_bool("required", false));
    if (equal_ignoring_case(one.schema, t.schema) ||
        std::ranges::any_of(t.schema_extensions, [&](auto const& e) {
          return equal_ignoring_case(e.schema, one.schema);
        })) {
      return fail(schema_fault::name_twice, inner.path("schema"));
    }
    t.schema_extensions.push_back(std::move(one));
  }
  return t;
}

auto to_json(schema const& value) -> json::value {
  return json::object{
      {"schemas", json::array{schema_schema}},
      {"id", value.id},
      {"name", value.name},
      {"description", value.description},
      {"attributes", to_json(value.attributes)},
  };
}

auto to_json(resource_type const& value) -> json::value {
  json::array extensions;
  for (auto const& e : value.schema_extensions) {
    extensions.emplace_back(json::object{{"schema", e.schema}, {"required", e.required}});
  }
  return json::object{
      {"schemas", json::array{resource_type_schema}},
      {"id", value.id},
      {"name", value.name},
      {"description", value.description},
      {"endpoint", value.endpoint},
      {"schema", value.schema},
      {"schemaExtensions", std::move(extensions)},
  };
}

auto resource_definition::make(resource_type type, std::span<schema const> schemas)
    -> result<resource_definition, schema_error> {
  auto const find = [&](std::string_view urn) {
    return std::ranges::find_if(schemas,
                                [&](schema const& s) { return equal_ignoring_case(s.id, urn); });
  };
  auto const base = find(type.schema);
  if (base == schemas.end()) {
    return fail(schema_fault::unknown_schema, "schema");
  }
  resource_definition d;
  d.base_ = {base->id, base->name, base->description, {}};
  d.base_.attributes.assign(common_attributes().begin(), common_attributes().end());
  for (auto const& a : base->attributes) {
    if (d.base_.find(a.name) == nullptr) {
      d.base_.attributes.push_back(a);
    }
  }
  for (std::size_t i = 0; i < type.schema_extensions.size(); ++i) {
    auto const extension = find(type.schema_extensions[i].schema);
    if (extension == schemas.end()) {
      return fail(schema_fault::unknown_schema,
                  "schemaExtensions[" + std::to_string(i) + "].schema");
    }
    d.extensions_.push_back(*extension);
  }
  d.type_ = std::move(type);
  return d;
}

auto resource_definition::find_extension(std::string_view urn) const noexcept -> schema const* {
  auto const found = std::ranges::find_if(
      extensions_, [&](schema const& s) { return equal_ignoring_case(s.id, urn); });
  return found == extensions_.end() ? nullptr : &*found;
}

auto resource_definition::resolve(std::string_view path) const
    -> result<attribute_path, path_error> {
  auto const wrong = [](path_fault fault, std::size_t offset) {
    return failure(path_error{fault, offset});
  };
  if (auto const* const extension = find_extension(path)) {
    return attribute_path{.extension = extension};
  }
  // A URN may begin another one, so the longest that fits is meant.
  schema const* owner = &base_;
  std::size_t start = 0;
  if (path.find(':') != std::string_view::npos) {
    auto const consider = [&](schema const& s) {
      if (starts_with_urn(path, s.id) && s.id.size() + 1 > start) {
        owner = &s;
        start = s.id.size() + 1;
      }
    };
    consider(base_);
    std::ranges::for_each(extensions_, consider);
    if (start == 0) {
      return wrong(path_fault::unknown_schema, 0);
    }
  }
  auto const rest = path.substr(start);
  auto const dot = std::min(rest.find('.'), rest.size());
  auto const name = rest.substr(0, dot);
  if (!is_attribute_name(name)) {
    return wrong(path_fault::malformed, start);
  }
  auto const* parent = owner->find(name);
  for (auto const& extension :
       parent == nullptr && start == 0 ? extensions() : std::span<schema const>()) {
    auto const* const found = extension.find(name);
    if (found != nullptr && parent != nullptr) {
      return wrong(path_fault::unknown_attribute, start);  // which of them is not said
    }
    if (found != nullptr) {
      owner = &extension;
      parent = found;
    }
  }
  if (parent == nullptr) {
    return wrong(path_fault::unknown_attribute, start);
  }
  attribute_path found{owner == &base_ ? nullptr : owner, parent, nullptr};
  if (dot < rest.size()) {
    auto const sub = rest.substr(dot + 1);
    if (!is_attribute_name(sub)) {
      return wrong(path_fault::malformed, start + dot + 1);
    }
    found.sub = parent->find(sub);
    if (found.sub == nullptr) {
      return wrong(path_fault::unknown_sub_attribute, start + dot + 1);
    }
  }
  return found;
}

auto spelled_name(attribute_path const& path) -> std::string {
  std::string name;
  if (path.extension != nullptr) {
    name += path.extension->id;
  }
  if (path.parent != nullptr) {
    name += name.empty() ? "" : ":";
    name += path.parent->name;
  }
  if (path.sub != nullptr) {
    name += '.';
    name += path.sub->name;
  }
  return name;
}

auto canonical_name(attribute_path const& path) -> std::string {
  return lower_case(spelled_name(path));
}

}  // namespace tidegate::TIDEGATE_ABI::scim
