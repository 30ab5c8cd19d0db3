// SPDX-License-Identifier: Apache-2.0
#include "vectors.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace tidegate::TIDEGATE_ABI::sf::test {

using detail::json_value;

namespace {

/// JSON text has code points; a raw field line has bytes: each code point below 256 is one.
auto to_bytes(std::string const& utf8) -> std::string {
  std::string bytes;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    auto const lead = static_cast<unsigned char>(utf8[i]);
    if (lead < 0x80) {
      bytes.push_back(utf8[i]);
    } else if (lead == 0xc2 || lead == 0xc3) {
      bytes.push_back(static_cast<char>((lead << 6 | (utf8[++i] & 0x3f)) & 0xff));
    } else {
      ADD_FAILURE() << "a code point above 255 in a raw line";
    }
  }
  return bytes;
}

auto join(std::vector<std::string> const& lines) -> std::string {
  std::vector<std::string_view> views(lines.begin(), lines.end());
  std::string scratch;
  return std::string(combine(views, scratch));
}

auto lines_of(json_value const& array) -> std::vector<std::string> {
  std::vector<std::string> lines;
  for (auto const& element : array.elements) {
    lines.push_back(to_bytes(element.text));
  }
  return lines;
}

auto is_true(json_value const* json) -> bool {
  return json != nullptr && json->text == "true";
}

/// The three kinds of fields behind one set of names.
template <dialect D, field_type T>
struct field;
template <dialect D>
struct field<D, field_type::item> {
  static auto parse(std::string_view text) { return parse_item<D>(text); }
  static auto from(json_value const& json) { return detail::item_from_json<D>(json); }
  static auto to_json(basic_item<D> const& value) { return item_to_json<D>(value); }
  static auto from_text(std::string_view json) { return item_from_json<D>(json); }
};
template <dialect D>
struct field<D, field_type::list> {
  static auto parse(std::string_view text) { return parse_list<D>(text); }
  static auto from(json_value const& json) { return detail::list_from_json<D>(json); }
  static auto to_json(basic_list<D> const& value) { return list_to_json<D>(value); }
  static auto from_text(std::string_view json) { return list_from_json<D>(json); }
};
template <dialect D>
struct field<D, field_type::dictionary> {
  static auto parse(std::string_view text) { return parse_dictionary<D>(text); }
  static auto from(json_value const& json) { return detail::dictionary_from_json<D>(json); }
  static auto to_json(basic_dictionary<D> const& value) { return dictionary_to_json<D>(value); }
  static auto from_text(std::string_view json) { return dictionary_from_json<D>(json); }
};

template <class F>
void with_field(dialect d, field_type t, F f) {
  with_dialect(d, [&](auto chosen) {
    constexpr dialect D = decltype(chosen)::value;
    switch (t) {
      case field_type::item: f(field<D, field_type::item>{}); break;
      case field_type::list: f(field<D, field_type::list>{}); break;
      case field_type::dictionary: f(field<D, field_type::dictionary>{}); break;
    }
  });
}

/// What the pull reader makes of the value: nothing, or where it failed.
auto read_to_end(dialect d, field_type t, std::string_view text) -> std::optional<parse_error> {
  std::optional<parse_error> error;
  with_dialect(d, [&](auto chosen) {
    basic_reader<decltype(chosen)::value> reader(t, text);
    for (auto e = reader.next(); e != event::end; e = reader.next()) {
      if (e == event::failure) {
        error = reader.error();
        return;
      }
    }
  });
  return error;
}

}  // namespace

auto read_vectors(std::string const& path) -> std::vector<vector_record> {
  std::ifstream file(path, std::ios::binary);
  std::string const text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  auto json = detail::parse_json(text);
  if (!json.has_value()) {
    ADD_FAILURE() << path << ": " << json.error().message << " at " << json.error().offset;
    return {};
  }
  std::vector<vector_record> records;
  for (auto const& object : json->elements) {
    vector_record record;
    record.name = object.member("name")->text;
    record.source = std::filesystem::path(path).filename().string() + ": " + record.name;
    record.type = field_type_named(object.member("header_type")->text).value();
    if (auto const* raw = object.member("raw")) {
      record.has_raw = true;
      record.raw = lines_of(*raw);
    }
    record.must_fail = is_true(object.member("must_fail"));
    record.can_fail = is_true(object.member("can_fail"));
    if (auto const* expected = object.member("expected")) {
      record.expected = *expected;
    }
    if (auto const* canonical = object.member("canonical")) {
      record.canonical = join(lines_of(*canonical));
    } else if (record.has_raw && !record.must_fail) {
      record.canonical = join(record.raw);
    }
    if (auto const* names = object.member("dialects")) {
      for (auto const& name : names->elements) {
        record.dialects.push_back(dialect_named(name.text).value());
      }
    }
    if (auto const* offset = object.member("offset")) {
      record.offset = std::stoul(offset->text);
    }
    records.push_back(std::move(record));
  }
  return records;
}

void run_parse(vector_record const& record, dialect d, run_counts& counts) {
  SCOPED_TRACE(record.source + " in " + std::string(name_of(d)));
  auto const value = join(record.raw);
  // A copy without a byte of room behind it: reading past the end is what a sanitizer will see.
  std::vector<char> const exact(value.begin(), value.end());
  auto const text = std::string_view(exact.data(), exact.size());
  auto const reader_error = read_to_end(d, record.type, text);
  with_field(d, record.type, [&](auto kind) {
    auto const parsed = kind.parse(text);
    ASSERT_EQ(parsed.has_value(), !reader_error.has_value())
        << "reader and tree disagree: " << value;
    if (!parsed.has_value()) {
      EXPECT_EQ(parsed.error(), *reader_error);
      EXPECT_TRUE(record.must_fail || record.can_fail)
          << "refused: " << value << ": " << to_string(parsed.error());
      if (record.offset.has_value()) {
        EXPECT_EQ(parsed.error().offset, *record.offset)
            << value << ": " << to_string(parsed.error());
      }
      ++counts.failed_as_they_must;
      return;
    }
    ASSERT_FALSE(record.must_fail) << "accepted: " << value;
    ASSERT_TRUE(record.expected.has_value());
    auto const expected = kind.from(*record.expected);
    ASSERT_TRUE(expected.has_value()) << expected.error().message;
    EXPECT_TRUE(*parsed == *expected) << "parsed as " << kind.to_json(*parsed);
    auto const again = kind.from_text(kind.to_json(*parsed));
    ASSERT_TRUE(again.has_value()) << again.error().message;
    EXPECT_TRUE(*again == *parsed) << "through JSON: " << kind.to_json(*again);
    ++counts.parsed;
  });
}

void run_serialise(vector_record const& record, dialect d, run_counts& counts) {
  SCOPED_TRACE(record.source + " in " + std::string(name_of(d)));
  ASSERT_TRUE(record.expected.has_value());
  with_field(d, record.type, [&](auto kind) {
    auto const value = kind.from(*record.expected);
    if (!value.has_value()) {
      EXPECT_TRUE(record.must_fail) << "not made: " << value.error().message;
      ++counts.refused_as_they_must;
      return;
    }
    ASSERT_FALSE(record.must_fail) << "made and written as " << serialized(*value);
    ASSERT_TRUE(record.canonical.has_value());
    EXPECT_EQ(serialized(*value), *record.canonical);
    ++counts.serialised;
  });
}

}  // namespace tidegate::TIDEGATE_ABI::sf::test
