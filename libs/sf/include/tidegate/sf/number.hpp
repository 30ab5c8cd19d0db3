// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/sf/error.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <utility>

namespace tidegate::TIDEGATE_ABI::sf {

namespace detail {

template <class T>
concept character = std::same_as<T, char> || std::same_as<T, wchar_t> || std::same_as<T, char8_t> ||
    std::same_as<T, char16_t> || std::same_as<T, char32_t>;

/// A whole number that an Integer can always hold.
template <class T>
concept small_integer = std::integral<T> && sizeof(T) <= 4 && !std::same_as<T, bool> &&
                        !character<T>;

/// A whole number that an Integer may not be able to hold.
template <class T>
concept large_integer = std::integral<T> && sizeof(T) > 4;

/// Has no definition that a constant expression may call: a wrong constant does not compile.
void integer_is_out_of_range();

}  // namespace detail

/// Integer (RFC 9651, section 3.3.1; draft11, section 3.4): up to fifteen digits and a sign.
class integer {
 public:
  /// The largest; the smallest is the same below zero.
  static constexpr std::int64_t max = 999'999'999'999'999;

  constexpr integer() noexcept = default;

  /// Types of up to 32 bits always fit.
  template <detail::small_integer T>
  constexpr integer(T value) noexcept : value_(value) {}  // NOLINT(google-explicit-constructor)

  /// A constant of 64 bits, checked while compiling. Others go through `make` or `clamp`.
  template <detail::large_integer T>
  consteval integer(T value)  // NOLINT(google-explicit-constructor)
      : value_(static_cast<std::int64_t>(value)) {
    if (!std::in_range<std::int64_t>(value) || value_ < -max || value_ > max) {
      detail::integer_is_out_of_range();
    }
  }

  /// Checks the range.
  [[nodiscard]] static constexpr auto make(std::int64_t value) -> result<integer, make_error> {
    if (value < -max || value > max) {
      return failure(make_error{make_fault::out_of_range, 0});
    }
    return integer(unchecked{}, value);
  }

  /// The nearest value that an Integer can carry.
  [[nodiscard]] static constexpr auto clamp(std::int64_t value) noexcept -> integer {
    return {unchecked{}, value < -max ? -max : value > max ? max : value};
  }

  /// The number.
  [[nodiscard]] constexpr auto value() const noexcept -> std::int64_t { return value_; }
  auto operator<=>(integer const&) const = default;

  /// For code of this library that has checked the range already, such as the parser.
  struct unchecked {
    explicit unchecked() = default;
  };
  constexpr integer(unchecked, std::int64_t value) noexcept : value_(value) {}

 private:
  std::int64_t value_ = 0;
};

/// Decimal (RFC 9651, section 3.3.2): twelve digits, a point and three digits; kept as thousandths.
class decimal {
 public:
  /// The largest; the smallest is the same below zero.
  static constexpr std::int64_t thousandths_max = 999'999'999'999'999;

  constexpr decimal() noexcept = default;

  /// Checks the range.
  [[nodiscard]] static constexpr auto from_thousandths(std::int64_t thousandths)
      -> result<decimal, make_error> {
    if (thousandths < -thousandths_max || thousandths > thousandths_max) {
      return failure(make_error{make_fault::out_of_range, 0});
    }
    return decimal(unchecked{}, thousandths);
  }

  /// Reads `-12.3456` and the like, of any length and with an optional exponent, and rounds to
  /// three places, halves to even (RFC 9651, section 4.1.5, steps 2 and 3).
  [[nodiscard]] static auto from_text(std::string_view text) -> result<decimal, make_error>;

  /// The number, in thousandths.
  [[nodiscard]] constexpr auto thousandths() const noexcept -> std::int64_t { return thousandths_; }
  auto operator<=>(decimal const&) const = default;

  /// For code of this library that has checked the range already.
  struct unchecked {
    explicit unchecked() = default;
  };
  constexpr decimal(unchecked, std::int64_t thousandths) noexcept : thousandths_(thousandths) {}

 private:
  std::int64_t thousandths_ = 0;
};

/// draft11's Float (section 3.5): a binary64 that can be written with at most fifteen digits, one
/// to fourteen of them before the point, and reads back equal.
class floating {
 public:
  constexpr floating() noexcept = default;

  /// Checks that fifteen digits can carry it.
  [[nodiscard]] static auto make(double value) -> result<floating, make_error>;
  /// Reads `-12.3456` and the like; what needs more than fifteen digits is refused.
  [[nodiscard]] static auto from_text(std::string_view text) -> result<floating, make_error>;

  /// The number.
  [[nodiscard]] constexpr auto value() const noexcept -> double { return value_; }
  auto operator<=>(floating const&) const = default;

  /// For code of this library that has checked the number already.
  struct unchecked {
    explicit unchecked() = default;
  };
  constexpr floating(unchecked, double value) noexcept : value_(value) {}

 private:
  double value_ = 0;
};

/// Date (RFC 9651, section 3.3.7): whole seconds since 1970-01-01T00:00:00Z, leap seconds left out.
class date {
 public:
  constexpr date() noexcept = default;
  constexpr explicit date(integer seconds) noexcept : seconds_(seconds) {}

  /// Checks the range.
  [[nodiscard]] static constexpr auto make(std::chrono::sys_seconds time)
      -> result<date, make_error> {
    auto const seconds = integer::make(time.time_since_epoch().count());
    if (!seconds) {
      return failure(seconds.error());
    }
    return date(*seconds);
  }

  /// The date as seconds, or as a time of the C++ library.
  [[nodiscard]] constexpr auto seconds() const noexcept -> integer { return seconds_; }
  [[nodiscard]] constexpr auto time() const noexcept -> std::chrono::sys_seconds {
    return std::chrono::sys_seconds(std::chrono::seconds(seconds_.value()));
  }
  auto operator<=>(date const&) const = default;

 private:
  integer seconds_;
};

}  // namespace tidegate::TIDEGATE_ABI::sf
