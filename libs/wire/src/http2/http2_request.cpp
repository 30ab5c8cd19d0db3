// SPDX-License-Identifier: Apache-2.0
#include "http2_request.hpp"

#include "grammar.hpp"
#include "scan.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/sf/reader.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace tidegate::TIDEGATE_ABI::wire::http2 {

namespace {

constexpr std::int64_t urgency_min = 0;
constexpr std::int64_t urgency_max = 7;

/// Field names are in lower case (section 8.2.1). `begin` is that of the buffer.
[[nodiscard]] auto is_name(char const* begin, std::string_view text) -> bool {
  auto const* const end = text.data() + text.size();
  auto const* p = scan::find<scan::unusual_in_name>(begin, text.data(), end);
  while (p != end && grammar::is(*p, grammar::lower_char)) {
    ++p;
  }
  return p == end && !text.empty();
}

/// No controls, and no white space around it (section 8.2.1).
[[nodiscard]] auto is_value(char const* begin, std::string_view text) -> bool {
  auto const* const end = text.data() + text.size();
  return text.empty() || (!is_blank(text.front()) && !is_blank(text.back()) &&
                          scan::find<scan::control>(begin, text.data(), end) == end);
}

/// As `==`, but quicker: the compiler knows how long the second one is.
template <std::size_t Size>
[[nodiscard]] auto is_same(std::string_view text, char const (&known)[Size]) -> bool {
  return text.size() == Size - 1 && std::memcmp(text.data(), known, Size - 1) == 0;
}

/// scheme (RFC 3986, section 3.1).
[[nodiscard]] auto is_scheme(std::string_view text) -> bool {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return is_letter_or_digit(c) || c == '+' || c == '-' || c == '.';
  });
}

/// What a field may not say, since it is about a connection of HTTP/1.1 (section 8.2.2).
[[nodiscard]] auto is_connection_specific(std::string_view name, std::string_view value) -> bool {
  switch (name.size()) {
    case 2: return is_same(name, "te") && !equal_ignoring_case(value, "trailers");
    case 7: return is_same(name, "upgrade");
    case 10: return is_same(name, "connection") || is_same(name, "keep-alive");
    case 16: return is_same(name, "proxy-connection");
    case 17: return is_same(name, "transfer-encoding");
    default: return false;
  }
}

/// What only HTTP/1.1 has of the handshake of a WebSocket (RFC 8441, section 5).
[[nodiscard]] auto is_of_other_handshake(std::string_view name) -> bool {
  return is_same(name, "sec-websocket-key") || is_same(name, "sec-websocket-accept");
}

}  // namespace

auto priority_of(std::string_view value) -> priority {
  priority said;
  sf::reader reader(sf::field_type::dictionary, value);
  auto e = reader.next();
  for (; !sf::is_final(e); e = reader.next()) {
    if (e != sf::event::item) {
      continue;
    }
    if (auto const urgency = reader.value().get_integer(); reader.key() == "u" && urgency &&
                                                           urgency->value() >= urgency_min &&
                                                           urgency->value() <= urgency_max) {
      said.urgency = static_cast<std::uint8_t>(urgency->value());
    } else if (auto const incremental = reader.value().get_boolean();
               reader.key() == "i" && incremental) {
      said.incremental = *incremental;
    }
  }
  return e == sf::event::failure ? priority{} : said;
}

auto is_malformed_field(std::string_view name, std::string_view value) -> bool {
  // Pseudo-header fields do not count as names.
  return !is_name(name.data(), name) || !is_value(value.data(), value) ||
         is_connection_specific(name, value);
}

void incoming_head::add(std::string_view name, std::string_view value, std::size_t octets_max) {
  octets_ += name.size() + value.size() + 4;
  if (octets_ > octets_max || malformed_) {
    return;
  }
  if (name.starts_with(':')) {
    add_pseudo(name, value);
    return;
  }
  regular_ = true;
  if (is_connection_specific(name, value)) {
    malformed_ = true;
  } else if (protocol_.is_there && is_of_other_handshake(name)) {
    return;
  } else if (is_same(name, "cookie")) {
    add_crumb(value);
  } else if (is_same(name, "host")) {
    add_host(value);
  } else {
    has_length_ = has_length_ || is_same(name, "content-length");
    add_line(name, value);
    if (is_same(name, "priority")) {
      priority_ = priority_of(value);
    }
  }
}

