// SPDX-License-Identifier: Apache-2.0
#include <tidegate/wire/http2_session.hpp>

#include "grammar.hpp"
#include "http2_blocks.hpp"
#include "scan.hpp"

#include <tidegate/sf/reader.hpp>

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

namespace tidegate::wire {

namespace {

[[nodiscard]] auto view(std::uint8_t const* data, std::size_t size) -> std::string_view {
  return {reinterpret_cast<char const*>(data), size};
}

[[nodiscard]] auto octets(char const* text) -> std::uint8_t* {
  // nghttp2 does not write to what it is given.
  return const_cast<std::uint8_t*>(reinterpret_cast<std::uint8_t const*>(text));
}

/// What is left of a rate.
class allowance {
 public:
  explicit allowance(http2_rate rate) : rate_(rate), left_(rate.burst) {}

  /// False when there is nothing left.
  [[nodiscard]] auto spend(instant now) -> bool {
    auto const seconds = std::chrono::floor<std::chrono::seconds>(now - filled_).count();
    if (seconds > 0) {
      auto const more = std::min<std::int64_t>(seconds, rate_.burst) * rate_.per_second;
      left_ = static_cast<std::uint32_t>(std::min<std::int64_t>(rate_.burst, left_ + more));
      filled_ = now;
    }
    if (left_ == 0) {
      return false;
    }
    --left_;
    return true;
  }

 private:
  http2_rate rate_;
  std::uint32_t left_;
  instant filled_{};
};

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

constexpr std::uint8_t not_copied = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE;

/// Field lines as nghttp2 wants them: views of a text.
class field_list {
 public:
  /// `field_lines` are complete lines. `text` becomes what the fields are views of, and lives until they are
  /// sent if they are `not_copied`.
  void assign(int status, std::string_view field_lines, std::string& text, std::uint8_t flags) {
    // Who is refused is mostly told the same as the one before.
    if (status != status_ || field_lines != lines_) {
      read(status, field_lines);
    }
    text.assign(text_);
    fields_.clear();
    for (auto const& [name, name_size, value, value_size, more_flags] : places_) {
      fields_.push_back({octets(text.data() + name), octets(text.data() + value), name_size,
                         value_size, static_cast<std::uint8_t>(flags | more_flags)});
    }
  }

  [[nodiscard]] auto data() const -> nghttp2_nv const* { return fields_.data(); }
  [[nodiscard]] auto size() const -> std::size_t { return fields_.size(); }

 private:
  /// Where a field is in the text.
  struct place {
    std::size_t name;
    std::size_t name_size;
    std::size_t value;
    std::size_t value_size;
    std::uint8_t flags;
  };

  void read(int status, std::string_view field_lines) {
    status_ = status;
    lines_.assign(field_lines);
    text_.assign(field_lines);
    text_.append(":status");
    text_.append({static_cast<char>('0' + status / 100), static_cast<char>('0' + status / 10 % 10),
                  static_cast<char>('0' + status % 10)});
    auto* const begin = text_.data();
    auto* const end = begin + field_lines.size();
    auto const offset = [begin](char const* p) { return static_cast<std::size_t>(p - begin); };
    places_.clear();
    places_.push_back({offset(end), 7, offset(end) + 7, 3, NGHTTP2_NV_FLAG_NONE});
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
      // Who is served is told another one each time.
      bool const changes =
          status < 400 && std::string_view(at, static_cast<std::size_t>(colon - at)) == "ratelimit";
      places_.push_back({offset(at), static_cast<std::size_t>(colon - at), offset(value),
                         static_cast<std::size_t>(line_end - value),
                         changes ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE});
      at = next;
    }
  }

  template <char C>
  [[nodiscard]] static auto find(char* begin, char* at, char* end) -> char* {
    return at + (scan::find<scan::exactly<C>>(begin, at, end) - at);
  }

  // What was read last, and what came of it.
  int status_ = 0;
  std::string lines_;
  std::string text_;
  std::vector<place> places_;

