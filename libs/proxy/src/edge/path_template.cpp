// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/path_template.hpp>

#include <tidegate/base/ascii.hpp>
#include <tidegate/base/hex.hpp>

#include <algorithm>
#include <charconv>

namespace tidegate::gateway {

namespace {

constexpr auto npos = std::string_view::npos;

/// An octet of a path as the most generous of readers sees it.
struct read_octet {
  char octet;
  std::size_t size;  // of its text
};

[[nodiscard]] auto read_at(std::string_view path, std::size_t at) noexcept -> read_octet {
  if (path[at] == '%' && at + 2 < path.size()) {
    int const high = hex_value(path[at + 1]);
    int const low = hex_value(path[at + 2]);
    if (high >= 0 && low >= 0) {
      return {static_cast<char>(high * 16 + low), 3};
    }
  }
  return {path[at], 1};
}

/// What stands between two slashes of a path, from segment `number` on: to the next slash, or all
/// that follows.
[[nodiscard]] auto segment_of(std::string_view path, std::size_t number, bool to_end) noexcept
    -> std::string_view {
  std::size_t begin = 1;
  for (; number > 0; --number) {
    auto const slash = path.find('/', begin);
    if (slash == npos) {
      return {};
    }
    begin = slash + 1;
  }
  if (begin > path.size()) {
    return {};
  }
  return to_end ? path.substr(begin) : path.substr(begin, path.find('/', begin) - begin);
}

/// The segments of a pattern that captures stand for.
struct wildcards {
  std::vector<std::size_t> one;     // of `*`, in order
  std::optional<std::size_t> rest;  // of `**`

  explicit wildcards(std::string_view pattern) {
    std::size_t number = 0;
    for (std::size_t begin = 1; begin <= pattern.size(); ++number) {
      auto const end = std::min(pattern.find('/', begin), pattern.size());
      auto const segment = pattern.substr(begin, end - begin);
      if (segment == "**") {
        rest = number;
      } else if (segment == "*") {
        one.push_back(number);
      }
      begin = end + 1;
    }
  }

  /// The segment that a name between braces stands for.
  [[nodiscard]] auto find(std::string_view name) const -> std::optional<std::size_t> {
    if (name == "**") {
      return rest;
    }
    std::size_t number = 0;
    auto const [end, fault] = std::from_chars(name.data(), name.data() + name.size(), number);
    bool const is_known = fault == std::errc() && end == name.data() + name.size() && number > 0 &&
                          number <= one.size();
    return is_known ? std::optional(one[number - 1]) : std::nullopt;
  }
};

[[nodiscard]] auto without_last_slash(std::string_view prefix) -> std::string_view {
  while (prefix.ends_with('/')) {
    prefix.remove_suffix(1);
  }
  return prefix;
}

}  // namespace

auto may_have_dot_segments(std::string_view path) noexcept -> bool {
  std::size_t dots = 0;
  bool only_dots = false;  // since the last separator
  for (std::size_t i = 0; i < path.size();) {
    auto const [octet, size] = read_at(path, i);
    bool const is_separator = octet == '/' || octet == '\\';
    if ((is_separator || octet == ';') && only_dots && (dots == 1 || dots == 2)) {
      return true;
    }
    if (is_separator) {
      dots = 0;
      only_dots = true;
    } else if (octet == '.') {
      ++dots;
    } else {
      only_dots = false;
    }
    i += size;
  }
  return only_dots && (dots == 1 || dots == 2);
}

path_template::path_template(std::string_view text, std::string_view pattern) {
  wildcards const known(pattern);
  while (!text.empty()) {
    auto const open = text.find('{');
    auto const close = open == npos ? npos : text.find('}', open);
    auto& added =
        pieces_.emplace_back(piece{std::string(text.substr(0, close == npos ? npos : open))});
    if (close == npos) {
      return;
    }
    auto const name = text.substr(open + 1, close - open - 1);
    added.segment = known.find(name);
    added.to_end = name == "**";
    text.remove_prefix(close + 1);
  }
}

void path_template::append(std::string& out, std::string_view path) const {
  for (auto const& each : pieces_) {
    out.append(each.text);
    if (each.segment) {
      out.append(segment_of(path, *each.segment, each.to_end));
    }
  }
}

path_rewrite::path_rewrite(rewrite_config const& settings, std::string_view pattern)
    : strip_(without_last_slash(settings.strip_prefix)),
      add_(without_last_slash(settings.add_prefix)) {
  if (!settings.path.empty()) {
    path_.emplace(settings.path, pattern);
  }
}

auto path_rewrite::append(std::string& out, std::string_view path) const -> bool {
  auto const before = out.size();
  if (path_) {
    path_->append(out, path);
  } else {
    auto rest = path;
    if (!strip_.empty() && rest.starts_with(strip_) &&
        (rest.size() == strip_.size() || rest[strip_.size()] == '/')) {
      rest.remove_prefix(strip_.size());
    }
    out.append(add_).append(rest);
  }
  if (out.size() == before) {
    out.push_back('/');
  }
  auto const made = std::string_view(out).substr(before);
  // Two slashes are the beginning of an authority for some.
  if (!made.starts_with('/') || made.starts_with("//") || may_have_dot_segments(made)) {
    out.resize(before);
    return false;
  }
  return true;
}

redirect_location::redirect_location(std::string_view to, std::string_view pattern)
    : to_(to, pattern) {
  constexpr std::string_view before_authority = "://";
  auto const fixed = to_.beginning();
  auto const scheme_end = fixed.find(before_authority);
  if (scheme_end != npos && scheme_end > 0 &&
      std::ranges::all_of(fixed.substr(0, scheme_end), is_letter)) {
    origin_octets_ =
        std::min(fixed.find_first_of("/?#", scheme_end + before_authority.size()), fixed.size());
  }
}

auto redirect_location::append(std::string& out, std::string_view path,
                               std::string_view query) const -> bool {
  auto const before = out.size();
  to_.append(out, path);
  auto const rest = std::string_view(out).substr(before + origin_octets_);
  bool const has_own_origin = origin_octets_ != 0;
  auto const end_of_path = std::min(rest.find_first_of("?#"), rest.size());
  bool const stays = has_own_origin
                         ? rest.empty() || std::string_view("/?#").find(rest.front()) != npos
                         : rest.starts_with('/') && !rest.starts_with("//");
  if (!stays || rest.find('\\') != npos || may_have_dot_segments(rest.substr(0, end_of_path))) {
    out.resize(before);
    return false;
  }
  if (!query.empty()) {
    auto const fragment = std::min(out.find('#', before), out.size());
    bool const has_query = out.find('?', before) < fragment;
    out.insert(fragment, query);
    if (has_query) {
      out[fragment] = '&';
    }
  }
  return true;
}

}  // namespace tidegate::gateway
