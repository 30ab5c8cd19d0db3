// SPDX-License-Identifier: Apache-2.0
#include "http2_fields.hpp"

#include "scan.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace tidegate::TIDEGATE_ABI::wire::http2 {

namespace {

/// A block that is larger is not remembered.
constexpr std::size_t last_lines_octets_max = 1024;

template <class Word>
void make_lower_case_word(char* at) {
  constexpr auto each = static_cast<Word>(0x0101010101010101);
  Word word = 0;
  std::memcpy(&word, at, sizeof word);
  auto const low = word & each * 0x7f;
  auto const from_a = low + each * (0x80 - 'A');        // the highest bit is set from 'A' on,
  auto const behind_z = low + each * (0x80 - 'Z' - 1);  // and here behind 'Z'
  word = static_cast<Word>(word | ((from_a ^ behind_z) & ~word & each * 0x80) >> 2U);
  std::memcpy(at, &word, sizeof word);
}

/// A word at a time; the last one overlaps the one before.
void make_lower_case(char* at, char* end) {
  if (end - at >= 8) {
    for (; end - at > 8; at += 8) {
      make_lower_case_word<std::uint64_t>(at);
    }
    make_lower_case_word<std::uint64_t>(end - 8);
  } else if (end - at >= 4) {
    make_lower_case_word<std::uint32_t>(at);
    make_lower_case_word<std::uint32_t>(end - 4);
  } else {
    for (; at != end; ++at) {
      make_lower_case_word<std::uint8_t>(at);
    }
  }
}

[[nodiscard]] auto is_space(char c) -> bool {
  return c == ' ' || c == '\t';
}

/// Field lines as nghttp2 wants them: views of a text. One for each thread, since it is not needed
/// after a call.
class field_list {
 public:
  void read(int status, std::string_view field_lines) {
    text_.assign(field_lines);
    fields_.clear();
    if (status != 0) {
      text_.append(":status");
      text_.append({static_cast<char>('0' + status / 100),
                    static_cast<char>('0' + status / 10 % 10),
                    static_cast<char>('0' + status % 10)});
      auto* const end = text_.data() + field_lines.size();
      add(end, end + 7, end + 7, end + 10, NGHTTP2_NV_FLAG_NONE);
    }
    read_lines(field_lines.size(), [&](line const& each) {
      // Who is served is told another one each time.
      bool const changes = status < 400 && each.name_is("ratelimit");
      add(each.name, each.name_end, each.value, each.value_end,
          changes ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE);
    });
  }

  /// Says where the body ends by the lines.
  [[nodiscard]] auto read(http2_request const& request) -> body_framing {
    text_.assign(request.field_lines);
    fields_.clear();
    add_pseudo(":method", request.method);
    if (!request.protocol.empty()) {
      add_pseudo(":protocol", request.protocol);  // RFC 8441, section 4
    }
    add_pseudo(":scheme", request.scheme);
    if (!request.authority.empty()) {
      add_pseudo(":authority", request.authority);
    }
    add_pseudo(":path", request.path);
    body_framing body;
    read_lines(text_.size(), [&](line const& each) {
      if (each.name_is("transfer-encoding")) {
        body.kind = body_kind::chunked;
        return;
      }
      if (each.name_is("connection") || each.name_is("host") || each.name_is("upgrade")) {
        return;
      }
      if (each.name_is("content-length")) {
        std::from_chars(each.value, each.value_end, body.length);
        body.kind = body.length == 0 ? body_kind::none : body_kind::content_length;
      }
      // What clients prove who they are with is in no table that others' requests are written by.
      bool const is_secret = each.name_is("authorization") || each.name_is("cookie") ||
                             each.name_is("proxy-authorization") || each.name_is("x-api-key") ||
                             each.name_is("idempotency-key");
      add(each.name, each.name_end, each.value, each.value_end,
          is_secret ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE);
    });
    return body;
  }

  [[nodiscard]] auto data() const -> nghttp2_nv const* { return fields_.data(); }
  [[nodiscard]] auto size() const -> std::size_t { return fields_.size(); }

