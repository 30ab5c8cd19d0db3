// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/client_settings.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace tidegate::app {

enum class scim_format : std::uint8_t { jsonl, csv };

/// What `scim export` and `scim import` both take.
struct scim_settings : client_settings {
  std::string url;
  std::string token;
  std::string token_file;
  bool resume = false;
  bool json = false;
};

struct export_settings : scim_settings {
  std::string filter;
  std::string sort_by;
  std::vector<std::string> attributes;
  std::vector<std::string> excluded_attributes;
  std::uint32_t page_size = 500;
  scim_format format = scim_format::jsonl;
  std::string output = "-";
};

/// What becomes of a resource that is there already.
enum class on_conflict : std::uint8_t { reject, skip, replace };

struct import_settings : scim_settings {
  std::string file;
  scim_format format = scim_format::jsonl;
  std::string rejects;
  on_conflict conflict = on_conflict::reject;
  std::uint32_t parallel = 8;
  std::uint32_t bulk = 250;  ///< lines in one request, where the server has /Bulk; 0: one
};

/// The fields of every request: those of `-H`, and the token. Throws CLI::ValidationError.
[[nodiscard]] auto scim_fields_of(scim_settings const& settings) -> std::vector<client::field>;

}  // namespace tidegate::app
