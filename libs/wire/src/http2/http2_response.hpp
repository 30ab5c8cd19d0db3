// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire/http1_head.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// What a response may say (RFC 9113, section 8).
namespace tidegate::TIDEGATE_ABI::wire::http2 {

/// The head of a response that is being read, kept as HTTP/1.1 would have it.
class incoming_response {
 public:
  /// `octets_max` is for the names and values of all fields, each with four octets besides.
  void add(std::string_view name, std::string_view value, std::size_t octets_max);

  /// When it is complete: true when it may not be used, also because it is too large.
  [[nodiscard]] auto is_malformed() const noexcept -> bool { return malformed_ || status_ == 0; }
  [[nodiscard]] auto status() const noexcept -> int { return status_; }
  [[nodiscard]] auto fields() const noexcept -> field_parts { return {lines_, sizes_}; }

  void clear();

 private:
  void add_status(std::string_view name, std::string_view value);

  std::string lines_;
  std::vector<field_parts::line> sizes_;
  std::size_t octets_ = 0;
  int status_ = 0;        // none
  bool regular_ = false;  // a field that begins with no colon has come
  bool malformed_ = false;
};

}  // namespace tidegate::TIDEGATE_ABI::wire::http2
