// SPDX-License-Identifier: Apache-2.0
#include "scim/records.hpp"

#include <tidegate/json/parse.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tidegate::app {

namespace {

constexpr std::size_t record_octets_max = std::size_t{16} << 20;
constexpr std::size_t buffer_octets_min = std::size_t{1} << 18;
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

}  // namespace

auto scim_record_reader::fault(std::string_view what) const -> std::unexpected<std::string> {
  return failure("line " + std::to_string(line_) + ": " + std::string(what));
}

auto scim_record_reader::read_more() -> result<more, std::string> {
  buffer_.erase(0, std::exchange(at_, 0));
  for (;;) {
    if (!wait_()) {
      return more::given_up;
    }
    auto const size = buffer_.size();
    // As much again as there is, so that a long record is not looked at often.
    buffer_.resize(size + std::max(buffer_octets_min, size));
    auto const got = ::read(from_, buffer_.data() + size, buffer_.size() - size);
    auto const why = errno;
    buffer_.resize(size + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && why != EINTR && why != EAGAIN) {
      return fault(std::string("cannot read it: ") + std::strerror(why));
    }
    if (got < 0 || (got > 0 && !is_begun_ && buffer_.size() < byte_order_mark.size())) {
      continue;
    }
    if (!std::exchange(is_begun_, true) && buffer_.starts_with(byte_order_mark)) {
      buffer_.erase(0, byte_order_mark.size());
    }
    return got > 0 ? more::some : more::none;
  }
}

auto scim_record_reader::next() -> result<std::optional<scim_record>, std::string> {
  return format_ == scim_format::csv ? next_row() : next_line();
}

auto scim_record_reader::next_line() -> result<std::optional<scim_record>, std::string> {
  for (;;) {
    auto end = buffer_.find('\n', at_);
    bool is_last = false;
    while (end == std::string::npos && buffer_.size() - at_ <= record_octets_max && !is_last) {
      TIDEGATE_TRY(auto const got, read_more());
      if (got == more::given_up) {
        return std::nullopt;
      }
      is_last = got == more::none;
      end = buffer_.find('\n', at_);
    }
    if (buffer_.size() - at_ > record_octets_max && end == std::string::npos) {
      return fault("it is too long");
    }
    if (end == std::string::npos && at_ == buffer_.size()) {
      return std::nullopt;
    }
    auto text = buffer_.substr(at_, end - at_);
    at_ = end == std::string::npos ? buffer_.size() : end + 1;
    auto const line = line_++;
    if (text.ends_with('\r')) {
      text.pop_back();
    }
    if (text.find_first_not_of(" \t") == std::string::npos) {
      continue;
    }
    scim_record made{.line = line, .text = std::move(text), .resource = json::value()};
    auto read = json::parse(made.text, {.octets_max = record_octets_max});
    if (!read) {
      made.resource = failure(to_string(read.error()));
    } else if (read->if_object() == nullptr) {
      made.resource = failure(std::string("not a JSON object"));
    } else {
      made.resource = *std::move(read);
    }
    return made;
  }
}

auto scim_record_reader::next_row() -> result<std::optional<scim_record>, std::string> {
  bool is_last = false;
  for (;;) {
    auto const rest = std::string_view(buffer_).substr(at_);
    auto const read = scim::parse_csv_record(rest, is_last);
    if (!read) {
      return fault(message(read.error()));
    }
    if (!*read) {
      if (is_last) {
        return std::nullopt;
      }
      if (rest.size() > record_octets_max) {
        return fault("it is too long");
      }
      TIDEGATE_TRY(auto const got, read_more());
      if (got == more::given_up) {
        return std::nullopt;
      }
      is_last = got == more::none;
      continue;
    }
    auto const& record = **read;
    scim_record made{.line = line_,
                     .text = std::string(rest.substr(0, record.octets)),
                     .resource = json::value()};
    made.text.erase(made.text.find_last_not_of("\r\n") + 1);
    at_ += record.octets;
    if (!header_) {
      auto header = scim::csv_header::of(record.cells);
      if (!header) {
        return fault(message(header.error()));
      }
      header_ = *std::move(header);
      line_ += record.lines;
      continue;
    }
    line_ += record.lines;
    if (made.text.empty()) {
      continue;
    }
    auto resource = header_->resource_of(record.cells);
    if (resource) {
      made.resource = *std::move(resource);
    } else {
      made.resource = failure(std::string(message(resource.error())));
    }
    return made;
  }
}

}  // namespace tidegate::app
