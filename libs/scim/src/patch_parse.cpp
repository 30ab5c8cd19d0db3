// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/patch.hpp>

#include "message.hpp"

#include <tidegate/scim/case_fold.hpp>

#include <algorithm>
#include <array>

namespace tidegate::scim {

namespace {

auto fail(scim_type type, std::string detail) -> std::unexpected<error> {
  return failure(error{.status = 400, .type = type, .detail = std::move(detail)});
}

/// Whether an error at `offset` is one of the filter in the brackets of a path, or of the path around it.
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
  explicit patch_reader(resource_definition const& definition) : definition_(definition) {}

  /// Reads one operation, which may become several; `place` says where it stands.
  auto read_operation(json const& value, std::string const& place) -> result<void, error> {
    auto const* const object = value.if_object();
    auto const* const op = object == nullptr ? nullptr : object->find("op");
    auto const* const word = op == nullptr ? nullptr : op->if_string();
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
    return append({*kind, std::move(target), operand == nullptr ? json() : *operand});
  }

  auto take() && -> std::vector<patch_operation> { return std::move(operations_); }

 private:
  static auto kind_of(std::string_view word) noexcept -> std::optional<patch_kind> {
    constexpr std::array<std::string_view, 3> words{"add", "remove", "replace"};
    auto const* const found =
        std::ranges::find_if(words, [&](auto w) { return equal_names(w, word); });
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
  auto divide(patch_kind kind, json const& value, schema const* extension, std::string const& place)
      -> result<void, error> {
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
      TIDEGATE_TRY(auto path,
                   read_path(extension == nullptr ? m.name : extension->id + ":" + m.name, inner));
      if (path.path.parent == nullptr) {
        return fail(scim_type::invalid_path, inner + ": an extension in an extension");
      }
      // Clients send what they have read back, with its id.
      if (!is_read_only(path.path)) {
        TIDEGATE_TRY_VOID(append({kind, std::move(path), m.value}));
      }
    }
    return {};
  }

  auto change_extension(patch_kind kind, schema const& extension, json const* value,
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

  auto append(patch_operation operation) -> result<void, error> {
    if (operations_.size() == patch_operations_max) {
      return failure(error{.status = 413, .detail = "too many operations"});
    }
    operations_.push_back(std::move(operation));
    return {};
  }

  resource_definition const& definition_;
  std::vector<patch_operation> operations_;
};

}  // namespace

auto parse_patch(json const& body, resource_definition const& definition)
    -> result<std::vector<patch_operation>, error> {
  TIDEGATE_TRY_VOID(check_message(body, patch_op_schema));
  auto const* const operations = body.find("Operations");
  auto const* const array = operations == nullptr ? nullptr : operations->if_array();
  if (array == nullptr || array->empty()) {
    return failure(invalid_syntax("Operations: an array of one or more is expected"));
  }
  patch_reader reader(definition);
  for (std::size_t i = 0; i < array->size(); ++i) {
    TIDEGATE_TRY_VOID(reader.read_operation((*array)[i], "Operations[" + std::to_string(i) + "]"));
  }
  return std::move(reader).take();
}

}  // namespace tidegate::scim
