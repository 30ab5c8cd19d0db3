// SPDX-License-Identifier: Apache-2.0
#include "request/keyed_content.hpp"

#include <tidegate/wire/http1_write.hpp>

namespace tidegate::gateway {

namespace {

/// What is read, and given to the upstream, at once.
constexpr std::size_t piece_octets = 128 * 1024;

}  // namespace

auto keyed_content::append(std::string_view framed, std::uint64_t octets_max,
                           std::string const& folder) -> fault {
  while (!framed.empty() && !decoder_.done()) {
    auto const fed = decoder_.feed(framed);
    if (octets_.size() + fed.content.size() > octets_max) {
      return fault::too_large;
    }
    if (!octets_.append(fed.content, folder)) {
      return fault::not_kept;
    }
    if (fed.consumed == 0 || fed.state == wire::body_state::refused) {
      break;
    }
    framed.remove_prefix(fed.consumed);
  }
  return fault::none;
}

template <class Take>
auto keyed_content::each_piece(Take take) const -> bool {
  std::string piece;
  for (std::uint64_t at = 0; at < octets_.size(); at += piece.size()) {
    piece.clear();
    if (!octets_.read(at, piece_octets, piece)) {
      return false;
    }
    take(piece);
  }
  return true;
}

auto keyed_content::fingerprint_by(idempotency::fingerprint_rule const& rule,
                                   idempotency::fingerprinter& maker) const
    -> std::optional<idempotency::fingerprint> {
  auto const in_memory = octets_.in_memory();
  std::string all;
  if (!rule.streams()) {
    return in_memory || read_all(all) ? std::optional(maker.finish(in_memory.value_or(all)))
                                      : std::nullopt;
  }
  if (in_memory) {
    maker.update(*in_memory);
  } else if (!each_piece([&](std::string_view piece) { maker.update(piece); })) {
    return std::nullopt;
  }
  return maker.finish();
}

auto keyed_content::matches(sha256_digest const& digest) const -> std::optional<bool> {
  sha256 hash;
  bool const is_read = each_piece([&](std::string_view piece) { hash.update(piece); });
  return is_read ? std::optional(hash.finish() == digest) : std::nullopt;
}

auto keyed_content::take_piece(std::string& out) -> bool {
  std::string piece;
  if (!octets_.read(taken_, piece_octets, piece)) {
    return false;
  }
  taken_ += piece.size();
  is_taken_ = taken_ == octets_.size();
  if (framing_.kind != wire::body_kind::chunked) {
    out.append(piece);
    return true;
  }
  if (!piece.empty()) {
    wire::append_chunk_size(out, piece.size());
    out.append(piece).append(wire::chunk_end);
  }
  out.append(is_taken_ ? wire::last_chunk_and_end : std::string_view());
  return true;
}

}  // namespace tidegate::gateway