  std::vector<nghttp2_nv> fields_;
};

/// Scratch of the thread: no session needs it after a call.
struct thread_scratch {
  field_list fields;
  std::string interim;
  /// Frames are built here. What is built is taken away at once, so that one is enough for all sessions.
  std::array<char, 16 * 1024 + 512> frame;  // NOLINT: what is not written is not looked at
  std::vector<std::unique_ptr<http2_stream>> spare_streams;
};

auto scratch() -> thread_scratch& {
  static thread_local thread_scratch of_thread;
  return of_thread;
}

constexpr std::size_t spare_streams_max = 256;
/// Streams with more room than this are not kept.
constexpr std::size_t spare_octets_max = 4096;

/// Field names are in lower case (RFC 9113, section 8.2.1). `begin` is that of the buffer.
[[nodiscard]] auto is_name(char const* begin, std::string_view text) -> bool {
  auto const* const end = text.data() + text.size();
  auto const* p = scan::find<scan::unusual_in_name>(begin, text.data(), end);
  while (p != end && grammar::is(*p, grammar::lower_char)) {
    ++p;
  }
  return p == end && !text.empty();
}

/// No controls, and no white space around it (section 8.2.1).
[[nodiscard]] auto is_value(char const* begin, std::string_view text) -> bool {
  auto const* const end = text.data() + text.size();
  return text.empty() || (!is_space(text.front()) && !is_space(text.back()) &&
                          scan::find<scan::control>(begin, text.data(), end) == end);
}

/// As `==`, but quicker: the compiler knows how long the second one is.
template <std::size_t Size>
[[nodiscard]] auto is_same(std::string_view text, char const (&known)[Size]) -> bool {
  return text.size() == Size - 1 && std::memcmp(text.data(), known, Size - 1) == 0;
}

/// scheme (RFC 3986, section 3.1).
[[nodiscard]] auto is_scheme(std::string_view text) -> bool {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return grammar::is_digit(c) || (grammar::lower(c) >= 'a' && grammar::lower(c) <= 'z') ||
           c == '+' || c == '-' || c == '.';
  });
}

/// What the client says about the order of responses (RFC 9218, section 4); what is not understood says
/// nothing.
[[nodiscard]] auto priority_of(std::string_view value) -> nghttp2_extpri {
  nghttp2_extpri out{NGHTTP2_EXTPRI_DEFAULT_URGENCY, 0};
  auto said = out;
  sf::reader reader(sf::field_type::dictionary, value);
  auto e = reader.next();
  for (; !sf::is_final(e); e = reader.next()) {
    if (e != sf::event::item) {
      continue;
    }
    if (auto const urgency = reader.value().get_integer();
        reader.key() == "u" && urgency && urgency->value() >= NGHTTP2_EXTPRI_URGENCY_HIGH &&
        urgency->value() <= NGHTTP2_EXTPRI_URGENCY_LOW) {
      said.urgency = static_cast<std::uint32_t>(urgency->value());
    } else if (auto const incremental = reader.value().get_boolean();
               reader.key() == "i" && incremental) {
      said.inc = *incremental ? 1 : 0;
    }
  }
  return e == sf::event::failure ? out : said;
}

/// What a field may not say, since it is about a connection of HTTP/1.1 (section 8.2.2).
[[nodiscard]] auto is_connection_specific(std::string_view name, std::string_view value) -> bool {
  switch (name.size()) {
    case 2: return is_same(name, "te") && !grammar::same_text(value, "trailers");
    case 7: return is_same(name, "upgrade");
    case 10: return is_same(name, "connection") || is_same(name, "keep-alive");
    case 16: return is_same(name, "proxy-connection");
    case 17: return is_same(name, "transfer-encoding");
    default: return false;
  }
}

/// The head that is being read. Those of one connection follow each other, they never mix. nghttp2 leaves it to
/// us whether it is well-formed (section 8): we read all of it anyway.
class incoming_head {
 public:
  /// `octets_max` is for the names and values of all fields, each with four octets besides.
  void add(std::string_view name, std::string_view value, std::size_t octets_max) {
    octets_ += name.size() + value.size() + 4;
    if (octets_ > octets_max || malformed_) {
      return;
    }
    if (name.starts_with(':')) {
      add_pseudo(name, value);
      return;
    }
    regular_ = true;
    if (is_connection_specific(name, value)) {
      malformed_ = true;
    } else if (is_same(name, "cookie")) {
      add_crumb(value);
    } else if (is_same(name, "host")) {
      add_host(value);
    } else {
      has_length_ = has_length_ || is_same(name, "content-length");
      add_line(name, value);
      if (is_same(name, "priority")) {
        priority_ = priority_of(value);
      }
    }
  }

