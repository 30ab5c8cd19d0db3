// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/json/error.hpp>
#include <tidegate/json/value.hpp>

#include <cstddef>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::json {

/// How much of it is read.
struct limits {
  std::size_t octets_max = std::size_t{1} << 20;
  int depth_max = 32;
};

/// Reads a JSON text (RFC 8259). An object with two names that differ at most in case is refused,
/// and so are escaped surrogates without a partner. Memory is at most 60 times the text; the time
/// is linear but for sorting names.
[[nodiscard]] auto parse(std::string_view text, limits const& limits = {}) -> result<value, error>;

/// A value at the beginning of a text, and how many octets it takes.
struct prefix {
  json::value value;
  std::size_t octets = 0;
};

/// Reads the string, number or word (`true`, `false`, `null`) at the beginning of `text` and stops
/// behind it.
[[nodiscard]] auto parse_literal(std::string_view text) -> result<prefix, error>;

}  // namespace tidegate::TIDEGATE_ABI::json
