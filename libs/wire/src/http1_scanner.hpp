// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire/http1_head.hpp>

#include "field_line.hpp"
#include "grammar.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::wire {

namespace detail {

[[nodiscard]] inline auto has_lf(char const* begin, char const* end) noexcept -> bool {
  return begin < end && std::memchr(begin, '\n', static_cast<std::size_t>(end - begin)) != nullptr;
}

[[nodiscard]] inline auto view(char const* begin, char const* end) noexcept -> std::string_view {
  return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace detail

/// How far the octets of a head are read, and the answer that follows. Every step returns true when
/// it went well; otherwise `status_` is the answer.
class head_scanner {
 public:
  head_scanner(std::string_view bytes, head_limits const& limits) noexcept
      : begin_(bytes.data()),
        end_(bytes.data() + std::min(bytes.size(), limits.head_octets_max)),
        at_(bytes.data()),
        first_line_end_max_(end_),
        fields_max_(std::min(limits.fields_max, fields_capacity)),
        head_is_full_(bytes.size() >= limits.head_octets_max) {}

 protected:
  // ── answers ────────────────────────────────────────────────────────────────────────────────────

  [[nodiscard]] auto offset_of(char const* p) const noexcept -> std::size_t {
    return static_cast<std::size_t>(p - begin_);
  }

  auto refuse_at_once(head_fault fault, char const* p) noexcept -> bool {
    status_ = {head_state::refused, fault, offset_of(p)};
    return false;
  }

  /// The bytes end before the head does: more are needed, unless it is too large already.
  [[gnu::cold]] auto out_of_bytes() noexcept -> bool {
    if (first_line_is_full_ && !detail::has_lf(first_line_, first_line_end_max_)) {
      return refuse_at_once(head_fault::request_line_too_long, first_line_end_max_);
    }
    if (head_is_full_) {
      return refuse_at_once(head_fault::head_too_large, end_);
    }
    status_ = {head_state::incomplete, head_fault::none, offset_of(end_)};
    return false;
  }

  /// Refuses for what is wrong at `p`, once the line is complete: so the answer does not depend on
  /// where the bytes were split.
  [[gnu::cold]] auto refuse(head_fault fault, char const* p) noexcept -> bool {
    auto const* const line_end_max = in_first_line_ ? first_line_end_max_ : end_;
    return detail::has_lf(p, line_end_max) ? refuse_at_once(fault, p) : out_of_bytes();
  }

  // ── before the first line ──────────────────────────────────────────────────────────────────────

  /// A server skips an empty line before a request line (RFC 9112, section 2.2), and a second one.
  [[nodiscard]] auto skip_empty_lines() noexcept -> bool {
    for (int lines = 0; at_ != end_; ++lines) {
      if (*at_ != '\r') {
        if (*at_ == '\n') {
          return refuse_at_once(head_fault::bare_lf, at_);
        }
        return grammar::is(*at_, grammar::token_char) ||
               refuse_at_once(head_fault::invalid_method, at_);
      }
      if (end_ - at_ < 2) {
        break;
      }
      if (at_[1] != '\n') {
        return refuse_at_once(head_fault::bare_cr, at_);
      }
      if (lines == 2) {
        return refuse_at_once(head_fault::too_many_empty_lines, at_);
      }
      at_ += 2;
    }
    return out_of_bytes();
  }

  [[nodiscard]] auto begins_with_h() noexcept -> bool {
    if (at_ == end_) {
      return out_of_bytes();
    }
    first_line_ = at_;
    return *at_ == 'H' || refuse_at_once(head_fault::malformed_status_line, at_);
  }

  void limit_first_line(std::size_t octets_max) noexcept {
    first_line_ = at_;
    first_line_is_full_ =
        head_is_full_ || static_cast<std::size_t>(end_ - first_line_) >= octets_max;
    if (static_cast<std::size_t>(end_ - first_line_) > octets_max) {
      first_line_end_max_ = first_line_ + octets_max;
    }
  }

  /// Whether there is a line that was not read before: nothing can be said about one without its
  /// LF. A valid head has few of them, so slow input is read a bounded number of times.
  [[nodiscard]] auto has_news(std::size_t already_seen) noexcept -> bool {
    if (already_seen == 0) {
      return true;
    }
    auto const seen = std::min(already_seen, static_cast<std::size_t>(end_ - begin_));
    return detail::has_lf(begin_ + seen, end_) || out_of_bytes();
  }

  // ── lines ──────────────────────────────────────────────────────────────────────────────────────

  /// `HTTP/1.1`, or whatever stands there.
  [[nodiscard]] auto read_version(int& major, int& minor) noexcept -> bool {
    constexpr std::string_view usual = "HTTP/1.1";
    if (end_ - at_ >= 8 && std::memcmp(at_, usual.data(), 8) == 0) {
      minor = 1;
      at_ += 8;
      return true;
    }
    for (char const c : std::string_view("HTTP/0.0")) {
      if (at_ == end_) {
        return out_of_bytes();
      }
      if (c == '0' ? !is_digit(*at_) : *at_ != c) {
        return refuse(detail::fault_at(at_, end_, head_fault::malformed_version), at_);
      }
      ++at_;
    }
    major = at_[-3] - '0';
    minor = at_[-1] - '0';
    return true;
  }

  [[nodiscard]] auto read_line_end(head_fault otherwise) noexcept -> bool {
    if (end_ - at_ < 2) {
      if (at_ != end_ && *at_ != '\r') {
        return refuse(detail::fault_at(at_, end_, otherwise), at_);
      }
      return out_of_bytes();
    }
    if (at_[0] != '\r' || at_[1] != '\n') {
      return refuse(detail::fault_at(at_, end_, otherwise), at_);
    }
    at_ += 2;
    return true;
  }

  char const* begin_;
  char const* end_;  // no further than the limit of a head
  char const* at_;
  char const* first_line_ = nullptr;
  char const* first_line_end_max_;
  std::size_t fields_max_;
  head_status status_;
  bool head_is_full_;
  bool first_line_is_full_ = false;
  bool in_first_line_ = true;
};

}  // namespace tidegate::TIDEGATE_ABI::wire
