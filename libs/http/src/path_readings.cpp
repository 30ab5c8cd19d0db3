// SPDX-License-Identifier: Apache-2.0
#include <tidegate/http/path_readings.hpp>

#include <tidegate/http/target.hpp>

#include "octets.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#ifdef __SSE2__
#include <emmintrin.h>

#include <bit>
#endif

namespace tidegate::TIDEGATE_ABI::http {

namespace {

constexpr auto npos = std::string_view::npos;

/// Which escapes a reader decodes before it looks for a path.
struct decoding {
  bool plain = false;        // those of octets that may stand in a segment as they are
  bool slashes = false;      // %2F to a separator
  bool backslashes = false;  // %5C to one
};
constexpr std::array<decoding, 6> decodings = {{{},
                                                {.plain = true},
                                                {.slashes = true},
                                                {.plain = true, .slashes = true},
                                                {.slashes = true, .backslashes = true},
                                                {true, true, true}}};

/// When a reader drops what follows ";".
enum class stripping : std::uint8_t { never, before_decoding, after_decoding };
constexpr std::array strippings = {stripping::never, stripping::before_decoding,
                                   stripping::after_decoding};

constexpr std::string_view slash = "%2F";
constexpr std::string_view backslash = "%5C";

/// The octet of the escape at the beginning of `text`, if it may stand in a segment as it is: a
/// sub-delim, ":" or "@" (RFC 3986, section 3.3). A normal path has no escapes of unreserved
/// octets.
[[nodiscard]] auto plain_octet(std::string_view text) noexcept -> std::optional<char> {
  auto const octet = octets::escaped(text, 0);
  bool const is_plain = octet && (octets::is_sub_delim(*octet) || *octet == ':' || *octet == '@');
  return is_plain ? octet : std::nullopt;
}

/// Whether one that readers differ about begins at `i`, which is "/", ";" or "%".
[[nodiscard]] auto is_ambiguous_at(std::string_view path, std::size_t i) noexcept -> bool {
  switch (path[i]) {
    case ';': return true;
    case '/': return i + 1 < path.size() && path[i + 1] == '/';
    case '%': {
      auto const escape = path.substr(i, 3);
      return escape == slash || escape == backslash || plain_octet(escape);
    }
    default: return false;
  }
}

void append_decoded(std::string& out, std::string_view path, decoding how) {
  out.reserve(out.size() + path.size());
  while (!path.empty()) {
    auto const percent = std::min(path.find('%'), path.size());
    out.append(path.substr(0, percent));
    path.remove_prefix(percent);
    auto const escape = path.substr(0, 3);
    auto const octet = how.plain ? plain_octet(escape) : std::nullopt;
    if ((how.slashes && escape == slash) || (how.backslashes && escape == backslash)) {
      out.push_back('/');
    } else if (octet) {
      out.push_back(*octet);
    } else {
      out.append(escape);
    }
    path.remove_prefix(escape.size());
  }
}

[[nodiscard]] auto decoded(std::string_view path, decoding how) -> std::string {
  std::string out;
  append_decoded(out, path, how);
  return out;
}

/// Whether the path has every kind of escape that is decoded so; otherwise another way of decoding
/// comes to the same.
[[nodiscard]] auto has_all_of(std::string_view path, decoding how) -> bool {
  bool const has_backslash = path.find(backslash) != npos;
  return (!how.plain || decoded(path, {.plain = true}) != path) &&
         (!how.slashes || path.find(slash) != npos || (how.backslashes && has_backslash)) &&
         (!how.backslashes || has_backslash);
}

[[nodiscard]] auto without_parameters(std::string_view path) -> std::string {
  std::string out;
  out.reserve(path.size());
  while (!path.empty()) {
    auto const semicolon = std::min(path.find(';'), path.size());
    out.append(path.substr(0, semicolon));
    path.remove_prefix(std::min(path.find('/', semicolon), path.size()));
  }
  return out;
}

[[nodiscard]] auto with_merged_slashes(std::string_view path) -> std::string {
  std::string out(path);
  out.erase(
      std::unique(out.begin(), out.end(), [](char a, char b) { return a == '/' && b == '/'; }),
      out.end());
  return out;
}

/// What is left when dot segments are removed; a path that cannot be read so stays as it is.
[[nodiscard]] auto without_dot_segments(std::string_view path) -> std::string {
  std::string out;
  if (!append_normal_path(out, path)) {
    out.assign(path);
  }
  return out;
}

}  // namespace

auto may_be_read_otherwise(std::string_view normal_path) noexcept -> bool {
#ifdef __SSE2__
  // `bytes` begin at `i`; `next` has for each of them the one behind it.
  auto const is_ambiguous_among = [normal_path](std::size_t i, __m128i bytes, __m128i next) {
    auto const separator = _mm_set1_epi8('/');
    auto const found = _mm_or_si128(
        _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(';')),
                     _mm_cmpeq_epi8(bytes, _mm_set1_epi8('%'))),
        _mm_and_si128(_mm_cmpeq_epi8(bytes, separator), _mm_cmpeq_epi8(next, separator)));
    for (auto mask = static_cast<unsigned>(_mm_movemask_epi8(found)); mask != 0; mask &= mask - 1) {
      if (is_ambiguous_at(normal_path, i + static_cast<std::size_t>(std::countr_zero(mask)))) {
        return true;
      }
    }
    return false;
  };
  auto const load = [](char const* at) {
    return _mm_loadu_si128(reinterpret_cast<__m128i const*>(at));
  };
  auto const* const data = normal_path.data();
  auto const size = normal_path.size();
  for (std::size_t i = 0; size - i >= 17; i += 16) {
    if (is_ambiguous_among(i, load(data + i), load(data + i + 1))) {
      return true;
    }
  }
  std::array<char, 16> short_path{};
  auto const* last = short_path.data();
  if (size >= short_path.size()) {
    last = data + size - short_path.size();  // some of it is looked at again
  } else {
    normal_path.copy(short_path.data(), size);
  }
  auto const bytes = load(last);
  return is_ambiguous_among(size - std::min(size, short_path.size()), bytes,
                            _mm_srli_si128(bytes, 1));
