// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/field_edits.hpp>

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {
namespace {

using wire::known_field;

TEST(proxy_field_edits, change_lines_as_the_rules_say) {
  struct row {
    std::string_view name;
    field_rules rules;
    std::string_view before, after;
  };
  for (auto const& each : {
           row{"nothing", {}, "A: 1\r\nB: 2\r\n", "A: 1\r\nB: 2\r\n"},
           row{"set what is not there", {{{"X", "y"}}, {}, {}}, "A: 1\r\n", "A: 1\r\nX: y\r\n"},
           row{"set in place of all lines of that name",
               {{{"X-A", "y"}}, {}, {}},
               "X-A: 1\r\nB: 2\r\nx-a: 3\r\n",
               "B: 2\r\nX-A: y\r\n"},
           row{"set a field that is known",
               {{{"Cache-Control", "no-store"}}, {}, {}},
               "Date: d\r\ncache-control: private\r\nB: 2\r\n",
               "Date: d\r\nB: 2\r\nCache-Control: no-store\r\n"},
           row{"add to what is there",
               {{}, {{"Vary", "A"}, {"Vary", "B"}}, {}},
               "Vary: C\r\n",
               "Vary: C\r\nVary: A\r\nVary: B\r\n"},
           row{"remove",
               {{}, {}, {"Date", "x-a"}},
               "Date: d\r\nX-A: 1\r\nX-Ab: 2\r\n",
               "X-Ab: 2\r\n"},
           row{"remove all", {{}, {}, {"a"}}, "A: 1\r\nA:2\r\n", ""},
           row{"remove and add", {{}, {{"A", "2"}}, {"A"}}, "A: 1\r\n", "A: 2\r\n"},
           row{"an empty value", {{{"A", ""}}, {}, {}}, "", "A: \r\n"},
       }) {
    std::string lines(each.before);
    field_edits(each.rules).apply(lines);
    EXPECT_EQ(lines, each.after) << each.name;
  }
}

TEST(proxy_field_edits, know_what_is_dropped_of_the_other_side) {
  field_edits const edits(
      {{{"X-A", "1"}, {"Server", "s"}}, {{"Link", "l"}}, {"X-Powered-By", "via"}});
  EXPECT_EQ(edits.dropped(), (wire::field_set{known_field::server, known_field::via}));
  EXPECT_EQ(edits.dropped_names(), (std::vector<std::string>{"x-powered-by", "x-a"}));
  EXPECT_FALSE(edits.empty());
  EXPECT_TRUE(field_edits().empty());
  EXPECT_TRUE(field_edits(field_rules{}).empty());
  EXPECT_FALSE(field_edits({{}, {}, {"x-powered-by"}}).empty());
}

TEST(proxy_field_edits, leave_host_to_the_one_line_of_it) {
  field_edits const edits({{{"host", "internal.example:81"}, {"A", "1"}}, {}, {}});
  std::string lines = "B: 2\r\n";
  edits.apply(lines);
  EXPECT_EQ(lines, "B: 2\r\nA: 1\r\n");
  EXPECT_EQ(edits.host(), "internal.example:81");
  EXPECT_FALSE(edits.empty());
  EXPECT_FALSE(edits.dropped().contains(known_field::host));
}

TEST(proxy_field_edits, leave_out_what_the_gateway_needs_otherwise) {
  field_edits const edits(
      {{{"Accept-Encoding", "br"}, {"A", "1"}, {"Range", "bytes=0-1"}}, {}, {}});
  std::string lines = "B: 2\r\n";
  edits.apply(lines, {known_field::accept_encoding, known_field::expect});
  EXPECT_EQ(lines, "B: 2\r\nA: 1\r\nRange: bytes=0-1\r\n");
}

}  // namespace
}  // namespace tidegate::gateway
