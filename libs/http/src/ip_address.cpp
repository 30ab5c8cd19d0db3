// SPDX-License-Identifier: Apache-2.0
#include <tidegate/http/ip_address.hpp>

#include <tidegate/base/hex.hpp>

#include <algorithm>
#include <charconv>
#include <optional>

namespace tidegate::TIDEGATE_ABI::http {

namespace {

constexpr std::size_t groups_max = 8;
constexpr unsigned mapped_prefix_length = 96;  // of ::ffff:0:0/96

constexpr std::array<std::uint8_t, 12> mapped_prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

[[nodiscard]] auto fault_at(ip_fault fault, std::size_t offset) noexcept {
  return failure(ip_error{fault, offset});
}

/// The error of something else at `offset` than what must stand there.
[[nodiscard]] auto unexpected(std::string_view text, std::size_t offset) noexcept {
  return fault_at(offset < text.size() ? ip_fault::unexpected_character : ip_fault::unexpected_end,
                  offset);
}

/// Reads a decimal number of at most three digits at `i` and moves `i` behind it.
[[nodiscard]] auto parse_decimal(std::string_view text, std::size_t& i, unsigned max,
                                 ip_fault beyond_max) noexcept -> result<unsigned, ip_error> {
  auto const begin = i;
  unsigned value = 0;
  for (; i < text.size() && is_digit(text[i]); ++i) {
    if (i > begin && text[begin] == '0') {
      return fault_at(ip_fault::leading_zero, begin);
    }
    value = value * 10 + static_cast<unsigned>(text[i] - '0');
    if (value > max) {
      return fault_at(beyond_max, begin);
    }
  }
  if (i == begin) {
    return unexpected(text, i);
  }
  return value;
}

/// Reads four numbers from `i` to the end.
[[nodiscard]] auto parse_v4(std::string_view text, std::size_t i) noexcept
    -> result<std::array<std::uint8_t, 4>, ip_error> {
  std::array<std::uint8_t, 4> bytes{};
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    if (n > 0) {
      if (i == text.size() || text[i] != '.') {
        return unexpected(text, i);
      }
      ++i;
    }
    TIDEGATE_TRY(auto const octet, parse_decimal(text, i, 255, ip_fault::octet_out_of_range));
    bytes[n] = static_cast<std::uint8_t>(octet);
  }
  if (i < text.size()) {
    return unexpected(text, i);
  }
  return bytes;
}

/// The groups of an IPv6 address while it is read.
class v6_groups {
 public:
  [[nodiscard]] auto full() const noexcept -> bool { return count_ == groups_max; }
  [[nodiscard]] auto has_gap() const noexcept -> bool { return gap_.has_value(); }
  [[nodiscard]] auto room() const noexcept -> std::size_t { return groups_max - count_; }
  void set_gap() noexcept { gap_ = count_; }
  void push(std::uint8_t high, std::uint8_t low) noexcept {
    bytes_[2 * count_] = high;
    bytes_[2 * count_ + 1] = low;
    ++count_;
  }
  /// All sixteen bytes, with zeros in the gap.
  [[nodiscard]] auto spread() const noexcept -> std::array<std::uint8_t, 16> {
    auto bytes = bytes_;
    if (gap_) {
      auto const gap = bytes.begin() + static_cast<std::ptrdiff_t>(2 * *gap_);
      auto const end = bytes.begin() + static_cast<std::ptrdiff_t>(2 * count_);
      // What comes after the gap moves to the end, the zeros behind it to the gap.
      std::rotate(gap, end, bytes.end());
    }
    return bytes;
  }