  [[nodiscard]] auto is_too_large(std::size_t octets_max) const -> bool {
    return octets_ > octets_max;
  }

  /// When it is complete, and after `parts`.
  [[nodiscard]] auto is_malformed() const -> bool {
    if (malformed_ || !method_.is_there) {
      return true;
    }
    auto const method = text_of(method_);
    if (method == "CONNECT") {  // section 8.5
      return scheme_.is_there || path_.is_there || !authority_.is_there;
    }
    auto const path = text_of(path_);
    return !is_scheme(text_of(scheme_)) || (!path.starts_with('/') && path != "*") ||
           !is_value(start_.data(), path);
  }

  /// All of it, once it is complete; `last`: there is no content.
  [[nodiscard]] auto parts(bool last) -> request_parts {
    if (!cookie_.empty()) {
      add_line("cookie", cookie_);
    }
    if (!last && !has_length_) {
      add_line("transfer-encoding", "chunked");
    }
    auto const method = text_of(method_);
    return {method, text_of(method == "CONNECT" ? authority_ : path_), lines_, sizes_};
  }

  void clear() {
    start_.clear();
    lines_.clear();
    cookie_.clear();
    sizes_.clear();
    method_ = scheme_ = path_ = authority_ = {};
    octets_ = 0;
    priority_.reset();
    has_length_ = false;
    has_host_ = false;
    regular_ = false;
    malformed_ = false;
  }

  [[nodiscard]] auto priority() const -> std::optional<nghttp2_extpri> const& { return priority_; }

 private:
  struct part {
    std::size_t at = 0;
    std::size_t size = 0;
    bool is_there = false;
  };

  /// They come first, and each once (section 8.3). The scheme says nothing that the connection does not.
  void add_pseudo(std::string_view name, std::string_view value) {
    auto* const to = is_same(name, ":method")      ? &method_
                     : is_same(name, ":path")      ? &path_
                     : is_same(name, ":authority") ? &authority_
                     : is_same(name, ":scheme")    ? &scheme_
                                                   : nullptr;
    bool const is_empty_authority = to == &authority_ && value.empty();
    if (to == nullptr || to->is_there || regular_ || is_empty_authority) {
      malformed_ = true;
      return;
    }
    *to = {start_.size(), value.size(), true};
    start_.append(value);
    if (to == &authority_) {
      add_line("host", value);
    }
  }

  /// Each may be sent on its own (section 8.2.3).
  void add_crumb(std::string_view value) {
    malformed_ = malformed_ || !is_value(value.data(), value);
    if (!value.empty()) {
      cookie_.append(cookie_.empty() ? "" : "; ").append(value);
    }
  }

  /// One that says something else than the authority is a second one, and so refused (section 8.3.1).
  void add_host(std::string_view value) {
    if (std::exchange(has_host_, true)) {
      malformed_ = true;
    } else if (!authority_.is_there || value != text_of(authority_)) {
      add_line("host", value);
    }
  }
  [[nodiscard]] auto text_of(part const& p) const -> std::string_view {
    return std::string_view(start_).substr(p.at, p.size);
  }
  void add_line(std::string_view name, std::string_view value) {
    auto const at = lines_.size();
    auto const size = at + name.size() + value.size() + 4;
    lines_.resize_and_overwrite(size, [&](char* to, std::size_t /*room*/) {
      to += at;
      std::memcpy(to, name.data(), name.size());
      std::memcpy(to += name.size(), ": ", 2);
      std::memcpy(to += 2, value.data(), value.size());
      std::memcpy(to + value.size(), "\r\n", 2);
      return size;
    });
    std::string_view const all = lines_;
    malformed_ = malformed_ || !is_name(all.data(), all.substr(at, name.size())) ||
                 !is_value(all.data(), all.substr(at + name.size() + 2, value.size()));
    sizes_.push_back(
        {static_cast<std::uint32_t>(name.size()), static_cast<std::uint32_t>(value.size())});
  }

  std::string start_;  // the values of the fields that begin with a colon
  part method_;
  part scheme_;
  part path_;
  part authority_;
  std::string lines_;
  std::vector<request_parts::line> sizes_;
  std::string cookie_;
  std::size_t octets_ = 0;
  std::optional<nghttp2_extpri> priority_;
  bool has_length_ = false;
  bool has_host_ = false;
  bool regular_ = false;  // a field that begins with no colon has come
  bool malformed_ = false;
};

}  // namespace

