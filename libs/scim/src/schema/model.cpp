// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/model.hpp>

#include <tidegate/base/ascii.hpp>

#include <algorithm>
#include <array>

namespace tidegate::TIDEGATE_ABI::scim {

namespace {

/// Indexed in every type that has them. Each of them tells resources apart.
constexpr auto always_indexed = std::to_array<std::string_view>({
    "id",
    "externalId",
    "userName",
    "displayName",
    "emails.value",
    "meta.lastModified",
});

/// What a service has at its root beside resource types (RFC 7644, section 3.2).
constexpr auto taken_endpoints = std::to_array<std::string_view>({
    "/Schemas",
    "/ResourceTypes",
    "/ServiceProviderConfig",
    "/Me",
    "/Bulk",
});

auto fail(std::string_view subject, std::string text) -> std::unexpected<model_error> {
  return failure(model_error{std::string(subject), std::move(text)});
}

/// What values of `path` are: of a complex attribute its `value`. Without a leaf when there is
/// none.
auto values_of(attribute_path path) noexcept -> attribute_path {
  if (path.sub == nullptr && path.parent != nullptr &&
      path.parent->type == attribute_type::complex) {
    path.sub = path.parent->find("value");
    if (path.sub == nullptr) {
      return {};
    }
  }
  return path;
}

auto is_unique(attribute const& a) noexcept -> bool {
  return a.uniqueness != attribute_uniqueness::none;
}

auto is_unique(attribute_path const& path) noexcept -> bool {
  return is_unique(*path.parent) || is_unique(*path.leaf());
}

auto is_never_returned(attribute_path const& path) noexcept -> bool {
  return path.parent->returned == attribute_returned::never ||
         path.leaf()->returned == attribute_returned::never;
}

/// Whether the attribute is one that a directory keeps as pairs of resources.
auto is_membership(model_type const& type, attribute_path const& path) noexcept -> bool {
  return path.extension == nullptr && path.parent != nullptr &&
         ((type.has_members && equal_ignoring_case(path.parent->name, "members")) ||
          (type.has_groups && equal_ignoring_case(path.parent->name, "groups")));
}

/// Puts `given` behind the built-in ones; one with the id of a built-in one takes its place.
template <class T>
auto join(std::span<T const> builtin, std::span<T const> given)
    -> result<std::vector<T>, model_error> {
  std::vector<T> all(builtin.begin(), builtin.end());
  for (auto const& one : given) {
    auto const same = [&](T const& other) { return equal_ignoring_case(other.id, one.id); };
    if (std::ranges::count_if(given, same) > 1) {
      return fail(one.id, "comes twice");
    }
    if (auto const there = std::ranges::find_if(all, same); there != all.end()) {
      *there = one;
    } else {
      all.push_back(one);
    }
  }
  return all;
}

auto check_endpoints(std::span<resource_type const> types) -> result<void, model_error> {
  for (auto const& t : types) {
    auto const count = [&](auto member) {
      return std::ranges::count_if(types, [&](resource_type const& other) {
        return equal_ignoring_case(other.*member, t.*member);
      });
    };
    if (count(&resource_type::name) > 1) {
      return fail(t.name, "two resource types have this name");
    }
    if (count(&resource_type::endpoint) > 1) {
      return fail(t.name, "another resource type is at " + t.endpoint);
    }
    if (!t.endpoint.starts_with('/') || !is_attribute_name(t.endpoint.substr(1))) {
      return fail(t.name, "\"" + t.endpoint + "\" is not an endpoint");
    }
    if (std::ranges::any_of(taken_endpoints,
                            [&](auto taken) { return equal_ignoring_case(taken, t.endpoint); })) {
      return fail(t.name, "the service itself needs the endpoint " + t.endpoint);
    }
  }
  return {};
}

/// Calls `each` with every attribute and sub-attribute that resources of the type may have.
template <class Each>
void for_each_path(resource_definition const& definition, Each each) {
  auto const visit = [&](schema const& s, schema const* extension) {
    for (auto const& a : s.attributes) {
      each(attribute_path{extension, &a, nullptr});
      for (auto const& sub : a.sub_attributes) {
        each(attribute_path{extension, &a, &sub});
      }
    }
  };
  visit(definition.base(), nullptr);
  for (auto const& extension : definition.extensions()) {
    visit(extension, &extension);
  }
}

/// Whether the base schema is `urn` and has the multi-valued attribute `name` with the
/// sub-attribute `value`.
auto has_references(resource_definition const& definition, std::string_view urn,
                    std::string_view name) noexcept -> bool {
  auto const* const a = definition.base().find(name);
  return equal_ignoring_case(definition.base().id, urn) && a != nullptr && a->multi_valued &&
         a->find("value") != nullptr;
}

/// Adds the index of `path`, which `subject` asked for, unless it is there.
auto add_index(model_type& type, attribute_path const& path, std::string_view subject,
               bool identifies) -> result<void, model_error> {
  auto const values = values_of(path);
  if (values.leaf() == nullptr) {
    return fail(subject, path.parent == nullptr ? "an extension as a whole cannot be indexed"
                                                : "the attribute is complex and has no \"value\"");
  }
  auto const same = [&](index_definition const& i) { return i.path == values; };
  if (std::ranges::any_of(type.indexes, same)) {
    return {};
  }
  if (type.indexes.size() == type_indexes_max) {
    return fail(subject, "the resource type " + type.definition.type().name + " has more than " +
                             std::to_string(type_indexes_max) + " indexes");
  }
  type.indexes.push_back({canonical_name(values), values, is_unique(values), identifies});
  return {};
}

auto make_type(resource_type const& described, std::span<schema const> schemas)
    -> result<model_type, model_error> {
  auto definition = resource_definition::make(described, schemas);
  if (!definition) {
    return fail(described.name, to_string(definition.error()));
  }
  model_type type{*std::move(definition), {}};
  type.has_members = has_references(type.definition, group_schema, "members");
  type.has_groups = has_references(type.definition, user_schema, "groups");
  for (auto const name : always_indexed) {
    auto const path = type.definition.resolve(name);
    if (path && path->extension == nullptr && values_of(*path).leaf()) {
      TIDEGATE_TRY_VOID(add_index(type, *path, name, true));
    }
  }
  result<void, model_error> added;
  for_each_path(type.definition, [&](attribute_path const& path) {
    type.has_request_only |= path.leaf()->returned == attribute_returned::request;
    if (added && is_unique(*path.leaf()) && !is_membership(type, path)) {
      added = add_index(type, path, canonical_name(path), true);
    }
  });
  TIDEGATE_TRY_VOID(added);
  return type;
}

/// Adds the index that the operator asks for with `text`, where types have the attribute.
auto add_asked(std::vector<model_type>& types, std::string_view text) -> result<void, model_error> {
  auto const colon = text.find(':');
  auto const type_name = text.substr(0, colon == std::string_view::npos ? 0 : colon);
  auto const is_named = [&](model_type const& t) {
    return equal_ignoring_case(t.definition.type().name, type_name);
  };
  bool const of_one = std::ranges::any_of(types, is_named);
  auto const path_text = of_one ? text.substr(colon + 1) : text;
  bool found = false;
  for (auto& type : types) {
    if (of_one && !is_named(type)) {
      continue;
    }
    auto const path = type.definition.resolve(path_text);
    if (!path) {
      continue;
    }
    found = true;
    if (is_membership(type, *path)) {
      // Who is a member is found anyway; the rest of it is not kept in the resource.
      if (path->sub != nullptr && !equal_ignoring_case(path->sub->name, "value")) {
        return fail(text, "of members, only \"value\" is indexed");
      }
      continue;
    }
    if (auto const values = values_of(*path); values.leaf() && is_never_returned(values)) {
      return fail(text, "the attribute is never returned, so it can be neither asked nor sorted");
    }
    if (path->parent != nullptr && canonical_name(*path) == "meta.location") {
      return fail(text, "the location depends on the request");
    }
    TIDEGATE_TRY_VOID(add_index(type, *path, text, false));
  }
  if (!found) {
    return fail(text, of_one ? "the resource type has no such attribute"
                             : "no resource type has such an attribute");
  }
  return {};
}

}  // namespace

auto model_type::find_index(attribute_path const& path) const noexcept
    -> std::optional<std::size_t> {
  auto const values = values_of(path);
  if (values.leaf() == nullptr || is_never_returned(values)) {
    return std::nullopt;
  }
  auto const found =
      std::ranges::find_if(indexes, [&](index_definition const& i) { return i.path == values; });
  return found == indexes.end() ? std::nullopt
                                : std::optional(static_cast<std::size_t>(found - indexes.begin()));
}

auto model::make(std::span<schema const> schemas, std::span<resource_type const> types,
                 std::span<std::string const> indexes) -> result<model, model_error> {
  model m;
  TIDEGATE_TRY(m.schemas_, join(builtin_schemas(), schemas));
  TIDEGATE_TRY(auto const all_types, join(builtin_resource_types(), types));
  TIDEGATE_TRY_VOID(check_endpoints(all_types));
  for (auto const& described : all_types) {
    TIDEGATE_TRY(auto type, make_type(described, m.schemas_));
    m.types_.push_back(std::move(type));
  }
  for (auto const& text : indexes) {
    TIDEGATE_TRY_VOID(add_asked(m.types_, text));
  }
  return m;
}

auto model::find(std::string_view name) const noexcept -> model_type const* {
  auto const found = std::ranges::find_if(types_, [&](model_type const& t) {
    return equal_ignoring_case(t.definition.type().name, name);
  });
  return found == types_.end() ? nullptr : &*found;
}

auto model::at(std::string_view endpoint) const noexcept -> model_type const* {
  auto const found = std::ranges::find_if(
      types_, [&](model_type const& t) { return t.definition.type().endpoint == endpoint; });
  return found == types_.end() ? nullptr : &*found;
}

}  // namespace tidegate::TIDEGATE_ABI::scim
