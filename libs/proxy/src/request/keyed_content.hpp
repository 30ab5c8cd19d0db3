// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/spooled_content.hpp"

#include <tidegate/idempotency/fingerprint.hpp>
#include <tidegate/wire/http1_body.hpp>

namespace tidegate::gateway {

/// The content of a request with a key. It is kept until all of it is there, since the fingerprint
/// needs it, and sent from where it is kept.
class keyed_content {
 public:
  explicit keyed_content(wire::body_framing const& framing)
      : framing_(framing), decoder_(framing) {}

  enum class fault : std::uint8_t { none, too_large, not_kept };
  /// Takes the next bytes as they came, each line of the trailer section whole. What does not fit
  /// the framing was refused before.
  [[nodiscard]] auto append(std::string_view framed, std::uint64_t octets_max,
                            std::string const& folder) -> fault;
  [[nodiscard]] auto is_complete() const noexcept -> bool { return decoder_.done(); }
  [[nodiscard]] auto memory_octets() const noexcept -> std::size_t {
    return octets_.memory_octets();
  }

  // These are empty or false where the disk does not give back what it took.

  /// `maker` is at its beginning and made for `rule`.
  [[nodiscard]] auto fingerprint_by(idempotency::fingerprint_rule const& rule,
                                    idempotency::fingerprinter& maker) const
      -> std::optional<idempotency::fingerprint>;
  [[nodiscard]] auto matches(sha256_digest const& digest) const -> std::optional<bool>;
  [[nodiscard]] auto read_all(std::string& out) const -> bool {
    return octets_.read(0, octets_.size(), out);
  }
  /// Appends the next piece that is to be sent, framed as the content came.
  [[nodiscard]] auto take_piece(std::string& out) -> bool;
  [[nodiscard]] auto is_taken() const noexcept -> bool { return is_taken_; }

 private:
  template <class Take>
  [[nodiscard]] auto each_piece(Take take) const -> bool;

  wire::body_framing framing_;
  wire::body_decoder decoder_;
  spooled_content octets_;
  std::uint64_t taken_ = 0;
  bool is_taken_ = false;
};

}  // namespace tidegate::gateway
