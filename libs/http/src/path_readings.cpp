// SPDX-License-Identifier: Apache-2.0
#include <tidegate/http/path_readings.hpp>

#include <tidegate/http/target.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#ifdef __SSE2__
#include <emmintrin.h>

#include <bit>
#endif

namespace tidegate::http {

namespace {

constexpr auto npos = std::string_view::npos;

/// Which escapes a reader takes for separators.
enum class decoding : std::uint8_t { none, slashes, slashes_and_backslashes };
constexpr std::array decodings = {decoding::none, decoding::slashes,
                                  decoding::slashes_and_backslashes};

/// When a reader drops what follows ";".
enum class stripping : std::uint8_t { never, before_decoding, after_decoding };
constexpr std::array strippings = {stripping::never, stripping::before_decoding,
                                   stripping::after_decoding};

/// Whether one that readers differ about begins at `i`, which is "/", ";" or "%".
[[nodiscard]] auto is_ambiguous_at(std::string_view path, std::size_t i) noexcept -> bool {
  switch (path[i]) {
    case ';': return true;
    case '/': return i + 1 < path.size() && path[i + 1] == '/';
    case '%': {
      auto const escape = path.substr(i, 3);
      return escape == "%2F" || escape == "%5C" || escape == "%3B";
    }
    default: return false;
  }
}

[[nodiscard]] auto decoded(std::string_view path, decoding how) -> std::string {
  std::string out;
  out.reserve(path.size());
  while (!path.empty()) {
    auto const percent = std::min(path.find('%'), path.size());
    out.append(path.substr(0, percent));
    path.remove_prefix(percent);
    auto const escape = path.substr(0, 3);
    bool const is_backslash = how == decoding::slashes_and_backslashes && escape == "%5C";
    if (escape == "%2F" || is_backslash) {
      out.push_back('/');
    } else if (escape == "%3B") {
      out.push_back(';');
    } else {
      out.append(escape);
    }
    path.remove_prefix(escape.size());
  }
  return out;
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
  std::size_t i = 0;
#ifdef __SSE2__
  for (; normal_path.size() - i >= 17; i += 16) {
    auto const* const at = normal_path.data() + i;
    auto const bytes = _mm_loadu_si128(reinterpret_cast<__m128i const*>(at));
    auto const next = _mm_loadu_si128(reinterpret_cast<__m128i const*>(at + 1));
    auto const slash = _mm_set1_epi8('/');
    auto const found =
        _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(';')),
                                  _mm_cmpeq_epi8(bytes, _mm_set1_epi8('%'))),
                     _mm_and_si128(_mm_cmpeq_epi8(bytes, slash), _mm_cmpeq_epi8(next, slash)));
    for (auto mask = static_cast<unsigned>(_mm_movemask_epi8(found)); mask != 0; mask &= mask - 1) {
      if (is_ambiguous_at(normal_path, i + static_cast<std::size_t>(std::countr_zero(mask)))) {
        return true;
      }
    }
  }
#endif
  for (; i < normal_path.size(); ++i) {
    if (is_ambiguous_at(normal_path, i)) {
      return true;
    }
  }
  return false;
}

auto find_other_reading(std::string_view normal_path,
                        std::function<bool(std::string_view)> const& is_wanted) -> bool {
  auto const is_wanted_other = [&](std::string_view reading) {
    return reading != normal_path && is_wanted(reading);
  };
  for (auto const how : decodings) {
    if ((how == decoding::slashes && normal_path.find("%2F") == npos &&
         normal_path.find("%3B") == npos) ||
        (how == decoding::slashes_and_backslashes && normal_path.find("%5C") == npos)) {
      continue;
    }
    for (auto const when : strippings) {
      if (when == stripping::before_decoding &&
          (how == decoding::none || normal_path.find(';') == npos)) {
        continue;  // as after decoding, or as never
      }
      std::string path(normal_path);
      if (when == stripping::before_decoding) {
        path = without_parameters(path);
      }
      if (how != decoding::none) {
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

}  // namespace tidegate::http
