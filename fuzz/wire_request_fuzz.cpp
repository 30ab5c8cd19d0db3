// SPDX-License-Identifier: Apache-2.0
//
// Two bytes that say where the rest is split, then any bytes as a request head:
//
// - never a crash, and never a look outside of the bytes;
// - the answer does not depend on the split;
// - what is refused stays refused, whatever follows;
// - a head that is accepted has one reading: a lax reader finds the same end, fields and framing;
// - its authority, if it has one, is a host to the parser of hosts;
// - sent on, it is accepted again, with the same method, target, body and fields, and sent on a
//   second time it does not change any more.
#include "wire_fuzz.hpp"

#include <tidegate/http/target.hpp>

#include <cstring>

namespace {

using namespace tidegate::wire;
using tidegate::fuzz::check;

auto parse(std::string_view bytes, std::size_t seen, request_head& out) -> head_status {
  // Small limits, so that they are met.
  return parse_request_head(
      bytes, seen, {.request_line_octets_max = 64, .head_octets_max = 512, .fields_max = 8}, out);
}

auto sent_on(request_head const& head) -> std::string {
  std::string out;
  append_request_head(out, head, {.body = head.body(), .upgrade = head.upgrade_asked()});
  return out;
}

void check_sent_on(request_head const& head) {
  if (head.authority().empty() || head.method() == method::connect) {
    return;  // an origin needs a Host, which HTTP/1.0 may lack; CONNECT is not sent on
  }
  auto const text = sent_on(head);
  request_head again;
  auto const status = parse_request_head(text, 0, {}, again);
  check(status.state == head_state::complete && status.size == text.size(),
        "what was sent on is a head");
  check(again.method_text() == head.method_text(), "with the same method");
  check(again.path() == head.path() && again.query() == head.query(), "and target");
  check(again.authority() == head.authority(), "and host");
  check(again.body() == head.body(), "and body");
  check(again.upgrade_asked() == head.upgrade_asked(), "and upgrade");
  tidegate::fuzz::check_same_fields(head, again);
  check(sent_on(again) == text, "sent on again it is the same");
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) -> int {
  if (size < 2) {
    return 0;
  }
  std::vector<char> const exact(data + 2, data + size);
  std::string_view const bytes(exact.data(), exact.size());
  auto const first = std::min<std::size_t>(data[0], bytes.size());
  auto const second = std::min<std::size_t>(first + data[1], bytes.size());

  request_head head;
  std::size_t seen = 0;
  head_status split;
  for (auto const end : {first, second, bytes.size()}) {
    std::vector<char> const part(exact.begin(), exact.begin() + static_cast<std::ptrdiff_t>(end));
    split = parse({part.data(), part.size()}, seen, head);
    if (split.state != head_state::incomplete) {
      break;
    }
    seen = split.size;
  }
  auto const status = parse(bytes, 0, head);
  check(split == status, "where the bytes are split makes no difference");
  if (status.state == head_state::refused) {
    check(status.size <= bytes.size(), "the place is in the bytes");
    check(status.fault != head_fault::none, "there is a reason");
    auto const longer = std::string(bytes) + "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    check(parse(longer, 0, head) == status, "what is refused stays refused");
  }
  if (status.state == head_state::complete) {
    tidegate::fuzz::check_one_reading(bytes, status.size, head);
    check(head.authority().empty() || tidegate::http::parse_host(head.authority()).has_value(),
          "an authority is a host");
    check_sent_on(head);
  }
  return 0;
}
