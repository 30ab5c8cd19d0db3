// SPDX-License-Identifier: Apache-2.0
#include "http2_response.hpp"

#include "http2_request.hpp"

#include <tidegate/base/ascii.hpp>

#include <algorithm>
#include <cstdint>

namespace tidegate::TIDEGATE_ABI::wire::http2 {

void incoming_response::add(std::string_view name, std::string_view value, std::size_t octets_max) {
  octets_ += name.size() + value.size() + 4;
  malformed_ = malformed_ || octets_ > octets_max;
  if (malformed_) {
    return;
  }
  if (name.starts_with(':')) {
    add_status(name, value);
    return;
  }
  regular_ = true;
  if (is_malformed_field(name, value)) {
    malformed_ = true;
    return;
  }
  lines_.append(name).append(": ").append(value).append("\r\n");
  sizes_.push_back(
      {static_cast<std::uint32_t>(name.size()), static_cast<std::uint32_t>(value.size())});
}

/// It comes first, once and alone (section 8.3.2).
void incoming_response::add_status(std::string_view name, std::string_view value) {
  malformed_ = name != ":status" || regular_ || status_ != 0 || value.size() != 3 ||
               !std::ranges::all_of(value, is_digit);
  if (!malformed_) {
    status_ = (value[0] - '0') * 100 + (value[1] - '0') * 10 + (value[2] - '0');
    malformed_ = status_ < 100 || status_ > 599;
  }
}

void incoming_response::clear() {
  lines_.clear();
  sizes_.clear();
  octets_ = 0;
  status_ = 0;
  regular_ = false;
  malformed_ = false;
}

}  // namespace tidegate::TIDEGATE_ABI::wire::http2
