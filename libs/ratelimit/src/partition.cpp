// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/partition.hpp>

#include <tidegate/base/ascii.hpp>
#include <tidegate/base/sha256.hpp>
#include <tidegate/http/field.hpp>
#include <tidegate/json/string.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <utility>

namespace tidegate::TIDEGATE_ABI::ratelimit {

namespace {

struct source_syntax {
  partition_source_kind kind;
  std::string_view name;
  bool has_name;                // "header:NAME"
  std::string_view for_people;  // what comes before the name, or all there is to say
};

constexpr std::array<source_syntax, 11> syntaxes = {{
    {partition_source_kind::client_ip, "client-ip", false, "the address of the client"},
    {partition_source_kind::header, "header", true, "the header field "},
    {partition_source_kind::query, "query", true, "the query parameter "},
    {partition_source_kind::cookie, "cookie", true, "the cookie "},
    {partition_source_kind::method, "method", false, "the method"},
    {partition_source_kind::host, "host", false, "the host"},
    {partition_source_kind::path, "path", false, "the path without the query"},
    {partition_source_kind::route, "route", false, "the route"},
    {partition_source_kind::principal, "principal", false, "the authenticated principal"},
    {partition_source_kind::plan, "plan", false, "the plan of the authenticated principal"},
    {partition_source_kind::attribute, "attribute", true, "the principal's attribute "},
}};

[[nodiscard]] auto syntax_of(partition_source_kind kind) noexcept -> source_syntax const& {
  return syntaxes[static_cast<std::size_t>(kind)];
}

/// "=" and "&" stand in a name only when they are encoded, and a "=" would make the line ambiguous.
[[nodiscard]] auto is_query_name_character(char c) noexcept -> bool {
  auto const byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte != 0x7f && c != '=' && c != '&';
}

/// Has the line of a source end where it is seen to end, whatever the value holds.
[[nodiscard]] auto cleaned(char c) noexcept -> char {
  return c == '\r' || c == '\n' || c == '\0' ? ' ' : c;
}

/// Cleans the characters from `p` to `end`. Eight at a time are seen to need it or, as nearly
/// always, not.
void clean(char* p, char const* end) noexcept {
  constexpr std::uint64_t ones = 0x0101'0101'0101'0101;
  for (; end - p >= 8; p += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, p, sizeof word);
    // The highest bit of an octet becomes 1 where it is below CR + 1.
    if (((word - ones * ('\r' + 1)) & ~word & ones << 7) != 0) {
      std::transform(p, p + 8, p, cleaned);
    }
  }
  std::transform(static_cast<char const*>(p), end, p, cleaned);
}

/// For the format of printf between single quotes of a shell.
void append_shell_format(std::string& out, std::string_view text) {
  for (char c : text) {
    switch (c) {
      case '\'': out += R"('\'')"; break;
      case '%': out += "%%"; break;
      case '\\': out += R"(\\)"; break;
      default: out += c;
    }
  }
}

/// The command that prints the partition key of a request in hexadecimal digits.
void append_shell_command(std::string& out, std::span<partition_source const> sources) {
  out += "printf '";
  for (auto const& source : sources) {
    append_shell_format(out, to_string(source));
    out += R"(=%s\n)";
  }
  out += '\'';
  for (std::size_t i = 0; i < sources.size(); ++i) {
    out += " \"$VALUE";
    out += sources.size() == 1 ? "" : std::to_string(i + 1);
    out += '"';
  }
  out += " | sha256sum | head -c 32";
}

void append_member(std::string& out, std::string_view name, std::string_view text) {
  out += ",\"";
  out += name;
  out += "\":";
  json::append_string(out, text);
}

}  // namespace

auto name_of(partition_source_kind kind) noexcept -> std::string_view {
  return syntax_of(kind).name;
}

auto to_string(partition_source const& source) -> std::string {
  std::string out(name_of(source.kind));
  if (syntax_of(source.kind).has_name) {
    out += ':';
    out += source.name;
  }
  return out;
}

