// SPDX-License-Identifier: Apache-2.0
//
// HTTP/1.1 heads: reading those of a usual request and response, and writing them to be sent on; a
// chunked body. The bars are what the two readers took when they were written.
#include "harness.hpp"

#include <tidegate/wire.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace {

using namespace tidegate;

constexpr std::string_view request =
    "GET /api/v1/customers/8472/orders?limit=50&after=cursor_x81 HTTP/1.1\r\n"
    "Host: api.example.com\r\n"
    "User-Agent: example-client/3.14 (linux; x86_64)\r\n"
    "Accept: application/json\r\n"
    "Accept-Encoding: gzip, deflate, br\r\n"
    "Authorization: Bearer 0b79bab50daca910b000d4f1a2b675d604257e42\r\n"
    "X-Request-Id: 7b92603e-77ed-4896-8e78-5dea2050476a\r\n"
    "X-Client-Region: eu-west\r\n"
    "Connection: keep-alive\r\n"
    "\r\n";

constexpr std::string_view response =
    "HTTP/1.1 200 OK\r\n"
    "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
    "Server: origin/2.4\r\n"
    "Content-Type: application/json; charset=utf-8\r\n"
    "Content-Length: 1270\r\n"
    "Cache-Control: private, max-age=0\r\n"
    "ETag: \"33a64df551425fcc55e4d42a148795d9f25f89d4\"\r\n"
    "Vary: Accept-Encoding\r\n"
    "X-Trace: 4bf92f3577b34da6a3ce929d0e0e4736\r\n"
    "\r\n";

constexpr std::string_view chunks =
    "200\r\n"
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    "\r\n"
    "0\r\n\r\n";

struct heads {
  wire::request_head request;
  wire::response_head response;
  std::string out;
};

}  // namespace

auto main(int argc, char** argv) -> int {
  auto const h = std::make_shared<heads>();
  h->out.reserve(4096);
  auto read_request = [h](std::size_t times) {
    for (; times != 0; --times) {
      bench::keep(wire::parse_request_head(request, 0, {}, h->request).size);
    }
  };
  auto read_response = [h](std::size_t times) {
    for (; times != 0; --times) {
      bench::keep(wire::parse_response_head(response, 0, {}, wire::method::get, h->response).size);
    }
  };
  read_request(1);
  read_response(1);
  auto forward_request = [h](std::size_t times) {
    for (; times != 0; --times) {
      h->out.clear();
      wire::append_request_head(
          h->out, h->request,
          {.field_lines = "Via: 1.1 tidegate\r\nX-Forwarded-For: 192.0.2.7\r\n",
           .body = h->request.body()});
      bench::keep(h->out.data());
    }
  };
  auto forward_response = [h](std::size_t times) {
    for (; times != 0; --times) {
      h->out.clear();
      wire::append_response_head(
          h->out, h->response,
          {.field_lines = "Via: 1.1 tidegate\r\n", .body = h->response.body()});
      bench::keep(h->out.data());
    }
  };
  auto pass_chunks = [](std::size_t times) {
    for (; times != 0; --times) {
      wire::body_decoder body({wire::body_kind::chunked, 0});
      std::string rewritten;
      bench::keep(body.pass(chunks, rewritten).content_octets);
    }
  };
  return bench::run_cases({{"wire/request-head", read_request, 1700, request.size()},
                           {"wire/response-head", read_response, 1600, response.size()},
                           {"wire/request-forward", forward_request, 0, request.size()},
                           {"wire/response-forward", forward_response, 0, response.size()},
                           {"wire/chunked-pass", pass_chunks, 0, chunks.size()}},
                          argc, argv);
}
