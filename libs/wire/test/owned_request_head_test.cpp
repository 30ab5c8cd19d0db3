// SPDX-License-Identifier: Apache-2.0
#include <tidegate/wire/owned_request_head.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::TIDEGATE_ABI::wire {
namespace {

void expect_same(request_head const& copy, request_head const& original) {
  EXPECT_EQ(copy.method(), original.method());
  EXPECT_EQ(copy.method_text(), original.method_text());
  EXPECT_EQ(copy.target(), original.target());
  EXPECT_EQ(copy.path(), original.path());
  EXPECT_EQ(copy.query(), original.query());
  EXPECT_EQ(copy.authority(), original.authority());
  EXPECT_EQ(copy.field_lines(), original.field_lines());
  EXPECT_EQ(copy.body(), original.body());
  EXPECT_EQ(copy.keep_alive(), original.keep_alive());
  EXPECT_EQ(copy.minor_version(), original.minor_version());
  EXPECT_EQ(copy.expects_continue(), original.expects_continue());
  ASSERT_EQ(copy.fields().size(), original.fields().size());
  for (std::size_t i = 0; i < copy.fields().size(); ++i) {
    EXPECT_EQ(copy.fields()[i].name, original.fields()[i].name);
    EXPECT_EQ(copy.fields()[i].value, original.fields()[i].value);
    EXPECT_EQ(copy.fields()[i].known, original.fields()[i].known);
  }
}

TEST(wire_owned_request_head, says_the_same_when_the_text_it_was_read_from_is_gone) {
  std::string const texts[] = {
      "GET /a/b?c=d HTTP/1.1\r\nHost: example.com\r\nX-Empty:\r\nAccept: a, b\r\n\r\n",
      "GET http://example.com HTTP/1.1\r\nHost: example.com\r\n\r\n",
      "GET http://example.com?q HTTP/1.0\r\n\r\n",
      "OPTIONS * HTTP/1.1\r\nHost: example.com\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
  };
  for (auto const& text : texts) {
    auto buffer = std::make_unique<std::string>(text);
    request_head read;
    ASSERT_EQ(parse_request_head(*buffer, 0, {}, read).state, head_state::complete) << text;
    owned_request_head const copy(read);
    request_head again;
    ASSERT_EQ(parse_request_head(text, 0, {}, again).state, head_state::complete);
    buffer->assign(buffer->size(), '#');
    buffer.reset();
    expect_same(copy.head(), again);
  }
}

TEST(wire_owned_request_head, takes_a_head_whose_parts_lie_apart) {
  std::string method = "POST";
  std::string target = "/x?y";
  std::string lines = "host: a.example\r\nname: value\r\n";
  std::vector<field_parts::line> const sizes = {{4, 9}, {4, 5}};
  request_head read;
  ASSERT_EQ(take_request_head({method, target, {lines, sizes}}, {}, read), head_fault::none);
  owned_request_head const copy(read);
  method.assign(4, '#');
  target.assign(4, '#');
  lines.assign(lines.size(), '#');
  EXPECT_EQ(copy.head().method_text(), "POST");
  EXPECT_EQ(copy.head().path(), "/x");
  EXPECT_EQ(copy.head().query(), "?y");
  EXPECT_EQ(copy.head().authority(), "a.example");
  ASSERT_EQ(copy.head().fields().size(), 2U);
  EXPECT_EQ(copy.head().fields()[1].name, "name");
  EXPECT_EQ(copy.head().fields()[1].value, "value");
}

}  // namespace
}  // namespace tidegate::TIDEGATE_ABI::wire