 private:
  std::array<std::uint8_t, 16> bytes_{};
  std::size_t count_ = 0;
  std::optional<std::size_t> gap_{};
};

/// RFC 4291, section 2.2.
[[nodiscard]] auto parse_v6(std::string_view text) noexcept -> result<ip_address, ip_error> {
  v6_groups groups;
  std::size_t i = 0;
  if (text.starts_with(':')) {
    if (!text.starts_with("::")) {
      return unexpected(text, std::min<std::size_t>(1, text.size()));
    }
    groups.set_gap();
    i = 2;
  }
  while (i < text.size()) {
    auto const begin = i;
    unsigned value = 0;
    for (; i < text.size() && hex_value(text[i]) >= 0; ++i) {
      if (i - begin == 4) {
        return fault_at(ip_fault::group_too_long, begin);
      }
      value = value * 16 + static_cast<unsigned>(hex_value(text[i]));
    }
    if (i == begin) {
      return unexpected(text, i);
    }
    // The gap stands for at least one group.
    if (groups.room() == (groups.has_gap() ? 1 : 0)) {
      return fault_at(ip_fault::too_many_groups, begin);
    }
    if (i < text.size() && text[i] == '.') {
      if (groups.room() < (groups.has_gap() ? 3 : 2)) {
        return fault_at(ip_fault::too_many_groups, begin);
      }
      TIDEGATE_TRY(auto const v4, parse_v4(text, begin));
      groups.push(v4[0], v4[1]);
      groups.push(v4[2], v4[3]);
      i = text.size();
      break;
    }
    groups.push(static_cast<std::uint8_t>(value >> 8U), static_cast<std::uint8_t>(value & 0xffU));
    if (i == text.size()) {
      break;
    }
    if (text[i] != ':') {
      return unexpected(text, i);
    }
    ++i;
    if (i < text.size() && text[i] == ':') {
      if (groups.has_gap()) {
        return fault_at(ip_fault::second_gap, i - 1);
      }
      if (groups.full()) {
        return fault_at(ip_fault::too_many_groups, i - 1);
      }
      groups.set_gap();
      ++i;
    } else if (i == text.size()) {
      return unexpected(text, i);
    }
  }
  if (!groups.full() && !groups.has_gap()) {
    return unexpected(text, i);
  }
  return ip_address::from_v6(groups.spread());
}

/// The bits of byte `i` of an address that are behind the prefix.
[[nodiscard]] auto host_bits(unsigned i, unsigned prefix_length) noexcept -> std::uint8_t {
  auto const kept = prefix_length > 8 * i ? std::min(prefix_length - 8 * i, 8U) : 0U;
  return static_cast<std::uint8_t>(0xffU >> kept);
}

void append_number(std::string& out, unsigned value, int base) {
  std::array<char, 8> digits{};
  auto const end = std::to_chars(digits.data(), digits.data() + digits.size(), value, base).ptr;
  out.append(digits.data(), end);
}

/// The longest run of at least two zero groups, the first of several: RFC 5952, section 4.2.
struct zero_run {
  std::size_t begin = groups_max;
  std::size_t size = 1;
};

[[nodiscard]] auto longest_zero_run(std::span<std::uint8_t const> bytes) noexcept -> zero_run {
  zero_run longest;
  std::size_t size = 0;
  for (std::size_t group = 0; group < groups_max; ++group) {
    bool const is_zero = bytes[2 * group] == 0 && bytes[2 * group + 1] == 0;
    size = is_zero ? size + 1 : 0;
    if (size > longest.size) {
      longest = {.begin = group + 1 - size, .size = size};
    }
  }
  return longest;
}

void append_v6(std::string& out, std::span<std::uint8_t const> bytes) {
  auto const zeros = longest_zero_run(bytes);
  for (std::size_t group = 0; group < groups_max; ++group) {
    if (group == zeros.begin) {
      out.append("::");
      group += zeros.size - 1;
      continue;
    }
    if (group > 0 && group != zeros.begin + zeros.size) {
      out.push_back(':');
    }
    append_number(out, bytes[2 * group] * 256U + bytes[2 * group + 1], 16);
  }
}

}  // namespace

auto ip_address::from_v4(std::span<std::uint8_t const, 4> bytes) noexcept -> ip_address {
  ip_address address;
  std::ranges::copy(bytes, address.bytes_.begin());
  return address;
}

auto ip_address::from_v6(std::span<std::uint8_t const, 16> bytes) noexcept -> ip_address {
  if (std::ranges::equal(bytes.first<12>(), mapped_prefix)) {
    return from_v4(bytes.last<4>());
  }
  ip_address address;
  address.size_ = 16;
  std::ranges::copy(bytes, address.bytes_.begin());
  return address;
}

auto ip_address::first_of_network(unsigned prefix_length) const noexcept -> ip_address {
  auto first = *this;
  for (unsigned i = 0; i < size_; ++i) {
    first.bytes_[i] &= static_cast<std::uint8_t>(~host_bits(i, prefix_length));
  }
  return first;
}

auto ip_address::last_of_network(unsigned prefix_length) const noexcept -> ip_address {
  auto last = *this;
  for (unsigned i = 0; i < size_; ++i) {
    last.bytes_[i] |= host_bits(i, prefix_length);
  }
  return last;
}

