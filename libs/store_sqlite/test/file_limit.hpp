// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

namespace tidegate::store_sqlite {

/// While it is there, files do not grow beyond so many octets: what is written behind that fails
/// with EFBIG.
class file_limit {
 public:
  explicit file_limit(rlim_t octets) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before_), 0);
    rlimit const now{octets, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &now), 0);
  }
  ~file_limit() {
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before_), 0);
    std::signal(SIGXFSZ, handler_);
  }
  file_limit(file_limit const&) = delete;
  auto operator=(file_limit const&) -> file_limit& = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

}  // namespace tidegate::store_sqlite
