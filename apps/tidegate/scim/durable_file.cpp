// SPDX-License-Identifier: Apache-2.0
#include "scim/durable_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

namespace tidegate::app {

namespace {

constexpr std::size_t read_octets = std::size_t{1} << 18;

/// `what NAME: why`, by errno.
[[nodiscard]] auto fault(std::string_view what, std::string const& name)
    -> std::unexpected<std::string> {
  return failure(std::string(what) + " " + name + ": " + std::strerror(errno));
}

/// Waits until names of the folder are on the disk.
[[nodiscard]] auto sync_folder_of(std::string const& name) -> result<void, error_text> {
  auto folder = std::filesystem::path(name).parent_path().string();
  folder = folder.empty() ? "." : folder;
  engine::descriptor const opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return opened.is_open() && ::fsync(opened.get()) == 0 ? result<void, error_text>()
                                                        : fault("cannot write", folder);
}

}  // namespace

auto durable_file::open(std::string name) -> result<durable_file, error_text> {
  durable_file made;
  made.file_ = engine::descriptor(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!made.file_.is_open()) {
    return fault("cannot open", name);
  }
  if (::flock(made.file_.get(), LOCK_EX | LOCK_NB) != 0) {
    return failure("another process writes to " + name);
  }
  made.name_ = std::move(name);
  return made;
}

auto durable_file::temporary() -> result<durable_file, error_text> {
  auto const* const folder = std::getenv("TMPDIR");
  durable_file made;
  made.name_ = (folder == nullptr ? "/tmp" : std::string(folder)) + "/tidegate-XXXXXX";
  made.file_ = engine::descriptor(::mkostemp(made.name_.data(), O_CLOEXEC));
  if (!made.file_.is_open()) {
    return fault("cannot open", made.name_);
  }
  ::unlink(made.name_.c_str());
  return made;
}

auto durable_file::write(std::string_view octets) -> result<void, error_text> {
  while (!octets.empty()) {
    auto const written = ::write(file_.get(), octets.data(), octets.size());
    if (written < 0 && errno != EINTR) {
      return fault("cannot write", name_);
    }
    octets.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
  return {};
}

auto durable_file::sync() -> result<void, error_text> {
  return ::fdatasync(file_.get()) == 0 ? result<void, error_text>() : fault("cannot write", name_);
}

auto durable_file::truncate(std::uint64_t octets) -> result<void, error_text> {
  TIDEGATE_TRY(auto const have, size());
  if (have < octets) {
    return failure(name_ + " is shorter than it was");
  }
  if (::ftruncate(file_.get(), static_cast<off_t>(octets)) != 0 ||
      ::lseek(file_.get(), 0, SEEK_END) < 0) {
    return fault("cannot write", name_);
  }
  return {};
}

auto durable_file::size() const -> result<std::uint64_t, error_text> {
  struct stat found {};
  if (::fstat(file_.get(), &found) != 0) {
    return fault("cannot read", name_);
  }
  return static_cast<std::uint64_t>(found.st_size);
}

auto durable_file::read(std::uint64_t from, std::size_t octets_max) const
    -> result<std::string, error_text> {
  std::string out(octets_max, '\0');
  std::size_t have = 0;
  while (have < octets_max) {
    auto const got =
        ::pread(file_.get(), out.data() + have, octets_max - have, static_cast<off_t>(from + have));
    if (got < 0 && errno != EINTR) {
      return fault("cannot read", name_);
    }
    if (got == 0) {
      break;
    }
    have += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  }
  out.resize(have);
  return out;
}

auto replace_file(std::string const& name, std::string_view content) -> result<void, error_text> {
  auto const made = name + ".new";
  {
    TIDEGATE_TRY(auto file, durable_file::open(made));
    TIDEGATE_TRY_VOID(file.truncate(0));
    TIDEGATE_TRY_VOID(file.write(content));
    TIDEGATE_TRY_VOID(file.sync());
  }
  return rename_file(made, name);
}

auto rename_file(std::string const& from, std::string const& to) -> result<void, error_text> {
  if (std::rename(from.c_str(), to.c_str()) != 0) {
    return fault("cannot write", to);
  }
  return sync_folder_of(to);
}

auto read_file(std::string const& name, std::size_t octets_max)
    -> result<std::optional<std::string>, error_text> {
  auto* const file = std::fopen(name.c_str(), "rbe");
  if (file == nullptr) {
    if (errno == ENOENT) {
      return std::nullopt;
    }
    return fault("cannot read", name);
  }
  std::string out(octets_max + 1, '\0');
  out.resize(std::fread(out.data(), 1, out.size(), file));
  bool const is_read = std::ferror(file) == 0;
  (void)std::fclose(file);
  if (!is_read || out.size() > octets_max) {
    return failure("cannot read " + name + (is_read ? ": it is too long" : ""));
  }
  return out;
}

auto line_reader::next() -> result<std::optional<std::string_view>, error_text> {
  for (auto searched = at_;;) {
    auto const end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      auto const line = std::string_view(buffer_).substr(at_, end - at_);
      at_ = end + 1;
      return line;
    }
    buffer_.erase(0, std::exchange(at_, 0));
    searched = buffer_.size();
    auto const wanted = std::min<std::uint64_t>(read_octets, octets_ - read_);
    TIDEGATE_TRY(auto const more, from_->read(read_, static_cast<std::size_t>(wanted)));
    if (more.empty()) {
      return std::nullopt;
    }
    read_ += more.size();
    buffer_ += more;
  }
}

}  // namespace tidegate::app