struct http2_session::state {
  state(http2_limits const& given, http2_events& events_to, request_head& head,
        http2_memory* memory_from)
      : limits(given),
        events(events_to),
        request(head),
        memory(memory_from),
        resets(given.resets),
        control_frames(given.control_frames) {}

  [[nodiscard]] static auto of(void* user) -> state& { return *static_cast<state*>(user); }
  [[nodiscard]] auto find(std::int32_t id) const -> http2_stream* {
    return static_cast<http2_stream*>(nghttp2_session_get_stream_user_data(session, id));
  }

  void open(std::int32_t id) {
    auto& spare = scratch().spare_streams;
    std::unique_ptr<http2_stream> made;
    if (spare.empty()) {
      made = std::make_unique<http2_stream>();
    } else {
      made = std::move(spare.back());
      spare.pop_back();
    }
    made->id_ = id;
    made->opened_at_ = now;
    made->position_ = streams.size();
    nghttp2_session_set_stream_user_data(session, id, made.get());
    streams.push_back(std::move(made));
    head.clear();
  }

  void close(http2_stream& stream) {
    events.closed(stream);
    auto const position = stream.position_;
    std::swap(streams[position], streams.back());
    streams[position]->position_ = position;
    keep(std::move(streams.back()));
    streams.pop_back();
  }

  /// For reuse.
  static void keep(std::unique_ptr<http2_stream> done) {
    auto& spare = scratch().spare_streams;
    if (spare.size() >= spare_streams_max ||
        done->head_.capacity() + done->out_.capacity() > spare_octets_max) {
      return;
    }
    done->user = nullptr;
    done->request_complete_ = false;
    done->response_complete_ = false;
    done->refused_ = false;
    done->length_is_known_ = false;
    done->missing_octets_ = 0;
    done->held_octets_ = 0;
    done->discarded_octets_ = 0;
    done->out_.clear();
    done->sent_ = 0;
    spare.push_back(std::move(done));
  }

  void terminate(http2_error why) {
    if (!std::exchange(terminated, true)) {
      nghttp2_session_terminate_session(session, static_cast<std::uint32_t>(why));
    }
  }

  /// The head is complete: has it judged as HTTP/1.1 would be, and handed on.
  void end_of_head(http2_stream& stream, bool last) {
    stream.request_complete_ = last;
    if (head.is_too_large(limits.head.head_octets_max)) {
      events.refused_request(stream, head_fault::head_too_large);
      return;
    }
    auto const parts = head.parts(last);
    if (head.is_malformed()) {
      refuse(stream);
      return;
    }
    switch (auto const fault = take_request_head(parts, limits.head, request)) {
      case head_fault::none: break;
      case head_fault::invalid_method:
      case head_fault::repeated_content_length:
      case head_fault::invalid_content_length:
      case head_fault::content_length_overflow: refuse(stream); return;
      default: events.refused_request(stream, fault); return;
    }
    if (auto const& priority = head.priority()) {
      nghttp2_session_change_extpri_stream_priority(session, stream.id_, &*priority, 0);
    }
    stream.length_is_known_ = request.has(known_field::content_length);
    stream.missing_octets_ = request.body().length;
    if (last && stream.missing_octets_ != 0) {
      refuse(stream);
      return;
    }
    events.request(stream, request);
  }

