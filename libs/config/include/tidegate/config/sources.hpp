// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tidegate::gateway {

/// What a configuration takes from outside of its text: `${NAME}`, `${file:PATH}` and `include`.
/// The reader does no I/O itself. Errors are the reason in a few words.
struct config_sources {
  /// The value of an environment variable; nothing when it is not set.
  std::function<std::optional<std::string>(std::string const& name)> variable;
  /// The content of a file, up to one octet more than `octets_max`.
  std::function<result<std::string, std::string>(std::string const& path, std::size_t octets_max)>
      file;
  /// The files that a pattern with `*`, `?` and `[...]` matches, in any order. A backslash stands
  /// before what is meant literally.
  std::function<result<std::vector<std::string>, std::string>(std::string const& pattern)> matching;
};

/// No variable is set, and there are no files.
[[nodiscard]] auto no_sources() -> config_sources;

/// What is read at most of one variable or of one `${file:PATH}`.
inline constexpr std::size_t variable_octets_max = 64 * 1024;

/// How deep files may include files, and how many files a configuration may have.
inline constexpr std::size_t include_depth_max = 8;
inline constexpr std::size_t include_files_max = 10'000;

}  // namespace tidegate::gateway
