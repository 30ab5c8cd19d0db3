// SPDX-License-Identifier: Apache-2.0
//
// A byte that says which method was asked and one where the rest is split, then any bytes as a
// response head:
//
// - never a crash, and never a look outside of the bytes;
// - the answer does not depend on the split;
// - a head that is accepted has one reading: a lax reader finds the same end, fields and framing;
// - sent on, it is accepted again, with the same status, body and fields.
#include "wire_fuzz.hpp"

namespace {

using namespace tidegate::wire;
using tidegate::fuzz::check;

void check_sent_on(response_head const& head, method asked) {
  // A body that ends with the connection is sent in chunks.
  auto body = head.body();
  if (body.kind == body_kind::until_close) {
    body.kind = body_kind::chunked;
  }
  std::string text;
  append_response_head(text, head, {.body = body, .upgrade = head.upgrade_asked()});
  response_head again;
  auto const status = parse_response_head(text, 0, {}, asked, again);
  check(status.state == head_state::complete && status.size == text.size(),
        "what was sent on is a head");
  check(again.status() == head.status() && again.reason() == head.reason(), "with its status");
  check(again.body() == body, "and body");
  tidegate::fuzz::check_same_fields(head, again);
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) -> int {
  if (size < 2) {
    return 0;
  }
  auto const asked = static_cast<method>(data[0] % (static_cast<int>(method::trace) + 1));
  std::vector<char> const exact(data + 2, data + size);
  std::string_view const bytes(exact.data(), exact.size());
  std::vector<char> const part(
      exact.begin(),
      exact.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(data[1], exact.size())));
  head_limits const limits{.head_octets_max = 512, .fields_max = 8};

  response_head head;
  auto split = parse_response_head({part.data(), part.size()}, 0, limits, asked, head);
  if (split.state == head_state::incomplete) {
    split = parse_response_head(bytes, split.size, limits, asked, head);
  }
  auto const status = parse_response_head(bytes, 0, limits, asked, head);
  check(split == status, "where the bytes are split makes no difference");
  check(status.state != head_state::http2_preface, "a response is never a preface");
  if (status.state == head_state::complete) {
    tidegate::fuzz::check_one_reading(bytes, status.size, head);
    check(head.status() >= 100 && head.status() <= 599, "a status has three digits");
    check(head.body().kind != body_kind::until_close || !head.keep_alive(),
          "a connection that ends a body is not used again");
    check_sent_on(head, asked);
  }
  return 0;
}
