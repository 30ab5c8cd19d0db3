// SPDX-License-Identifier: Apache-2.0
//
// What the gateway reads of every request besides its framing: target, path, host, client,
// parameters.
#include "harness.hpp"

#include <tidegate/http.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace {

using namespace tidegate;
using namespace std::string_view_literals;

constexpr auto target = "/v1/customers/8f14e45f/orders/2024-05-17?page=2&key=abc%20def"sv;
constexpr auto usual_path = "/v1/customers/8f14e45f/orders/2024-05-17"sv;
constexpr auto unusual_path = "/v1/customers/%38f14e45f/./orders/../orders/2024-05-17"sv;
constexpr auto cookies = "theme=dark; lang=en-US; session=0123456789abcdef0123456789abcdef"sv;

/// A case that calls `work` with the string that it may write to; it has room from the beginning.
template <class Work>
auto repeated(std::string name, Work work) -> bench::bench_case {
  auto scratch = std::make_shared<std::string>(256, ' ');
  return {std::move(name), [work, scratch](std::size_t times) {
            for (std::size_t i = 0; i < times; ++i) {
              scratch->clear();
              work(*scratch);
            }
          }};
}

}  // namespace

auto main(int argc, char** argv) -> int {
  std::array const networks = {*http::parse_cidr("10.0.0.0/8"), *http::parse_cidr("fd00::/8")};
  http::cidr_set const trusted(networks);
  auto const peer = *http::parse_ip_address("10.0.0.1");
  return bench::run_cases(
      {
          repeated("uri/target", [](auto&) { bench::keep(http::parse_target("GET", target)); }),
          repeated("uri/path/usual",
                   [](auto& out) { bench::keep(http::normal_path(usual_path, out)); }),
          repeated("uri/path/unusual",
                   [](auto& out) { bench::keep(http::normal_path(unusual_path, out)); }),
          repeated("uri/host",
                   [](auto& out) {
                     http::append_normal_host(out, *http::parse_host("API.example.com:8443"));
                     bench::keep(out);
                   }),
          repeated("uri/address",
                   [](auto&) { bench::keep(http::parse_ip_address("2001:db8:1:2::42")); }),
          repeated("uri/client_key",
                   [peer](auto& out) {
                     http::append_client_key(out, peer);
                     bench::keep(out);
                   }),
          repeated("uri/x_forwarded_for",
                   [&](auto&) {
                     std::array const lines = {"192.0.2.1, 10.0.0.2"sv};
                     bench::keep(http::client_by_x_forwarded_for(peer, lines, trusted));
                   }),
          repeated("uri/forwarded",
                   [&](auto&) {
                     std::array const lines = {"for=192.0.2.1;proto=https, for=10.0.0.2"sv};
                     bench::keep(http::client_by_forwarded(peer, lines, trusted));
                   }),
          repeated("uri/query",
                   [](auto& out) {
                     bench::keep(http::query_value("page=2&key=abc%20def", "key", out));
                   }),
          repeated("uri/cookie",
                   [](auto&) {
                     std::array const lines = {cookies};
                     bench::keep(http::find_cookie(lines, "session"));
                   }),
      },
      argc, argv);
}
