// SPDX-License-Identifier: Apache-2.0
#include "request/spooled_content.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace tidegate::gateway {

namespace {

[[nodiscard]] auto open_nameless(std::string const& folder) -> engine::descriptor {
  engine::descriptor file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file.is_open()) {  // a file system that cannot: make one and take its name away
    auto name = folder + "/content.XXXXXX";
    file = engine::descriptor(::mkostemp(name.data(), O_CLOEXEC));
    if (file.is_open()) {
      ::unlink(name.c_str());
    }
  }
  return file;
}

}  // namespace

auto spooled_content::append(std::string_view piece, std::string const& folder) -> bool {
  if (!file_.is_open()) {
    auto const fits = std::min(piece.size(), memory_octets_max - head_.size());
    head_.append(piece.substr(0, fits));
    piece.remove_prefix(fits);
    if (piece.empty()) {
      return true;
    }
    file_ = open_nameless(folder);
  }
  while (file_.is_open() && !piece.empty()) {
    auto const written =
        ::pwrite(file_.get(), piece.data(), piece.size(), static_cast<off_t>(file_octets_));
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return false;
    }
    file_octets_ += static_cast<std::uint64_t>(written);
    piece.remove_prefix(static_cast<std::size_t>(written));
  }
  return piece.empty();
}

auto spooled_content::read(std::uint64_t at, std::size_t octets, std::string& out) const -> bool {
  auto left = static_cast<std::size_t>(
      std::min<std::uint64_t>(octets, size() - std::min<std::uint64_t>(at, size())));
  if (at < head_.size()) {
    auto const part = std::string_view(head_).substr(at, left);
    out.append(part);
    at += part.size();
    left -= part.size();
  }
  while (left > 0) {
    auto const before = out.size();
    out.resize(before + left);
    auto const got =
        ::pread(file_.get(), out.data() + before, left, static_cast<off_t>(at - head_.size()));
    out.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return false;
    }
    at += static_cast<std::uint64_t>(got);
    left -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace tidegate::gateway
