// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the texts of a problem details object: what is written is valid JSON, and reading it
// back gives the members in the order in which they were written, with their texts as they were but
// for U+FFFD where they are not UTF-8. The name of an extension member is taken only if it may be
// one.
#include "check.hpp"

#include <tidegate/http/problem.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace tidegate::http;
using tidegate::fuzz::check;

// ---- UTF-8, decoded to code points and encoded again, as the Encoding standard has it ----

void append_code_point(std::string& out, std::uint32_t c) {
  auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
    return;
  }
  int const following = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  put((following == 1 ? 0xc0U : following == 2 ? 0xe0U : 0xf0U) | c >> (6 * following));
  for (int i = following - 1; i >= 0; --i) {
    put(0x80 | (c >> (6 * i) & 0x3f));
  }
}

auto replaced(std::string_view text) -> std::string {
  constexpr std::uint32_t replacement = 0xfffd;
  std::string out;
  std::uint32_t code_point = 0;
  int needed = 0;
  unsigned lower = 0x80;
  unsigned upper = 0xbf;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned const byte = static_cast<unsigned char>(text[i]);
    if (needed == 0) {
      if (byte < 0x80) {
        append_code_point(out, byte);
      } else if (byte >= 0xc2 && byte <= 0xdf) {
        needed = 1;
        code_point = byte & 0x1f;
      } else if (byte >= 0xe0 && byte <= 0xef) {
        lower = byte == 0xe0 ? 0xa0 : lower;
        upper = byte == 0xed ? 0x9f : upper;
        needed = 2;
        code_point = byte & 0xf;
      } else if (byte >= 0xf0 && byte <= 0xf4) {
        lower = byte == 0xf0 ? 0x90 : lower;
        upper = byte == 0xf4 ? 0x8f : upper;
        needed = 3;
        code_point = byte & 0x7;
      } else {
        append_code_point(out, replacement);
      }
      continue;
    }
    bool const follows = byte >= lower && byte <= upper;
    lower = 0x80;
    upper = 0xbf;
    if (!follows) {
      needed = 0;
      append_code_point(out, replacement);
      --i;  // may begin something itself
      continue;
    }
    code_point = code_point << 6 | (byte & 0x3f);
    if (--needed == 0) {
      append_code_point(out, code_point);
    }
  }
  if (needed != 0) {
    append_code_point(out, replacement);
  }
  return out;
}

// ---- JSON: objects of strings, integers, booleans and arrays of strings, without white space ----

struct member {
  std::string name;
  char type = 's';                 // string, number, boolean or array
  std::vector<std::string> texts;  // one, but for an array
  auto operator==(member const&) const -> bool = default;
};

class json_reader {
 public:
  explicit json_reader(std::string_view text) : rest_(text) {}

  auto object() -> std::vector<member> {
    std::vector<member> members;
    expect('{');
    if (!take('}')) {
      do {
        member next;
        next.name = string();
        expect(':');
        value(next);
        members.push_back(std::move(next));
      } while (take(','));
      expect('}');
    }
    return members;
  }

  auto string() -> std::string {
    std::string out;
    expect('"');
    while (!take('"')) {
      char const c = any();
      check(static_cast<unsigned char>(c) >= 0x20, "a control character is escaped");
      if (c == '\\') {
        escape(out);
      } else {
        out.push_back(c);
      }
    }
    return out;
  }

  void end() const { check(rest_.empty(), "nothing follows"); }

 private:
  void value(member& out) {
    if (at('"')) {
      out.texts.push_back(string());
    } else if (take('[')) {
      out.type = 'a';
      do {
        out.texts.push_back(string());
      } while (take(','));
      expect(']');
    } else if (at('t') || at('f')) {
      out.type = 'b';
      out.texts.emplace_back(at('t') ? "true" : "false");
      for (char c : out.texts.front()) {
        expect(c);
      }
    } else {
      out.type = 'n';
      std::string digits;
      if (take('-')) {
        digits.push_back('-');
      }
      bool const zero = at('0');
      auto const before = digits.size();
      while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') {
        digits.push_back(any());
      }
      check(digits.size() > before && (!zero || digits.size() == before + 1), "a number is one");
      out.texts.push_back(std::move(digits));
    }
  }

  void escape(std::string& out) {
    constexpr std::string_view names = "\"\\/bfnrt";
    constexpr std::string_view values = "\"\\/\b\f\n\r\t";
    char const c = any();
    if (auto const simple = names.find(c); simple != std::string_view::npos) {
      out.push_back(values[simple]);
      return;
    }
    check(c == 'u', "an escape is one");
    std::uint32_t unit = 0;
    for (int i = 0; i < 4; ++i) {
      auto const digit = std::string_view("0123456789abcdef").find(any());
      check(digit != std::string_view::npos, "four hexadecimal digits follow");
      unit = unit << 4 | static_cast<std::uint32_t>(digit);
    }
    check(unit < 0xd800 || unit > 0xdfff, "no surrogate is escaped");
    append_code_point(out, unit);
  }

  [[nodiscard]] auto at(char c) const -> bool { return rest_.starts_with(c); }
  auto take(char c) -> bool {
    if (!at(c)) {
      return false;
    }
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) { check(take(c), "the JSON text goes on as it must"); }
  auto any() -> char {
    check(!rest_.empty(), "the JSON text is complete");
    char const c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  std::string_view rest_;
};

