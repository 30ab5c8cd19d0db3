// SPDX-License-Identifier: Apache-2.0
#include <tidegate/idempotency/key.hpp>

#include <tidegate/base/ascii.hpp>
#include <tidegate/base/hex.hpp>
#include <tidegate/sf/reader.hpp>

#include <algorithm>

namespace tidegate::TIDEGATE_ABI::idempotency {

namespace {

/// RFC 9562, section 5.7. `uuid` is one, in lower case.
[[nodiscard]] auto is_version_7(std::string_view uuid) noexcept -> bool {
  return uuid[14] == '7' && std::string_view("89ab").find(uuid[19]) != std::string_view::npos;
}

/// The milliseconds that a UUID of version 7 begins with.
[[nodiscard]] auto made_at(std::string_view uuid) noexcept -> wall_time {
  std::int64_t milliseconds = 0;
  for (char c : uuid.substr(0, 13)) {
    if (c != '-') {
      milliseconds = milliseconds * 16 + hex_value(c);
    }
  }
  return wall_time(std::chrono::milliseconds(milliseconds));
}

[[nodiscard]] auto check_age(std::string_view uuid, std::chrono::milliseconds age_max,
                             wall_time now) noexcept -> result<void, key_error> {
  auto const made = made_at(uuid);
  if (made > now + key_clock_skew_max) {
    return failure(key_error{key_fault::from_the_future, 0});
  }
  // Not `now - age_max`, which an age without end would take below the first moment.
  if (now - made > age_max) {
    return failure(key_error{key_fault::too_old, 0});
  }
  return {};
}

/// An Item whose value is a String (draft-07, section 2.1). The dialect is the one that the draft
/// refers to; for a String no other would differ, but parameters may not be Dates or Display
/// Strings.
[[nodiscard]] auto read_string(std::string_view value) -> result<sf::bare_item_view, key_error> {
  if (!value.starts_with('"')) {
    return failure(key_error{key_fault::not_a_string, 0});
  }
  sf::basic_reader<sf::dialect::rfc8941> reader(sf::field_type::item, value);
  auto event = reader.next();
  auto const string = reader.value();
  while (!sf::is_final(event)) {  // the parameters
    event = reader.next();
  }
  if (event == sf::event::failure) {
    return failure(key_error{key_fault::syntax, reader.error().offset});
  }
  return string;
}

/// What clients send who do not know the draft: the key without quotes, then parameters if there
/// are any. A comma is refused: it is what two lines look like when a proxy has joined them.
[[nodiscard]] auto quoted(std::string_view value, std::string& scratch)
    -> result<std::string_view, key_error> {
  auto const end = std::min(value.find(';'), value.size());
  auto const refused = [](char c) {
    return c <= ' ' || c >= 0x7f || c == '"' || c == '\\' || c == ',';  // from 0x80 on: negative
  };
  auto const* const found = std::find_if(value.begin(), value.begin() + end, refused);
  if (found != value.begin() + end) {
    return failure(
        key_error{key_fault::invalid_character, static_cast<std::size_t>(found - value.begin())});
  }
  scratch = '"';
  scratch += value.substr(0, end);
  scratch += '"';
  scratch += value.substr(end);
  return scratch;
}

}  // namespace

auto is_uuid(std::string_view text) noexcept -> bool {
  if (text.size() != 36) {
    return false;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    bool const hyphen = i == 8 || i == 13 || i == 18 || i == 23;
    if (hyphen ? text[i] != '-' : hex_value(text[i]) < 0) {
      return false;
    }
  }
  return true;
}

auto name_of(key_format format) noexcept -> std::string_view {
  switch (format) {
    case key_format::uuid: return "uuid";
    case key_format::uuidv7: return "uuidv7";
    case key_format::any: break;
  }
  return "any";
}

auto code_of(key_error const& error) noexcept -> problem_code {
  switch (error.fault) {
    case key_fault::missing: return problem_code::key_missing;
    case key_fault::too_old: return problem_code::key_too_old;
    default: return problem_code::key_malformed;
  }
}

auto to_string(key_error const& error) -> std::string {
  auto const at_offset = [&](std::string_view what) {
    return std::string(what) + " at offset " + std::to_string(error.offset) + ".";
  };
  switch (error.fault) {
    case key_fault::missing: return "The request has no Idempotency-Key header.";
    case key_fault::repeated: return "The request has more than one Idempotency-Key header.";
    case key_fault::not_a_string:
      return "The Idempotency-Key is not a String: it must be in double quotes, such as "
             R"("8e03978e-40d5-43e8-bc93-6894a57f9324".)";
    case key_fault::syntax:
      return at_offset("The Idempotency-Key is not a String in double quotes by RFC 8941: wrong");
    case key_fault::invalid_character:
      return at_offset("The Idempotency-Key has a character that is not allowed");
    case key_fault::empty: return "The Idempotency-Key is empty.";
    case key_fault::too_long:
      return "The Idempotency-Key has more than " + std::to_string(error.offset) + " characters.";
    case key_fault::not_a_uuid: return "The Idempotency-Key is not a UUID.";
    case key_fault::not_a_uuidv7: return "The Idempotency-Key is not a UUID of version 7.";
    case key_fault::too_old: return "The Idempotency-Key was made too long ago: make a new one.";
    case key_fault::from_the_future: break;
  }
  return "The Idempotency-Key says that it was made in the future.";
}

auto read_key(std::span<std::string_view const> lines, key_options const& options, wall_time now,
              std::string& scratch) -> result<std::string_view, key_error> {
  if (lines.empty()) {
    return failure(key_error{key_fault::missing, 0});
  }
  if (lines.size() > 1) {
    return failure(key_error{key_fault::repeated, 0});
  }
  auto value = trimmed(lines.front());
  if (value.empty()) {
    return failure(key_error{key_fault::empty, 0});
  }
  auto const blanks = static_cast<std::size_t>(value.data() - lines.front().data());
  bool const bare = options.accept_unquoted && !value.starts_with('"');
  // Offsets are those of the line, from which a bare key differs by a quote before and behind it.
  auto const in_line = [&](key_error error) {
    error.offset += blanks;
    error.offset -= bare && error.fault == key_fault::syntax ? 2 : 0;
    return failure(error);
  };
  if (bare) {
    auto const made = quoted(value, scratch);
    if (!made) {
      return in_line(made.error());
    }
    value = *made;
  }
  auto const string = read_string(value);
  if (!string) {
    return in_line(string.error());
  }
  // Not `text(scratch)`: a bare key lies in `scratch` itself, and has nothing to decode.
  auto key = string->raw();
  if (string->is_encoded()) {
    scratch.resize(string->decoded_size_max());
    scratch.resize(string->decode(scratch));
    key = scratch;
  }
  if (key.empty()) {
    return failure(key_error{key_fault::empty, 0});
  }
  if (key.size() > options.length_max) {
    return failure(key_error{key_fault::too_long, options.length_max});
  }
  if (options.format == key_format::any) {
    return key;
  }

  bool const uuidv7 = options.format == key_format::uuidv7;
  if (!is_uuid(key)) {
    return failure(key_error{uuidv7 ? key_fault::not_a_uuidv7 : key_fault::not_a_uuid, 0});
  }
  if (std::any_of(key.begin(), key.end(), is_upper)) {
    std::string lower(key);
    for (char& c : lower) {
      c = is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
    }
    scratch = lower;
    key = scratch;
  }
  if (uuidv7) {
    if (!is_version_7(key)) {
      return failure(key_error{key_fault::not_a_uuidv7, 0});
    }
    if (options.age_max) {
      TIDEGATE_TRY_VOID(check_age(key, *options.age_max, now));
    }
  }
  return key;
}

}  // namespace tidegate::TIDEGATE_ABI::idempotency