auto message(ip_fault fault) noexcept -> std::string_view {
  switch (fault) {
    case ip_fault::unexpected_end: return "the address ends too early";
    case ip_fault::unexpected_character: return "this character cannot stand here";
    case ip_fault::octet_out_of_range: return "a number of an IPv4 address is at most 255";
    case ip_fault::leading_zero: return "a decimal number must not begin with 0";
    case ip_fault::group_too_long: return "a group of an IPv6 address has at most four digits";
    case ip_fault::too_many_groups: return "an IPv6 address has at most eight groups";
    case ip_fault::second_gap: return "\"::\" may stand only once";
    case ip_fault::prefix_out_of_range: return "the prefix length is beyond what the address has";
  }
  return "unknown fault";
}

auto parse_ip_address(std::string_view text) noexcept -> result<ip_address, ip_error> {
  if (text.find(':') != std::string_view::npos) {
    return parse_v6(text);
  }
  TIDEGATE_TRY(auto const bytes, parse_v4(text, 0));
  return ip_address::from_v4(bytes);
}

void append_ip_address(std::string& out, ip_address const& address) {
  auto const bytes = address.bytes();
  if (!address.is_v4()) {
    append_v6(out, bytes);
    return;
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i > 0) {
      out.push_back('.');
    }
    append_number(out, bytes[i], 10);
  }
}

auto to_string(ip_address const& address) -> std::string {
  std::string text;
  append_ip_address(text, address);
  return text;
}

void append_client_key(std::string& out, ip_address const& address, unsigned ipv6_prefix_length) {
  if (address.is_v4() || ipv6_prefix_length >= address.bits()) {
    append_ip_address(out, address);
    return;
  }
  append_ip_address(out, address.first_of_network(ipv6_prefix_length));
  out.push_back('/');
  append_number(out, ipv6_prefix_length, 10);
}

auto cidr::contains(ip_address const& candidate) const noexcept -> bool {
  return candidate.is_v4() == address.is_v4() &&
         candidate.first_of_network(prefix_length) == address.first_of_network(prefix_length);
}

auto parse_cidr(std::string_view text) noexcept -> result<cidr, ip_error> {
  auto const slash = std::min(text.find('/'), text.size());
  auto const address_text = text.substr(0, slash);
  auto const address = parse_ip_address(address_text);
  if (!address) {
    // An address that ends too early before "/" has a wrong character there, as far as the text
    // goes.
    auto error = address.error();
    if (error.fault == ip_fault::unexpected_end && slash < text.size()) {
      error.fault = ip_fault::unexpected_character;
    }
    return failure(error);
  }
  if (slash == text.size()) {
    return cidr{*address, address->bits()};
  }
  bool const is_mapped = address->is_v4() && address_text.find(':') != std::string_view::npos;
  unsigned const length_min = is_mapped ? mapped_prefix_length : 0;
  unsigned const length_max = length_min + address->bits();
  auto i = slash + 1;
  TIDEGATE_TRY(auto const length,
               parse_decimal(text, i, length_max, ip_fault::prefix_out_of_range));
  if (i < text.size()) {
    return unexpected(text, i);
  }
  if (length < length_min) {
    return fault_at(ip_fault::prefix_out_of_range, slash + 1);
  }
  auto const prefix_length = length - length_min;
  return cidr{address->first_of_network(prefix_length), prefix_length};
}

auto to_string(cidr const& network) -> std::string {
  auto text = to_string(network.address);
  text.push_back('/');
  append_number(text, network.prefix_length, 10);
  return text;
}

cidr_set::cidr_set(std::span<cidr const> networks) {
  std::vector<range> sorted;
  sorted.reserve(networks.size());
  for (auto const& network : networks) {
    sorted.push_back({network.address.first_of_network(network.prefix_length),
                      network.address.last_of_network(network.prefix_length)});
  }
  std::ranges::sort(sorted, {}, &range::first);
  // Two networks are apart, or one is inside of the other; the outer one may come second when both
  // begin at the same address.
  for (auto const& next : sorted) {
    if (!ranges_.empty() && next.first <= ranges_.back().last) {
      ranges_.back().last = std::max(ranges_.back().last, next.last);
    } else {
      ranges_.push_back(next);
    }
  }
}

auto cidr_set::contains(ip_address const& address) const noexcept -> bool {
  auto const after = std::ranges::upper_bound(ranges_, address, {}, &range::first);
  return after != ranges_.begin() && address <= std::prev(after)->last;
}

}  // namespace tidegate::TIDEGATE_ABI::http