  /// The request is malformed (section 8.1.1).
  void refuse(http2_stream& stream) {
    stream.refused_ = true;
    nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream.id_, NGHTTP2_PROTOCOL_ERROR);
    note(resets);
  }

  void end_of_request(http2_stream& stream) {
    if (stream.missing_octets_ != 0) {
      refuse(stream);
    } else if (!std::exchange(stream.request_complete_, true)) {
      events.end_of_request(stream);
    }
  }

  void note(allowance& of) {
    if (!of.spend(now)) {
      terminate(http2_error::enhance_your_calm);
    }
  }

  http2_limits limits;
  http2_events& events;
  request_head& request;
  nghttp2_session* session = nullptr;
  std::vector<std::unique_ptr<http2_stream>> streams;
  incoming_head head;
  http2_memory* memory;
  void* table = nullptr;  // of nghttp2, in which it finds streams: empty while there are none
  std::size_t table_octets = 0;
  void* frame = nullptr;  // where frames are built
  allowance resets;
  allowance control_frames;
  instant now{};
  bool terminated = false;
  bool trailers_are_malformed = false;  // those that are being read

  // ── where nghttp2 gets its memory ───────────────────────────────────────────────────────────────────

  static auto allocate(std::size_t size, void* /*user*/) -> void* {
    return block_pool::of_thread().take(size);
  }

  static auto allocate_zeros(std::size_t count, std::size_t size, void* user) -> void* {
    auto& self = of(user);
    auto const all = count * size;  // of things that fit into memory
    if (all >= table_octets_min && self.memory != nullptr && self.table == nullptr) {
      self.table_octets = all;
      self.table = self.memory->take(all);
      return self.table;
    }
    auto* const out = block_pool::of_thread().take(all);
    if (out != nullptr) {
      std::memset(out, 0, all);
    }
    return out;
  }

  static auto reallocate(void* block, std::size_t size, void* user) -> void* {
    auto& self = of(user);
    // The first large block is the one in which it builds frames.
    if (block == nullptr && self.frame == nullptr && size > 16 * 1024 &&
        size <= scratch().frame.size()) {
      self.frame = scratch().frame.data();
      return self.frame;
    }
    if (block == nullptr || block != self.frame) {
      return block_pool::of_thread().resize(block, size);
    }
    auto* const out = block_pool::of_thread().take(size);
    if (out != nullptr) {
      std::memcpy(out, block, std::min(size, scratch().frame.size()));
    }
    return out;
  }

  static void release(void* block, void* user) {
    auto& self = of(user);
    if (block == nullptr || block == self.frame) {
      return;
    }
    if (block == self.table) {
      self.memory->give_back(std::exchange(self.table, nullptr), self.table_octets);
    } else {
      block_pool::of_thread().give_back(block);
    }
  }

  static constexpr std::size_t table_octets_min = 4096;

  // ── what nghttp2 calls ──────────────────────────────────────────────────────────────────────────────

  static auto on_begin_headers(nghttp2_session* /*session*/, nghttp2_frame const* frame, void* user)
      -> int {
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
      if (of(user).terminated) {
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
      }
      of(user).open(frame->hd.stream_id);
    } else {
      of(user).trailers_are_malformed = false;
    }
    return 0;
  }

  static auto on_header(nghttp2_session* /*session*/, nghttp2_frame const* frame,
                        std::uint8_t const* name, std::size_t name_size, std::uint8_t const* value,
                        std::size_t value_size, std::uint8_t /*flags*/, void* user) -> int {
    auto& self = of(user);
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
      self.head.add(view(name, name_size), view(value, value_size),
                    self.limits.head.head_octets_max);
    } else if (auto const [n, v] = std::pair(view(name, name_size), view(value, value_size));
               !is_name(n.data(), n) || !is_value(v.data(), v) || is_connection_specific(n, v)) {
      self.trailers_are_malformed = true;  // section 8.1; pseudo-header fields among them
    }
    return 0;
  }

  static auto on_frame_recv(nghttp2_session* /*session*/, nghttp2_frame const* frame, void* user)
      -> int {
    auto& self = of(user);
    if (self.terminated) {
      return 0;
    }
    bool const last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    switch (frame->hd.type) {
      case NGHTTP2_HEADERS:
      case NGHTTP2_DATA: {
        if (frame->hd.type == NGHTTP2_DATA && frame->hd.length == 0 && !last) {
          self.note(self.control_frames);
        }
        auto* const stream = self.find(frame->hd.stream_id);
        if (stream == nullptr || stream->refused_) {
          return 0;
        }
        bool const is_head = frame->hd.type == NGHTTP2_HEADERS;
        if (is_head && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
          self.end_of_head(*stream, last);
        } else if (is_head && (!last || self.trailers_are_malformed)) {
          self.refuse(*stream);
        } else if (last) {
          self.end_of_request(*stream);
        }
        return 0;
      }
      case NGHTTP2_RST_STREAM: self.note(self.resets); return 0;
      case NGHTTP2_SETTINGS:
      case NGHTTP2_PING:
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) == 0) {
          self.note(self.control_frames);
        }
        return 0;
      default: return 0;
    }
  }

  static auto on_invalid_frame_recv(nghttp2_session* /*session*/, nghttp2_frame const* /*frame*/,
                                    int /*error*/, void* user) -> int {
    of(user).note(of(user).resets);
    return 0;
  }

  static auto on_data_chunk_recv(nghttp2_session* session, std::uint8_t /*flags*/, std::int32_t id,
                                 std::uint8_t const* data, std::size_t size, void* user) -> int {
    auto& self = of(user);
    auto* const stream = self.find(id);
    // The window of the connection is open for other streams, whatever becomes of this one.
    nghttp2_session_consume_connection(session, size);
    if (stream == nullptr || stream->refused_ || self.terminated) {
      return 0;
    }
    if (stream->length_is_known_) {
      if (size > stream->missing_octets_) {
        self.refuse(*stream);
        return 0;
      }
      stream->missing_octets_ -= size;
    }
    if (stream->response_complete_ && stream->waiting_octets() == 0) {
      // All is said, and the client need not send the rest (section 8.1). Some of it is thrown away before
      // we say so: a reset that comes together with the response makes some clients forget the response.
      stream->discarded_octets_ += size;
      if (stream->discarded_octets_ > self.limits.stream_window_octets) {
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR);
      }
    }
    if (self.events.content(*stream, view(data, size))) {
      nghttp2_session_consume_stream(session, id, size);
    } else {
      stream->held_octets_ += size;
    }
    return 0;
  }

  static auto on_stream_close(nghttp2_session* session, std::int32_t id, std::uint32_t /*why*/,
                              void* user) -> int {
    auto* const stream = of(user).find(id);
    if (stream != nullptr) {
      nghttp2_session_set_stream_user_data(session, id, nullptr);
      of(user).close(*stream);
    }
    return 0;
  }

  static auto read_content(nghttp2_session* /*session*/, std::int32_t /*id*/, std::uint8_t* into,
                           std::size_t size, std::uint32_t* flags, nghttp2_data_source* source,
                           void* /*user*/) -> ssize_t {
    auto& stream = *static_cast<http2_stream*>(source->ptr);
    auto const count = std::min(size, stream.waiting_octets());
    if (count == 0 && !stream.response_complete_) {
      return NGHTTP2_ERR_DEFERRED;
    }
    std::memcpy(into, stream.out_.data() + stream.sent_, count);
    stream.sent_ += count;
    if (stream.waiting_octets() == 0) {
      stream.out_.clear();
      stream.sent_ = 0;
      if (stream.response_complete_) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
      }
    }
    return static_cast<ssize_t>(count);
  }

  static auto callbacks() -> nghttp2_session_callbacks const* {
    static auto const* const made = [] {
      nghttp2_session_callbacks* out = nullptr;
      if (nghttp2_session_callbacks_new(&out) != 0) {
        throw std::bad_alloc();
      }
      nghttp2_session_callbacks_set_on_begin_headers_callback(out, on_begin_headers);
      nghttp2_session_callbacks_set_on_header_callback(out, on_header);
      nghttp2_session_callbacks_set_on_frame_recv_callback(out, on_frame_recv);
      nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(out, on_invalid_frame_recv);
      nghttp2_session_callbacks_set_on_data_chunk_recv_callback(out, on_data_chunk_recv);
      nghttp2_session_callbacks_set_on_stream_close_callback(out, on_stream_close);
      return out;
    }();
    return made;
  }

  static auto options() -> nghttp2_option const* {
    static auto const* const made = [] {
      nghttp2_option* out = nullptr;
      if (nghttp2_option_new(&out) != 0) {
        throw std::bad_alloc();
      }
      nghttp2_option_set_no_auto_window_update(out, 1);
      nghttp2_option_set_no_closed_streams(out, 1);
      nghttp2_option_set_no_http_messaging(out, 1);  // `incoming_head` sees to that
      // What changes all the time is not worth remembering for long.
      nghttp2_option_set_max_deflate_dynamic_table_size(out, 1024);
      return out;
    }();
    return made;
  }
};