 private:
  /// A line in the text, its name in lower case and its value without white space around it.
  struct line {
    char* name;
    char* name_end;
    char* value;
    char* value_end;

    template <std::size_t Size>
    [[nodiscard]] auto name_is(char const (&known)[Size]) const -> bool {  // NOLINT
      return static_cast<std::size_t>(name_end - name) == Size - 1 &&
             std::memcmp(name, known, Size - 1) == 0;
    }
  };

  /// Tells `each` the lines in the first `size` octets of the text.
  template <class Each>
  void read_lines(std::size_t size, Each each) {
    auto* const begin = text_.data();
    auto* const end = begin + size;
    for (auto* at = begin; at != end;) {
      auto* const colon = find<':'>(begin, at, end);
      auto* line_end = find<'\r'>(begin, colon, end);
      auto* const next = line_end + std::min<std::ptrdiff_t>(2, end - line_end);
      make_lower_case(at, colon);  // RFC 9113, section 8.2
      auto* value = std::min(colon + 1, line_end);
      while (value != line_end && is_space(*value)) {
        ++value;
      }
      while (value != line_end && is_space(line_end[-1])) {
        --line_end;
      }
      each(line{at, colon, value, line_end});
      at = next;
    }
  }

  void add_pseudo(std::string_view name, std::string_view value) {
    // nghttp2 does not write to what it is given.
    auto* const from = const_cast<char*>(name.data());         // NOLINT
    auto* const value_from = const_cast<char*>(value.data());  // NOLINT
    add(from, from + name.size(), value_from, value_from + value.size(), NGHTTP2_NV_FLAG_NONE);
  }
  void add(char* name, char* name_end, char* value, char* value_end, std::uint8_t flags) {
    // nghttp2 does not write to what it is given.
    fields_.push_back({reinterpret_cast<std::uint8_t*>(name),
                       reinterpret_cast<std::uint8_t*>(value),
                       static_cast<std::size_t>(name_end - name),
                       static_cast<std::size_t>(value_end - value), flags});
  }

  template <char C>
  [[nodiscard]] static auto find(char* begin, char* at, char* end) -> char* {
    return at + (scan::find<scan::exactly<C>>(begin, at, end) - at);
  }

  std::string text_;
  std::vector<nghttp2_nv> fields_;
};

auto fields_of_thread() -> field_list& {
  static thread_local field_list fields;
  return fields;
}

/// Takes an integer of RFC 7541, section 5.1, off `block`: the low `prefix` bits of the first
/// octet, and what follows when all of them are set.
auto take_integer(std::string_view& block, unsigned prefix) -> std::size_t {
  std::size_t const mask = (1U << prefix) - 1;
  auto out = static_cast<unsigned char>(block[0]) & mask;
  block.remove_prefix(1);
  if (out < mask) {
    return out;
  }
  for (unsigned shift = 0; !block.empty(); shift += 7) {
    auto const octet = static_cast<unsigned char>(block[0]);
    block.remove_prefix(1);
    out += static_cast<std::size_t>(octet & 0x7fU) << shift;
    if (octet < 0x80) {
      break;
    }
  }
  return out;
}

void skip_string(std::string_view& block) {
  if (!block.empty()) {
    auto const size = take_integer(block, 7);
    block.remove_prefix(std::min(size, block.size()));
  }
}

}  // namespace

field_decoder::field_decoder() {
  nghttp2_hd_inflater* made = nullptr;
  if (nghttp2_hd_inflate_new(&made) != 0) {
    throw std::bad_alloc();
  }
  inflater_.reset(made);
}

/// nghttp2 describes the output of each block in memory that it takes and gives back. It is always
/// the same here, so that a head costs no allocation.
class field_encoder::spare_memory {
 public:
  [[nodiscard]] auto functions() -> nghttp2_mem* { return &functions_; }

 private:
  [[nodiscard]] auto is_room(void const* memory) const -> bool { return memory == room_.data(); }
  [[nodiscard]] static auto of(void* user) -> spare_memory& {
    return *static_cast<spare_memory*>(user);
  }

