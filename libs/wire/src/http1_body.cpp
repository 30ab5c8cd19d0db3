// SPDX-License-Identifier: Apache-2.0
#include <tidegate/wire/http1_body.hpp>

#include <tidegate/base/ascii.hpp>
#include <tidegate/base/hex.hpp>

#include "field_line.hpp"
#include "grammar.hpp"
#include "scan.hpp"
#include "spelling.hpp"

#include <algorithm>
#include <limits>

namespace tidegate::TIDEGATE_ABI::wire {

auto to_string(body_fault fault) noexcept -> std::string_view {
  switch (fault) {
    case body_fault::none: return "none";
    case body_fault::missing_chunk_size: return "missing_chunk_size";
    case body_fault::invalid_chunk_size: return "invalid_chunk_size";
    case body_fault::chunk_size_overflow: return "chunk_size_overflow";
    case body_fault::invalid_chunk_extension: return "invalid_chunk_extension";
    case body_fault::chunk_extensions_too_large: return "chunk_extensions_too_large";
    case body_fault::bare_cr: return "bare_cr";
    case body_fault::bare_lf: return "bare_lf";
    case body_fault::missing_chunk_end: return "missing_chunk_end";
    case body_fault::trailers_too_large: return "trailers_too_large";
    case body_fault::too_many_trailers: return "too_many_trailers";
    case body_fault::invalid_trailer: return "invalid_trailer";
  }
  return "";
}

auto is_forwarded_trailer(field_view const& trailer) noexcept -> bool {
  auto const known = trailer.known != known_field::other
                         ? trailer.known
                         : find_known_field_by_any_spelling(trailer.name);
  return !(fields_forbidden_in_trailers | fields_left_out_of_trailers).contains(known);
}

auto is_trailer_of(std::string_view name, std::span<std::string const> names) noexcept -> bool {
  return std::ranges::any_of(names, [name](std::string_view each) {
    return equal_ignoring_case(name, each) || spelling::are_one(name, each);
  });
}

/// Nothing is copied until something is left out.
class body_decoder::rewriting {
 public:
  rewriting(std::string_view bytes, std::string& out) : bytes_(bytes), out_(out) {}

  /// Where the bytes of the current step begin among all.
  void begin_step(std::size_t at) { step_ = at; }
  /// The bytes from `first` on and before `last`, of the current step, do not go on.
  void leave_out(std::size_t first, std::size_t last) {
    put_kept(step_ + first);
    kept_ = step_ + last;
  }
  /// Puts `text` before the byte at `at` of the current step.
  void insert(std::size_t at, char text) {
    put_kept(step_ + at);
    out_.push_back(text);
    kept_ = step_ + at;
  }
  [[nodiscard]] auto finish(std::size_t consumed) -> std::string_view {
    if (!changed_) {
      return bytes_.substr(0, consumed);
    }
    put_kept(consumed);
    return out_;
  }

 private:
  void put_kept(std::size_t end) {
    if (!changed_) {
      out_.clear();
      changed_ = true;
    }
    out_.append(bytes_.substr(kept_, end - kept_));
  }

