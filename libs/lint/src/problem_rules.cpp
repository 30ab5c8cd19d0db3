// SPDX-License-Identifier: Apache-2.0
#include "recording.hpp"

#include <tidegate/base/hex.hpp>
#include <tidegate/http/problem.hpp>
#include <tidegate/json/value.hpp>

#include <array>
#include <string>

namespace tidegate::TIDEGATE_ABI::lint {

namespace {

using namespace explain::specification;
using enum explain::severity;

[[nodiscard]] auto is_problem(seen const& each) -> bool {
  return each.media_type() == http::problem_json;
}

/// The object of a response that says that it is one.
[[nodiscard]] auto object_of(seen const& each) -> json::object const* {
  return is_problem(each) && each.json ? each.json->if_object() : nullptr;
}

void check_object(recording const& what, verdict& out) {
  for (auto const& each : what.all()) {
    if (is_problem(each)) {
      out.applies();
      if (object_of(each) == nullptr) {
        out.broken(each, "content", "it is not a JSON object, or has a name twice");
      }
    }
  }
}

void check_members(recording const& what, verdict& out) {
  constexpr std::array<std::string_view, 4> texts = {"type", "title", "detail", "instance"};
  for (auto const& each : what.all()) {
    auto const* const object = object_of(each);
    if (object == nullptr) {
      continue;
    }
    out.applies();
    for (auto const name : texts) {
      auto const* const member = object->find(name);
      if (member != nullptr && member->if_string() == nullptr) {
        out.broken(each, name, "the member is not a string, so that clients have to ignore it");
      }
    }
    auto const* const status = object->find("status");
    if (status != nullptr && status->if_integer() == nullptr) {
      out.broken(each, "status", "the member is not an integer, so that clients have to ignore it");
    }
  }
}

void check_status(recording const& what, verdict& out) {
  for (auto const& each : what.all()) {
    auto const* const object = object_of(each);
    auto const* const status = object == nullptr ? nullptr : object->find<std::int64_t>("status");
    if (status == nullptr) {
      continue;
    }
    out.applies();
    if (*status != each.status()) {
      out.broken(each, "status",
                 "the member says " + std::to_string(*status) + ", the response " +
                     std::to_string(each.status()));
    }
  }
}

/// A URI reference has none of these, and its escapes are whole (RFC 3986, section 2).
[[nodiscard]] auto is_reference(std::string_view text) -> bool {
  for (std::size_t i = 0; i < text.size(); ++i) {
    char const c = text[i];
    if (c <= ' ' || c > '~' || std::string_view("\"<>\\^`{|}").contains(c)) {
      return false;
    }
    if (c == '%' &&
        (i + 2 >= text.size() || hex_value(text[i + 1]) < 0 || hex_value(text[i + 2]) < 0)) {
      return false;
    }
  }
  return true;
}

void check_type(recording const& what, verdict& out) {
  for (auto const& each : what.all()) {
    auto const* const object = object_of(each);
    if (object == nullptr) {
      continue;
    }
    for (std::string_view const name : {"type", "instance"}) {
      auto const* const text = object->find<std::string>(name);
      if (text == nullptr) {
        continue;
      }
      out.applies();
      if (!is_reference(*text)) {
        out.broken(each, name, "the member is not a URI reference");
      }
    }
  }
}

void check_media_type(recording const& what, verdict& out) {
  for (auto const& each : what.all()) {
    if (each.status() < 400 || !each.json || each.json->if_object() == nullptr) {
      continue;
    }
    bool const looks_like_one =
        !text_of(*each.json, "type").empty() && each.json->find("title") != nullptr;
    if (is_problem(each) || looks_like_one) {
      out.applies();
    }
    if (looks_like_one && !is_problem(each)) {
      out.broken(each, "Content-Type",
                 "these are problem details, but the media type is " + each.media_type());
    }
  }
}

void check_names(recording const& what, verdict& out) {
  for (auto const& each : what.all()) {
    auto const* const object = object_of(each);
    if (object == nullptr) {
      continue;
    }
    out.applies();
    for (auto const& member : object->members()) {
      auto const name = http::extension_name::make(member.name);
      if (!name && name.error().fault != http::extension_name_fault::standard_name) {
        out.broken(each, "content",
                   "the member \"" + member.name.substr(0, 40) +
                       "\" does not begin with a letter, is short, or has other characters");
      }
    }
  }
}

constexpr auto table = std::to_array<checked_rule>({
    {{"problem-object", error, problem_details, "3",
      "Content of application/problem+json is a JSON object."},
     check_object},
    {{"problem-members", error, problem_details, "3.1",
      "type, title, detail and instance are strings, status is a number."},
     check_members},
    {{"problem-status", error, problem_details, "3.1.2",
      "The member status is the status code of the response."},
     check_status},
    {{"problem-uri", error, problem_details, "3.1.1, 3.1.5",
      "type and instance are URI references."},
     check_type},
    {{"problem-media-type", warning, problem_details, "3",
      "Problem details have the media type application/problem+json."},
     check_media_type},
    {{"problem-extension-names", advice, problem_details, "3.2",
      "Extension members have names of three characters or more that begin with a letter."},
     check_names},
});

}  // namespace

auto problem_rules() noexcept -> std::span<checked_rule const> {
  return table;
}

}  // namespace tidegate::TIDEGATE_ABI::lint
