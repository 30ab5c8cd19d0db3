// SPDX-License-Identifier: Apache-2.0
#pragma once

#if __cplusplus <= 202002L
#error "Tidegate needs C++23: compile with -std=c++23"
#endif

#include <expected>
#include <utility>

namespace tidegate {

/// Either a value or a small error struct of the module that failed.
///
/// What the peer, the input or the world does wrong comes back as a `result`; exceptions do not
/// cross a module.
template <class T, class E>
using result = std::expected<T, E>;

/// Wraps an error so that it converts to any `result` with that error type.
template <class E>
[[nodiscard]] constexpr auto failure(E error) -> std::unexpected<E> {
  return std::unexpected<E>(std::move(error));
}

}  // namespace tidegate

#define TIDEGATE_JOIN_2(a, b) a##b
#define TIDEGATE_JOIN(a, b) TIDEGATE_JOIN_2(a, b)
#define TIDEGATE_TRY_3(temporary, target, expression)         \
  auto temporary = (expression);                              \
  if (!temporary.has_value()) {                               \
    return ::tidegate::failure(std::move(temporary).error()); \
  }                                                           \
  target = *std::move(temporary)

/// `TIDEGATE_TRY(auto x, f());` binds the value of `f()` to `x`, or returns its error from the
/// enclosing function. The one control-flow macro of the project: libstdc++ 12 has no `and_then`.
#define TIDEGATE_TRY(target, ...) \
  TIDEGATE_TRY_3(TIDEGATE_JOIN(tidegate_try_, __LINE__), target, (__VA_ARGS__))

/// The same for an expression whose value is of no interest.
#define TIDEGATE_TRY_VOID(...)                                          \
  do {                                                                  \
    auto tidegate_try_void = (__VA_ARGS__);                             \
    if (!tidegate_try_void.has_value()) {                               \
      return ::tidegate::failure(std::move(tidegate_try_void).error()); \
    }                                                                   \
  } while (false)
