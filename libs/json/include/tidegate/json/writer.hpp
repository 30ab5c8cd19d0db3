// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/json/string.hpp>

#include <concepts>
#include <optional>
#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::json {

/// Appends JSON to a text, value by value; commas come by themselves. What is begun must be ended.
///
///     json::writer(out).begin_object().member("name", "a").member("quota", 10).end_object();
class writer {
 public:
  /// `out` outlives it; what is in it already is the beginning of the same JSON.
  explicit writer(std::string& out) : out_(out) {}

  /// Objects and arrays; with a name, as the member of an object.
  auto begin_object() -> writer& { return raw("{"); }
  auto begin_object(std::string_view name) -> writer& { return key(name).raw("{"); }
  auto end_object() -> writer& { return end("}"); }
  auto begin_array() -> writer& { return raw("["); }
  auto begin_array(std::string_view name) -> writer& { return key(name).raw("["); }
  auto end_array() -> writer& { return end("]"); }

  /// A value, where an element of an array is expected.
  auto value(std::string_view text) -> writer& {
    separate();
    append_string(out_, text);
    return *this;
  }
  auto value(char const* text) -> writer& { return value(std::string_view(text)); }
  auto value(std::same_as<bool> auto truth) -> writer& { return raw(truth ? "true" : "false"); }
  template <std::integral Number>
    requires(!std::same_as<Number, bool>)
  auto value(Number number) -> writer& { return raw(std::to_string(number)); }
  /// Null where there is none.
  template <class Value>
  auto value(std::optional<Value> const& some) -> writer& {
    return some ? value(*some) : raw("null");
  }
  /// JSON that is made already, such as a number with a point.
  auto raw(std::string_view made) -> writer& {
    separate();
    out_ += made;
    return *this;
  }

  /// A member of an object.
  template <class Value>
  auto member(std::string_view name, Value const& its) -> writer& {
    return key(name).value(its);
  }
  auto member_raw(std::string_view name, std::string_view made) -> writer& {
    return key(name).raw(made);
  }
  /// A member that is an array of texts.
  template <class Texts>
  auto list(std::string_view name, Texts const& texts) -> writer& {
    begin_array(name);
    for (auto const& text : texts) {
      value(std::string_view(text));
    }
    return end_array();
  }

 private:
  auto key(std::string_view name) -> writer& {
    value(name);
    out_ += ':';
    return *this;
  }
  auto end(std::string_view bracket) -> writer& {
    out_ += bracket;
    return *this;
  }
  /// Behind a bracket or a colon nothing is needed, and a text never ends with one.
  void separate() {
    if (!out_.empty() && !std::string_view("{[:,").contains(out_.back())) {
      out_ += ',';
    }
  }

  std::string& out_;
};

}  // namespace tidegate::TIDEGATE_ABI::json