auto incoming_head::is_malformed() const -> bool {
  if (malformed_ || !method_.is_there) {
    return true;
  }
  auto const method = text_of(method_);
  if (protocol_.is_there) {  // RFC 8441, section 4
    if (method != "CONNECT" || !authority_.is_there || has_length_ ||
        !grammar::is_token(text_of(protocol_))) {
      return true;
    }
  } else if (method == "CONNECT") {  // section 8.5
    return scheme_.is_there || path_.is_there || !authority_.is_there;
  }
  auto const path = text_of(path_);
  return !is_scheme(text_of(scheme_)) || (!path.starts_with('/') && path != "*") ||
         !is_value(start_.data(), path);
}

auto incoming_head::parts(bool last) -> request_parts {
  if (!cookie_.empty()) {
    add_line("cookie", cookie_);
  }
  if (protocol_.is_there) {
    add_line("connection", "upgrade");
    add_line("upgrade", text_of(protocol_));
    return {"GET", text_of(path_), {lines_, sizes_}, true};
  }
  if (!last && !has_length_) {
    add_line("transfer-encoding", "chunked");
  }
  auto const method = text_of(method_);
  return {method, text_of(method == "CONNECT" ? authority_ : path_), {lines_, sizes_}};
}

void incoming_head::clear() {
  start_.clear();
  lines_.clear();
  cookie_.clear();
  sizes_.clear();
  method_ = scheme_ = path_ = authority_ = protocol_ = {};
  octets_ = 0;
  priority_.reset();
  has_length_ = false;
  has_host_ = false;
  regular_ = false;
  malformed_ = false;
}

/// They come first, and each once (section 8.3). The scheme says nothing that the connection does
/// not.
void incoming_head::add_pseudo(std::string_view name, std::string_view value) {
  auto* const to = is_same(name, ":method")      ? &method_
                   : is_same(name, ":path")      ? &path_
                   : is_same(name, ":authority") ? &authority_
                   : is_same(name, ":scheme")    ? &scheme_
                   : is_same(name, ":protocol")  ? &protocol_
                                                 : nullptr;
  bool const is_empty_authority = to == &authority_ && value.empty();
  if (to == nullptr || to->is_there || regular_ || is_empty_authority) {
    malformed_ = true;
    return;
  }
  *to = {start_.size(), value.size(), true};
  start_.append(value);
  if (to == &authority_) {
    add_line("host", value);
  }
}

/// Each may be sent on its own (section 8.2.3).
void incoming_head::add_crumb(std::string_view value) {
  malformed_ = malformed_ || !is_value(value.data(), value);
  if (!value.empty()) {
    cookie_.append(cookie_.empty() ? "" : "; ").append(value);
  }
}

/// One that says something else than the authority is a second one, and so refused (section 8.3.1).
void incoming_head::add_host(std::string_view value) {
  if (std::exchange(has_host_, true)) {
    malformed_ = true;
  } else if (!authority_.is_there || value != text_of(authority_)) {
    add_line("host", value);
  }
}

void incoming_head::add_line(std::string_view name, std::string_view value) {
  auto const at = lines_.size();
  auto const size = at + name.size() + value.size() + 4;
  lines_.resize_and_overwrite(size, [&](char* to, std::size_t /*room*/) {
    to += at;
    std::memcpy(to, name.data(), name.size());
    std::memcpy(to += name.size(), ": ", 2);
    std::memcpy(to += 2, value.data(), value.size());
    std::memcpy(to + value.size(), "\r\n", 2);
    return size;
  });
  std::string_view const all = lines_;
  malformed_ = malformed_ || !is_name(all.data(), all.substr(at, name.size())) ||
               !is_value(all.data(), all.substr(at + name.size() + 2, value.size()));
  sizes_.push_back(
      {static_cast<std::uint32_t>(name.size()), static_cast<std::uint32_t>(value.size())});
}

}  // namespace tidegate::TIDEGATE_ABI::wire::http2
