// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/plain_resource.hpp>

#include <tidegate/base/ascii.hpp>
#include <tidegate/base/utf8.hpp>
#include "resource/index_entries.hpp"

#include <tidegate/json/string.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace tidegate::TIDEGATE_ABI::scim {

namespace {

constexpr std::string_view whitespace = " \t\n\r";

/// Which attributes of an object have come.
struct progress {
  std::uint64_t seen = 0;  // a bit for each
  std::size_t next = 0;    // many clients keep the order of the schema
};
constexpr std::size_t attributes_max = 64;  // as many as there are bits

/// What reads returns false, or nothing, as soon as something is not plain.
class plain_reader {
 public:
  plain_reader(std::string_view text, model_type const& type, json::value const& own)
      : text_(text), type_(type), definition_(type.definition), own_(own) {}

  auto read() -> std::optional<kept_form> {
    constexpr std::size_t own_octets = 256;  // the id and the meta
    made_.text.reserve(text_.size() + own_octets);
    if (type_.has_members || !read_resource()) {
      return std::nullopt;
    }
    made_.entries.reserve(type_.indexes.size());
    for (std::size_t i = 0; i < type_.indexes.size(); ++i) {
      append_entry(i);
    }
    return std::move(made_);
  }

 private:
  // ---- tokens ----

  [[nodiscard]] auto at(char c) const noexcept -> bool {
    return position_ < text_.size() && text_[position_] == c;
  }

  /// What was read since the last time is kept as it stands.
  void keep() {
    made_.text += text_.substr(kept_, position_ - kept_);
    kept_ = position_;
  }

  void skip_whitespace() {
    if (position_ < text_.size() && text_[position_] <= ' ') {
      keep();
      position_ = std::min(text_.find_first_not_of(whitespace, position_), text_.size());
      kept_ = position_;
    }
  }

  auto take(char c) -> bool {
    skip_whitespace();
    bool const there = at(c);
    position_ += there ? 1 : 0;
    return there;
  }

  auto take_word(std::string_view word) -> bool {
    bool const there = text_.substr(position_).starts_with(word);
    position_ += there ? word.size() : 0;
    return there;
  }

  auto read_string() -> std::optional<std::string_view> {
    if (!take('"')) {
      return std::nullopt;
    }
    auto const begin = position_;
    for (;;) {
      position_ += json::plain_octets(text_.substr(position_));
      if (at('"')) {
        return text_.substr(begin, position_++ - begin);
      }
      if (position_ == text_.size() || static_cast<std::uint8_t>(text_[position_]) < 0x80) {
        return std::nullopt;
      }
      auto const size = utf8::character_octets(text_.substr(position_));
      if (size == 0) {
        return std::nullopt;
      }
      position_ += size;
    }
  }

  auto read_name() -> std::optional<std::string_view> {
    auto const name = read_string();
    return take(':') ? name : std::nullopt;
  }

  // ---- the resource ----

  auto read_resource() -> bool {
    if (!take('{') || read_name() != "schemas" || !read_schemas()) {
      return false;
    }
    keep();
    made_.text += R"(,"id":)";
    json::append(made_.text, *own_.find("id"));
    if (!read_members()) {
      return false;
    }
    skip_whitespace();
    if (!at('}') || text_.find_first_not_of(whitespace, position_ + 1) != std::string_view::npos) {
      return false;
    }
    keep();
    made_.text += R"(,"meta":)";
    json::append(made_.text, *own_.find("meta"));
    made_.text += '}';
    return true;
  }

  /// The base schema, and then each extension once.
  auto read_schemas() -> bool {
    if (!take('[') || read_string() != definition_.base().id) {
      return false;
    }
    while (take(',')) {
      auto const urn = read_string();
      auto const* const extension = urn ? definition_.find_extension(*urn) : nullptr;
      if (extension == nullptr || extension->id != *urn || listed_ == extensions_.size() ||
          std::ranges::find(listed(), extension) != listed().end()) {
        return false;
      }
      extensions_[listed_++] = extension;
    }
    for (auto const& e : definition_.type().schema_extensions) {
      if (e.required && std::ranges::none_of(listed(), [&](schema const* extension) {
            return equal_ignoring_case(extension->id, e.schema);
          })) {
        return false;
      }
    }
    return take(']');
  }

  [[nodiscard]] auto listed() const -> std::span<schema const* const> {
    return std::span(extensions_).first(listed_);
  }

