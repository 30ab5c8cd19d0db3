// SPDX-License-Identifier: Apache-2.0
#include "services/look_up.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidegate::gateway {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

auto texts(std::vector<http::ip_address> const& addresses) -> std::vector<std::string> {
  std::vector<std::string> out;
  for (auto const& each : addresses) {
    out.push_back(http::to_string(each));
  }
  return out;
}

TEST(proxy_look_up, finds_all_addresses_of_a_hosts_file) {
  constexpr std::string_view hosts =
      "# comment api\n"
      "127.0.0.1\tlocalhost\n"
      "10.0.0.1 other api.example  API # api2\r\n"
      "nonsense api\n"
      "2001:db8::1 api\n"
      "10.0.0.2 apis";
  EXPECT_THAT(texts(addresses_in_hosts(hosts, "api")), ElementsAre("10.0.0.1", "2001:db8::1"));
  EXPECT_THAT(texts(addresses_in_hosts(hosts, "api.example.")), ElementsAre("10.0.0.1"));
  EXPECT_THAT(texts(addresses_in_hosts(hosts, "apis")), ElementsAre("10.0.0.2"));
  EXPECT_THAT(addresses_in_hosts(hosts, "api2"), IsEmpty());
  EXPECT_THAT(addresses_in_hosts("", "api"), IsEmpty());
}

/// The header of a DNS response with so many answers, and the question for the name `a`.
auto response_with(char answers) -> std::string {
  using namespace std::string_literals;
  return "\0\1\x81\x80\0\1\0"s + answers + "\0\0\0\0\1a\0\0\1\0\1"s;
}

/// An answer with a pointer to the name of the question.
auto answer(char type, std::uint8_t seconds, std::string const& data) -> std::string {
  using namespace std::string_literals;
  return "\xc0\x0c\0"s + type + "\0\1\0\0\0"s + static_cast<char>(seconds) + '\0' +
         static_cast<char>(data.size()) + data;
}

TEST(proxy_look_up, reads_addresses_and_the_shortest_time_of_a_response) {
  balance::name_answer found;
  EXPECT_TRUE(read_dns_response(response_with(3) + answer(5, 9, "\1b\xc0\x0c") +
                                    answer(1, 30, "\x0a\1\1\1") + answer(1, 20, "\x0a\1\1\2"),
                                found));
  EXPECT_THAT(texts(found.addresses), ElementsAre("10.1.1.1", "10.1.1.2"));
  EXPECT_EQ(found.good_for, 9s) << "that of the alias";
  EXPECT_TRUE(
      read_dns_response(response_with(1) + answer(28, 5, std::string(15, '\0') + "\1"), found));
  EXPECT_THAT(texts(found.addresses), ElementsAre("10.1.1.1", "10.1.1.2", "::1"));
  EXPECT_EQ(found.good_for, 5s) << "of both families";
}

TEST(proxy_look_up, takes_no_address_of_another_length) {
  balance::name_answer found;
  EXPECT_TRUE(read_dns_response(response_with(2) + answer(1, 9, "\x0a\1\1") + answer(28, 9, "abcd"),
                                found));
  EXPECT_THAT(found.addresses, IsEmpty());
}

TEST(proxy_look_up, refuses_a_response_wherever_it_is_cut) {
  auto const whole = response_with(1) + answer(1, 30, "\x0a\1\1\1");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    balance::name_answer found;
    EXPECT_FALSE(read_dns_response(whole.substr(0, size), found)) << size;
  }
}

TEST(proxy_look_up, knows_this_machine_without_asking) {
  auto const found = look_up("localhost", "127.0.0.1:1");
  ASSERT_TRUE(found);
  EXPECT_THAT(texts(found->addresses), testing::Contains("127.0.0.1"));
  EXPECT_EQ(found->good_for, std::nullopt);
}

TEST(proxy_look_up, says_that_no_server_answers) {
  auto const found = look_up("api.test", "127.0.0.1:1");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error(), "no DNS server answers");
}

}  // namespace
}  // namespace tidegate::gateway
