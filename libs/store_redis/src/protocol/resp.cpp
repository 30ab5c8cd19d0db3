// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_redis/resp.hpp>

#include <tidegate/base/ascii.hpp>
#include <tidegate/base/number.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace tidegate::store_redis {

namespace {

constexpr std::string_view crlf = "\r\n";
/// The room that a reader keeps between answers.
constexpr std::size_t kept_octets_max = 1 << 20;

template <class Number>
auto number_in(std::string_view text) -> std::optional<Number> {
  if (text.starts_with('+')) {  // which parse_number does not take
    text.remove_prefix(1);
    if (text.starts_with('-')) {
      return std::nullopt;
    }
  }
  return parse_number<Number>(text);
}

auto size_in(std::string_view text) -> std::optional<std::size_t> {
  auto const number = number_in<std::int64_t>(text);
  return number && *number >= 0 ? std::optional(static_cast<std::size_t>(*number)) : std::nullopt;
}

auto is_big_number(std::string_view text) -> bool {
  if (text.starts_with('-') || text.starts_with('+')) {
    text.remove_prefix(1);
  }
  return !text.empty() && std::ranges::all_of(text, is_digit);
}

void append_head(std::string& out, char type, std::size_t size) {
  std::array<char, 24> digits{};
  auto* const end = std::to_chars(digits.begin(), digits.end(), size).ptr;
  out += type;
  out.append(digits.begin(), end);
  out += crlf;
}

}  // namespace

auto message(resp_fault fault) noexcept -> std::string_view {
  switch (fault) {
    case resp_fault::unknown_type: return "a type that the protocol does not have";
    case resp_fault::invalid_line: return "a line that does not end as lines do";
    case resp_fault::invalid_number: return "no number, or one that does not fit";
    case resp_fault::invalid_value: return "a value that its type does not have";
    case resp_fault::misplaced: return "a value where none of its type may be";
    case resp_fault::too_deep: return "aggregates too deep in each other";
    case resp_fault::too_many_values: return "too many values in one answer";
    case resp_fault::too_long: return "an answer that is too long";
  }
  return "";
}

void resp_reader::feed(std::string_view octets) {
  if (at_ == buffer_.size()) {
    before_ += at_;
    buffer_.clear();
    at_ = 0;
    if (buffer_.capacity() > kept_octets_max) {
      buffer_.shrink_to_fit();
    }
  } else if (at_ > buffer_.size() / 2) {
    before_ += at_;
    buffer_.erase(0, at_);
    at_ = 0;
  }
  buffer_.append(octets);
}

auto resp_reader::fail(resp_fault fault, std::size_t place) -> std::unexpected<resp_error> {
  error_ = resp_error{fault, before_ + place};
  return failure(*error_);
}

auto resp_reader::take_line() -> result<std::optional<std::string_view>, resp_error> {
  auto const text = rest();
  auto const end = text.find_first_of(crlf, scanned_);
  if (end == std::string_view::npos || end + 1 == text.size()) {
    scanned_ = std::min(end, text.size());
    if (scanned_ > limits_.line_octets_max) {
      return fail(resp_fault::too_long, at_ + limits_.line_octets_max);
    }
    if (scanned_ < text.size() && text[scanned_] == '\n') {
      return fail(resp_fault::invalid_line, at_ + scanned_);
    }
    return std::nullopt;
  }
  if (end > limits_.line_octets_max) {
    return fail(resp_fault::too_long, at_ + limits_.line_octets_max);
  }
  if (text.substr(end, 2) != crlf) {
    return fail(resp_fault::invalid_line, at_ + end);
  }
  scanned_ = 0;
  at_ += end + 2;
  return text.substr(0, end);
}

auto resp_reader::open(resp_kind kind, std::size_t size, bool is_attribute)
    -> result<void, resp_error> {
  if (size > limits_.values_max) {
    return fail(resp_fault::too_many_values, at_);
  }
  if (open_.size() >= limits_.depth_max) {
    return fail(resp_fault::too_deep, at_);
  }
  if (kind == resp_kind::push && !open_.empty()) {
    return fail(resp_fault::misplaced, at_);
  }
  frame made{.value = {.kind = kind}, .left = size, .is_attribute = is_attribute};
  if (size > 0) {
    open_.push_back(std::move(made));
  } else if (!is_attribute) {
    close(std::move(made.value));
  }
  return {};
}

/// `at` is where the size stands.
auto resp_reader::begin_blob(char type, std::string_view size_text, std::size_t at)
    -> result<void, resp_error> {
  if (type == '$' && size_text == "-1") {  // the null of version 2
    close({});
    return {};
  }
  auto const size = size_in(size_text);
  if (!size) {
    return fail(resp_fault::invalid_number, at);
  }
  if (*size > limits_.octets_max) {
    return fail(resp_fault::too_long, at);
  }
  blob_ = resp_value{.kind = type == '!' ? resp_kind::error : resp_kind::blob};
  is_verbatim_ = type == '=';
  blob_size_ = *size;
  return {};
}