  std::string_view bytes_;
  std::string& out_;
  std::size_t step_ = 0;
  std::size_t kept_ = 0;  // the first byte that is neither copied nor left out
  bool changed_ = false;
};

body_decoder::body_decoder(body_framing framing) noexcept {
  switch (framing.kind) {
    case body_kind::none: break;
    case body_kind::content_length:
      remaining_ = framing.length;
      state_ = remaining_ == 0 ? state::done : state::content_length;
      break;
    case body_kind::chunked: state_ = state::chunk_size; break;
    case body_kind::until_close: state_ = state::until_close; break;
  }
}

auto body_decoder::feed(std::string_view bytes, body_limits const& limits) noexcept
    -> body_progress {
  return feed(bytes, limits, nullptr);
}

auto body_decoder::feed(std::string_view bytes, body_limits const& limits, rewriting* out)
    -> body_progress {
  body_progress progress;
  switch (state_) {
    case state::done: break;
    case state::refused:
      progress.state = body_state::refused;
      progress.fault = fault_;
      return progress;
    case state::until_close:
      progress.content = bytes;
      progress.consumed = bytes.size();
      break;
    case state::content_length:
      progress.content = bytes.substr(0, std::min<std::uint64_t>(remaining_, bytes.size()));
      progress.consumed = progress.content.size();
      remaining_ -= progress.consumed;
      if (remaining_ == 0) {
        state_ = state::done;
      }
      break;
    default: feed_chunked(bytes, limits, out, progress);
  }
  if (state_ == state::done) {
    progress.state = body_state::done;
  }
  return progress;
}

auto body_decoder::pass(std::string_view bytes, std::string& rewritten, body_limits const& limits)
    -> raw_progress {
  raw_progress raw;
  rewriting out(bytes, rewritten);
  for (;;) {
    out.begin_step(raw.consumed);
    auto const progress = feed(bytes.substr(raw.consumed), limits, &out);
    raw.consumed += progress.consumed;
    raw.content_octets += progress.content.size();
    bool const over = progress.state == body_state::done || progress.state == body_state::refused;
    if (over) {
      raw.state = progress.state;
      raw.fault = progress.fault;
    }
    if (over || progress.consumed == 0) {
      raw.send = out.finish(raw.consumed);
      return raw;
    }
  }
}

void body_decoder::refuse(body_fault fault, body_progress& progress) noexcept {
  state_ = state::refused;
  fault_ = fault;
  progress.state = body_state::refused;
  progress.fault = fault;
}

/// chunked-body (RFC 9112, section 7.1).
void body_decoder::feed_chunked(std::string_view bytes, body_limits const& limits, rewriting* out,
                                body_progress& progress) {
  auto& at = progress.consumed;
  while (at < bytes.size()) {
    char const c = bytes[at];
    auto fault = body_fault::none;
    switch (state_) {
      case state::chunk_size: fault = read_chunk_size(bytes, at, out); break;
      case state::chunk_extension: {
        auto const begin = at;
        fault = read_extension(bytes, limits, at);
        if (out != nullptr) {
          out->leave_out(begin, at);
        }
        if (at == bytes.size()) {
          return;
        }
        break;
      }
      case state::chunk_size_lf:
        fault = c == '\n' ? body_fault::none : body_fault::bare_cr;
        state_ = remaining_ == 0 ? state::trailers : state::chunk_content;
        break;
      case state::chunk_content: {
        if (!progress.content.empty()) {
          return;
        }
        progress.content = bytes.substr(at, std::min<std::uint64_t>(remaining_, bytes.size() - at));
        at += progress.content.size();
        remaining_ -= progress.content.size();
        if (remaining_ == 0) {
          state_ = state::chunk_end_cr;
        }
        continue;
      }
      case state::chunk_end_cr:
        fault = c == '\r'   ? body_fault::none
                : c == '\n' ? body_fault::bare_lf
                            : body_fault::missing_chunk_end;
        state_ = state::chunk_end_lf;
        break;
      case state::chunk_end_lf:
        fault = c == '\n' ? body_fault::none : body_fault::bare_cr;
        state_ = state::chunk_size;
        size_digits_ = 0;
        break;
      default: return read_trailer(bytes, limits, out, progress);
    }
    if (fault != body_fault::none) {
      return refuse(fault, progress);
    }
    ++at;
  }
}

/// chunk-size: hexadecimal digits, then ";" or the end of the line. No white space.
auto body_decoder::read_chunk_size(std::string_view bytes, std::size_t at, rewriting* out)
    -> body_fault {
  char const c = bytes[at];
  constexpr std::uint64_t size_max = std::numeric_limits<std::int64_t>::max();
  constexpr std::uint8_t digits_max = 16;  // zeros in front count too
  if (auto const digit = hex_value(c); digit >= 0) {
    if (size_digits_ == digits_max || remaining_ > (size_max >> 4)) {
      return body_fault::chunk_size_overflow;
    }
    ++size_digits_;
    remaining_ = remaining_ * 16 + static_cast<std::uint64_t>(digit);
    if (remaining_ == 0 && out != nullptr) {
      // A zero goes on when it is the whole size, which the next byte says.
      bool const is_last = at + 1 == bytes.size();
      if (is_last || hex_value(bytes[at + 1]) >= 0) {
        out->leave_out(at, at + 1);
      }
      zero_is_held_ = is_last;
    } else {
      zero_is_held_ = false;
    }
    return body_fault::none;
  }
  if (zero_is_held_ && out != nullptr) {
    out->insert(at, '0');
  }
  zero_is_held_ = false;
  if (c == '\n') {
    return body_fault::bare_lf;
  }
  if (size_digits_ == 0) {
    return body_fault::missing_chunk_size;
  }
  if (c == '\r') {
    state_ = state::chunk_size_lf;
    return body_fault::none;
  }
  if (c == ';') {
    state_ = state::chunk_extension;
    ++extension_octets_;
    if (out != nullptr) {
      out->leave_out(at, at + 1);
    }
    return body_fault::none;
  }
  return body_fault::invalid_chunk_size;
}

/// chunk-ext: skipped up to the end of the line. Leaves `at` on that CR, on what is wrong, or
/// behind the bytes.
auto body_decoder::read_extension(std::string_view bytes, body_limits const& limits,
                                  std::size_t& at) noexcept -> body_fault {
  auto const* const begin = bytes.data();
  auto const* const end = begin + bytes.size();
  auto const* const stop = scan::find<scan::control>(begin, begin + at, end);
  auto const size = static_cast<std::size_t>(stop - begin) - at;
  auto const room =
      limits.extension_octets_max - std::min(extension_octets_, limits.extension_octets_max);
  if (extension_octets_ > limits.extension_octets_max || size > room) {
    at += room;
    return body_fault::chunk_extensions_too_large;
  }
  extension_octets_ += static_cast<std::uint32_t>(size);
  at += size;
  if (stop == end) {
    return body_fault::none;
  }
  if (*stop == '\r') {
    state_ = state::chunk_size_lf;
    return body_fault::none;
  }
  return *stop == '\n' ? body_fault::bare_lf : body_fault::invalid_chunk_extension;
}

/// One line of the trailer section (RFC 9112, section 7.1.2).
void body_decoder::read_trailer(std::string_view bytes, body_limits const& limits, rewriting* out,
                                body_progress& progress) {
  auto const line = bytes.substr(progress.consumed);
  if (line.starts_with("\r\n")) {
    progress.consumed += 2;
    state_ = state::done;
    return;
  }
  if (line == "\r") {
    return;  // it may be the empty line, which no limit counts
  }
  auto const lf = line.find('\n');
  auto const size = lf == line.npos ? line.size() : lf + 1;
  if (size > limits.trailer_octets_max - std::min(trailer_octets_, limits.trailer_octets_max)) {
    return refuse(body_fault::trailers_too_large, progress);
  }
  if (lf == line.npos) {
    return;
  }
  auto const* const begin = line.data();
  if (detail::read_field_line(begin, begin, begin + size, progress.trailer) == nullptr) {
    auto const [fault, at] = detail::explain_field_line(begin, begin + size);
    progress.consumed += static_cast<std::size_t>(at - begin);
    return refuse(fault == head_fault::bare_lf   ? body_fault::bare_lf
                  : fault == head_fault::bare_cr ? body_fault::bare_cr
                                                 : body_fault::invalid_trailer,
                  progress);
  }
  if (trailers_ == limits.trailers_max) {
    return refuse(body_fault::too_many_trailers, progress);
  }
  ++trailers_;
  trailer_octets_ += static_cast<std::uint32_t>(size);
  auto const line_begin = progress.consumed;
  progress.consumed += size;
  if (is_forwarded_trailer(progress.trailer) &&
      !is_trailer_of(progress.trailer.name, limits.left_out)) {
    progress.state = body_state::trailer;
    return;
  }
  progress.trailer = {};
  if (out != nullptr) {
    out->leave_out(line_begin, progress.consumed);
  }
}

}  // namespace tidegate::TIDEGATE_ABI::wire
