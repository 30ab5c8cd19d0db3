// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire/http1_head.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What a request may say (RFC 9113, section 8).
namespace tidegate::TIDEGATE_ABI::wire::http2 {

/// In which order responses are sent (RFC 9218, section 4).
struct priority {
  std::uint8_t urgency = 3;  // 0 is the most urgent, 7 the least
  bool incremental = false;

  auto operator==(priority const&) const -> bool = default;
};

/// Reads a Priority field; what is not understood says nothing.
[[nodiscard]] auto priority_of(std::string_view value) -> priority;

/// True when the field may not stand among trailers (section 8.1), nor in a response.
[[nodiscard]] auto is_malformed_field(std::string_view name, std::string_view value) -> bool;

/// The head that is being read, kept as HTTP/1.1 would have it. Those of one connection follow each
/// other, they never mix.
class incoming_head {
 public:
  /// `octets_max` is for the names and values of all fields, each with four octets besides.
  void add(std::string_view name, std::string_view value, std::size_t octets_max);

  [[nodiscard]] auto is_too_large(std::size_t octets_max) const -> bool {
    return octets_ > octets_max;
  }

  /// When it is complete, and after `parts`.
  [[nodiscard]] auto is_malformed() const -> bool;

  /// All of it, once it is complete; `last`: there is no content.
  [[nodiscard]] auto parts(bool last) -> request_parts;

  [[nodiscard]] auto said_priority() const -> std::optional<priority> const& { return priority_; }

  void clear();

 private:
  struct part {
    std::size_t at = 0;
    std::size_t size = 0;
    bool is_there = false;
  };

  void add_pseudo(std::string_view name, std::string_view value);
  void add_crumb(std::string_view value);
  void add_host(std::string_view value);
  void add_line(std::string_view name, std::string_view value);

  [[nodiscard]] auto text_of(part const& p) const -> std::string_view {
    return std::string_view(start_).substr(p.at, p.size);
  }

  std::string start_;  // the values of the fields that begin with a colon
  part method_;
  part scheme_;
  part path_;
  part authority_;
  part protocol_;  // of an extended CONNECT (RFC 8441)
  std::string lines_;
  std::vector<field_parts::line> sizes_;
  std::string cookie_;
  std::size_t octets_ = 0;
  std::optional<priority> priority_;
  bool has_length_ = false;
  bool has_host_ = false;
  bool regular_ = false;  // a field that begins with no colon has come
  bool malformed_ = false;
};

}  // namespace tidegate::TIDEGATE_ABI::wire::http2
