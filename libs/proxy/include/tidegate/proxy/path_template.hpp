// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/config/edge.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Paths and locations that are made of the path of a request: `rewrite` and `redirect`.
///
/// All take a normal path (see `http::append_normal_path`) that the pattern of the route matches.
/// What a client wrote stays as it came, percent-encoded, so that nothing of it can end a line, a
/// path or an authority. Nothing here allocates when `out` has room.
namespace tidegate::gateway {

/// Whether some servers find a dot segment in `path`: `..`, and what is one when `%2F` and `%5C`
/// are taken for slashes, or when what follows ";" in a segment is left out.
[[nodiscard]] auto may_have_dot_segments(std::string_view path) noexcept -> bool;

/// A text with captures of a pattern: `{1}` is what its first `*` stands for, `{**}` what `**` at
/// its end does, without the slash before it.
class path_template {
 public:
  path_template() = default;
  /// A capture that `pattern` does not have is empty; the reader of configurations refuses it.
  path_template(std::string_view text, std::string_view pattern);

  /// Appends the text for `path`.
  void append(std::string& out, std::string_view path) const;
  /// The text before the first capture.
  [[nodiscard]] auto beginning() const noexcept -> std::string_view {
    return pieces_.empty() ? std::string_view() : std::string_view(pieces_.front().text);
  }

 private:
  struct piece {
    std::string text;
    std::optional<std::size_t> segment{};  // of the path, behind the text
    bool to_end = false;                   // and all that follow it
  };

  std::vector<piece> pieces_;
};

/// `rewrite` of a route, ready for use.
class path_rewrite {
 public:
  path_rewrite(rewrite_config const& settings, std::string_view pattern);

  /// Appends the path that the upstream sees, which begins with one slash. False, and `out` stays
  /// as it is, for a path that some servers would take for one outside of what the operator wrote.
  [[nodiscard]] auto append(std::string& out, std::string_view path) const -> bool;

 private:
  std::string strip_;  // without a slash at its end, as is `add_`
  std::string add_;
  std::optional<path_template> path_;
};

/// `redirect` of a route, ready for use.
class redirect_location {
 public:
  redirect_location(std::string_view to, std::string_view pattern);

  /// Appends the value of Location, with `query`, which begins with "?" or is empty. False, and
  /// `out` stays as it is, when the authority would not be the one that the operator wrote, or the
  /// path would have dot segments for some.
  [[nodiscard]] auto append(std::string& out, std::string_view path, std::string_view query) const
      -> bool;

 private:
  path_template to_;
  std::size_t origin_octets_ = 0;  // scheme and authority, which no capture is part of
};

}  // namespace tidegate::gateway
