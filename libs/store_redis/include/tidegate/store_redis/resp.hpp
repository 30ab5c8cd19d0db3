// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The protocol of Redis, version 3
/// (https://github.com/redis/redis-specifications/blob/master/protocol/RESP3.md), and version 2 as
/// far as a server may answer in it before it has agreed to version 3.
namespace tidegate::store_redis {

enum class resp_kind : std::uint8_t {
  null,
  simple_string,
  error,  ///< simple or blob
  integer,
  blob,  ///< or a verbatim string, without its format
  number,
  boolean,
  big_number,  ///< as text
  array,
  map,  ///< keys and values in turns
  set,
  push,  ///< belongs to no command
};

/// What a server answers. A string may have any octets.
struct resp_value {
  resp_kind kind = resp_kind::null;
  std::int64_t integer = 0;  ///< also of `boolean`: 0 or 1
  double number = 0;
  // NOLINTBEGIN(readability-redundant-member-init): so that they may be left out
  std::string text{};
  std::vector<resp_value> items{};
  // NOLINTEND(readability-redundant-member-init)

  [[nodiscard]] auto is_null() const noexcept -> bool { return kind == resp_kind::null; }
  [[nodiscard]] auto is_integer() const noexcept -> bool { return kind == resp_kind::integer; }
  [[nodiscard]] auto is_error() const noexcept -> bool { return kind == resp_kind::error; }
  [[nodiscard]] auto is_text() const noexcept -> bool {
    return kind == resp_kind::blob || kind == resp_kind::simple_string;
  }
  /// True for an error whose first word is `code`, such as NOSCRIPT.
  [[nodiscard]] auto is_error(std::string_view code) const noexcept -> bool {
    return is_error() && text.starts_with(code) &&
           (text.size() == code.size() || text[code.size()] == ' ');
  }
  auto operator==(resp_value const&) const -> bool = default;
};

/// What one answer may take. A server that sends more is not believed.
struct resp_limits {
  std::size_t depth_max = 8;                       ///< of aggregates in aggregates
  std::size_t values_max = 1 << 17;                ///< of an answer, itself included
  std::size_t octets_max = std::size_t{64} << 20;  ///< of an answer
  std::size_t line_octets_max = 64 << 10;          ///< of a simple string or error
};

enum class resp_fault : std::uint8_t {
  unknown_type,
  invalid_line,    ///< CR without LF, or LF without CR
  invalid_number,  ///< also one that does not fit, and a size below zero
  invalid_value,   ///< no boolean, no format of a verbatim string
  misplaced,       ///< a push within an answer, an attribute of nothing
  too_deep,
  too_many_values,
  too_long,
};

/// One line for people.
[[nodiscard]] auto message(resp_fault fault) noexcept -> std::string_view;

/// Why octets are not an answer, and at which octet of what was fed.
struct resp_error {
  resp_fault fault{};
  std::uint64_t offset = 0;
  auto operator==(resp_error const&) const -> bool = default;
};

/// Reads answers out of octets that come in pieces of any size. Takes time and memory in proportion
/// to what has come, whatever sizes it claims. Attributes are read and left out.
class resp_reader {
 public:
  explicit resp_reader(resp_limits limits = {}) : limits_(limits) {}

  void feed(std::string_view octets);
  /// The next whole answer; nothing: more octets are needed. After an error there are no more
  /// answers.
  [[nodiscard]] auto next() -> result<std::optional<resp_value>, resp_error>;

 private:
  struct frame {
    resp_value value;
    std::size_t left = 0;  // of the values in it
    bool is_attribute = false;
  };

  [[nodiscard]] auto rest() const noexcept -> std::string_view {
    return std::string_view(buffer_).substr(at_);
  }
  [[nodiscard]] auto fail(resp_fault fault, std::size_t place) -> std::unexpected<resp_error>;
  [[nodiscard]] auto take_line() -> result<std::optional<std::string_view>, resp_error>;
  [[nodiscard]] auto take_head(std::string_view line) -> result<void, resp_error>;
  [[nodiscard]] auto begin_blob(char type, std::string_view size_text, std::size_t at)
      -> result<void, resp_error>;
  [[nodiscard]] auto begin_aggregate(char type, std::string_view size_text, std::size_t at)
      -> result<void, resp_error>;
  [[nodiscard]] auto open(resp_kind kind, std::size_t size, bool is_attribute)
      -> result<void, resp_error>;
  [[nodiscard]] auto take_blob() -> result<bool, resp_error>;
  /// Puts a value where it belongs; what is whole with it is closed.
  void close(resp_value value);

  resp_limits limits_;
  std::string buffer_;
  std::size_t at_ = 0;        // in the buffer: what comes before was read
  std::size_t scanned_ = 0;   // behind `at_`: how much has no end of a line
  std::uint64_t before_ = 0;  // octets that were in the buffer once
  std::uint64_t begun_at_ = 0;
  std::size_t values_ = 0;
  std::vector<frame> open_;
  std::optional<resp_value> done_;
  std::optional<resp_value> blob_;  // its head was read
  bool is_verbatim_ = false;
  std::size_t blob_size_ = 0;
  std::optional<resp_error> error_;
};

/// One command, or several that are sent together and answered together, as it goes to a server.
class command {
 public:
  command() = default;
  command(std::initializer_list<std::string_view> words) {
    for (auto const word : words) {
      add(word);
    }
  }
  explicit command(std::span<std::string_view const> words) {
    for (auto const word : words) {
      add(word);
    }
  }

  auto add(std::string_view word) -> command&;
  auto add(std::int64_t number) -> command&;
  /// Has `next`, unless it is empty, follow by the same connection and with nothing in between. The
  /// answer is an array with that of each.
  auto then(command const& next) -> command&;

  /// How many commands these are.
  [[nodiscard]] auto count() const noexcept -> std::size_t {
    return finished_ + (words_ > 0 ? 1 : 0);
  }
  [[nodiscard]] auto octets() const noexcept -> std::size_t {
    return before_.size() + body_.size() + 16;
  }
  void append_to(std::string& out) const;

 private:
  std::string before_;        // whole commands
  std::size_t finished_ = 0;  // how many
  std::string body_;          // of the last one
  std::size_t words_ = 0;
};

}  // namespace tidegate::store_redis
