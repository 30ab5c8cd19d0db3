// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/version.hpp>

#include <expected>
#include <utility>

namespace tidegate::TIDEGATE_ABI {

/// Either a value or a small error struct of the module that failed.
///
/// What the peer, the input or the world does wrong comes back as a `result`: no library throws.
/// Memory that is not there is the exception: what allocates lets `std::bad_alloc` pass.
template <class T, class E>
using result = std::expected<T, E>;

/// Wraps an error so that it converts to any `result` with that error type.
template <class E>
[[nodiscard]] constexpr auto failure(E error) -> std::unexpected<E> {
  return std::unexpected<E>(std::move(error));
}

}  // namespace tidegate::TIDEGATE_ABI

#define TIDEGATE_TRY_NAMED_1(line, target, expression) \
  TIDEGATE_TRY_NAMED_2(line, target, expression)
#define TIDEGATE_TRY_NAMED_2(line, target, expression) \
  TIDEGATE_TRY_NAMED_3(tidegate_try_##line, target, expression)
#define TIDEGATE_TRY_NAMED_3(temporary, target, expression)   \
  auto temporary = (expression);                              \
  if (!temporary.has_value()) {                               \
    return ::tidegate::failure(std::move(temporary).error()); \
  }                                                           \
  target = *std::move(temporary)

/// `TIDEGATE_TRY(auto x, f());` binds the value of `f()` to `x`, or returns its error from the
/// enclosing function. This and the next are the only control-flow macros of the project, and yours
/// to use: libstdc++ 12 has no `and_then`. What begins with TIDEGATE_TRY_NAMED_ is how it works.
#define TIDEGATE_TRY(target, ...) TIDEGATE_TRY_NAMED_1(__LINE__, target, (__VA_ARGS__))

/// The same for an expression whose value is of no interest.
#define TIDEGATE_TRY_VOID(...)                                          \
  do {                                                                  \
    auto tidegate_try_void = (__VA_ARGS__);                             \
    if (!tidegate_try_void.has_value()) {                               \
      return ::tidegate::failure(std::move(tidegate_try_void).error()); \
    }                                                                   \
  } while (false)
