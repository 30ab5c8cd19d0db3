// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the beginning of a connection that has a PROXY header:
//
// - never a crash, and never a look outside of the bytes;
// - the answer for a prefix is "incomplete" or the answer for the whole: bytes may come in any
//   pieces;
// - what follows a whole header changes nothing;
// - a header is not longer than its limit, and no more bytes are waited for.
#include "check.hpp"

#include <tidegate/http/proxy_protocol.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace tidegate::http;
using tidegate::fuzz::check;

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) -> int {
  // Exactly as many bytes as there are, so that a look behind them is seen.
  std::vector<char> const exact(data, data + size);
  auto const text = std::string_view(exact.data(), exact.size());
  auto const whole = parse_proxy_header(text);
  for (std::size_t length = 0; length < size; ++length) {
    // A copy of its own, so that a look behind the prefix is seen.
    std::vector<char> const prefix(data, data + length);
    auto const parsed = parse_proxy_header({prefix.data(), prefix.size()});
    bool const is_incomplete = parsed.has_value() && !parsed->has_value();
    check(is_incomplete || parsed == whole, "a prefix is incomplete or says the same");
  }
  if (!whole) {
    check(whole.error().offset <= size, "an error is at a place of the bytes");
    return 0;
  }
  if (!*whole) {
    check(size < proxy_header_size_max, "no more bytes than the limit are waited for");
    return 0;
  }
  auto const& header = **whole;
  check(header.size > 0 && header.size <= size && header.size <= proxy_header_size_max,
        "a header lies in the bytes and is within its limit");
  check(parse_proxy_header(text.substr(0, header.size)) == whole, "what follows changes nothing");
  check(parse_proxy_header(std::string(text) + "\r\n") == whole, "what follows changes nothing");
  return 0;
}
