// SPDX-License-Identifier: Apache-2.0
#include "services/look_up.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/engine/socket.hpp>

#include <arpa/nameser.h>
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>

#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>

namespace tidegate::gateway {

namespace {

constexpr std::size_t hosts_octets_max = std::size_t{4} * 1024 * 1024;
constexpr std::size_t response_octets_max = 65535;

[[nodiscard]] auto ip_of(std::span<unsigned char const> bytes) -> std::optional<http::ip_address> {
  if (bytes.size() == 4) {
    return http::ip_address::from_v4(bytes.first<4>());
  }
  if (bytes.size() == 16) {
    return http::ip_address::from_v6(bytes.first<16>());
  }
  return std::nullopt;
}

[[nodiscard]] auto read_hosts_file() -> std::string {
  std::ifstream file("/etc/hosts", std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  text.resize(std::min(text.size(), hosts_octets_max));
  return text;
}

/// The resolver of glibc. It reads resolv.conf each time, as that may have changed.
class dns_client {
 public:
  explicit dns_client(std::optional<std::string> const& server) {
    ready_ = ::res_ninit(&state_) == 0;
    // For one server; then the next one is asked, and all of them once more.
    state_.retrans = 1;
    state_.retry = 2;
    if (server) {
      auto const address = engine::socket_address::parse(*server);
      if (address && address->size() == sizeof(sockaddr_in)) {
        std::memcpy(&state_.nsaddr_list[0], address->data(), sizeof(sockaddr_in));
        state_.nscount = 1;
      }
    }
    as_written_ = server.has_value();
  }
  dns_client(dns_client const&) = delete;
  auto operator=(dns_client const&) -> dns_client& = delete;
  ~dns_client() {
    if (ready_) {
      ::res_nclose(&state_);
    }
  }

  /// 0 or the code of netdb.h.
  [[nodiscard]] auto ask(std::string const& name, ns_type type, balance::name_answer& into) -> int {
    if (!ready_) {
      return NO_RECOVERY;
    }
    auto const size = as_written_
                          ? ::res_nquery(&state_, name.c_str(), ns_c_in, type, response_.get(),
                                         static_cast<int>(response_octets_max))
                          : ::res_nsearch(&state_, name.c_str(), ns_c_in, type, response_.get(),
                                          static_cast<int>(response_octets_max));
    if (size < 0) {
      return state_.res_h_errno != 0 ? state_.res_h_errno : NO_RECOVERY;
    }
    auto const whole = std::min(static_cast<std::size_t>(size), response_octets_max);
    return read_dns_response({reinterpret_cast<char const*>(response_.get()), whole}, into)
               ? 0
               : NO_RECOVERY;
  }

 private:
  struct __res_state state_ {};
  bool ready_ = false;
  bool as_written_ = false;
  std::unique_ptr<unsigned char[]> response_ =  // NOLINT(modernize-avoid-c-arrays)
      std::make_unique<unsigned char[]>(response_octets_max);
};

/// What the system knows besides, such as names by multicast. It does not say for how long.
[[nodiscard]] auto ask_system(std::string const& name, balance::name_answer& into) -> bool {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) {
    return false;
  }
  for (auto const* each = found; each != nullptr; each = each->ai_next) {
    auto const address = engine::socket_address::from_bytes(each->ai_addr, each->ai_addrlen);
    auto const bytes = address.ip_bytes();
    if (auto const ip =
            ip_of({reinterpret_cast<unsigned char const*>(bytes.data()), bytes.size()})) {
      into.addresses.push_back(*ip);
    }
  }
  ::freeaddrinfo(found);
  return !into.addresses.empty();
}

}  // namespace

auto addresses_in_hosts(std::string_view text, std::string_view name)
    -> std::vector<http::ip_address> {
  std::vector<http::ip_address> found;
  if (name.ends_with('.')) {
    name.remove_suffix(1);
  }
  while (!text.empty()) {
    auto line = take_until(text, '\n');
    line = line.substr(0, line.find('#'));
    std::optional<http::ip_address> address;
    while (!line.empty()) {
      auto const end = std::min(line.find_first_of(" \t\r"), line.size());
      auto const word = line.substr(0, end);
      line.remove_prefix(std::min(end + 1, line.size()));
      if (word.empty()) {
        continue;
      }
      if (!address) {
        auto const parsed = http::parse_ip_address(word);
        if (!parsed) {
          break;
        }
        address = *parsed;
      } else if (equal_ignoring_case(word, name)) {
        found.push_back(*address);
        break;
      }
    }
  }
  return found;
}

auto read_dns_response(std::string_view bytes, balance::name_answer& into) -> bool {
  ns_msg message{};
  if (::ns_initparse(reinterpret_cast<unsigned char const*>(bytes.data()),
                     static_cast<int>(bytes.size()), &message) != 0) {
    return false;
  }
  for (int i = 0; i < ns_msg_count(message, ns_s_an); ++i) {
    ns_rr record{};
    if (::ns_parserr(&message, ns_s_an, i, &record) != 0) {
      return false;
    }
    // The first bit is not set in a time that is one (RFC 2181, section 8).
    auto const seconds = ns_rr_ttl(record) > 0x7fffffffU ? 0 : ns_rr_ttl(record);
    auto const good_for = std::chrono::nanoseconds(std::chrono::seconds(seconds));
    into.good_for = std::min(into.good_for.value_or(good_for), good_for);
    bool const is_address = (ns_rr_type(record) == ns_t_a && ns_rr_rdlen(record) == 4) ||
                            (ns_rr_type(record) == ns_t_aaaa && ns_rr_rdlen(record) == 16);
    if (is_address && into.addresses.size() < 2 * balance::name_record::addresses_max) {
      into.addresses.push_back(
          *ip_of({ns_rr_rdata(record), static_cast<std::size_t>(ns_rr_rdlen(record))}));
    }
  }
  return true;
}

auto look_up(std::string const& name, std::optional<std::string> const& dns_server)
    -> result<balance::name_answer, std::string> {
  balance::name_answer answer;
  answer.addresses = addresses_in_hosts(read_hosts_file(), name);
  if (answer.addresses.empty() && (name == "localhost" || name.ends_with(".localhost"))) {
    answer.addresses = {*http::parse_ip_address("127.0.0.1"), *http::parse_ip_address("::1")};
  }
  if (!answer.addresses.empty()) {
    return answer;
  }
  dns_client client(dns_server);
  auto const v4 = client.ask(name, ns_t_a, answer);
  // When no server answers, the other family would only take as long again.
  auto const v6 =
      v4 == TRY_AGAIN && answer.addresses.empty() ? TRY_AGAIN : client.ask(name, ns_t_aaaa, answer);
  answer.lacks_v4 = v4 == TRY_AGAIN;
  answer.lacks_v6 = v6 == TRY_AGAIN;
  if (!answer.addresses.empty()) {
    return answer;
  }
  if (!dns_server && ask_system(name, answer)) {
    answer.good_for.reset();
    return answer;
  }
  bool const is_later = v4 == TRY_AGAIN || v6 == TRY_AGAIN;
  return failure(std::string(is_later ? "no DNS server answers" : "the name does not exist"));
}

}  // namespace tidegate::gateway
