// SPDX-License-Identifier: Apache-2.0
#include "directory/file_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace tidegate::store_sqlite {

auto file_lock::take(std::string const& file) -> outcome<file_lock> {
  auto const name = file + ".lock";
  auto const error = [](std::string text) {
    return failure(store::store_error{store::store_fault::unavailable, std::move(text)});
  };
  int const descriptor = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    return error(name + ": " + std::generic_category().message(errno));
  }
  file_lock made(descriptor);
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    return errno == EWOULDBLOCK ? error(file + ": in use by another process")
                                : error(name + ": " + std::generic_category().message(errno));
  }
  return made;
}

file_lock::~file_lock() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

}  // namespace tidegate::store_sqlite