#else
  for (std::size_t i = 0; i < normal_path.size(); ++i) {
    if (is_ambiguous_at(normal_path, i)) {
      return true;
    }
  }
  return false;
#endif
}

void append_plain_path(std::string& out, std::string_view normal_path) {
  append_decoded(out, normal_path, {.plain = true});
}

auto find_other_reading(std::string_view normal_path,
                        std::function<bool(std::string_view)> const& is_wanted) -> bool {
  auto const is_wanted_other = [&](std::string_view reading) {
    return reading != normal_path && is_wanted(reading);
  };
  for (auto const how : decodings) {
    if (!has_all_of(normal_path, how)) {
      continue;
    }
    bool const decodes = how.plain || how.slashes;
    for (auto const when : strippings) {
      if (when == stripping::before_decoding && (!decodes || normal_path.find(';') == npos)) {
        continue;  // as after decoding, or as never
      }
      std::string path(normal_path);
      if (when == stripping::before_decoding) {
        path = without_parameters(path);
      }
      if (decodes) {
        path = decoded(path, how);
      }
      if (when == stripping::after_decoding) {
        if (path.find(';') == npos) {
          continue;
        }
        path = without_parameters(path);
      }
      if (is_wanted_other(path)) {
        return true;
      }
      auto const merged = with_merged_slashes(path);
      bool const has_dots = !is_normal_path(path);
      if (merged != path && (is_wanted_other(merged) ||
                             (has_dots && is_wanted_other(without_dot_segments(merged))))) {
        return true;
      }
      if (has_dots) {
        auto const normal = without_dot_segments(path);
        if (is_wanted_other(normal) || is_wanted_other(with_merged_slashes(normal))) {
          return true;
        }
      }
    }
  }
  return false;
}

}  // namespace tidegate::TIDEGATE_ABI::http
