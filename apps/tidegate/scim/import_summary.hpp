// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scim/import_journal.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace tidegate::app {

/// What an import says at its end.
struct import_summary {
  settled_counts const& counts;
  std::uint64_t replayed = 0;
  std::uint64_t retries = 0;
  std::chrono::duration<double> took{};
  std::string rejects;  ///< the file; empty when there are none
  std::optional<error_text> error;
  bool is_ok = false;
  bool is_interrupted = false;
  bool is_resumable = false;
};

/// A line of JSON for standard output.
[[nodiscard]] auto to_json(import_summary const& summary) -> std::string;
/// Lines of text for standard error.
[[nodiscard]] auto to_text(import_summary const& summary) -> std::string;

}  // namespace tidegate::app
