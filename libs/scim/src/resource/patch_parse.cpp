// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/patch.hpp>

#include "message.hpp"
#include "resource/read_value.hpp"

#include <tidegate/base/ascii.hpp>

#include <algorithm>
#include <array>

namespace tidegate::TIDEGATE_ABI::scim {

namespace {

auto fail(scim_type type, std::string detail) -> std::unexpected<error> {
  return failure(error{.status = 400, .type = type, .detail = std::move(detail)});
}

/// Whether an error at `offset` is one of the filter in the brackets of a path, or of the path
/// around it.
auto is_in_brackets(std::string_view path, std::size_t offset) noexcept -> bool {
  auto const open = path.find('[');
  if (open == std::string_view::npos || offset <= open) {
    return false;
  }
  bool quoted = false;
  for (auto i = open; i < offset && i < path.size(); ++i) {
    if (quoted && path[i] == '\\') {
      ++i;
    } else if (path[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && path[i] == ']') {
      return false;
    }
  }
  return true;
}

auto is_read_only(attribute_path const& path) noexcept -> bool {
  auto const read_only = [](attribute const* a) {
    return a != nullptr && a->mutability == attribute_mutability::read_only;
  };
  return read_only(path.parent) || read_only(path.sub);
}

class patch_reader {
 public:
  patch_reader(resource_definition const& definition, unknown_attributes unknown,
               ignored_names* ignored)
      : definition_(definition), unknown_(unknown), ignored_(ignored) {}

  /// Reads one operation, which may become several; `place` says where it stands.
  auto read_operation(json::value const& value, std::string const& place) -> result<void, error> {
    auto const* const object = value.if_object();
    auto const* const word = value.find<std::string>("op");
    if (word == nullptr) {
      return failure(invalid_syntax(place + ": an object with op is expected"));
    }
    auto const kind = kind_of(*word);
    if (!kind) {
      return failure(invalid_syntax(place + ".op: add, remove or replace is expected"));
    }
    auto const* const operand = object->find("value");
    if (operand == nullptr && *kind != patch_kind::remove) {
      return failure(invalid_syntax(place + ": a value is expected"));
    }
    auto const* const path = object->find("path");
    if (path == nullptr || path->is_null()) {
      if (*kind == patch_kind::remove) {
        return fail(scim_type::no_target, place + ": a path is expected");
      }
      return divide(*kind, *operand, nullptr, place + ".value");
    }
    if (path->if_string() == nullptr) {
      return failure(invalid_syntax(place + ".path: a string is expected"));
    }
    TIDEGATE_TRY(auto target, read_path(*path->if_string(), place + ".path"));
    if (target.path.parent == nullptr) {
      return change_extension(*kind, *target.path.extension, operand, place + ".value");
    }
    return append_value({*kind, std::move(target), operand == nullptr ? json::value() : *operand},
                        place + ".value");
  }

  auto take() && -> std::vector<patch_operation> { return std::move(operations_); }

 private:
  static auto kind_of(std::string_view word) noexcept -> std::optional<patch_kind> {
    constexpr std::array<std::string_view, 3> words{"add", "remove", "replace"};
    auto const* const found =
        std::ranges::find_if(words, [&](auto w) { return equal_ignoring_case(w, word); });
    if (found == words.end()) {
      return std::nullopt;
    }
    return static_cast<patch_kind>(found - words.begin());
  }

  auto read_path(std::string_view text, std::string const& place) const
      -> result<patch_path, error> {
    auto path = parse_patch_path(text, definition_);
    if (!path) {
      return fail(is_in_brackets(text, path.error().offset) ? scim_type::invalid_filter
                                                            : scim_type::invalid_path,
                  place + ": " + to_string(path.error()));
    }
    if (path->value_filter && !path->path.parent->multi_valued) {
      return fail(scim_type::invalid_path, place + ": a filter selects among several values");
    }
    return *std::move(path);
  }

  /// One operation for each member of `value`: of the resource, or of one of its extensions.
  auto divide(patch_kind kind, json::value const& value, schema const* extension,
              std::string const& place) -> result<void, error> {
    auto const* const object = value.if_object();
    if (object == nullptr) {
      return fail(scim_type::invalid_value, place + ": an object of attributes is expected");
    }
    for (auto const& m : object->members()) {
      auto const inner = place + "." + m.name;
      if (extension == nullptr) {
        if (auto const* const whole = definition_.find_extension(m.name)) {
          TIDEGATE_TRY_VOID(change_extension(kind, *whole, &m.value, inner));
          continue;
        }
      }
      if (extension != nullptr && equal_ignoring_case(m.name, "schemas") &&
          extension->find("schemas") == nullptr) {
        continue;  // some clients list the extension itself there
      }
      auto path = read_path(extension == nullptr ? m.name : extension->id + ":" + m.name, inner);
      if (!path) {
        if (unknown_ == unknown_attributes::refuse || m.name.contains('[')) {
          return failure(std::move(path).error());
        }
        ignore(extension == nullptr ? "" : extension->id, m);
        continue;
      }
      if (path->path.parent == nullptr) {
        return fail(scim_type::invalid_path, inner + ": an extension in an extension");
      }
      // Clients send what they have read back, with its id.
      if (!is_read_only(path->path)) {
        TIDEGATE_TRY_VOID(append_value({kind, *std::move(path), m.value}, inner));
      }
    }
    return {};
  }

  auto change_extension(patch_kind kind, schema const& extension, json::value const* value,
                        std::string const& place) -> result<void, error> {
    if (kind != patch_kind::remove && !value->is_null()) {
      return divide(kind, *value, &extension, place);
    }
    if (kind == patch_kind::add) {
      return {};
    }
    patch_operation whole;
    whole.kind = kind;
    whole.path.path.extension = &extension;
    return append(std::move(whole));
  }

  void ignore(std::string_view owner, json::member const& m) {
    if (ignored_ != nullptr && !m.value.is_null()) {
      ignored_->note_attribute(owner, m.name);
    }
  }

  /// Appends an operation with what is known of its value, in the form that the path asks for.
  auto append_value(patch_operation op, std::string const& place) -> result<void, error> {
    auto const& path = op.path.path;
    if (path.extension == nullptr && path.parent == definition_.base().find("schemas") &&
        op.kind != patch_kind::remove) {
      TIDEGATE_TRY(bool const has_some, read_schemas(op.value, place));
      return has_some ? append(std::move(op)) : result<void, error>();
    }
    auto const& leaf = *path.leaf();
    bool const is_one = !leaf.multi_valued || (op.path.value_filter && path.sub == nullptr);
    read_values(op.value, leaf, is_one, op.kind);
    return append(std::move(op));
  }

  /// Takes URNs that the resource type lacks out of a value of `schemas`. False when all of them
  /// are.
  auto read_schemas(json::value& value, std::string const& place) -> result<bool, error> {
    auto const is_unknown = [&](json::value const& urn) {
      return urn.if_string() != nullptr &&
             !equal_ignoring_case(*urn.if_string(), definition_.base().id) &&
             definition_.find_extension(*urn.if_string()) == nullptr;
    };
    json::array one;
    auto* const array = value.if_array();
    if (array == nullptr) {
      one.push_back(value);
    }
    auto& urns = array == nullptr ? one : *array;
    for (auto const& urn : urns) {
      if (is_unknown(urn) && unknown_ == unknown_attributes::refuse) {
        return fail(scim_type::invalid_value, place + ": not a schema of this resource type");
      }
      if (is_unknown(urn) && ignored_ != nullptr) {
        ignored_->note_schema(*urn.if_string());
      }
    }
    return std::erase_if(urns, is_unknown) == 0 || !urns.empty();
  }

  void read_values(json::value& value, attribute const& a, bool is_one, patch_kind kind) {
    auto* const array = value.if_array();
    if (array == nullptr) {
      read_one(value, a, kind);
    } else if (!is_one) {
      for (auto& each : *array) {
        read_one(each, a, kind);
      }
    } else if (array->size() == 1) {
      auto element = std::move(array->front());
      value = std::move(element);
      read_one(value, a, kind);
    } else if (array->empty() && kind != patch_kind::remove) {
      value = json::value();  // unassigned (RFC 7643, section 2.5)
    }
  }

  void read_one(json::value& value, attribute const& a, patch_kind kind) {
    if (a.type != attribute_type::complex) {
      return;
    }
    auto* const object = value.if_object();
    if (object == nullptr) {
      auto const* const text = value.if_string();
      bool const is_none = text != nullptr && text->empty() && a.find("value") != nullptr;
      if (is_none && kind != patch_kind::remove) {  // where null stands for all values
        value = json::value();
      }
      return;
    }
    if (unknown_ == unknown_attributes::ignore) {
      std::erase_if(object->members(), [&](json::member const& m) {
        if (a.find(m.name) != nullptr) {
          return false;
        }
        ignore(a.name, m);
        return true;
      });
    }
    for (auto& m : object->members()) {
      if (auto const* const sub = a.find(m.name)) {
        read_values(m.value, *sub, !sub->multi_valued, kind);
      }
    }
    // Only where nothing else is left beside it: other attributes keep what the value does not
    // name.
    if (kind != patch_kind::remove && a.find("$ref") != nullptr && is_empty_reference(value, a)) {
      value = json::value();
    }
  }

  auto append(patch_operation operation) -> result<void, error> {
    if (operations_.size() == patch_operations_max) {
      return failure(error{.status = 413, .detail = "too many operations"});
    }
    operations_.push_back(std::move(operation));
    return {};
  }

  resource_definition const& definition_;
  unknown_attributes unknown_;
  ignored_names* ignored_;
  std::vector<patch_operation> operations_;
};

}  // namespace

auto parse_patch(json::value const& body, resource_definition const& definition,
                 unknown_attributes unknown, ignored_names* ignored)
    -> result<std::vector<patch_operation>, error> {
  TIDEGATE_TRY_VOID(check_message(body, patch_op_schema));
  auto const* const array = body.find<json::array>("Operations");
  if (array == nullptr || array->empty()) {
    return failure(invalid_syntax("Operations: an array of one or more is expected"));
  }
  patch_reader reader(definition, unknown, ignored);
  for (std::size_t i = 0; i < array->size(); ++i) {
    TIDEGATE_TRY_VOID(reader.read_operation((*array)[i], "Operations[" + std::to_string(i) + "]"));
  }
  return std::move(reader).take();
}

}  // namespace tidegate::TIDEGATE_ABI::scim
