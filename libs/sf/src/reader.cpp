// SPDX-License-Identifier: Apache-2.0
#include <tidegate/sf/reader.hpp>

#include <tidegate/base/base64.hpp>
#include <tidegate/base/hex.hpp>

#include <cstdlib>
#include <cstring>

namespace tidegate::TIDEGATE_ABI::sf {

namespace {

constexpr std::array<double, 15> powers_of_ten = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6, 1e7,
                                                  1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14};

}  // namespace

auto bare_item_view::as_floating() const noexcept -> floating {
  assert(is(bare_item_type::floating));
  // Both operands are exact in binary64, so the quotient is the double nearest to the text.
  return {floating::unchecked{}, static_cast<double>(number_) / powers_of_ten[fraction_digits_]};
}

auto bare_item_view::decode(std::span<char> out) const noexcept -> std::size_t {
  if (out.size() < decoded_size_max()) {
    std::abort();  // writing behind the caller's memory would be worse
  }
  char* to = out.data();
  if (!encoded_) {
    if (size_ != 0) {
      std::memcpy(to, data_, size_);
    }
    return size_;
  }
  if (type_ == bare_item_type::byte_sequence) {
    auto text = raw();
    while (text.ends_with('=')) {
      text.remove_suffix(1);
    }
    return base64::decode<base64::standard>(text, to);
  }
  bool const display = type_ == bare_item_type::display_string;
  for (char const* p = data_; p != data_ + size_; ++p) {
    if (display && *p == '%') {
      *to++ = static_cast<char>(hex_value(p[1]) << 4 | hex_value(p[2]));
      p += 2;
    } else {
      if (!display && *p == '\\') {
        ++p;
      }
      *to++ = *p;
    }
  }
  return static_cast<std::size_t>(to - out.data());
}

auto bare_item_view::text(std::string& scratch) const -> std::string_view {
  if (!encoded_) {
    return raw();
  }
  scratch.resize(decoded_size_max());
  scratch.resize(decode(scratch));
  return scratch;
}

}  // namespace tidegate::TIDEGATE_ABI::sf