auto to_string(partition_source_error const& error) -> std::string {
  auto const what = [&]() -> std::string_view {
    switch (error.fault) {
      case partition_source_fault::unknown_source:
        return "no such source; allowed are client-ip, header:NAME, query:NAME, cookie:NAME, "
               "method, "
               "host, path, route, principal, plan and attribute:NAME";
      case partition_source_fault::name_missing:
        return "the name is missing; allowed are header:NAME, query:NAME, cookie:NAME and "
               "attribute:NAME";
      case partition_source_fault::name_not_allowed:
        return "no name is allowed for this source; only header:NAME, query:NAME, cookie:NAME and "
               "attribute:NAME have one";
      case partition_source_fault::invalid_name_character:
        return "not allowed in the name of a field, cookie or attribute; allowed are letters, "
               "digits and "
               "!#$%&'*+-.^_`|~";
      case partition_source_fault::invalid_query_character:
        return "not allowed in the name of a query parameter; allowed is all but control "
               "characters, "
               "\"=\" and \"&\"";
    }
    return "unknown fault";
  }();
  return std::string(what) + " (at offset " + std::to_string(error.offset) + ")";
}

auto parse_partition_source(std::string_view text)
    -> result<partition_source, partition_source_error> {
  using enum partition_source_fault;
  auto const colon = text.find(':');
  auto const* const syntax = std::find_if(
      syntaxes.begin(), syntaxes.end(),
      [&](source_syntax const& candidate) { return candidate.name == text.substr(0, colon); });
  if (syntax == syntaxes.end()) {
    return failure(partition_source_error{unknown_source, 0});
  }
  if (!syntax->has_name) {
    if (colon != std::string_view::npos) {
      return failure(partition_source_error{name_not_allowed, colon});
    }
    return partition_source{syntax->kind};
  }
  if (colon == std::string_view::npos || colon + 1 == text.size()) {
    return failure(partition_source_error{name_missing, text.size()});
  }
  bool const is_query = syntax->kind == partition_source_kind::query;
  partition_source source{syntax->kind, std::string(text.substr(colon + 1))};
  for (std::size_t i = 0; i < source.name.size(); ++i) {
    char& c = source.name[i];
    if (is_query ? !is_query_name_character(c) : !http::is_token_character(c)) {
      return failure(partition_source_error{
          is_query ? invalid_query_character : invalid_name_character, colon + 1 + i});
    }
    if (syntax->kind == partition_source_kind::header) {
      c = to_lower(c);
    }
  }
  return source;
}

auto is_credential(partition_source const& source) -> bool {
  if (source.kind == partition_source_kind::cookie) {
    return true;
  }
  if (source.kind != partition_source_kind::header && source.kind != partition_source_kind::query) {
    return false;
  }
  // API-Key, api_key and apiKey are one name.
  std::string name;
  std::string words = "-";
  for (char const c : source.name) {
    bool const is_letter = c != '-' && c != '_' && c != '.';
    name.append(is_letter ? 1 : 0, to_lower(c));
    words += is_letter ? to_lower(c) : '-';
  }
  words += '-';
  // Rather one too many, such as "author", than one too few: names are not agreed upon. Those that
  // many other words contain, such as "business", have to stand alone.
  constexpr std::array<std::string_view, 14> parts = {
      "key",    "token",     "secret",     "pass", "pwd",  "auth",   "session",
      "sessid", "signature", "credential", "jwt",  "dpop", "cookie", "clientcert"};
  return name == "code" || words.contains("-sid-") || words.contains("-sig-") ||
         std::ranges::any_of(parts, [&](auto part) { return name.contains(part); });
}

auto name_of(partition_key_form form) noexcept -> std::string_view {
  switch (form) {
    case partition_key_form::none: return "none";
    case partition_key_form::hashed: return "hashed";
    case partition_key_form::plain: break;
  }
  return "plain";
}