  static auto take(std::size_t octets, void* user) -> void* {
    auto& spare = of(user);
    if (octets > spare.room_.size() || std::exchange(spare.is_taken_, true)) {
      return std::malloc(octets);  // NOLINT: of a library in C
    }
    return spare.room_.data();
  }
  static void release(void* memory, void* user) {
    if (of(user).is_room(memory)) {
      of(user).is_taken_ = false;
    } else {
      std::free(memory);  // NOLINT
    }
  }
  static auto take_zeroed(std::size_t count, std::size_t octets, void* /*user*/) -> void* {
    return std::calloc(count, octets);  // NOLINT
  }
  static auto take_again(void* memory, std::size_t octets, void* user) -> void* {
    if (!of(user).is_room(memory)) {
      return std::realloc(memory, octets);  // NOLINT
    }
    auto* const more = std::malloc(octets);  // NOLINT
    if (more != nullptr) {
      std::memcpy(more, memory, std::min(octets, of(user).room_.size()));
      release(memory, user);
    }
    return more;
  }

  nghttp2_mem functions_{this, &take, &release, &take_zeroed, &take_again};
  alignas(std::max_align_t) std::array<std::byte, 64> room_{};
  bool is_taken_ = false;
};

field_encoder::field_encoder(std::size_t table_octets_max)
    : memory_(std::make_unique<spare_memory>()) {
  nghttp2_hd_deflater* made = nullptr;
  if (nghttp2_hd_deflate_new2(&made, table_octets_max, memory_->functions()) != 0) {
    throw std::bad_alloc();
  }
  deflater_.reset(made);
}

field_encoder::~field_encoder() = default;

void field_encoder::append(std::string& out, int status, std::string_view field_lines) {
  if (status == last_status_ && field_lines == last_lines_) {
    out.append(last_block_);
    return;
  }
  auto const at = out.size();
  fields_of_thread().read(status, field_lines);
  append_list(out);
  auto const block = std::string_view(out).substr(at);
  if (field_lines.size() <= last_lines_octets_max && changes_no_table(block)) {
    last_status_ = status;
    last_lines_.assign(field_lines);
    last_block_.assign(block);
  } else {
    last_status_ = no_status;
  }
}

auto field_encoder::append_request(std::string& out, http2_request const& request) -> body_framing {
  auto const body = fields_of_thread().read(request);
  last_status_ = no_status;  // the last block may mean something else from now on
  append_list(out);
  return body;
}

void field_encoder::append_list(std::string& out) {
  auto const& fields = fields_of_thread();
  auto const at = out.size();
  auto const room = nghttp2_hd_deflate_bound(deflater_.get(), fields.data(), fields.size());
  ssize_t size = 0;
  out.resize_and_overwrite(at + room, [&](char* to, std::size_t /*room*/) {
    size = nghttp2_hd_deflate_hd(deflater_.get(), reinterpret_cast<std::uint8_t*>(to + at), room,
                                 fields.data(), fields.size());
    return at + static_cast<std::size_t>(std::max<ssize_t>(size, 0));
  });
  if (size < 0) {
    throw std::bad_alloc();
  }
}

void field_encoder::set_table_octets_max(std::uint32_t octets) {
  last_status_ = no_status;
  if (nghttp2_hd_deflate_change_table_size(deflater_.get(), octets) != 0) {
    throw std::bad_alloc();
  }
}

void field_encoder::rest() {
  last_status_ = no_status;
  (void)std::exchange(last_lines_, {});  // with its buffer
  (void)std::exchange(last_block_, {});
}

auto changes_no_table(std::string_view block) -> bool {
  while (!block.empty()) {
    auto const first = static_cast<unsigned char>(block[0]);
    if ((first & 0x80U) != 0) {  // indexed (section 6.1)
      (void)take_integer(block, 7);
    } else if ((first & 0x60U) != 0) {  // to be indexed, or a size (sections 6.2.1, 6.3)
      return false;
    } else {  // not to be indexed (sections 6.2.2, 6.2.3)
      if (take_integer(block, 4) == 0) {
        skip_string(block);
      }
      skip_string(block);
    }
  }
  return true;
}

}  // namespace tidegate::TIDEGATE_ABI::wire::http2
