// SPDX-License-Identifier: Apache-2.0
#include <tidegate/json/pointer.hpp>

#include <tidegate/base/utf8.hpp>
#include <tidegate/json/string.hpp>

#include <charconv>

namespace tidegate::TIDEGATE_ABI::json {

namespace {

/// Where the string at the beginning of `canonical` ends.
[[nodiscard]] auto end_of_string(std::string_view canonical) noexcept -> std::size_t {
  std::size_t i = 1;
  while (canonical[i] != '"') {
    i += canonical[i] == '\\' ? std::size_t{2} : std::size_t{1};
  }
  return i + 1;
}

/// Where the value at the beginning of `canonical` ends.
[[nodiscard]] auto end_of_value(std::string_view canonical) noexcept -> std::size_t {
  std::size_t i = 0;
  std::size_t open = 0;
  while (i < canonical.size()) {
    switch (canonical[i]) {
      case '"': i += end_of_string(canonical.substr(i)); continue;
      case '{':
      case '[': ++open; break;
      case '}':
      case ']':
        if (open == 0) {
          return i;
        }
        --open;
        break;
      case ',':
        if (open == 0) {
          return i;
        }
        break;
      default: break;
    }
    ++i;
  }
  return i;
}

}  // namespace

auto to_string(pointer_error const& error) -> std::string {
  auto const what = [&]() -> std::string_view {
    switch (error.fault) {
      case pointer_fault::slash_expected: return R"(a JSON pointer begins with "/")";
      case pointer_fault::invalid_escape: return R"("~" must be followed by 0 or 1)";
      case pointer_fault::invalid_utf8: return "not UTF-8";
      case pointer_fault::too_long: break;
    }
    return "the JSON pointer is too long";
  }();
  return std::string(what) + " at offset " + std::to_string(error.offset);
}

auto pointer::parse(std::string_view text) -> result<pointer, pointer_error> {
  using enum pointer_fault;
  if (text.size() > octets_max) {
    return failure(pointer_error{too_long, octets_max});
  }
  if (!text.empty() && text.front() != '/') {
    return failure(pointer_error{slash_expected, 0});
  }
  for (std::size_t i = 0; i < text.size();) {
    auto const octets = utf8::character_octets(text.substr(i));
    if (octets == 0) {
      return failure(pointer_error{invalid_utf8, i});
    }
    i += octets;
  }
  pointer made;
  made.text_ = text;
  for (std::size_t i = 0; i < text.size();) {
    std::string name;
    for (++i; i < text.size() && text[i] != '/'; ++i) {
      if (text[i] != '~') {
        name += text[i];
        continue;
      }
      if (i + 1 == text.size() || (text[i + 1] != '0' && text[i + 1] != '1')) {
        return failure(pointer_error{invalid_escape, i});
      }
      name += text[++i] == '0' ? '~' : '/';
    }
    step one;
    // RFC 6901, section 4: an index has no zeros before it.
    if (std::size_t index = 0; !name.empty() && (name == "0" || name.front() != '0')) {
      auto const* const end = name.data() + name.size();
      auto const read = std::from_chars(name.data(), end, index);
      if (read.ec == std::errc() && read.ptr == end) {
        one.index = index;
      }
    }
    append_string(one.name, name);
    made.steps_.push_back(std::move(one));
  }
  return made;
}

auto pointer::find(std::string_view canonical) const noexcept -> std::optional<std::string_view> {
  auto value = canonical;
  for (auto const& step : steps_) {
    bool const object = value.starts_with('{');
    if (!object && !(value.starts_with('[') && step.index)) {
      return std::nullopt;
    }
    bool found = false;
    value.remove_prefix(1);
    for (std::size_t i = 0; !found && value.front() != '}' && value.front() != ']'; ++i) {
      if (object) {
        auto const name_end = end_of_string(value);
        found = value.substr(0, name_end) == step.name;
        value.remove_prefix(name_end + 1);
      } else {
        found = i == *step.index;
      }
      auto const end = end_of_value(value);
      if (found) {
        value = value.substr(0, end);
      } else {
        value.remove_prefix(end + (value[end] == ',' ? 1 : 0));
      }
    }
    if (!found) {
      return std::nullopt;
    }
  }
  return value;
}

}  // namespace tidegate::TIDEGATE_ABI::json