http2_session::http2_session(http2_limits const& limits, http2_events& events, request_head& head,
                             http2_memory* memory)
    : state_(std::make_unique<state>(limits, events, head, memory)) {
  nghttp2_mem blocks{state_.get(), state::allocate, state::release, state::allocate_zeros,
                     state::reallocate};
  if (nghttp2_session_server_new3(&state_->session, state::callbacks(), state_.get(),
                                  state::options(), &blocks) != 0) {
    throw std::bad_alloc();
  }
  std::array<nghttp2_settings_entry, 4> const settings{{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.concurrent_streams_max},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits.stream_window_octets},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
       static_cast<std::uint32_t>(limits.head.head_octets_max)},
      {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
  }};
  nghttp2_submit_settings(state_->session, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(state_->session, NGHTTP2_FLAG_NONE, 0,
                                        static_cast<std::int32_t>(limits.connection_window_octets));
}

http2_session::~http2_session() {
  nghttp2_session_del(state_->session);
}

auto http2_session::receive(std::string_view bytes, instant now) -> bool {
  state_->now = now;
  auto const count = nghttp2_session_mem_recv(state_->session, octets(bytes.data()), bytes.size());
  return count >= 0 && !state_->terminated;
}

auto http2_session::take_output(std::string& out, std::size_t octets_max) -> bool {
  while (out.size() < octets_max) {
    std::uint8_t const* data = nullptr;
    auto const size = nghttp2_session_mem_send(state_->session, &data);
    if (size <= 0) {
      return size == 0;
    }
    out.append(view(data, static_cast<std::size_t>(size)));
  }
  return true;
}

