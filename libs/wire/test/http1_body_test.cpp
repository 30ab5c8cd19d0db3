// SPDX-License-Identifier: Apache-2.0
#include <tidegate/wire/http1_body.hpp>

#include "support/allocations.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::TIDEGATE_ABI::wire {
namespace {

constexpr body_framing chunked{body_kind::chunked, 0};

/// What one reads who takes a body in two pieces.
struct reading {
  std::string content;
  std::vector<std::pair<std::string, std::string>> trailers;
  body_state state = body_state::more;
  body_fault fault = body_fault::none;
  std::size_t consumed = 0;

  auto operator==(reading const&) const -> bool = default;
};

auto read(body_framing framing, std::string_view bytes, std::size_t split,
          body_limits const& limits = {}) -> reading {
  reading r;
  body_decoder body(framing);
  for (auto const end : {split, bytes.size()}) {
    for (;;) {
      std::vector<char> const exact(bytes.begin() + static_cast<std::ptrdiff_t>(r.consumed),
                                    bytes.begin() + static_cast<std::ptrdiff_t>(end));
      auto const progress = body.feed({exact.data(), exact.size()}, limits);
      r.content += progress.content;
      r.consumed += progress.consumed;
      if (progress.state == body_state::trailer) {
        r.trailers.emplace_back(progress.trailer.name, progress.trailer.value);
        continue;
      }
      r.state = progress.state;
      r.fault = progress.fault;
      if (r.state != body_state::more || progress.consumed == 0 || r.consumed == end) {
        break;
      }
    }
    if (r.state != body_state::more) {
      break;
    }
  }
  return r;
}

TEST(wire_body, of_nothing_is_done_at_once) {
  body_decoder body;
  EXPECT_TRUE(body.done());
  EXPECT_EQ(body.feed("next").consumed, 0U);
  EXPECT_EQ(body.feed("next").state, body_state::done);
  EXPECT_TRUE(body_decoder({body_kind::none, 0}).done());
  EXPECT_TRUE(body_decoder({body_kind::content_length, 0}).done());
}

TEST(wire_body, with_a_length_ends_there) {
  std::string_view const bytes = "helloGET";
  for (std::size_t split = 0; split <= bytes.size(); ++split) {
    EXPECT_EQ(read({body_kind::content_length, 5}, bytes, split),
              (reading{"hello", {}, body_state::done, body_fault::none, 5}));
  }
  body_decoder body({body_kind::content_length, 5});
  EXPECT_FALSE(body.may_end_here());
  EXPECT_EQ(body.feed("hel").state, body_state::more);
  EXPECT_FALSE(body.may_end_here());
  EXPECT_EQ(body.feed("lo").state, body_state::done);
  EXPECT_TRUE(body.may_end_here());
}

TEST(wire_body, until_close_has_no_other_end) {
  body_decoder body({body_kind::until_close, 0});
  EXPECT_TRUE(body.may_end_here());
  EXPECT_EQ(body.feed("any bytes").content, "any bytes");
  EXPECT_FALSE(body.done());
  EXPECT_TRUE(body.may_end_here());
}

TEST(wire_body, chunked_is_read_wherever_it_is_split) {
  struct row {
    std::string_view bytes, content;
    std::vector<std::pair<std::string, std::string>> trailers;
  };
  for (auto const& row : {
           row{"0\r\n\r\n", "", {}},
           {"5\r\nhello\r\n0\r\n\r\n", "hello", {}},
           {"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world", {}},
           {"00a\r\n0123456789\r\n00\r\n\r\n", "0123456789", {}},
           {"A\r\n0123456789\r\n0\r\n\r\n", "0123456789", {}},
           {"5;x\r\nhello\r\n0;y=\"z;\"\r\n\r\n", "hello", {}},
           {"2\r\n\r\n\r\n0\r\n\r\n", "\r\n", {}},
           {"1\r\nx\r\n0\r\nA: 1\r\nB:  2 \r\n\r\n", "x", {{"A", "1"}, {"B", "2"}}},
       }) {
    auto const bytes = std::string(row.bytes) + "NEXT";
    for (std::size_t split = 0; split <= bytes.size(); ++split) {
      EXPECT_EQ(read(chunked, bytes, split),
                (reading{std::string(row.content), row.trailers, body_state::done, body_fault::none,
                         row.bytes.size()}))
          << row.bytes << " split at " << split;
    }
  }
}

TEST(wire_body, chunked_is_refused_with_the_place_wherever_it_is_split) {
  struct row {
    std::string_view bytes;
    body_fault fault;
    std::size_t offset;
  };
  using enum body_fault;
  for (auto const& [bytes, fault, offset] : {
           row{"\r\n", missing_chunk_size, 0},
           {" 5\r\n", missing_chunk_size, 0},
           {"g\r\n", missing_chunk_size, 0},
           {"5g\r\n", invalid_chunk_size, 1},
           {"5 \r\n", invalid_chunk_size, 1},
           {"5\n", bare_lf, 1},
           {"5\rx", bare_cr, 2},
           {"5;a\n", bare_lf, 3},
           {"5;a\x01", invalid_chunk_extension, 3},
           {"8000000000000000\r\n", chunk_size_overflow, 15},
           {"00000000000000001\r\n", chunk_size_overflow, 16},
           {"1\r\nxx\r\n", missing_chunk_end, 4},
           {"1\r\nx\n", bare_lf, 4},
           {"1\r\nx\rx", bare_cr, 5},
           {"0\r\nA\r\n", invalid_trailer, 4},
           {"0\r\n A: 1\r\n", invalid_trailer, 3},
           {"0\r\n\n", bare_lf, 3},
           {"0\r\nA: 1\n", bare_lf, 7},
           {"0\r\nA: 1\r1\r\n", bare_cr, 7},
       }) {
    for (std::size_t split = 0; split <= bytes.size(); ++split) {
      auto const r = read(chunked, bytes, split);
      EXPECT_EQ(r.state, body_state::refused) << bytes << " split at " << split;
      EXPECT_EQ(to_string(r.fault), to_string(fault)) << bytes << " split at " << split;
      EXPECT_EQ(r.consumed, offset) << bytes << " split at " << split;
    }
  }
}

TEST(wire_body, stays_refused) {
  body_decoder body(chunked);
  EXPECT_EQ(body.feed("x").fault, body_fault::missing_chunk_size);
  EXPECT_EQ(body.feed("0\r\n\r\n").fault, body_fault::missing_chunk_size);
  EXPECT_FALSE(body.done());
  EXPECT_FALSE(body.may_end_here());
}

TEST(wire_body, obeys_the_limits_it_is_given) {
  struct row {
    std::string_view bytes;
    body_limits limits;
    body_fault fault;
  };
  using enum body_fault;
  for (auto const& [bytes, limits, fault] : {
           row{"1;ab\r\nx\r\n0\r\n\r\n", {3, 0, 0}, none},
           {"1;ab\r\nx\r\n0\r\n\r\n", {2, 0, 0}, chunk_extensions_too_large},
           {"1;\r\nx\r\n0;\r\n\r\n", {2, 0, 0}, none},
           {"1;\r\nx\r\n0;\r\n\r\n", {1, 0, 0}, chunk_extensions_too_large},
           {"0;\r\n\r\n", {0, 0, 0}, chunk_extensions_too_large},
           {"0\r\nA: 1\r\nB: 2\r\n\r\n", {0, 12, 2}, none},
           {"0\r\nA: 1\r\nB: 2\r\n\r\n", {0, 11, 2}, trailers_too_large},
           {"0\r\nA: 1\r\nB: 2\r\n\r\n", {0, 12, 1}, too_many_trailers},
           {"0\r\nA: 1234567890", {0, 12, 1}, trailers_too_large},
       }) {
    for (std::size_t split = 0; split <= bytes.size(); ++split) {
      EXPECT_EQ(to_string(read(chunked, bytes, split, limits).fault), to_string(fault))
          << bytes << " split at " << split;
    }
  }
}

/// What is sent on of a body that comes in two parts.
auto sent_on(std::string_view bytes, std::size_t split) -> std::string {
  body_decoder body(chunked);
  std::string rewritten;
  auto const first = body.pass(bytes.substr(0, split), rewritten);
  auto sent = std::string(first.send);
  auto const second = body.pass(bytes.substr(first.consumed), rewritten);
  EXPECT_EQ(second.state, body_state::done) << bytes << " split at " << split;
  EXPECT_EQ(first.consumed + second.consumed, bytes.size()) << bytes << " split at " << split;
  return sent.append(second.send);
}

TEST(wire_body, is_passed_on_with_its_framing) {
  std::string_view const bytes = "5\r\nhello\r\n1\r\n!\r\n0\r\nA: 1\r\n\r\n";
  auto const with_next = std::string(bytes) + "NEXT";
  body_decoder whole(chunked);
  std::string rewritten;
  auto const all = whole.pass(with_next, rewritten);
  EXPECT_EQ(all.state, body_state::done);
  EXPECT_EQ(all.consumed, bytes.size());
  EXPECT_EQ(all.content_octets, 6U);
  EXPECT_EQ(all.send, bytes);
  EXPECT_EQ(all.send.data(), with_next.data()) << "nothing is copied";
  for (std::size_t split = 0; split <= bytes.size(); ++split) {
    EXPECT_EQ(sent_on(bytes, split), bytes) << split;
  }
  body_decoder bad(chunked);
  auto const refused = bad.pass("1\r\nx\r\n1\r\nyy", rewritten);
  EXPECT_EQ(refused.fault, body_fault::missing_chunk_end);
  EXPECT_EQ(refused.consumed, 10U);
}

TEST(wire_body, is_passed_on_without_chunk_extensions_and_zeros_in_front) {
  struct row {
    std::string_view came;
    std::string_view sent;
  };
  for (auto const& [came, sent] : {
           row{"5;x=y\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n"},
           {"5;\r\nhello\r\n1;a;b=\"c\"\r\n!\r\n0;\xff\r\n\r\n",
            "5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n"},
           {"0005\r\nhello\r\n000\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n"},
           {"00a;x\r\nhellohello\r\n00;y\r\n\r\n", "a\r\nhellohello\r\n0\r\n\r\n"},
           {"0A\r\nhellohello\r\n10\r\nhellohellohello!\r\n0\r\n\r\n",
            "A\r\nhellohello\r\n10\r\nhellohellohello!\r\n0\r\n\r\n"},
       }) {
    for (std::size_t split = 0; split <= came.size(); ++split) {
      EXPECT_EQ(sent_on(came, split), sent) << came << " split at " << split;
    }
  }
}

TEST(wire_body, is_passed_on_without_the_trailers_that_do_not_go_on) {
  struct row {
    std::string_view came;
    std::string_view sent;
  };
  for (auto const& [came, sent] : {
           row{"0\r\nA: 1\r\nSet-Cookie: a=b\r\nB: 2\r\n\r\n", "0\r\nA: 1\r\nB: 2\r\n\r\n"},
           {"1\r\nx\r\n0\r\nContent-Length: 5\r\n\r\n", "1\r\nx\r\n0\r\n\r\n"},
           {"0\r\nHost: x\r\nX_Forwarded_For: 1\r\n\r\n", "0\r\n\r\n"},
           {"0\r\nContent_Length: 5\r\ntransfer-encoding: chunked\r\n\r\n", "0\r\n\r\n"},
           {"0\r\nRateLimit: \"a\";r=1\r\nratelimit-policy: \"a\";q=1\r\nX: 1\r\n\r\n",
            "0\r\nX: 1\r\n\r\n"},
       }) {
    for (std::size_t split = 0; split <= came.size(); ++split) {
      EXPECT_EQ(sent_on(came, split), sent) << came << " split at " << split;
    }
  }
  body_decoder shown(chunked);
  auto const progress = shown.feed("0\r\nSet-Cookie: a=b\r\nB: 2\r\n\r\n");
  EXPECT_EQ(progress.state, body_state::more);
  EXPECT_TRUE(progress.trailer.name.empty());
}

TEST(wire_body, allocates_nothing_and_is_small) {
  static_assert(sizeof(body_decoder) <= 32);
  auto const before = tidegate::test::allocations();
  body_decoder body(chunked);
  std::string rewritten;
  auto const progress = body.pass("5\r\nhello\r\n0\r\nA: 1\r\n\r\n", rewritten);
  EXPECT_EQ(tidegate::test::allocations(), before);
  EXPECT_EQ(progress.state, body_state::done);
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::wire
