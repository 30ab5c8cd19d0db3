// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/consumers.hpp>

#include <tidegate/engine/socket.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

namespace tidegate::gateway {

namespace {

/// Digests are as good as random, and no client can choose the beginning of one at will.
[[nodiscard]] auto place_of(sha256_digest const& digest, std::size_t slots) noexcept
    -> std::size_t {
  std::uint64_t begin = 0;
  std::memcpy(&begin, digest.data(), sizeof begin);
  return static_cast<std::size_t>(begin) & (slots - 1);
}

/// A byte more than a file may have, of one that is larger. It is read again and again: to open a
/// pipe would wait for its writer, and some devices never end.
[[nodiscard]] auto read_file(std::string const& name) -> result<std::string, std::string> {
  auto const cannot = [](int code) { return failure(std::system_category().message(code)); };
  engine::descriptor const file(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  if (!file.is_open() || ::fstat(file.get(), &about) != 0) {
    return cannot(errno);
  }
  if (!S_ISREG(about.st_mode)) {
    return failure(std::string("it is not a regular file"));
  }
  std::string text;
  std::array<char, 16 * 1024> bytes;  // NOLINT: what is not read is not looked at
  while (text.size() <= config_octets_max) {
    auto const size = ::read(file.get(), bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) {
      continue;
    }
    if (size < 0) {
      return cannot(errno);
    }
    if (size == 0) {
      break;
    }
    text.append(bytes.data(), static_cast<std::size_t>(size));
  }
  return text;
}

}  // namespace

consumer_index::consumer_index(std::vector<consumer_config> listed) : listed_(std::move(listed)) {
  std::ranges::sort(listed_, {}, &consumer_config::name);
  for (std::size_t i = 0; i < listed_.size(); ++i) {
    for (auto const& each : listed_[i].keys) {
      keys_.push_back({each.digest, each.expires.value_or(std::chrono::sys_seconds::max()),
                       static_cast<std::uint32_t>(i)});
    }
  }
  slots_.resize(std::bit_ceil(keys_.size() * 2 + 1));  // at most half full
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    auto at = place_of(keys_[i].digest, slots_.size());
    while (slots_[at] != 0) {
      at = (at + 1) & (slots_.size() - 1);
    }
    slots_[at] = static_cast<std::uint32_t>(i + 1);
  }
}

auto consumer_index::find(sha256_digest const& digest) const noexcept -> key const* {
  if (slots_.empty()) {
    return nullptr;
  }
  key const* found = nullptr;
  for (auto at = place_of(digest, slots_.size()); slots_[at] != 0;
       at = (at + 1) & (slots_.size() - 1)) {
    auto const& each = keys_[slots_[at] - 1];
    if (equal_in_constant_time(digest, each.digest)) {
      found = &each;  // no other is equal
    }
  }
  return found;
}

auto consumer_index::find_by_key(sha256_digest const& digest,
                                 std::chrono::sys_seconds now) const noexcept
    -> consumer_config const* {
  auto const* const found = find(digest);
  return found != nullptr && now < found->expires ? &listed_[found->consumer] : nullptr;
}

auto consumer_index::find_by_key(sha256_digest const& digest) const noexcept
    -> consumer_config const* {
  auto const* const found = find(digest);
  if (found == nullptr || found->expires == std::chrono::sys_seconds::max()) {
    return found == nullptr ? nullptr : &listed_[found->consumer];
  }
  auto const now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  return now < found->expires ? &listed_[found->consumer] : nullptr;
}

auto consumer_index::find_by_name(std::string_view name) const noexcept -> consumer_config const* {
  auto const found = std::ranges::lower_bound(
      listed_, name, {}, [](consumer_config const& each) { return std::string_view(each.name); });
  return found != listed_.end() && found->name == name ? &*found : nullptr;
}

auto load_consumers(consumers_config const& settings)
    -> result<std::shared_ptr<consumer_index const>, std::vector<config_fault>> {
  if (settings.file.empty()) {
    return std::make_shared<consumer_index const>(settings.listed);
  }
  auto const text = read_file(settings.file);
  if (!text) {
    return failure(std::vector{
        config_fault{.file = settings.file, .message = "cannot read the file: " + text.error()}});
  }
  TIDEGATE_TRY(auto listed, parse_consumers(*text, settings.file));
  return std::make_shared<consumer_index const>(std::move(listed));
}

}  // namespace tidegate::gateway
