// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scim/settings.hpp"

#include <tidegate/base/result.hpp>
#include <tidegate/json/value.hpp>
#include <tidegate/scim/csv.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tidegate::app {

/// One resource of a file.
struct scim_record {
  std::uint64_t line = 0;  ///< on which it begins, from 1
  std::string text;        ///< as it stands there, without the end of the line
  /// The resource, or what is wrong with the line.
  result<json::value, std::string> resource;
};

/// Reads a file of resources: lines of JSON, or CSV with a header. Empty lines are left out. A line
/// that is there is given, also when the next one takes its time.
class scim_record_reader {
 public:
  /// `wait` is called before something is read from the descriptor `from`: it returns true
  /// when something can be read, and false when reading is to end.
  scim_record_reader(int from, scim_format format, std::function<bool()> wait)
      : from_(from), format_(format), wait_(std::move(wait)) {}

  /// Nothing at the end, or when waiting was given up. An error is one behind which nothing can be
  /// read; it says the line.
  [[nodiscard]] auto next() -> result<std::optional<scim_record>, std::string>;

 private:
  [[nodiscard]] auto next_line() -> result<std::optional<scim_record>, std::string>;
  [[nodiscard]] auto next_row() -> result<std::optional<scim_record>, std::string>;
  [[nodiscard]] auto fault(std::string_view what) const -> std::unexpected<std::string>;
  enum class more : std::uint8_t { some, none, given_up };
  [[nodiscard]] auto read_more() -> result<more, std::string>;

  int from_;
  scim_format format_;
  std::function<bool()> wait_;
  std::uint64_t line_ = 1;  // that begins at at_
  std::string buffer_;
  std::size_t at_ = 0;
  bool is_begun_ = false;
  std::optional<scim::csv_header> header_;
};

}  // namespace tidegate::app
