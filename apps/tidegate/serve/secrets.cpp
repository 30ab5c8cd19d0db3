// SPDX-License-Identifier: Apache-2.0
#include "serve/secrets.hpp"

#include <tidegate/engine/socket.hpp>

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace tidegate::app {

namespace {

auto why() -> std::string {
  return std::system_category().message(errno);
}

auto write_new(int file, master_secret const& secret) -> bool {
  return ::write(file, secret.data(), secret.size()) == static_cast<ssize_t>(secret.size()) &&
         ::fsync(file) == 0;
}

auto sync_parent_of(std::string const& file) -> bool {
  auto const above = std::filesystem::path(file).parent_path();
  engine::descriptor const folder(
      ::open(above.empty() ? "." : above.c_str(), O_RDONLY | O_CLOEXEC));
  return folder.is_open() && ::fsync(folder.get()) == 0;
}

/// Written under another name first: a crash leaves no half of it behind.
auto make_secret(std::string const& file) -> result<void, std::string> {
  master_secret fresh{};
  if (::getrandom(fresh.data(), fresh.size(), 0) != static_cast<ssize_t>(fresh.size())) {
    return failure("cannot get random numbers from the system");
  }
  auto const draft = file + "." + std::to_string(::getpid());
  engine::descriptor const to(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!to.is_open() || !write_new(to.get(), fresh)) {
    auto const text = "cannot write " + draft + ": " + why();
    ::unlink(draft.c_str());
    return failure(text);
  }
  // A link does not take the place of one that another process has made meanwhile. It is there
  // after a loss of power when its folder is on the disk.
  bool const made =
      (::link(draft.c_str(), file.c_str()) == 0 || errno == EEXIST) && sync_parent_of(file);
  auto const text = "cannot write " + file + ": " + why();
  ::unlink(draft.c_str());
  if (!made) {
    return failure(text);
  }
  return {};
}

}  // namespace

auto make_data_folder(std::string const& folder) -> result<void, std::string> {
  std::error_code fault;
  auto const above = std::filesystem::path(folder).parent_path();
  if (!above.empty()) {
    std::filesystem::create_directories(above, fault);
  }
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return failure("cannot make the folder " + folder + ": " + why());
  }
  return {};
}

auto read_secret(std::string const& file) -> result<master_secret, std::string> {
  if (::access(file.c_str(), F_OK) != 0) {
    TIDEGATE_TRY_VOID(make_secret(file));
  }
  engine::descriptor const from(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat is {};
  if (!from.is_open() || ::fstat(from.get(), &is) != 0) {
    return failure("cannot read " + file + ": " + why());
  }
  // A group may read it: so secrets are mounted for containers that do not run as root.
  if ((is.st_mode & 037) != 0) {
    return failure(file + " holds secrets, and others may read it; allowed: mode 0600 or 0640");
  }
  master_secret secret{};
  std::byte more{};
  if (::read(from.get(), secret.data(), secret.size()) != static_cast<ssize_t>(secret.size()) ||
      ::read(from.get(), &more, 1) != 0) {
    return failure(file + " does not have 32 bytes");
  }
  return secret;
}

}  // namespace tidegate::app
