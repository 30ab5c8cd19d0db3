// SPDX-License-Identifier: Apache-2.0
#include "keys/commit_mark.hpp"

#include "crc32c.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

namespace tidegate::store_sqlite {

using store::store_error;
using store::store_fault;

namespace {

constexpr std::string_view magic = "tidgcmt1";
constexpr std::size_t store_octets = 16;
constexpr std::size_t size = magic.size() + store_octets + 8 + 4;

/// The lowest octet comes first.
void append_number(std::string& out, std::uint64_t value, int octets) {
  for (int i = 0; i < octets; ++i) {
    out.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
  }
}

[[nodiscard]] auto number_of(std::string_view octets) -> std::uint64_t {
  std::uint64_t value = 0;
  for (auto const octet : octets) {
    value = (value >> 8) | (std::uint64_t{static_cast<unsigned char>(octet)} << 56);
  }
  return value >> (8 * (8 - octets.size()));
}

[[nodiscard]] auto octets_of(commit_mark::content const& is) -> std::string {
  std::string out(magic);
  out.append(is.store);
  append_number(out, is.commits, 8);
  append_number(out, crc32c(out), 4);
  return out;
}

[[nodiscard]] auto fault(std::string const& name) -> store_error {
  return {store_fault::unavailable, name + ": " + std::generic_category().message(errno)};
}

/// A name in a folder is durable when the folder is.
[[nodiscard]] auto sync_folder_of(std::string const& name) -> bool {
  auto const above = std::filesystem::path(name).parent_path();
  int const folder = ::open(above.empty() ? "." : above.c_str(), O_RDONLY | O_CLOEXEC);
  if (folder < 0) {
    return false;
  }
  bool const done = ::fsync(folder) == 0;
  ::close(folder);
  return done;
}

}  // namespace

auto commit_mark::name_of(std::string const& file) -> std::string {
  return file + ".commits";
}

auto commit_mark::read(std::string const& file) -> outcome<std::optional<content>> {
  auto const name = name_of(file);
  int const descriptor = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    if (errno == ENOENT) {
      return std::nullopt;
    }
    return failure(fault(name));
  }
  std::array<char, size + 1> room{};
  auto const got = ::read(descriptor, room.data(), room.size());
  auto const why = fault(name);
  ::close(descriptor);
  if (got < 0) {
    return failure(why);
  }
  std::string_view const text(room.data(), static_cast<std::size_t>(got));
  if (text.size() != size || !text.starts_with(magic) ||
      number_of(text.substr(size - 4)) != crc32c(text.substr(0, size - 4))) {
    return failure(store_error{store_fault::damaged,
                               name + ": damaged; if " + file +
                                   " is known to be whole, remove this file and start again"});
  }
  return content{std::string(text.substr(magic.size(), store_octets)),
                 number_of(text.substr(magic.size() + store_octets, 8))};
}

auto commit_mark::open(std::string const& file, content const& is) -> outcome<commit_mark> {
  auto const name = name_of(file);
  commit_mark made;
  made.descriptor_ = ::open(name.c_str(), O_WRONLY | O_CLOEXEC);
  if (made.descriptor_ >= 0) {
    return made;
  }
  // Under another name first, so that a crash leaves no half of it behind.
  auto const draft = name + ".new";
  auto const octets = octets_of(is);
  made.descriptor_ = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (made.descriptor_ < 0 ||
      ::pwrite(made.descriptor_, octets.data(), octets.size(), 0) !=
          static_cast<ssize_t>(octets.size()) ||
      ::fdatasync(made.descriptor_) != 0 || ::rename(draft.c_str(), name.c_str()) != 0 ||
      !sync_folder_of(name)) {
    return failure(fault(name));
  }
  return made;
}

commit_mark::commit_mark(commit_mark&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

auto commit_mark::operator=(commit_mark&& other) noexcept -> commit_mark& {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

commit_mark::~commit_mark() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

void commit_mark::write(content const& is) noexcept {
  auto const octets = octets_of(is);
  // The whole mark is in one sector, so a crash leaves the old one or the new one.
  std::ignore = ::pwrite(descriptor_, octets.data(), octets.size(), 0);
}

}  // namespace tidegate::store_sqlite
