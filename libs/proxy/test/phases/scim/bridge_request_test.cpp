// SPDX-License-Identifier: Apache-2.0
#include "phases/scim/bridge.hpp"

#include "phases/phase_fixture.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::gateway {
namespace {

using subject = std::optional<bridge_subject>;

struct row {
  std::string_view method;
  std::string_view target;
  subject wanted;
};

void expect(std::string const& options, std::vector<row> const& rows) {
  phase_fixture with(
      "upstreams: {api: \"http://127.0.0.1:1\"}\n"
      "routes: [{match: {path: /**}, upstream: api, bridge: scim-cursor" +
      options + "}]\n");
  for (auto const& [method, target, wanted] : rows) {
    auto const context =
        with.ask(std::string(method) + " " + std::string(target) + " HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ(bridge_subject_of(context), wanted) << method << " " << target << options;
  }
}

TEST(proxy_bridge_request, changes_what_asks_for_pages_by_cursor) {
  expect("", {
                 {"GET", "/Users?cursor", bridge_subject::list},
                 {"GET", "/Users?cursor=", bridge_subject::list},
                 {"GET", "/Users?count=2&cursor=abc", bridge_subject::list},
                 {"GET", "/Users?CURSOR=abc", bridge_subject::list},
                 {"GET", "/Users?&&cursor", bridge_subject::list},
                 {"GET", "/ServiceProviderConfig", bridge_subject::abilities},
                 {"GET", "/v2/ServiceProviderConfig?cursor", bridge_subject::abilities},
                 {"POST", "/Users/.search", bridge_subject::search},
                 {"POST", "/.search", bridge_subject::search},
             });
}

TEST(proxy_bridge_request, lets_everything_else_through) {
  expect("", {
                 {"GET", "/Users", {}},
                 {"GET", "/Users/1", {}},
                 {"GET", "/Users?startIndex=1", {}},
                 {"GET", "/Users?xcursor=1", {}},
                 {"GET", "/Users?filter=cursor", {}},
                 {"GET", "/Users?cursors=1", {}},
                 {"GET", "/Users/.search", {}},
                 {"GET", "/serviceproviderconfig", {}},
                 {"POST", "/Users?cursor", {}},
                 {"POST", "/Users/search", {}},
                 {"PUT", "/Users/.search", {}},
                 {"HEAD", "/Users?cursor", {}},
                 {"HEAD", "/ServiceProviderConfig", {}},
                 {"DELETE", "/Users/1?cursor", {}},
             });
}

TEST(proxy_bridge_request, takes_a_get_for_a_list_where_cursors_are_the_default) {
  expect(", default-method: cursor",
         {
             {"GET", "/Users", bridge_subject::list_or_resource},
             {"GET", "/Users/1", bridge_subject::list_or_resource},
             {"GET", "/Users?count=1", bridge_subject::list_or_resource},
             {"GET", "/Users?cursor", bridge_subject::list},
             {"GET", "/Users?startIndex=1", {}},
             {"GET", "/Users?STARTINDEX=1", {}},
             {"POST", "/Users", {}},
             {"HEAD", "/Users", {}},
         });
}

TEST(proxy_bridge_request, opens_a_head_for_content_that_comes_later) {
  struct head_row {
    std::string head;
    std::string_view opened;
  };
  for (auto const& [head, opened] : std::vector<head_row>{
           {"POST / HTTP/1.1\r\nHost: h\r\n\r\n", "POST / HTTP/1.1\r\nHost: h\r\n"},
           {"POST / HTTP/1.1\r\nContent-Length: 0\r\nHost: h\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: h\r\n"},
           {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: h\r\n"},
           {"POST / HTTP/1.1\r\nX: Content-Length: 0\r\n\r\n",
            "POST / HTTP/1.1\r\nX: Content-Length: 0\r\n"},
       }) {
    auto text = head;
    open_head(text);
    EXPECT_EQ(text, opened) << head;
  }
}

}  // namespace
}  // namespace tidegate::gateway
