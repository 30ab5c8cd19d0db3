// SPDX-License-Identifier: Apache-2.0
//
// The JSON Schema and the reference, both written from the table of options.
#include <tidegate/config/config.hpp>

#include "options/options.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/json/string.hpp>

#include <algorithm>

namespace tidegate::gateway {

namespace {

auto json(std::string_view text) -> std::string {
  std::string out;
  json::append_string(out, text);
  return out;
}

// ---- JSON Schema ----

auto string_like(std::string_view pattern) -> std::string {
  return R"({"type":"string","pattern":)" + json(pattern) + "}";
}

auto number_schema(option const& rule) -> std::string {
  std::string out = R"({"type":"integer","minimum":)" + std::to_string(rule.min);
  if (rule.max != std::numeric_limits<std::int64_t>::max()) {
    out += R"(,"maximum":)" + std::to_string(rule.max);
  }
  return out + "}";
}

/// The forms that one value may have, each a schema.
auto value_schemas(option const& rule) -> std::vector<std::string> {
  switch (rule.type) {
    case option_type::section:
    case option_type::choice: return {};
    case option_type::boolean: return {R"({"type":"boolean"})"};
    case option_type::integer: return {number_schema(rule)};
    case option_type::size:
    case option_type::quota: return {number_schema(rule), string_like(rule.pattern)};
    case option_type::scalar: return {R"({"type":["string","number","boolean"]})"};
    case option_type::store: {
      std::vector<std::string> schemas;
      for (auto const form : split_words(rule.forms)) {
        std::string begin;
        for (char const c : beginning_of(form)) {
          begin += c == '+' ? "\\+" : std::string(1, c);
        }
        schemas.push_back(string_like("^" + begin + ".+"));
      }
      return schemas;
    }
    default:
      return {rule.pattern.empty() ? R"({"type":"string","minLength":1})"
                                   : string_like(rule.pattern)};
  }
}

/// Whether a text with a variable in it is not one of the values that the schemas name.
auto needs_variable(option const& rule) -> bool {
  switch (rule.type) {
    case option_type::section:
    case option_type::scalar: return false;
    case option_type::text:
    case option_type::file: return !rule.pattern.empty();
    default: return true;
  }
}

/// `${NAME}` in the place of a value.
constexpr std::string_view variable_schema = R"({"$ref":"#/$defs/variable"})";
constexpr std::string_view definitions =
    R"("$defs":{"variable":{"type":"string","pattern":"\\$\\{.+\\}","description":"Text with ${NAME} or ${file:PATH}, which stand for the value of an environment variable and for what a file has."}},)"
    "\n";

auto is_number(std::string_view text) -> bool {
  return !text.empty() && std::ranges::all_of(text, is_digit);
}

/// What YAML takes for a boolean or a number may be a word here.
auto words_schema(std::string_view words) -> std::string {
  std::string out;
  for (auto const word : split_words(words)) {
    out += out.empty() ? "" : ",";
    out += word == "true" || word == "false" ? std::string(word) : json(word);
    out += is_number(word) ? "," + std::string(word) : "";
  }
  return R"({"enum":[)" + out + "]}";
}

auto any_of(std::vector<std::string> const& schemas) -> std::string {
  if (schemas.size() == 1) {
    return schemas.front();
  }
  std::string out;
  for (auto const& schema : schemas) {
    out += (out.empty() ? "" : ",") + schema;
  }
  return R"({"anyOf":[)" + out + "]}";
}

auto array_of(std::string const& items) -> std::string {
  return R"({"type":"array","items":)" + items + "}";
}

auto map_of(std::string const& values) -> std::string {
  return R"({"type":"object","additionalProperties":)" + values + "}";
}

auto option_schema(option const& rule) -> std::string;

/// `"properties":{...},"required":[...],"additionalProperties":false`
auto members_schema(std::string_view path, std::string const& others = "false") -> std::string {
  std::string properties;
  std::string required;
  bool const is_file = path.empty();  // another file may have what is required
  for (auto const* const rule : options_under(path)) {
    properties += properties.empty() ? "\n" : ",\n";
    properties += json(rule->key()) + ":" + option_schema(*rule);
    if (rule->available == availability::required && !is_file) {
      required += (required.empty() ? "" : ",") + json(rule->key());
    }
  }
  for (auto const* const rule : options_formerly_under(path)) {
    properties +=
        ",\n" + json(rule->key()) + R"(:{"deprecated":true,)" + option_schema(*rule).substr(1);
  }
  return R"("type":"object","properties":{)" + properties + R"(},"required":[)" + required +
         R"(],"additionalProperties":)" + others;
}

auto option_schema(option const& rule) -> std::string {
  // YAML reads `default: 5` as a number and `default: true` as a boolean; JSON says so by the type.
  bool const bare = rule.type == option_type::boolean || rule.initial == "true" ||
                    rule.initial == "false" || is_number(rule.initial);
  auto const initial = rule.initial.empty() ? std::string()
                                            : R"(,"default":)" + (bare ? std::string(rule.initial)
                                                                       : json(rule.initial));
  if (rule.available == availability::later) {
    return R"({"not":{},"description":)" +
           json(std::string(rule.doc) + " Not available in this version.") + "}";
  }
  auto schemas = value_schemas(rule);
  if (!rule.words.empty()) {
    schemas.push_back(words_schema(rule.words));
  }
  if (needs_variable(rule)) {
    schemas.emplace_back(variable_schema);
  }
  if (!options_under(rule.path).empty()) {
    // Of a choice, all other keys are names with values of the option.
    bool const has_names = rule.form == option_form::one_or_choice;
    schemas.push_back("{" + members_schema(rule.path, has_names ? any_of(schemas) : "false") + "}");
  }
  auto whole = any_of(schemas);
  switch (rule.form) {
    case option_form::one: break;
    case option_form::list: whole = array_of(whole); break;
    case option_form::one_or_list: whole = any_of({whole, array_of(whole)}); break;
    case option_form::named: whole = map_of(whole); break;
    case option_form::named_or_file:
      whole = any_of({map_of(whole), R"({"type":"object","properties":{"file":{"type":"string",)"
                                     R"("minLength":1}},"required":["file"],)"
                                     R"("additionalProperties":false})"});
      break;
    case option_form::one_or_choice: break;
    case option_form::one_or_shares:
      whole = any_of({whole, map_of(R"({"anyOf":[{"type":"integer","minimum":0},)" +
                                    std::string(variable_schema) + "]}")});
      break;
    case option_form::patterns: whole = any_of({whole, map_of(whole)}); break;
  }
  auto const left_out = rule.when_left_out.empty()
                            ? std::string()
                            : " Default: " + std::string(rule.when_left_out) + ".";
  return R"({"description":)" + json(std::string(rule.doc) + left_out) + initial + "," +
         whole.substr(1);
}

// ---- reference ----

/// How the path is written for people: `policies.NAME.quota`, `routes[].match`.
auto written_path(option const& rule) -> std::string {
  auto const dot = rule.path.rfind('.');
  if (dot == std::string_view::npos) {
    return std::string(rule.path);
  }
  auto const& parent = option_at(rule.path.substr(0, dot));
  auto out = written_path(parent);
  if (parent.form == option_form::named || parent.form == option_form::named_or_file) {
    out += ".NAME";
  } else if (parent.form == option_form::list || parent.form == option_form::one_or_list) {
    out += "[]";
  }
  return out + "." + std::string(rule.key());
}

auto written_values(option const& rule) -> std::string {
  auto out = allowed_values(rule, "`");
  if (rule.type != option_type::section && !options_under(rule.path).empty()) {
    out += "; or a mapping";
  }
  switch (rule.form) {
    case option_form::one: break;
    case option_form::list:
      out = (rule.type == option_type::section ? "a list of " : "a list of: ") + out;
      break;
    case option_form::one_or_list: out += "; or a list"; break;
    case option_form::named: out = "a mapping from names to: " + out; break;
    case option_form::named_or_file:
      out = "a mapping from names to: " + out + "; or `{file: FILE}`";
      break;
    case option_form::one_or_choice: break;
    case option_form::one_or_shares: out += "; or a mapping from such names to shares"; break;
    case option_form::patterns: out += "; or a mapping from patterns"; break;
  }
  return out;
}

/// A bar would end the cell of a table.
auto cell(std::string text) -> std::string {
  for (auto at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) {
    text.insert(at, "\\");
  }
  return text;
}

auto written_default(option const& rule) -> std::string {
  if (!rule.when_left_out.empty()) {
    return std::string(rule.when_left_out);
  }
  if (rule.available == availability::required) {
    return "required";
  }
  return rule.initial.empty() ? "none" : "`" + std::string(rule.initial) + "`";
}

}  // namespace

auto config_json_schema() -> std::string {
  return R"({"$schema":"https://json-schema.org/draft/2020-12/schema",)"
         "\n"
         R"("$id":"urn:tidegate:configuration",)"
         "\n"
         R"("title":"Configuration of Tidegate",)"
         "\n" +
         std::string(definitions) + members_schema("") + "}\n";
}

auto config_reference() -> std::string {
  std::string out =
      "# Configuration\n"
      "\n"
      "Here you look up every option of the configuration file: what it does, its default, and "
      "when "
      "to change it.\n"
      "\n"
      "<!-- Generated: `tidegate schema --markdown > docs/reference/config.md`. -->\n"
      "\n"
      "The configuration is one YAML file. `tidegate check -c FILE` finds mistakes and says where "
      "they are;\n"
      "`tidegate schema` prints a JSON Schema for editors. Unknown keys, duplicate keys and "
      "invalid "
      "values are\n"
      "errors and never ignored. Paths of files are relative to the folder of the configuration. "
      "Anchors and\n"
      "aliases are allowed, merge keys and tags are not.\n"
      "\n"
      "In a value, `${NAME}` stands for an environment variable and `${file:PATH}` for the text of "
      "a "
      "file without\n"
      "its last newline; `$${` is a plain `${`. `tidegate check`, the log and the admin API show "
      "what is written,\n"
      "never the value. See [Variables and included "
      "files](../guide/gateway.md#variables-and-included-files).\n"
      "\n"
      "In the names below, `[]` stands for an entry of a list and `NAME` for a name that you "
      "choose. A duration\n"
      "is a number with `ms`, `s`, `m`, `h` or `d`. A size is a number of bytes, or a number with "
      "`KiB`, `MiB`,\n"
      "`GiB` or `TiB`. A reload (SIGHUP) applies every change, except where an option says that it "
      "needs a restart.\n";
  std::string later;
  for (auto const& rule : options()) {
    if (rule.available == availability::later) {
      later += "- `" + written_path(rule) + "`: " + std::string(rule.doc) + "\n";
      continue;
    }
    if (rule.path.find('.') == std::string_view::npos) {
      out += "\n## `" + std::string(rule.path) +
             "`\n\n| option | allowed | default | meaning |\n|---|---|---|---|\n";
    }
    out += "| `" + written_path(rule) + "` | " + cell(written_values(rule)) + " | " +
           written_default(rule) + " | " + cell(std::string(rule.doc)) +
           (rule.at_start ? " A change needs a restart." : "") + " |\n";
  }
  if (!later.empty()) {
    out +=
        "\n## Not available in this version\n\nThese names are reserved for later versions. A file "
        "that has one of them is refused.\n\n" +
        later;
  }
  return out;
}

}  // namespace tidegate::gateway
