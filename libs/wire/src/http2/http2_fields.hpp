// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/wire/http2_client_session.hpp>

#include <nghttp2/nghttp2.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>

/// Field blocks (RFC 7541), which nghttp2 reads and writes.
namespace tidegate::TIDEGATE_ABI::wire::http2 {

/// The peer's blocks.
class field_decoder {
 public:
  field_decoder();

  /// Reads a piece of a block, and tells `each(name, value)` what it says; `last`: here the block
  /// ends. Blocks follow each other. False when it cannot be read, nor any block after it.
  template <class Each>
  [[nodiscard]] auto take(std::string_view piece, bool last, Each&& each) -> bool {
    auto const* at = reinterpret_cast<std::uint8_t const*>(piece.data());
    auto left = piece.size();
    for (;;) {
      nghttp2_nv field{};
      int told = 0;
      auto const size =
          nghttp2_hd_inflate_hd2(inflater_.get(), &field, &told, at, left, last ? 1 : 0);
      if (size == NGHTTP2_ERR_NOMEM) {
        throw std::bad_alloc();
      }
      if (size < 0) {
        return false;
      }
      at += size;
      left -= static_cast<std::size_t>(size);
      bool const is_field = (told & NGHTTP2_HD_INFLATE_EMIT) != 0;
      if (is_field) {
        each(view(field.name, field.namelen), view(field.value, field.valuelen));
      }
      if ((told & NGHTTP2_HD_INFLATE_FINAL) != 0) {
        nghttp2_hd_inflate_end_headers(inflater_.get());
        return true;
      }
      if (!is_field && left == 0) {
        return true;
      }
    }
  }

 private:
  [[nodiscard]] static auto view(std::uint8_t const* data, std::size_t size) -> std::string_view {
    return {reinterpret_cast<char const*>(data), size};
  }

  struct deleter {
    void operator()(nghttp2_hd_inflater* which) const { nghttp2_hd_inflate_del(which); }
  };
  std::unique_ptr<nghttp2_hd_inflater, deleter> inflater_;
};

/// Ours. A client that is refused mostly gets the same fields as the time before, so that the last
/// block is kept while it would be written again octet by octet.
class field_encoder {
 public:
  /// `table_octets_max` is what we want the peer to keep for us.
  explicit field_encoder(std::size_t table_octets_max);
  field_encoder(field_encoder const&) = delete;
  auto operator=(field_encoder const&) -> field_encoder& = delete;
  ~field_encoder();

  /// Appends the block of a response, or of trailers when `status` is 0. `field_lines` are complete
  /// lines of HTTP/1.1.
  void append(std::string& out, int status, std::string_view field_lines);
  /// Appends the block of a request, without the lines that HTTP/2 does not have. Says where the
  /// body ends by these lines.
  [[nodiscard]] auto append_request(std::string& out, http2_request const& request) -> body_framing;
  /// What the peer keeps for us (SETTINGS_HEADER_TABLE_SIZE). We use less when we need less.
  void set_table_octets_max(std::uint32_t octets);
  /// Forgets the last block.
  void rest();

 private:
  class spare_memory;
  struct deleter {
    void operator()(nghttp2_hd_deflater* which) const { nghttp2_hd_deflate_del(which); }
  };
  std::unique_ptr<spare_memory> memory_;  // outlives the deflater
  std::unique_ptr<nghttp2_hd_deflater, deleter> deflater_;
  /// Appends what the list of the thread has.
  void append_list(std::string& out);

  static constexpr int no_status = -1;
  int last_status_ = no_status;
  std::string last_lines_;
  std::string last_block_;
};

/// True when the block says nothing that changes the tables, so that it means the same once more.
/// It is one that was made here.
[[nodiscard]] auto changes_no_table(std::string_view block) -> bool;

}  // namespace tidegate::TIDEGATE_ABI::wire::http2
