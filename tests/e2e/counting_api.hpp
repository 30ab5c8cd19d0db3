// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gateway.hpp"

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace tidegate::e2e {

/// An API behind the gateway that counts what it does for each Idempotency-Key. The path says what
/// becomes of a request:
///
/// | path | answer |
/// |---|---|
/// | `/final` | 201 |
/// | `/error` | 500, though the work was done |
/// | `/large` | 200 with 200,000 octets |
/// | `/busy` | 429 and nothing done at first, 201 from then on |
/// | `/lost` | 503, though the work was done |
/// | `/deduplicated` | 201, and the same again without new work |
///
/// No two answers are alike, so that one that is made again is not taken for the first.
class counting_api {
 public:
  [[nodiscard]] auto url() const -> std::string { return serving_.url(); }
  /// How often the work of a key was done.
  [[nodiscard]] auto effects(std::string const& key) const -> std::size_t;
  /// How many keys had each number of effects.
  [[nodiscard]] auto counts() const -> std::map<std::size_t, std::size_t>;
  [[nodiscard]] auto requests() const -> std::size_t { return serving_.requests(); }

 private:
  struct done {
    std::size_t requests = 0;
    std::size_t effects = 0;
    std::string answer;
  };

  [[nodiscard]] auto answer(message const& request) -> std::string;

  mutable std::mutex mutex_;
  std::map<std::string, done> keys_;
  std::size_t number_ = 0;
  serving_origin serving_{[this](message const& request) { return answer(request); }};
};

}  // namespace tidegate::e2e
