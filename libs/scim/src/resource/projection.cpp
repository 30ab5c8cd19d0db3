// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/projection.hpp>

#include <algorithm>

namespace tidegate::TIDEGATE_ABI::scim {

auto projection::make(std::span<std::string const> attributes,
                      std::span<std::string const> excluded, resource_definition const& definition)
    -> result<projection, error> {
  auto const has_names = [](std::span<std::string const> list) {
    return std::ranges::any_of(list, [](auto const& name) { return !name.empty(); });
  };
  bool const only = has_names(attributes);
  bool const all_but = has_names(excluded);
  if (only && all_but) {
    return failure(error{.status = 400,
                         .type = scim_type::invalid_value,
                         .detail = "attributes and excludedAttributes exclude each other"});
  }
  projection p(definition, only ? mode::only : all_but ? mode::all_but : mode::by_default);
  for (auto const& name : only ? attributes : excluded) {
    auto const path = definition.resolve(name);
    // Each once: a list of any length costs no more than the schemas have attributes.
    if (path && std::ranges::find(p.named_, *path) == p.named_.end()) {
      p.named_.push_back(*path);
    }
  }
  return p;
}

auto projection::is_default() const noexcept -> bool {
  return mode_ == mode::by_default;
}

auto projection::wants(std::string_view name) const noexcept -> bool {
  auto const* const a = definition_->base().find(name);
  return a != nullptr && takes({nullptr, a, nullptr});
}

/// Whether an attribute comes, or a part of it.
auto projection::takes(attribute_path const& path) const noexcept -> bool {
  auto const is_named = [&](bool by_extension, bool by_sub) {
    return std::ranges::any_of(named_, [&](attribute_path const& n) {
      if (n.extension != path.extension) {
        return false;
      }
      return n.parent == nullptr ? by_extension
                                 : n.parent == path.parent && (n.sub == nullptr || by_sub);
    });
  };
  switch (path.parent->returned) {
    case attribute_returned::always: return true;
    case attribute_returned::never: return false;
    case attribute_returned::request: return mode_ == mode::only && is_named(false, true);
    case attribute_returned::by_default: break;
  }
  return mode_ == mode::only ? is_named(true, true) : !is_named(true, false);
}

/// Whether a sub-attribute comes in a parent that does.
auto projection::takes_sub(attribute_path const& path) const noexcept -> bool {
  bool const is_named = std::ranges::find(named_, path) != named_.end();
  switch (path.sub->returned) {
    case attribute_returned::always: return true;
    case attribute_returned::never: return false;
    case attribute_returned::request: return mode_ == mode::only && is_named;
    case attribute_returned::by_default: break;
  }
  if (mode_ != mode::only) {
    return !is_named;
  }
  // What is always returned is so with all that is returned by default.
  return is_named || path.parent->returned == attribute_returned::always ||
         std::ranges::any_of(named_, [&](attribute_path const& n) {
           return n.extension == path.extension && n.sub == nullptr &&
                  (n.parent == nullptr || n.parent == path.parent);
         });
}

/// Null when nothing of the value comes.
auto projection::part_of(json::value const& value, attribute_path const& path) const
    -> json::value {
  if (path.parent->type != attribute_type::complex) {
    return value;
  }
  if (auto const* const array = value.if_array()) {
    json::array out;
    for (auto const& one : *array) {
      if (auto part = part_of(one, path); !part.is_null()) {
        out.push_back(std::move(part));
      }
    }
    return out.empty() ? json::value() : json::value(std::move(out));
  }
  json::object out;
  if (auto const* const object = value.if_object()) {
    for (auto const& m : object->members()) {
      auto const* const sub = path.parent->find(m.name);
      if (sub != nullptr && takes_sub({path.extension, path.parent, sub})) {
        out.append(m.name, m.value);
      }
    }
  }
  return out.empty() ? json::value() : json::value(std::move(out));
}

void projection::append_member(json::object& out, json::value const& value,
                               attribute_path const& path) const {
  if (path.parent == nullptr || !takes(path)) {
    return;
  }
  if (auto part = part_of(value, path); !part.is_null()) {
    out.append(path.parent->name, std::move(part));
  }
}

auto projection::apply(json::value const& resource) const -> json::value {
  json::object out;
  auto const* const object = resource.if_object();
  if (object == nullptr) {
    return out;
  }
  for (auto const& m : object->members()) {
    auto const* const extension = definition_->find_extension(m.name);
    if (extension == nullptr) {
      append_member(out, m.value, {nullptr, definition_->base().find(m.name), nullptr});
      continue;
    }
    json::object inner;
    if (auto const* const members = m.value.if_object()) {
      for (auto const& member : members->members()) {
        append_member(inner, member.value, {extension, extension->find(member.name), nullptr});
      }
    }
    if (!inner.empty()) {
      out.append(extension->id, std::move(inner));
    }
  }
  return out;
}

}  // namespace tidegate::TIDEGATE_ABI::scim
