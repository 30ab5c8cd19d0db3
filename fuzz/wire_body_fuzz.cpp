// SPDX-License-Identifier: Apache-2.0
//
// Two bytes that say how the body is framed and where it is split, then any bytes as a body:
//
// - never a crash, and never a look outside of the bytes;
// - content, trailers, the end and the place of a fault do not depend on the split;
// - passing bytes on consumes what reading them consumes;
// - a chunked body that is accepted has one reading: a lax reader finds the same content and end;
// - its content in new chunks is read again as the same content.
#include "wire_fuzz.hpp"

#include <array>
#include <cstdlib>

namespace {

using namespace tidegate::wire;
using tidegate::fuzz::check;

constexpr body_limits limits{
    .extension_octets_max = 24, .trailer_octets_max = 64, .trailers_max = 3};

struct reading {
  std::string content;
  std::string trailers;
  std::size_t consumed = 0;
  body_state state = body_state::more;
  body_fault fault = body_fault::none;

  auto operator==(reading const&) const -> bool = default;
};

auto read(body_framing framing, std::string_view bytes, std::size_t split) -> reading {
  reading r;
  body_decoder body(framing);
  for (auto const end : {split, bytes.size()}) {
    for (;;) {
      std::string_view const there = bytes.substr(0, end).substr(r.consumed);
      std::vector<char> const exact(there.begin(), there.end());
      auto const progress = body.feed({exact.data(), exact.size()}, limits);
      check(progress.consumed <= exact.size(), "no more is consumed than there is");
      r.content += progress.content;
      r.consumed += progress.consumed;
      if (progress.state == body_state::trailer) {
        r.trailers +=
            std::string(progress.trailer.name) + ":" + std::string(progress.trailer.value) + "\n";
        continue;
      }
      r.state = progress.state;
      r.fault = progress.fault;
      if (r.state != body_state::more) {
        return r;
      }
      if (progress.consumed == 0 || r.consumed == end) {
        break;
      }
    }
  }
  return r;
}

/// Chunks as one reads them who takes LF for the end of a line and strtoull for a size.
struct lax_body {
  std::string content;
  std::size_t size = 0;
};

auto read_lax(std::string_view bytes) -> lax_body {
  lax_body body;
  auto line = [&] {
    auto const lf = bytes.find('\n', body.size);
    check(lf != bytes.npos, "a lax reader finds the line too");
    auto const text = tidegate::fuzz::lax_trimmed(bytes.substr(body.size, lf - body.size));
    body.size = lf + 1;
    return std::string(text);
  };
  for (;;) {
    auto const size = std::strtoull(line().c_str(), nullptr, 16);
    if (size == 0) {
      break;
    }
    check(size <= bytes.size() - body.size, "and the content");
    body.content += bytes.substr(body.size, size);
    body.size += size;
    check(line().empty(), "and the end of the chunk");
  }
  while (!line().empty()) {
  }
  return body;
}

void check_written_again(std::string const& content) {
  std::string chunks;
  for (std::size_t at = 0; at < content.size(); at += 17) {
    auto const part = content.substr(at, 17);
    append_chunk_size(chunks, part.size());
    chunks += part;
    chunks += chunk_end;
  }
  chunks += last_chunk_and_end;
  auto const again = read({body_kind::chunked, 0}, chunks, chunks.size() / 2);
  check(again.state == body_state::done && again.consumed == chunks.size() &&
            again.content == content,
        "content in new chunks is the same");
}

/// What is sent on for all of the bytes.
auto read_sent(body_framing framing, std::string_view bytes) -> std::string {
  body_decoder body(framing);
  std::string rewritten;
  return std::string(body.pass(bytes, rewritten, limits).send);
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) -> int {
  if (size < 2) {
    return 0;
  }
  std::string_view const bytes(reinterpret_cast<char const*>(data) + 2, size - 2);
  constexpr std::array kinds = {body_kind::chunked, body_kind::content_length,
                                body_kind::until_close, body_kind::none};
  // Most of the time chunked; otherwise the rest of the byte is the length.
  body_framing const framing{data[0] < 192 ? body_kind::chunked : kinds[data[0] % 4],
                             static_cast<std::uint64_t>(data[0]) - 192};
  auto const whole = read(framing, bytes, bytes.size());
  auto const split = read(framing, bytes, std::min<std::size_t>(data[1], bytes.size()));
  check(split == whole, "where the bytes are split makes no difference");

  body_decoder body(framing);
  std::string rewritten;
  auto const raw = body.pass(bytes, rewritten, limits);
  check(raw.consumed == whole.consumed && raw.content_octets == whole.content.size() &&
            raw.fault == whole.fault && raw.state == whole.state,
        "passing on consumes what reading does");
  if (whole.state == body_state::done) {
    auto const sent = read(framing, raw.send, raw.send.size());
    check(sent.state == body_state::done && sent.content == whole.content &&
              sent.consumed == raw.send.size(),
          "what is sent on is the same body");
    std::string again;
    body_decoder second(framing);
    check(second.pass(raw.send, again, limits).send == raw.send, "and is sent on as it is");
    body_decoder parts(framing);
    auto const at = std::min<std::size_t>(data[1], bytes.size());
    auto const first = parts.pass(bytes.substr(0, at), rewritten, limits);
    auto joined = std::string(first.send);
    joined += parts.pass(bytes.substr(first.consumed), rewritten, limits).send;
    check(joined == read_sent(framing, bytes), "wherever the bytes were split");
  }
  if (framing.kind == body_kind::chunked && whole.state == body_state::done) {
    auto const lax = read_lax(bytes);
    check(lax.content == whole.content && lax.size == whole.consumed, "there is one reading");
    check_written_again(whole.content);
  }
  if (framing.kind == body_kind::content_length && whole.state == body_state::done) {
    check(whole.content.size() == framing.length, "a length is kept to");
  }
  return 0;
}
