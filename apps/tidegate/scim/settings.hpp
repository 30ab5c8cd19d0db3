// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/http/field.hpp>

#include "client/client_settings.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace tidegate::app {

enum class scim_format : std::uint8_t { jsonl, csv };

/// What `scim export` and `scim import` both take.
struct scim_settings : client_settings, token_settings {
  std::string url;
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

struct backup_settings {
  std::string config;  ///< the file that says where the directory is
  std::string from;    ///< or the directory itself
  std::string to;
};

/// Runs `tidegate scim export` and returns its exit status.
///
/// Resources go to FILE.partial, one line of JSON each. FILE.state has the place of the walk and
/// how much of FILE.partial belongs to it; it is written when that much is on the disk. When all is
/// there, FILE.partial becomes FILE, or FILE is made of it, and FILE.state goes.
[[nodiscard]] auto run_scim_export(export_settings const& settings) -> int;

/// Runs `tidegate scim import` and returns its exit status.
///
/// FILE.import is the journal: a line that says what is imported, then one for each line of FILE
/// that is settled. The Idempotency-Key of a request is made of the journal's first line, the
/// number of its first line and its content, so what was under way when the program ended is sent
/// again as the same request.
[[nodiscard]] auto run_scim_import(import_settings const& settings) -> int;

/// Runs `tidegate scim backup` and returns its exit status.
[[nodiscard]] auto run_scim_backup(backup_settings const& settings) -> int;

/// The fields of every request: those of `-H`, and the token. Throws CLI::ValidationError.
[[nodiscard]] auto scim_fields_of(scim_settings const& settings) -> std::vector<http::field>;

}  // namespace tidegate::app