  /// Of the base schema, and then the extensions.
  auto read_members() -> bool {
    std::span<attribute const> const attributes = definition_.base().attributes;
    progress base;
    if (!find_attribute(attributes, "schemas", base)) {
      return false;
    }
    std::size_t extensions = 0;
    while (take(',')) {
      auto const name = read_name();
      if (!name) {
        return false;
      }
      if (extensions < listed_ && *name == extensions_[extensions]->id) {
        if (!read_object(extensions_[extensions]->attributes)) {
          return false;
        }
        ++extensions;
        continue;
      }
      auto const* const a = find_attribute(attributes, *name, base);
      if (extensions != 0 || a == nullptr || !read_attribute(*a)) {
        return false;
      }
    }
    return extensions == listed_ && has_required(attributes, base);
  }

  auto read_object(std::span<attribute const> attributes) -> bool {
    if (!take('{')) {
      return false;
    }
    progress now;
    do {
      auto const name = read_name();
      auto const* const a = name ? find_attribute(attributes, *name, now) : nullptr;
      if (a == nullptr || !read_attribute(*a)) {
        return false;
      }
    } while (take(','));
    return take('}') && has_required(attributes, now);
  }

  /// The attribute of exactly that name, unless it has come already.
  static auto find_attribute(std::span<attribute const> attributes, std::string_view name,
                             progress& now) -> attribute const* {
    auto const is_named = [&](attribute const& a) { return a.name == name; };
    auto const begin = attributes.begin();
    auto const middle = begin + static_cast<std::ptrdiff_t>(now.next);
    auto found = std::find_if(middle, attributes.end(), is_named);
    if (found == attributes.end()) {
      found = std::find_if(begin, middle, is_named);
      if (found == middle) {
        return nullptr;
      }
    }
    auto const number = static_cast<std::size_t>(found - begin);
    if (number >= attributes_max || (now.seen >> number & 1) != 0) {
      return nullptr;
    }
    now.seen |= std::uint64_t{1} << number;
    now.next = number + 1;
    return &*found;
  }

  static auto has_required(std::span<attribute const> attributes, progress const& now) -> bool {
    for (std::size_t i = 0; i < attributes.size(); ++i) {
      if (attributes[i].required && attributes[i].mutability != attribute_mutability::read_only &&
          (i >= attributes_max || (now.seen >> i & 1) == 0)) {
        return false;
      }
    }
    return true;
  }

  auto read_attribute(attribute const& a) -> bool {
    if (a.mutability == attribute_mutability::read_only ||
        a.mutability == attribute_mutability::write_only ||
        a.returned == attribute_returned::never) {
      return false;
    }
    return a.multi_valued ? !a.required && take('[') && read_one(a) && take(']') : read_one(a);
  }

  auto read_one(attribute const& a) -> bool {
    switch (a.type) {
      case attribute_type::string:
      case attribute_type::reference: {
        auto const text = read_string();
        // Without its `value` a complex attribute may have none at all.
        if (!text || (text->empty() && (a.required || a.name == "value"))) {
          return false;
        }
        note(a, *text);
        return true;
      }
      case attribute_type::boolean: {
        skip_whitespace();
        auto const begin = position_;
        if (!take_word("true") && !take_word("false")) {
          return false;
        }
        note(a, text_.substr(begin, position_ - begin));
        return true;
      }
      case attribute_type::complex: return !a.required && read_object(a.sub_attributes);
      default: return false;
    }
  }

  // ---- indexes ----

  /// Remembers a value that is indexed.
  void note(attribute const& a, std::string_view value) {
    for (std::size_t i = 0; i < type_.indexes.size(); ++i) {
      if (type_.indexes[i].path.leaf() == &a) {
        values_[i] = value;
      }
    }
  }

  void append_entry(std::size_t index) {
    auto const& path = type_.indexes[index].path;
    auto const& a = *path.leaf();
    auto const value = values_[index];
    if (value.data() == nullptr) {
      append_entries(made_.entries, index, path, own_);
      return;
    }
    made_.entries.push_back({index,
                             a.type == attribute_type::boolean
                                 ? index_key(a, json::value(value == "true"))
                                 : index_key(a, value),
                             true});
  }

  std::string_view text_;
  model_type const& type_;
  resource_definition const& definition_;
  json::value const& own_;
  std::size_t position_ = 0;
  std::size_t kept_ = 0;  // up to here; what follows up to the position is to be
  kept_form made_;
  std::array<schema const*, 8> extensions_{};  // that `schemas` lists
  std::size_t listed_ = 0;
  std::array<std::string_view, type_indexes_max> values_{};  // for the indexes, where there is one
};

}  // namespace

auto read_plain_resource(std::string_view text, model_type const& type, json::value const& own)
    -> std::optional<kept_form> {
  return plain_reader(text, type, own).read();
}

}  // namespace tidegate::TIDEGATE_ABI::scim
