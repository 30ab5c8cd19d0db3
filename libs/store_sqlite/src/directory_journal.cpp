// SPDX-License-Identifier: Apache-2.0
#include "directory_journal.hpp"

#include "crc32c.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <new>
#include <random>
#include <system_error>

namespace tidegate::store_sqlite {

using store::store_error;
using store::store_fault;

namespace {

constexpr std::size_t head_octets = 40;
/// The file grows by so much at a time, so that most syncs find it as long as it was.
constexpr std::uint64_t grown_octets = std::uint64_t{1} << 20;
/// Where groups begin, and memory that a disk takes them from.
constexpr std::uint64_t block_octets = 4096;
/// In the place of the checksum, which is shorter: where the next group is.
constexpr std::uint64_t next_at_block = std::uint64_t{1} << 32;
/// Memory of a large group is given back.
constexpr std::size_t kept_octets_max = std::size_t{1} << 20;

[[nodiscard]] auto to_block(std::uint64_t octets) noexcept -> std::uint64_t {
  return (octets + block_octets - 1) / block_octets * block_octets;
}

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

auto directory_journal::open(std::string const& directory_file, std::uint64_t identity, way to_disk)
    -> outcome<directory_journal> {
  auto name = directory_file + ".journal";
  int const descriptor = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  directory_journal made(std::move(name), descriptor, identity);
  struct stat status {};
  if (descriptor < 0 || fstat(descriptor, &status) != 0 || !sync_folder_of(made.name_)) {
    return failure(made.error());
  }
  made.written_ = static_cast<std::uint64_t>(status.st_size) / block_octets * block_octets;
  if (to_disk == way::past_caches) {
    made.direct_ = ::open(made.name_.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC);
  }
  return made;
}

directory_journal::directory_journal(directory_journal&& other) noexcept
    : name_(std::move(other.name_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      direct_(std::exchange(other.direct_, -1)),
      identity_(other.identity_),
      salt_(other.salt_),
      end_(other.end_),
      written_(other.written_),
      doubtful_(other.doubtful_),
      room_(std::move(other.room_)),
      room_octets_(std::exchange(other.room_octets_, 0)) {}

directory_journal::~directory_journal() {
  close_direct();
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
    auto const checksum = head.checksum & ~next_at_block;
    bool const whole = static_cast<std::uint64_t>(rest) == head.octets &&
                       crc32c(std::string_view(octets).substr(16)) == checksum;
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
    if ((head.checksum & next_at_block) != 0) {
      at = to_block(at);
    }
  }
  return {};
}

void directory_journal::free_aligned::operator()(char* memory) const noexcept {
  ::operator delete[](memory, std::align_val_t{block_octets});
}

auto directory_journal::room_for(std::size_t octets) -> char* {
  if (octets > room_octets_) {
    room_.reset();
    room_octets_ = 0;
    room_.reset(new (std::align_val_t{block_octets}) char[octets]);
    room_octets_ = octets;
  }
  return room_.get();
}

void directory_journal::close_direct() noexcept {
  if (direct_ >= 0) {
    close(std::exchange(direct_, -1));
  }
}

auto directory_journal::write_at(std::string_view octets, std::uint64_t offset) -> bool {
  while (!octets.empty()) {
    auto const some = pwrite(direct_ >= 0 ? direct_ : descriptor_, octets.data(), octets.size(),
                             static_cast<off_t>(offset));
    if (some < 0 && errno == EINTR) {
      continue;
    }
    if (some < 0 && errno == EINVAL && direct_ >= 0) {
      close_direct();  // its blocks are larger than ours, or it takes no more than a part of one
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

auto directory_journal::append(std::uint64_t number, std::string_view content) -> outcome<void> {
  auto const octets = head_octets + content.size();
  auto const blocks = to_block(octets);
  auto const end = end_ + blocks;
  if (end > written_) {
    // Zeros first: where they do not fit, nothing has changed. Through caches they come in small pieces, since some systems
    // take all of a large one for changed when a part of it is written again.
    auto* const zeros = room_for(grown_octets);
    std::memset(zeros, 0, grown_octets);
    for (auto const to = (end / grown_octets + 1) * grown_octets; written_ < to;) {
      auto const some = std::min(direct_ >= 0 ? grown_octets : block_octets, to - written_);
      if (!write_at({zeros, some}, written_)) {
        return failure(error());
      }
      written_ += some;
    }
  }
  auto* const group = room_for(blocks);
  put_number(group, content.size());
  put_number(group + 16, salt_);
  put_number(group + 24, identity_);
  put_number(group + 32, number);
  std::memcpy(group + head_octets, content.data(), content.size());
  std::memset(group + octets, 0, blocks - octets);
  put_number(group + 8, crc32c({group + 16, octets - 16}) | next_at_block);
  doubtful_ = true;
  if (!write_at({group, blocks}, end_) || fdatasync(descriptor_) != 0) {
    auto const failed = error();
    // It may be there all the same: most likely not with this.
    std::memset(group, 0, block_octets);
    static_cast<void>(write_at({group, block_octets}, end_));
    return failure(failed);
  }
  doubtful_ = false;
  end_ = end;
  if (room_octets_ > kept_octets_max) {
    room_.reset();
    room_octets_ = 0;
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