auto resp_reader::begin_aggregate(char type, std::string_view size_text, std::size_t at)
    -> result<void, resp_error> {
  if (type == '*' && size_text == "-1") {
    close({});
    return {};
  }
  auto const size = size_in(size_text);
  if (!size) {
    return fail(resp_fault::invalid_number, at);
  }
  bool const in_pairs = type == '%' || type == '|';
  auto const kind = type == '*'   ? resp_kind::array
                    : type == '~' ? resp_kind::set
                    : type == '>' ? resp_kind::push
                                  : resp_kind::map;
  auto const values = std::min(*size, limits_.values_max + 1) * (in_pairs ? 2 : 1);
  return open(kind, values, type == '|');
}

auto resp_reader::take_head(std::string_view line) -> result<void, resp_error> {
  auto const start = static_cast<std::size_t>(line.data() - buffer_.data());
  if (line.empty()) {
    return fail(resp_fault::unknown_type, start);
  }
  if (open_.empty() && values_ == 0) {
    begun_at_ = before_ + start;
  }
  if (++values_ > limits_.values_max) {
    return fail(resp_fault::too_many_values, start);
  }
  auto const text = line.substr(1);
  switch (line.front()) {
    case '+': close({.kind = resp_kind::simple_string, .text = std::string(text)}); return {};
    case '-': close({.kind = resp_kind::error, .text = std::string(text)}); return {};
    case ':':
      if (auto const number = number_in<std::int64_t>(text)) {
        close({.kind = resp_kind::integer, .integer = *number});
        return {};
      }
      return fail(resp_fault::invalid_number, start + 1);
    case '_':
      if (text.empty()) {
        close({});
        return {};
      }
      return fail(resp_fault::invalid_value, start + 1);
    case ',':
      if (auto const number = number_in<double>(text)) {
        close({.kind = resp_kind::number, .number = *number});
        return {};
      }
      return fail(resp_fault::invalid_number, start + 1);
    case '#':
      if (text == "t" || text == "f") {
        close({.kind = resp_kind::boolean, .integer = text == "t" ? 1 : 0});
        return {};
      }
      return fail(resp_fault::invalid_value, start + 1);
    case '(':
      if (is_big_number(text)) {
        close({.kind = resp_kind::big_number, .text = std::string(text)});
        return {};
      }
      return fail(resp_fault::invalid_number, start + 1);
    case '$':
    case '!':
    case '=': return begin_blob(line.front(), text, start + 1);
    case '*':
    case '~':
    case '>':
    case '%':
    case '|': return begin_aggregate(line.front(), text, start + 1);
    default: return fail(resp_fault::unknown_type, start);
  }
}

auto resp_reader::take_blob() -> result<bool, resp_error> {
  auto const text = rest();
  auto const begins_with = [](std::string_view whole, std::string_view part) {
    return whole.substr(0, part.size()) == part;
  };
  auto const behind = text.size() > blob_size_ ? text.substr(blob_size_, 2) : std::string_view();
  if (!begins_with(crlf, behind)) {
    return fail(resp_fault::invalid_line, at_ + blob_size_);
  }
  if (behind.size() < 2) {
    return false;
  }
  auto value = *std::exchange(blob_, std::nullopt);
  auto content = text.substr(0, blob_size_);
  if (is_verbatim_) {
    if (content.size() < 4 || content[3] != ':') {
      return fail(resp_fault::invalid_value, at_);
    }
    content.remove_prefix(4);
  }
  value.text = content;
  at_ += blob_size_ + 2;
  close(std::move(value));
  return true;
}

void resp_reader::close(resp_value value) {
  while (!open_.empty()) {
    auto& in = open_.back();
    in.value.items.push_back(std::move(value));
    if (--in.left > 0) {
      return;
    }
    bool const is_attribute = in.is_attribute;
    value = std::move(in.value);
    open_.pop_back();
    if (is_attribute) {  // what it belongs to follows
      return;
    }
  }
  done_ = std::move(value);
}

auto resp_reader::next() -> result<std::optional<resp_value>, resp_error> {
  if (error_) {
    return failure(*error_);
  }
  while (!done_) {
    if (blob_) {
      TIDEGATE_TRY(bool const taken, take_blob());
      if (!taken) {
        break;
      }
    } else {
      TIDEGATE_TRY(auto const line, take_line());
      if (!line) {
        break;
      }
      TIDEGATE_TRY_VOID(take_head(*line));
    }
    if (values_ > 0 && before_ + at_ - begun_at_ > limits_.octets_max) {
      return fail(resp_fault::too_long, at_);
    }
  }
  if (done_) {
    values_ = 0;
  }
  return std::exchange(done_, std::nullopt);
}

auto command::add(std::string_view word) -> command& {
  append_head(body_, '$', word.size());
  body_ += word;
  body_ += crlf;
  ++words_;
  return *this;
}

auto command::add(std::int64_t number) -> command& {
  std::array<char, 24> digits{};
  auto const* const end = std::to_chars(digits.begin(), digits.end(), number).ptr;
  return add(std::string_view(digits.data(), end));
}

auto command::then(command const& next) -> command& {
  if (next.count() == 0) {
    return *this;
  }
  std::string whole;
  append_to(whole);
  finished_ = count() + next.finished_;
  before_ = std::move(whole) + next.before_;
  body_ = next.body_;
  words_ = next.words_;
  return *this;
}

void command::append_to(std::string& out) const {
  out += before_;
  if (words_ > 0) {
    append_head(out, '*', words_);
    out += body_;
  }
}

}  // namespace tidegate::store_redis
