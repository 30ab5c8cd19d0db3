// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/enum_set.hpp>
#include <tidegate/base/result.hpp>
#include <tidegate/base/sha256.hpp>
#include <tidegate/idempotency/lookup.hpp>
#include <tidegate/json/pointer.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Idempotency fingerprints (draft-07, section 2.4): by what a retry is told from another request
/// that has the same key.
namespace tidegate::TIDEGATE_ABI::idempotency {

/// The parts of a request that a retry has in common with the first one.
enum class request_part : std::uint8_t { method, path, query, body };
inline constexpr std::array<request_part, 4> all_request_parts = {
    request_part::method, request_part::path, request_part::query, request_part::body};

/// `method`, `path`, `query`, `body`.
[[nodiscard]] auto name_of(request_part part) noexcept -> std::string_view;

/// Some of the parts.
using request_parts = enum_set<request_part>;

/// What of the content counts. Method, path and query always do.
class fingerprint_rule {
 public:
  /// How many values of a body a rule may name.
  static constexpr std::size_t pointers_max = 32;

  /// Exact bytes.
  fingerprint_rule() = default;
  [[nodiscard]] static auto none() -> fingerprint_rule;
  [[nodiscard]] static auto body() -> fingerprint_rule { return {}; }
  /// Canonical JSON (`json::append_canonical`). Content that has none, because it is
  /// not JSON or says something twice, counts by its exact bytes.
  [[nodiscard]] static auto json() -> fingerprint_rule;
  /// Only the values that these pointers name in JSON content, in canonical form; that one is
  /// missing counts as well. Content that has no canonical form counts by its exact bytes. One
  /// pointer at least, `pointers_max` at most.
  [[nodiscard]] static auto json(std::vector<json::pointer> pointers)
      -> std::optional<fingerprint_rule>;

  /// The rule as it is kept with a fingerprint, so that a retry is judged by the rule of its first
  /// request when the configuration has changed since. `parse` reads it back, and nothing else.
  [[nodiscard]] auto text() const noexcept -> std::string const& { return text_; }
  [[nodiscard]] static auto parse(std::string_view text) -> std::optional<fingerprint_rule>;

  /// The values that count, of a rule that names some.
  [[nodiscard]] auto pointers() const noexcept -> std::span<json::pointer const> {
    return pointers_;
  }

  /// How long the text of a rule can be.
  static constexpr std::size_t text_octets_max = 1 + pointers_max * (json::pointer::octets_max + 5);

  /// Whether content can be taken piece by piece; if not, `finish` needs all of it at once.
  [[nodiscard]] auto streams() const noexcept -> bool {
    return kind_ == kind::none || kind_ == kind::body;
  }

  auto operator==(fingerprint_rule const& other) const noexcept -> bool {
    return text_ == other.text_;
  }

 private:
  friend class fingerprinter;
  enum class kind : char { none = 'n', body = 'b', json = 'j', pointers = 'p' };

  kind kind_ = kind::body;
  std::vector<json::pointer> pointers_;
  std::string text_ = "b";
};

/// The first half of a keyed digest: it tells requests of one client apart and does not show what
/// was in a small body.
using part_digest = std::array<std::byte, 16>;

/// One digest for each part, so that a mismatch can be named.
struct fingerprint {
  std::string rule = "b";                                     ///< `fingerprint_rule::text`
  std::array<part_digest, all_request_parts.size()> parts{};  ///< in the order of `request_part`
  auto operator==(fingerprint const&) const -> bool = default;
};

/// Which parts are not the same. Both must be of one rule.
[[nodiscard]] auto differing_parts(fingerprint const& a, fingerprint const& b) noexcept
    -> request_parts;

/// The method, path and query that came last, with their digests: most requests have the same
/// again. Of one secret, and not for several threads at once.
struct part_memo {
  /// One part, and the digest that was made of it.
  struct known_part {
    std::string text;
    part_digest digest{};
    bool made = false;
  };
  std::array<known_part, all_request_parts.size()> parts;  ///< that of the body is not used
};

/// Makes the fingerprint of one request while its content comes in. Keeps nothing of the content.
class fingerprinter {
 public:
  /// `rule` must outlive it. `path` is the normal path, `query` is without its "?" and as it was
  /// sent; a missing query and an empty one are the same. `memo`, if there is one, saves making
  /// digests that were made for the last request.
  fingerprinter(secret const& secret, fingerprint_rule const& rule, std::string_view method,
                std::string_view path, std::string_view query, part_memo* memo = nullptr);

  /// Takes the next piece of the content, decoded from its transfer coding. Only where the rule
  /// streams.
  void update(std::string_view piece) noexcept;

  /// The fingerprint, at the end. Where the rule does not stream, `content` is the whole of it;
  /// else it is not looked at.
  [[nodiscard]] auto finish(std::string_view content = {}) -> fingerprint;

 private:
  [[nodiscard]] auto digest_of_json(std::string_view content) -> part_digest;

  fingerprint_rule const* rule_;
  hmac_sha256 code_;     // at its beginning, between parts
  hmac_sha256 content_;  // exact bytes so far
  fingerprint made_;
};

}  // namespace tidegate::TIDEGATE_ABI::idempotency
