// SPDX-License-Identifier: Apache-2.0
#include "directory_redo.hpp"

#include <array>

namespace tidegate::store_sqlite {

namespace {

void write_number(std::string& to, std::uint64_t value) {
  std::array<char, 8> octets{};
  for (std::size_t i = 0; i < octets.size(); ++i) {
    octets[i] = static_cast<char>(value >> (8 * i));
  }
  to.append(octets.data(), octets.size());
}

void write_text(std::string& to, std::string_view text) {
  write_number(to, text.size());
  to += text;
}

[[nodiscard]] auto read_number(std::string_view& from, std::uint64_t& value) -> bool {
  if (from.size() < 8) {
    return false;
  }
  value = 0;
  for (int i = 7; i >= 0; --i) {
    value = (value << 8) | static_cast<unsigned char>(from[static_cast<std::size_t>(i)]);
  }
  from.remove_prefix(8);
  return true;
}

[[nodiscard]] auto read_text(std::string_view& from, std::string_view& text) -> bool {
  std::uint64_t size = 0;
  if (!read_number(from, size) || size > from.size()) {
    return false;
  }
  text = from.substr(0, size);
  from.remove_prefix(size);
  return true;
}

}  // namespace

void write_redo(std::string& to, redo const& one) {
  to += static_cast<char>(one.done);
  write_number(to, one.rid);
  write_number(to, one.member);
  write_text(to, one.tenant);
  write_text(to, one.type);
  write_text(to, one.id);
  write_text(to, one.text);
}

auto read_redo(std::string_view& from) -> std::optional<redo> {
  if (from.empty() || from.front() < static_cast<char>(redo::what::insert) ||
      from.front() > static_cast<char>(redo::what::remove_members)) {
    return std::nullopt;
  }
  redo one{.done = static_cast<redo::what>(from.front())};
  from.remove_prefix(1);
  bool const whole = read_number(from, one.rid) && read_number(from, one.member) &&
                     read_text(from, one.tenant) && read_text(from, one.type) &&
                     read_text(from, one.id) && read_text(from, one.text);
  return whole ? std::optional(one) : std::nullopt;
}

}  // namespace tidegate::store_sqlite
