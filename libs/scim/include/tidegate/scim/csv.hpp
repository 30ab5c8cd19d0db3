// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/json/value.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

/// Resources as rows of CSV (RFC 4180), and back.
///
/// A column is an attribute in the notation of SCIM: `userName`, `name.givenName`,
/// `urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department`. Values of multi-valued
/// attributes are counted: `emails.0.value`. A column whose name ends with ` (json)` has JSON
/// texts: those with numbers, with texts that would be read as something else, and attributes with
/// more values than there may be columns for them. An empty cell has no value, `true` and `false`
/// are booleans.
namespace tidegate::TIDEGATE_ABI::scim {

/// How wide a table may be.
struct csv_limits {
  std::size_t columns_max = 10'000;
  std::size_t values_max = 10;  ///< of an attribute with columns of their own
};

/// The columns of a table, found by going through all its resources before the first row is
/// written.
class csv_columns {
 public:
  explicit csv_columns(csv_limits limits = {}) : limits_(limits) {}

  /// Has columns for `resource` too. False when there would be too many of them.
  [[nodiscard]] auto add(json::value const& resource) -> bool;

  /// Appends the names, and the values of a resource that was added before; columns of one
  /// attribute stand side by side. Each line has its CRLF. A table without columns has no header.
  void append_header(std::string& out);
  void append_row(std::string& out, json::value const& resource);

 private:
  struct column {
    std::string name;
    std::size_t group = 0;  // of the attribute
    std::size_t place = 0;  // from left to right, once they are in order
    bool as_json = false;
  };

  template <class Leaf>
  void visit(std::string& path, json::value const& value, char separator, Leaf const& leaf);
  template <class Leaf>
  void visit_members(json::value const& resource, Leaf const& leaf);
  void put_in_order();

  csv_limits limits_;
  std::map<std::string, std::size_t, std::less<>> by_name_;  // in lower case
  std::map<std::string, std::size_t, std::less<>> groups_;
  std::vector<column> columns_;
  std::set<std::string, std::less<>> whole_;  // attributes with too many values
  std::vector<std::size_t> order_;
  bool is_in_order_ = false;
};

/// The cells of one record, and how many octets and line feeds it takes.
struct csv_record {
  std::vector<std::string> cells;
  std::size_t octets = 0;
  std::size_t lines = 0;
};

/// What is wrong with a table.
enum class csv_fault : std::uint8_t {
  quote_in_plain_cell,
  text_behind_quote,
  unterminated_quote,
  too_few_cells,
  too_many_cells,
  invalid_name,     ///< of a column
  name_twice,       ///< of two columns
  attribute_twice,  ///< a column is part of what another one has
  invalid_json,     ///< in a cell
};

/// One line for people.
[[nodiscard]] auto message(csv_fault fault) noexcept -> std::string_view;

/// Reads the record that `text` begins with. Nothing when it is not whole, which cannot be when it
/// `is_last` and not empty. Lines end with CRLF or LF.
[[nodiscard]] auto parse_csv_record(std::string_view text, bool is_last)
    -> result<std::optional<csv_record>, csv_fault>;

/// What the columns of a table mean.
class csv_header {
 public:
  /// The columns that a header row names; the error says which is wrong.
  [[nodiscard]] static auto of(std::vector<std::string> const& names)
      -> result<csv_header, csv_fault>;

  /// The resource that a row stands for.
  [[nodiscard]] auto resource_of(std::vector<std::string> const& cells) const
      -> result<json::value, csv_fault>;

 private:
  struct column {
    std::vector<std::string> path;
    bool as_json = false;
  };
  std::vector<column> columns_;
};

}  // namespace tidegate::TIDEGATE_ABI::scim
