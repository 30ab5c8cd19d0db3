// SPDX-License-Identifier: Apache-2.0
#include "sources/variables.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/base/utf8.hpp>
#include <tidegate/config/config.hpp>
#include <tidegate/config/values.hpp>
#include "reader/wording.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

namespace tidegate::gateway {

namespace {

constexpr std::string_view opening = "${";
constexpr std::string_view plain_opening = "$${";
constexpr std::string_view from_file = "file:";

auto is_name(std::string_view text) -> bool {
  return !text.empty() && !is_digit(text.front()) &&
         std::ranges::all_of(text, [](char c) { return is_letter_or_digit(c) || c == '_'; });
}

auto is_utf8(std::string_view text) -> bool {
  while (!text.empty()) {
    auto const size = utf8::character_octets(text);
    if (size == 0) {
      return false;
    }
    text.remove_prefix(size);
  }
  return true;
}

/// `${NAME}` in quotes.
auto reference_shown(std::string_view reference) -> std::string {
  return shown(std::string(opening) + std::string(reference) + "}");
}

/// The value as the configuration takes it: what is refused in its own text is refused here.
auto checked(std::string value) -> result<std::string, std::string> {
  if (value.size() > variable_octets_max) {
    return failure("larger than " + format_size(std::int64_t{variable_octets_max}));
  }
  if (first_strange_octet(value) != value.size() || !is_utf8(value)) {
    return failure(
        std::string("a control character, or not UTF-8 (expected text in UTF-8 as its value)"));
  }
  return value;
}

}  // namespace

auto variables::content_of(std::string_view path) const -> text_result {
  auto const name = (std::filesystem::path(folder_) / path).lexically_normal().string();
  auto text = sources_.file(name, variable_octets_max + 1);
  if (!text) {
    return failure("cannot read the file: " + text.error());
  }
  if (text->ends_with('\n')) {
    text->pop_back();
    if (text->ends_with('\r')) {
      text->pop_back();
    }
  }
  return *std::move(text);
}

auto variables::look_up(std::string_view reference) const -> text_result {
  if (reference.starts_with(from_file) && reference.size() > from_file.size()) {
    TIDEGATE_TRY(auto text, content_of(reference.substr(from_file.size())));
    return checked(std::move(text));
  }
  if (!is_name(reference)) {
    return failure(
        std::string("not a variable (expected ${NAME} of letters, digits and _, ${file:PATH}, or "
                    "$${ for a plain ${)"));
  }
  auto value = sources_.variable(std::string(reference));
  if (!value) {
    return failure(std::string("the environment variable is not set"));
  }
  return checked(*std::move(value));
}

auto variables::value_of(std::string_view reference) -> text_result const& {
  auto const known = values_.find(reference);
  if (known != values_.end()) {
    return known->second;
  }
  auto const& fresh = values_.emplace(std::string(reference), look_up(reference)).first->second;
  if (fresh) {
    taken_.add(*fresh, std::string(opening) + std::string(reference) + "}");
  }
  return fresh;
}

auto variables::replaced(std::string_view text, bool& has_values) -> text_result {
  std::string out;
  while (!text.empty()) {
    auto const dollar = std::min(text.find('$'), text.size());
    out += text.substr(0, dollar);
    text.remove_prefix(dollar);
    if (text.starts_with(plain_opening)) {
      out += opening;
      text.remove_prefix(plain_opening.size());
    } else if (text.starts_with(opening)) {
      auto const end = text.find('}');
      if (end == std::string_view::npos) {
        return failure("\"${\" is not closed" + expected("${NAME}, or $${ for a plain ${"));
      }
      auto const reference = text.substr(opening.size(), end - opening.size());
      auto const& value = value_of(reference);
      if (!value) {
        return failure(reference_shown(reference) + ": " + value.error());
      }
      octets_ += value->size();
      if (octets_ > config_octets_max) {
        return failure("the values of all variables are larger than " +
                       format_size(static_cast<std::int64_t>(config_octets_max)));
      }
      has_values = true;
      out += *value;
      text.remove_prefix(end + 1);
    } else {
      out += text.substr(0, 1);
      text.remove_prefix(std::min<std::size_t>(1, text.size()));
    }
  }
  return out;
}

void variables::replace(yaml_document& document, std::size_t first,
                        std::vector<yaml_fault>& faults) {
  for (auto at = first; at < document.nodes.size(); ++at) {
    auto& node = document.nodes[at];
    if (node.kind != yaml_kind::scalar || !node.text.contains(opening)) {
      continue;
    }
    if (node.is_key) {
      faults.push_back({node.place, "a key has no variables" +
                                        expected("the key itself; values may have ${NAME}")});
      continue;
    }
    bool has_values = false;
    auto value = replaced(node.text, has_values);
    if (!value) {
      faults.push_back({node.place, std::move(value.error())});
    } else if (has_values) {
      node.written = &document.texts.emplace_back(std::exchange(node.text, *std::move(value)));
    } else {
      node.text = *std::move(value);
    }
  }
}

auto no_sources() -> config_sources {
  return {.variable = [](std::string const&) -> std::optional<std::string> { return std::nullopt; },
          .file = [](std::string const&, std::size_t) -> result<std::string, std::string> {
            return failure(std::string("no files are read here"));
          },
          .matching = [](std::string const&) -> result<std::vector<std::string>, std::string> {
            return failure(std::string("no files are read here"));
          }};
}

}  // namespace tidegate::gateway
