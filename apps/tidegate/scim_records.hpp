// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scim_settings.hpp"

#include <tidegate/base/result.hpp>
#include <tidegate/scim/csv.hpp>
#include <tidegate/scim/json.hpp>

#include <cstddef>
#include <cstdint>
#include <istream>
#include <optional>
#include <string>

namespace tidegate::app {

/// One resource of a file.
struct scim_record {
  std::uint64_t line = 0;  ///< on which it begins, from 1
  std::string text;        ///< as it stands there, without the end of the line
  /// The resource, or what is wrong with the line.
  result<scim::json, std::string> resource;
};

/// Reads a file of resources: lines of JSON, or CSV with a header. Empty lines are left out.
class scim_record_reader {
 public:
  scim_record_reader(std::istream& from, scim_format format) : from_(&from), format_(format) {}

  /// Nothing at the end. An error is one behind which nothing can be read; it says the line.
  [[nodiscard]] auto next() -> result<std::optional<scim_record>, std::string>;

 private:
  [[nodiscard]] auto next_line() -> result<std::optional<scim_record>, std::string>;
  [[nodiscard]] auto next_row() -> result<std::optional<scim_record>, std::string>;
  [[nodiscard]] auto fault(std::string_view what) const -> std::unexpected<std::string>;
  [[nodiscard]] auto read_more() -> bool;

  std::istream* from_;
  scim_format format_;
  std::uint64_t line_ = 1;  // that begins at at_
  std::string buffer_;
  std::size_t at_ = 0;
  bool is_begun_ = false;
  std::optional<scim::csv_header> header_;
};

}  // namespace tidegate::app