auto http2_session::wants_output() const noexcept -> bool {
  return nghttp2_session_want_write(state_->session) != 0;
}

auto http2_session::is_over() const noexcept -> bool {
  return nghttp2_session_want_read(state_->session) == 0 && !wants_output();
}

auto http2_session::streams_count() const noexcept -> std::size_t {
  return state_->streams.size();
}

auto http2_session::stream_at(std::size_t position) noexcept -> http2_stream& {
  return *state_->streams[position];
}

void http2_session::send_interim(http2_stream& on, int status, std::string_view field_lines) {
  auto& fields = scratch().fields;
  fields.assign(status, field_lines, scratch().interim, NGHTTP2_NV_FLAG_NONE);
  nghttp2_submit_headers(state_->session, NGHTTP2_FLAG_NONE, on.id_, nullptr, fields.data(),
                         fields.size(), nullptr);
}

void http2_session::send_head(http2_stream& on, int status, std::string_view field_lines,
                              bool last) {
  auto& fields = scratch().fields;
  fields.assign(status, field_lines, on.head_, not_copied);
  on.response_complete_ = last;
  nghttp2_data_provider provider{};
  provider.source.ptr = &on;
  provider.read_callback = state::read_content;
  nghttp2_submit_response(state_->session, on.id_, fields.data(), fields.size(),
                          last ? nullptr : &provider);
}

void http2_session::send_whole(http2_stream& on, int status, std::string_view field_lines,
                               std::string_view content) {
  on.out_.append(content);
  send_head(on, status, field_lines, content.empty());
  on.response_complete_ = true;
}

void http2_session::send_content(http2_stream& on, std::string_view bytes) {
  assert(!on.response_complete_);
  on.out_.append(bytes);
  nghttp2_session_resume_data(state_->session, on.id_);
}

void http2_session::send_end(http2_stream& on) {
  if (!std::exchange(on.response_complete_, true)) {
    nghttp2_session_resume_data(state_->session, on.id_);
  }
}

void http2_session::reset(http2_stream& on, http2_error why) {
  nghttp2_submit_rst_stream(state_->session, NGHTTP2_FLAG_NONE, on.id_,
                            static_cast<std::uint32_t>(why));
}

void http2_session::let_send(http2_stream& on) {
  if (auto const size = std::exchange(on.held_octets_, 0); size != 0) {
    nghttp2_session_consume_stream(state_->session, on.id_, size);
  }
}

void http2_session::rest() {
  auto& self = *state_;
  assert(self.streams.empty());
  self.head = {};
  self.streams.shrink_to_fit();
  if (self.table != nullptr) {
    auto const* const begin = static_cast<std::uint64_t const*>(self.table);
    if (std::all_of(begin, begin + self.table_octets / sizeof *begin,
                    [](std::uint64_t each) { return each == 0; })) {
      self.memory->rest(self.table, self.table_octets);
    }
  }
}

void http2_session::drain() {
  nghttp2_submit_goaway(state_->session, NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(state_->session), NGHTTP2_NO_ERROR,
                        nullptr, 0);
}

void http2_session::terminate(http2_error why) {
  state_->terminate(why);
}

}  // namespace tidegate::wire