partition_rule::partition_rule(std::vector<partition_source> sources, partition_key_form form)
    : sources_(std::move(sources)), form_(form) {
  beginnings_.reserve(sources_.size());
  for (auto const& source : sources_) {
    beginnings_.push_back(to_string(source) + '=');
  }
}

void partition_rule::append_partition(std::string& out,
                                      std::span<std::string_view const> values) const {
  assert(values.size() <= sources_.size());
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    append_source(out, i, i < values.size() ? values[i] : std::string_view());
  }
}

void partition_rule::append_source(std::string& out, std::size_t source,
                                   std::string_view value) const {
  assert(source < sources_.size());
  std::string_view const begin = beginnings_[source];
  auto const before = out.size();
  auto const size = before + begin.size() + value.size() + 1;
  out.resize_and_overwrite(size, [&](char* data, std::size_t) {
    auto* const p = data + before + begin.copy(data + before, begin.size());
    auto* const end = p + value.copy(p, value.size());
    clean(p, end);
    *end = '\n';
    return size;
  });
}

void partition_rule::append_key(std::string& out, std::string_view partition) const {
  if (form_ == partition_key_form::hashed) {
    auto const digest = sha256::of(partition);
    out.append(reinterpret_cast<char const*>(digest.data()), hashed_size);
  }
  if (form_ == partition_key_form::plain) {
    for (std::size_t i = 0; i < beginnings_.size(); ++i) {
      auto const end = partition.find('\n');
      assert(partition.starts_with(beginnings_[i]) && end != std::string_view::npos);
      out += i == 0 ? "" : "\n";
      out += partition.substr(beginnings_[i].size(), end - beginnings_[i].size());
      partition.remove_prefix(end + 1);
    }
  }
}

auto describe(partition_rule const& rule) -> std::string {
  auto const sources = rule.sources();
  std::string out;
  if (sources.empty()) {
    out = "All requests count together.";
  } else {
    out = sources.size() == 1 ? "Requests count together when this is the same in them: "
                              : "Requests count together when all of these are the same in them: ";
    for (std::size_t i = 0; i < sources.size(); ++i) {
      out += i == 0 ? "" : ", ";
      out += syntax_of(sources[i].kind).for_people;
      out += sources[i].name;
    }
    out += ". A missing value counts as an empty one.";
  }
  switch (rule.form()) {
    case partition_key_form::none: out += " Responses do not have the partition key."; break;
    case partition_key_form::hashed:
      out += " The partition key (pk) is the first " + std::to_string(partition_rule::hashed_size) +
             " bytes of the SHA-256 of a text";
      out += sources.empty()
                 ? " without any characters"
                 : " with one line for each of these, in this order, that ends with a line "
                   "feed";
      out += "; in hexadecimal digits: ";
      append_shell_command(out, sources);
      out +=
          ". CR, LF and NUL in a value count as a space. The key does not hide values of which "
          "there are few, such as IPv4 addresses: all who see it can try them.";
      break;
    case partition_key_form::plain:
      out +=
          " The partition key (pk) is their values in this order, with a line feed between two. "
          "CR, LF and NUL in a value count as a space.";
      break;
  }
  return out;
}

auto describe_as_json(partition_rule const& rule) -> std::string {
  std::string out = R"({"sources":[)";
  for (auto const& source : rule.sources()) {
    out += out.ends_with('[') ? "" : ",";
    json::append_string(out, to_string(source));
  }
  out += ']';
  append_member(out, "partition-key", name_of(rule.form()));
  if (rule.form() == partition_key_form::hashed) {
    append_member(out, "digest", "sha-256");
    out += ",\"digest-octets\":" + std::to_string(partition_rule::hashed_size);
    append_member(out, "line", "SOURCE=VALUE\n");
  }
  if (rule.form() == partition_key_form::plain) {
    append_member(out, "separator", "\n");
  }
  out += '}';
  return out;
}

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
