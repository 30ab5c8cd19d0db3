// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <string>

namespace tidegate::store_sqlite {

/// Waits until the other end of a pipe is closed, and says what came through it.
inline auto all_from(int end) -> std::string {
  std::string all;
  for (char octet = 0; read(end, &octet, 1) == 1;) {
    all += octet;
  }
  return all;
}

/// Runs `work` in a child that is killed when it has written so many octets to the pipe that `work`
/// is given, and says what came through that: all of it was written before the kill.
template <class Work>
auto until_killed(std::size_t octets, Work const& work) -> std::string {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  auto const child = fork();
  if (child == 0) {
    close(ends[0]);
    work(ends[1]);
    _exit(1);
  }
  close(ends[1]);
  std::string all;
  char octet = 0;
  while (all.size() < octets && read(ends[0], &octet, 1) == 1) {
    all += octet;
  }
  EXPECT_EQ(all.size(), octets) << "it ended by itself";
  // Only a child: -1 would be every process there is.
  if (child > 0) {
    EXPECT_EQ(kill(child, SIGKILL), 0);
  }
  all += all_from(ends[0]);
  close(ends[0]);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  return all;
}

}  // namespace tidegate::store_sqlite
