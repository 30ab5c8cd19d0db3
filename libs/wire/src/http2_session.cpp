// SPDX-License-Identifier: Apache-2.0
#include <tidegate/wire/http2_session.hpp>

#include "http2_blocks.hpp"

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

/// Eight octets at a time, which most names have.
void make_lower_case(char* at, char const* end) {
  constexpr std::uint64_t each = 0x0101010101010101;
  for (; end - at >= 8; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    auto const low = word & each * 0x7f;
    auto const from_a = low + each * (0x80 - 'A');        // the highest bit is set from 'A' on,
    auto const behind_z = low + each * (0x80 - 'Z' - 1);  // and here behind 'Z'
    word |= ((from_a ^ behind_z) & ~word & each * 0x80) >> 2U;
    std::memcpy(at, &word, sizeof word);
  }
  for (; at != end; ++at) {
    *at = static_cast<char>(*at | (static_cast<unsigned char>(*at - 'A') < 26 ? 0x20 : 0));
  }
}

[[nodiscard]] auto find(char* at, char* end, char c) -> char* {
  auto* const found = std::memchr(at, c, static_cast<std::size_t>(end - at));
  return found == nullptr ? end : static_cast<char*>(found);
}

[[nodiscard]] auto is_space(char c) -> bool {
  return c == ' ' || c == '\t';
}

constexpr std::uint8_t not_copied = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE;

/// Field lines as nghttp2 wants them: views of a text.
class field_list {
 public:
  /// `lines` are complete lines. They are changed, and live until they are sent if they are `not_copied`.
  void assign(int status, std::string& lines, std::uint8_t flags) {
    fields_.clear();
    flags_ = flags;
    // The digits of the status go behind the lines.
    auto const size = lines.size();
    lines.append({static_cast<char>('0' + status / 100), static_cast<char>('0' + status / 10 % 10),
                  static_cast<char>('0' + status % 10)});
    auto* at = lines.data();
    auto* const end = at + size;
    add(":status", {end, 3});
    while (at != end) {
      auto* line_end = find(at, end, '\r');
      auto* const next = line_end + std::min<std::ptrdiff_t>(2, end - line_end);
      auto* const colon = find(at, line_end, ':');
      make_lower_case(at, colon);  // RFC 9113, section 8.2
      auto* value = std::min(colon + 1, line_end);
      while (value != line_end && is_space(*value)) {
        ++value;
      }
      while (value != line_end && is_space(line_end[-1])) {
        --line_end;
      }
      add({at, static_cast<std::size_t>(colon - at)},
          {value, static_cast<std::size_t>(line_end - value)});
      at = next;
    }
  }

  [[nodiscard]] auto data() const -> nghttp2_nv const* { return fields_.data(); }
  [[nodiscard]] auto size() const -> std::size_t { return fields_.size(); }

 private:
  void add(std::string_view name, std::string_view value) {
    auto const flags =
        name == "ratelimit" ? flags_ | NGHTTP2_NV_FLAG_NO_INDEX : flags_;  // another one each time
    fields_.push_back({octets(name.data()), octets(value.data()), name.size(), value.size(),
                       static_cast<std::uint8_t>(flags)});
  }

  std::uint8_t flags_ = NGHTTP2_NV_FLAG_NONE;
  std::vector<nghttp2_nv> fields_;
};

/// Scratch of the thread: no session needs it after a call.
struct thread_scratch {
  field_list fields;
  std::string text;
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

/// The head that is being read. Those of one connection follow each other, they never mix.
struct incoming_head {
  std::string method;
  std::string path;
  std::string authority;
  std::string lines;
  std::string cookie;
  std::size_t octets = 0;
  bool too_large = false;

  void clear() {
    for (auto* const text : {&method, &path, &authority, &lines, &cookie}) {
      text->clear();
    }
    octets = 0;
    too_large = false;
  }
};

constexpr std::string_view line_end = "\r\n";

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

  void add_field(std::string_view name, std::string_view value) {
    head.octets += name.size() + value.size() + 4;
    if (head.octets > limits.head.head_octets_max) {
      head.too_large = true;
    }
    if (head.too_large) {
      return;
    }
    if (name == ":method") {
      head.method = value;
    } else if (name == ":path") {
      head.path = value;
    } else if (name == ":authority") {
      head.authority = value;
    } else if (name.starts_with(':')) {
      return;  // the scheme says nothing that the connection does not
    } else if (name == "cookie") {
      head.cookie.append(head.cookie.empty() ? "" : "; ").append(value);
    } else if (name == "host" && head.authority.empty()) {
      head.authority = value;
    } else if (name != "host" || value != head.authority) {
      // A Host that says something else stays, to be refused as a second one (section 8.3.1).
      head.lines.append(name).append(": ").append(value).append(line_end);
    }
  }

  /// The head is complete: has it judged as HTTP/1.1 would be, and handed on.
  void end_of_head(http2_stream& stream, bool last) {
    stream.request_complete_ = last;
    if (head.too_large) {
      events.refused_request(stream, head_fault::head_too_large);
      return;
    }
    auto& text = scratch().text;
    text.assign(head.method).append(" ");
    text.append(head.method == "CONNECT" ? head.authority : head.path);
    text.append(" HTTP/1.1\r\nhost: ").append(head.authority).append(line_end);
    text.append(head.lines);
    if (!head.cookie.empty()) {
      text.append("cookie: ").append(head.cookie).append(line_end);
    }
    if (!last && !has_content_length()) {
      text.append("transfer-encoding: chunked\r\n");
    }
    text.append(line_end);
    // What this adds to the head is not the client's.
    auto judged_by = limits.head;
    judged_by.head_octets_max += 128;
    auto const judged = parse_request_head(text, 0, judged_by, request);
    if (judged.state == head_state::complete) {
      events.request(stream, request);
    } else {
      auto const fault = judged.fault;
      events.refused_request(stream,
                             fault == head_fault::none ? head_fault::head_too_large : fault);
    }
  }

  [[nodiscard]] auto has_content_length() const -> bool {
    constexpr std::string_view name = "content-length: ";
    return head.lines.starts_with(name) || head.lines.contains("\r\ncontent-length: ");
  }

  void end_of_request(http2_stream& stream) {
    if (!std::exchange(stream.request_complete_, true)) {
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
    }
    return 0;
  }

  static auto on_header(nghttp2_session* /*session*/, nghttp2_frame const* frame,
                        std::uint8_t const* name, std::size_t name_size, std::uint8_t const* value,
                        std::size_t value_size, std::uint8_t /*flags*/, void* user) -> int {
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
      of(user).add_field(view(name, name_size), view(value, value_size));
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
        if (stream == nullptr) {
          return 0;
        }
        if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
          self.end_of_head(*stream, last);
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
    if (stream == nullptr || self.terminated) {
      return 0;
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
  auto& lines = scratch().interim;
  lines.assign(field_lines);
  fields.assign(status, lines, NGHTTP2_NV_FLAG_NONE);
  nghttp2_submit_headers(state_->session, NGHTTP2_FLAG_NONE, on.id_, nullptr, fields.data(),
                         fields.size(), nullptr);
}

void http2_session::send_head(http2_stream& on, int status, std::string_view field_lines,
                              bool last) {
  auto& fields = scratch().fields;
  on.head_.assign(field_lines);
  fields.assign(status, on.head_, not_copied);
  on.response_complete_ = last;
  nghttp2_data_provider provider{};
  provider.source.ptr = &on;
  provider.read_callback = state::read_content;
  nghttp2_submit_response(state_->session, on.id_, fields.data(), fields.size(),
                          last ? nullptr : &provider);
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
