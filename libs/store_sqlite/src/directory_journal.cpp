// SPDX-License-Identifier: Apache-2.0
#include "directory_journal.hpp"

#include "crc32c.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <random>
#include <system_error>

namespace tidegate::store_sqlite {

using store::store_error;
using store::store_fault;

namespace {

constexpr std::size_t head_octets = 40;
/// The file grows by so much at a time, so that most syncs find it as long as it was.
constexpr std::uint64_t grown_octets = std::uint64_t{1} << 20;
constexpr std::uint64_t piece_octets = 4096;
/// Memory of a large group is given back.
constexpr std::size_t kept_octets_max = std::size_t{1} << 20;

[[nodiscard]] auto number_at(char const* octets) noexcept -> std::uint64_t {
  std::uint64_t value = 0;
  for (int i = 7; i >= 0; --i) {
    value = (value << 8) | static_cast<unsigned char>(octets[i]);
  }
  return value;
}

void put_number(char* octets, std::uint64_t value) noexcept {
  for (int i = 0; i < 8; ++i) {
    octets[i] = static_cast<char>(value >> (8 * i));
  }
}

struct group_head {
  std::uint64_t octets;
  std::uint64_t checksum;  // of all that is behind it
  std::uint64_t salt;
  std::uint64_t identity;
  std::uint64_t number;
};

[[nodiscard]] auto head_of(char const* octets) noexcept -> group_head {
  return {number_at(octets), number_at(octets + 8), number_at(octets + 16), number_at(octets + 24),
          number_at(octets + 32)};
}

/// All of it, or as much as there is.
[[nodiscard]] auto read_at(int descriptor, char* to, std::size_t size, std::uint64_t offset)
    -> ssize_t {
  std::size_t got = 0;
  while (got < size) {
    auto const some = pread(descriptor, to + got, size - got, static_cast<off_t>(offset + got));
    if (some < 0 && errno == EINTR) {
      continue;
    }
    if (some < 0) {
      return -1;
    }
    if (some == 0) {
      break;
    }
    got += static_cast<std::size_t>(some);
  }
  return static_cast<ssize_t>(got);
}

[[nodiscard]] auto write_at(int descriptor, std::string_view octets, std::uint64_t offset) -> bool {
  while (!octets.empty()) {
    auto const some = pwrite(descriptor, octets.data(), octets.size(), static_cast<off_t>(offset));
    if (some < 0 && errno == EINTR) {
      continue;
    }
    if (some <= 0) {
      return false;
    }
    octets.remove_prefix(static_cast<std::size_t>(some));
    offset += static_cast<std::uint64_t>(some);
  }
  return true;
}

/// So that the name of a new file is there after a loss of power.
[[nodiscard]] auto sync_folder_of(std::string const& file) -> bool {
  auto const folder = std::filesystem::path(file).parent_path();
  int const descriptor =
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) {
    return false;
  }
  bool const synced = fsync(descriptor) == 0;
  close(descriptor);
  return synced;
}

}  // namespace

auto directory_journal::open(std::string const& directory_file, std::uint64_t identity)
    -> outcome<directory_journal> {
  auto name = directory_file + ".journal";
  int const descriptor = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  directory_journal made(std::move(name), descriptor, identity);
  struct stat status {};
  if (descriptor < 0 || fstat(descriptor, &status) != 0 || !sync_folder_of(made.name_)) {
    return failure(made.error());
  }
  made.written_ = static_cast<std::uint64_t>(status.st_size) / piece_octets * piece_octets;
  return made;
}

directory_journal::directory_journal(directory_journal&& other) noexcept
    : name_(std::move(other.name_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      identity_(other.identity_),
      salt_(other.salt_),
      end_(other.end_),
      written_(other.written_),
      doubtful_(other.doubtful_),
      octets_(std::move(other.octets_)) {}

directory_journal::~directory_journal() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

auto directory_journal::error() const -> store_error {
  return {store_fault::unavailable, name_ + ": " + std::generic_category().message(errno)};
}

auto directory_journal::read(each_group const& each) const -> outcome<void> {
  struct stat status {};
  if (fstat(descriptor_, &status) != 0) {
    return failure(error());
  }
  auto const size = static_cast<std::uint64_t>(status.st_size);
  std::string octets;
  std::uint64_t at = 0;
  std::uint64_t salt = 0;
  std::uint64_t number = 0;
  while (at + head_octets <= size) {
    octets.resize(head_octets);
    if (read_at(descriptor_, octets.data(), head_octets, at) < 0) {
      return failure(error());
    }
    auto const head = head_of(octets.data());
    if (head.octets == 0 || head.octets > size - at - head_octets) {
      return {};
    }
    octets.resize(head_octets + head.octets);
    auto const rest =
        read_at(descriptor_, octets.data() + head_octets, head.octets, at + head_octets);
    if (rest < 0) {
      return failure(error());
    }
    bool const is_first = at == 0;
    bool const whole = static_cast<std::uint64_t>(rest) == head.octets &&
                       crc32c(std::string_view(octets).substr(16)) == head.checksum;
    if (!whole || (!is_first && (head.salt != salt || head.number != number + 1))) {
      return {};
    }
    if (head.identity != identity_) {
      return failure(store_error{store_fault::damaged, name_ + ": is of another directory"});
    }
    salt = head.salt;
    number = head.number;
    TIDEGATE_TRY_VOID(each(number, std::string_view(octets).substr(head_octets)));
    at += octets.size();
  }
  return {};
}

auto directory_journal::append(std::uint64_t number, std::string_view content) -> outcome<void> {
  octets_.resize(head_octets);
  put_number(octets_.data(), content.size());
  put_number(octets_.data() + 16, salt_);
  put_number(octets_.data() + 24, identity_);
  put_number(octets_.data() + 32, number);
  octets_ += content;
  put_number(octets_.data() + 8, crc32c(std::string_view(octets_).substr(16)));
  auto const end = end_ + octets_.size();
  if (end > written_) {
    // Zeros first: where they do not fit, nothing has changed. They come in small pieces, since some systems take
    // all of a large one for changed when a part of it is written again.
    auto const to = (end / grown_octets + 1) * grown_octets;
    std::string const zeros(piece_octets, '\0');
    for (; written_ < to; written_ += piece_octets) {
      if (!write_at(descriptor_, zeros, written_)) {
        return failure(error());
      }
    }
  }
  doubtful_ = true;
  if (!write_at(descriptor_, octets_, end_) || fdatasync(descriptor_) != 0) {
    auto const failed = error();
    // It may be there all the same: most likely not with this.
    static_cast<void>(write_at(descriptor_, std::string(head_octets, '\0'), end_));
    return failure(failed);
  }
  doubtful_ = false;
  end_ = end;
  if (octets_.capacity() > kept_octets_max) {
    octets_ = std::string();
  }
  return {};
}

void directory_journal::restart() {
  doubtful_ = false;
  std::random_device random;
  salt_ = (std::uint64_t{random()} << 32) | random();
  end_ = 0;
}

void directory_journal::remove() noexcept {
  unlink(name_.c_str());
}

}  // namespace tidegate::store_sqlite
