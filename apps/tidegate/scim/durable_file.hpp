// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>
#include <tidegate/engine/socket.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tidegate::app {

/// One line for people.
using error_text = std::string;

/// A file that is written from its beginning to its end. Errors name the file.
class durable_file {
 public:
  /// Opens or makes a file, and locks it against a second one that does so.
  [[nodiscard]] static auto open(std::string name) -> result<durable_file, error_text>;
  /// One without a name, which is gone when it is closed.
  [[nodiscard]] static auto temporary() -> result<durable_file, error_text>;

  [[nodiscard]] auto write(std::string_view octets) -> result<void, error_text>;
  /// All that was written is on the disk when this returns.
  [[nodiscard]] auto sync() -> result<void, error_text>;
  /// Makes it that long; what is written next goes to its end. It must not be shorter.
  [[nodiscard]] auto truncate(std::uint64_t octets) -> result<void, error_text>;
  [[nodiscard]] auto size() const -> result<std::uint64_t, error_text>;
  /// Up to `octets_max` octets from there; fewer at the end only.
  [[nodiscard]] auto read(std::uint64_t from, std::size_t octets_max) const
      -> result<std::string, error_text>;
  [[nodiscard]] auto name() const -> std::string const& { return name_; }

 private:
  std::string name_;
  engine::descriptor file_;
};

/// Puts a file in the place of another, or of none, so that after a crash there is the one or the
/// other.
[[nodiscard]] auto replace_file(std::string const& name, std::string_view content)
    -> result<void, error_text>;
/// Gives a file another name and waits until that is on the disk.
[[nodiscard]] auto rename_file(std::string const& from, std::string const& to)
    -> result<void, error_text>;
/// The content of a file; nothing when there is none.
[[nodiscard]] auto read_file(std::string const& name, std::size_t octets_max)
    -> result<std::optional<std::string>, error_text>;

/// The lines of a file from its beginning, without their ends; one without an end is left out.
class line_reader {
 public:
  line_reader(durable_file const& from, std::uint64_t octets) : from_(&from), octets_(octets) {}
  /// Nothing at the end. Valid until the next call.
  [[nodiscard]] auto next() -> result<std::optional<std::string_view>, error_text>;

 private:
  durable_file const* from_;
  std::uint64_t octets_;  // that are read at most
  std::uint64_t read_ = 0;
  std::string buffer_;
  std::size_t at_ = 0;
};

}  // namespace tidegate::app
