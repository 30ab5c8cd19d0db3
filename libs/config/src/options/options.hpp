// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The one table of what a configuration may say. The reader checks by it, takes its defaults and
/// fills the members that it names; the JSON Schema and the reference are written from it.
namespace tidegate::gateway {

enum class option_type : std::uint8_t {
  section,  ///< a mapping and nothing else
  boolean,
  integer,
  duration,
  size,
  quota,    ///< a number, or a size
  percent,  ///< a number with a percent sign
  choice,
  file,
  store,   ///< as `forms` lists them
  digest,  ///< of SHA-256, in hexadecimal
  scalar,  ///< any single value: numbers and booleans are taken as they are written
  text,    ///< all others, as `allowed` and `pattern` say
};

enum class option_form : std::uint8_t {
  one,
  list,
  one_or_list,
  named,          ///< a mapping from names to values
  named_or_file,  ///< the same, or `{file: FILE}`
  one_or_choice,  ///< a value, or a mapping with keys of its own and names with such values
  one_or_shares,  ///< a value, or a mapping from such values to numbers
  patterns,       ///< a value, or a mapping from `default` and `METHOD /path` to values
};

enum class availability : std::uint8_t {
  optional,
  required,
  later,  ///< promised, refused until it exists
};

/// Which routes may have an option.
enum class route_kind : std::uint8_t {
  all,
  scim,   ///< those with `service: scim`
  pages,  ///< those with `service: scim` or `bridge`
};

class option_reader;
struct section;

/// The address of it stands for a type.
template <class>
inline constexpr char type_tag = 0;

/// One row. An option whose path begins with that of another and a dot is a key of its mapping;
/// what is not a section may then be either a value or a mapping.
struct option {
  std::string_view path{};
  option_type type = option_type::section;
  option_form form = option_form::one;
  availability available = availability::optional;
  std::string_view initial{};  ///< the default as it would be written; empty: none
  std::string_view words{};    ///< allowed words with `|` between, for a choice or besides a value
  /// Of a store, with `|` between: how each begins, up to its first capital letter, and what
  /// follows.
  std::string_view forms{};
  std::string_view later{};    ///< beginnings of values that are promised, refused until they exist
  std::string_view allowed{};  ///< what a value is, for people, where its type does not say it
  std::string_view pattern{};  ///< that JSON Schema has for a value; empty: any text
  std::int64_t min = 0;        ///< of numbers, sizes in octets and durations in milliseconds
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
  std::string_view doc{};
  /// What holds without the option, for people, where `initial` does not say it.
  std::string_view when_left_out{};
  /// A change is taken over by the next start, not by a reload.
  bool at_start = false;
  /// Of a choice: its words are in the other order than the values of the member.
  bool reversed = false;
  route_kind routes = route_kind::all;
  /// The mapping that the option stood in before it got its path: it is still read there, with a
  /// warning.
  std::string_view former_parent{};
  /// What reads the option into an object of the type with this tag; none: the reader does by hand.
  void const* owner = nullptr;
  void (*read)(option_reader& in, section const& from, option const& rule, void* owner) = nullptr;

  /// The last part of the path.
  [[nodiscard]] auto key() const -> std::string_view;
};

[[nodiscard]] auto options() -> std::span<option const>;

/// The row of that path, which must exist.
[[nodiscard]] auto option_at(std::string_view path) -> option const&;

/// The keys of the mapping at `path`, in the order of the table; "" is the file itself.
[[nodiscard]] auto options_under(std::string_view path) -> std::span<option const* const>;

/// The options that stood in the mapping at `path` before.
[[nodiscard]] auto options_formerly_under(std::string_view path) -> std::vector<option const*>;

/// Whether people look for a key in that mapping, "" for the file itself, that this version does
/// not have under any name.
[[nodiscard]] auto is_known_elsewhere(std::string_view parent, std::string_view key) -> bool;

/// What this version has in the place of a key that it does not have in that mapping; empty when
/// nothing is known.
[[nodiscard]] auto find_instead(std::string_view parent, std::string_view key) -> std::string_view;

/// What stands between the `|` of `words`, `forms` or `later`.
[[nodiscard]] auto split_words(std::string_view words) -> std::vector<std::string_view>;

/// How values of a form of a store begin: `sqlite:` of `sqlite:FILE`.
[[nodiscard]] auto beginning_of(std::string_view form) -> std::string_view;

/// What one value of the option may be, for people. What is written as it stands is put between
/// two `mark`s.
[[nodiscard]] auto allowed_values(option const& option, std::string_view mark = "") -> std::string;

}  // namespace tidegate::gateway