// ---- what to write ----

class input {
 public:
  explicit input(std::string_view bytes) : rest_(bytes) {}

  [[nodiscard]] auto empty() const -> bool { return rest_.empty(); }
  auto byte() -> std::uint8_t {
    if (rest_.empty()) {
      return 0;
    }
    auto const value = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  auto integer() -> std::uint64_t {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) {
      value = value << 8 | byte();
    }
    return value;
  }
  /// A byte for the length, then that many of what is left. Copied, so that a look behind it is
  /// seen.
  auto text() -> std::vector<char> {
    auto const size = std::min<std::size_t>(byte(), rest_.size());
    std::vector<char> value(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(size));
    rest_.remove_prefix(size);
    return value;
  }

 private:
  std::string_view rest_;
};

auto view(std::vector<char> const& text) -> std::string_view {
  return {text.data(), text.size()};
}

auto may_be_a_name(std::string_view text) -> bool {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  auto const rest = std::string(letters) + "0123456789_-";
  return text.size() >= 3 && letters.find(text[0]) != std::string_view::npos &&
         text.find_first_not_of(rest) == std::string_view::npos && text != "type" &&
         text != "title" && text != "status" && text != "detail" && text != "instance";
}

void check_string(std::string_view text) {
  std::string out;
  tidegate::json::append_string(out, text);
  check(out.size() <= 6 * text.size() + 2, "a string has at most six characters a byte and two");
  check(replaced(out) == out, "a string is UTF-8");
  json_reader reader(out);
  check(reader.string() == replaced(text), "a string reads back as its text");
  reader.end();
}

void check_problem(input in) {
  std::vector<member> expected;
  auto expect_text = [&expected](std::string_view name, std::string_view text) {
    if (!text.empty()) {
      expected.push_back({std::string(name), 's', {replaced(text)}});
    }
  };
  auto const type = in.text();
  auto const title = in.text();
  auto const detail = in.text();
  auto const instance = in.text();
  int const status_byte = in.byte();
  int const status = status_byte == 0 ? 0 : 100 + status_byte % 2 * 250 + status_byte % 250;
  expect_text("type", view(type));
  expect_text("title", view(title));
  if (status != 0) {
    expected.push_back({"status", 'n', {std::to_string(status)}});
  }
  expect_text("detail", view(detail));
  expect_text("instance", view(instance));

  std::string const before = "{\"x\":[\"";
  auto out = before;
  problem_writer writer(out, {view(type), view(title), status, view(detail), view(instance)});
  while (!in.empty()) {
    auto const kind = in.byte() % 5;
    auto const wanted = in.text();
    auto const made = extension_name::make(view(wanted));
    check(made.has_value() == may_be_a_name(view(wanted)), "a name is taken if it may be one");
    auto const name = made.has_value() ? *made : extension_name("other");
    auto const name_text = std::string(name.text());
    auto const number = in.integer();
    switch (kind) {
      case 0: {
        auto const text = in.text();
        writer.extension(name, view(text));
        expect_text(name_text, view(text));
        break;
      }
      case 1:
        writer.extension(name, number);
        expected.push_back({name_text, 'n', {std::to_string(number)}});
        break;
      case 2:
        writer.extension(name, static_cast<std::int64_t>(number));
        expected.push_back({name_text, 'n', {std::to_string(static_cast<std::int64_t>(number))}});
        break;
      case 3:
        writer.extension(name, number % 2 == 0);
        expected.push_back({name_text, 'b', {number % 2 == 0 ? "true" : "false"}});
        break;
      default: {
        std::vector<std::vector<char>> texts(number % 4);
        std::vector<std::string_view> views;
        member array{name_text, 'a', {}};
        for (auto& text : texts) {
          text = in.text();
          views.push_back(view(text));
          array.texts.push_back(replaced(view(text)));
        }
        writer.extension(name, views);
        if (!array.texts.empty()) {
          expected.push_back(std::move(array));
        }
      }
    }
  }
  check(out.starts_with(before), "what was there is still there");
  json_reader reader(std::string_view(out).substr(before.size()));
  check(replaced(out) == out, "the object is UTF-8");
  check(reader.object() == expected, "the object reads back as its members");
  reader.end();
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) -> int {
  std::vector<char> const exact(data, data + size);
  check_string(view(exact));
  check_problem(input(view(exact)));
  return 0;
}
