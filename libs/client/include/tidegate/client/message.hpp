// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/http/field.hpp>
#include <tidegate/ratelimit/legacy.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate::TIDEGATE_ABI::client {

/// What is to be sent.
struct request {
  std::string method = "GET";
  std::string url;  ///< http or https, without user information; what follows "#" is not sent
  std::vector<http::field> fields{};
  std::string body{};
  /// Sends an Idempotency-Key, the same with every attempt: then the request may be retried
  /// whatever its method is. A request with such a field among `fields` is taken as it is.
  bool idempotent = false;
  std::string key{};  ///< the key, without quotes; empty: a fresh one
  /// What sets requests to one origin apart that have quotas of their own: pacing is by origin,
  /// route and partition. Any text.
  std::string route{};
  /// Whose quota it is; empty: what `session_options::partition_fields` say.
  std::string partition{};
  /// For waits, attempts and retries together; none: `session_options::time_max`.
  std::optional<std::chrono::nanoseconds> time_max{};
};

/// A header section, in the order and spelling in which it came.
class header_section {
 public:
  /// How many lines there are.
  [[nodiscard]] auto size() const noexcept -> std::size_t { return lines_.size(); }
  [[nodiscard]] auto empty() const noexcept -> bool { return lines_.empty(); }
  /// The views last as long as the section stays where it is and as it is.
  [[nodiscard]] auto operator[](std::size_t index) const noexcept -> http::field_view;
  /// The value of the first line of this name, in any case.
  [[nodiscard]] auto find(std::string_view name) const noexcept -> std::optional<std::string_view>;

  /// Adds a line, or takes all away.
  void add(std::string_view name, std::string_view value);
  void clear() noexcept;
  /// Of all names and values together.
  [[nodiscard]] auto octets() const noexcept -> std::size_t { return text_.size(); }

 private:
  struct line {
    std::size_t begin;
    std::size_t name_size;
    std::size_t value_size;
  };
  std::string text_;  // names and values, one after the other
  std::vector<line> lines_;
};

/// What came back.
struct response {
  int status = 0;
  header_section fields{};
  std::string body{};
  std::uint32_t attempts = 0;          ///< how often the request was sent, or tried to
  std::string key{};                   ///< the Idempotency-Key that was sent, without quotes
  std::chrono::nanoseconds took{0};    ///< from `send` to the end of the answer
  std::chrono::nanoseconds waited{0};  ///< of that before the last attempt began
};

}  // namespace tidegate::TIDEGATE_ABI::client
