// SPDX-License-Identifier: Apache-2.0
#include "connection/http2_connection.hpp"

#include <tidegate/http/problem.hpp>

#include <algorithm>
#include <new>
#include <utility>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;

/// What may wait of one response before its upstream is asked to stop.
constexpr std::size_t waiting_octets_max = 64 * 1024;
/// What may wait for a client in all. Beyond that stores are asked for no further answers, and an upstream whose
/// response waits is not read; each stream may have a piece, so that one that nobody reads stops no other.
constexpr std::size_t connection_octets_max = 1024 * 1024;
/// Streams that may wait for the directory at the same time, where each answer is likely to fit into
/// this; fewer when many clients share the memory.
constexpr std::uint8_t asking_max = 8;
constexpr std::size_t page_octets = 512 * 1024;
/// What is written at once, and at most in one turn, so that other connections have theirs.
constexpr std::size_t write_octets_max = 64 * 1024;
constexpr int writes_max = 8;
/// How long a client may go on sending after the last word.
constexpr auto linger_timeout = 2s;
constexpr std::size_t spare_streams_max = 8;
/// How long a connection without streams keeps what it needs for the next one.
constexpr auto rest_after = 1s;

[[nodiscard]] auto limits_of(active_config const& active) -> wire::http2_limits {
  wire::http2_limits limits;
  limits.head = active.head_limits;
  return limits;
}

}  // namespace

/// One request on the connection.
class http2_connection::stream final : public client_stream {
 public:
  stream(http2_connection& on, wire::http2_stream& as) : connection_(on), stream_(&as) {}
  stream(stream const&) = delete;
  auto operator=(stream const&) -> stream& = delete;
  ~stream() = default;

  [[nodiscard]] static auto of(wire::http2_stream const& on) -> stream* {
    return static_cast<stream*>(on.user);
  }

  /// For the next request.
  void reuse(wire::http2_stream& as) {
    stream_ = &as;
    chunks_ = false;
    is_head_request_ = false;
    head_sent_ = false;
    waits_for_ = room::any;
    asks_ = false;
    body_octets_ = 0;
    waiting_since_ = {};
  }

  void begin(wire::request_head const& head) {
    auto& on = connection_.worker_;
    is_head_request_ = head.method() == wire::method::head;
    chunks_ = head.body().kind == wire::body_kind::chunked;
    received_at_ = on.loop.now();
    exchange_ = on.take_exchange();
    exchange_->begin(*this, head, connection_.from_);
  }

  /// False when the client is to wait.
  [[nodiscard]] auto take(std::string_view bytes) -> bool {
    received_at_ = connection_.worker_.loop.now();
    if (!exchange_) {
      return true;  // answered already
    }
    body_octets_ += bytes.size();
    auto const& max_body = connection_.worker_.current->active->config.http.max_body;
    if (max_body && body_octets_ > static_cast<std::uint64_t>(*max_body)) {
      refuse(413);
      return true;
    }
    if (chunks_) {
      auto& out = connection_.worker_.http2_text;
      out.clear();
      wire::append_chunk_size(out, bytes.size());
      out.append(bytes).append(wire::chunk_end);
      exchange_->body(out, bytes.size(), false);
    } else {
      exchange_->body(bytes, bytes.size(), false);
    }
    return !exchange_ || !exchange_->is_above_high_watermark();
  }

  void take_end() {
    if (exchange_) {
      exchange_->body(chunks_ ? wire::last_chunk_and_end : std::string_view(), 0, true);
    }
  }

  /// Answers in place of an exchange, or resets the stream when a part of an answer is gone already.
  void refuse(int status) {
    auto& on = connection_.worker_;
    if (on.log != nullptr && !exchange_ && !head_sent_) {
      on.log_malformed(connection_.from_.peer, protocol(), status);
    }
    if (exchange_ || !head_sent_) {  // else it is one that was answered before
      on.metrics->requests_malformed.add();
    }
    abandon(status);
    if (head_sent_) {
      connection_.session_.reset(*stream_, wire::http2_error::cancel);
      connection_.write_soon();
      return;
    }
    on.text.clear();
    http::problem_writer(on.text, {.title = wire::reason_phrase(status),
                                   .status = status,
                                   .detail = "The request is not one that this gateway takes."});
    send_whole({.status = status,
                .content_type = http::problem_json,
                .field_lines = on.date_line(),
                .content = on.text,
                .closes = true});
  }

  /// Nobody waits for an answer any more.
  void abandon(int status = status_client_closed) {
    has_asked();
    if (exchange_) {
      exchange_->abandon(status);
      connection_.worker_.recycle(std::move(exchange_));
    }
  }

  /// Perhaps the client has taken what was waited for.
  void resume_waiting() {
    if (exchange_ && waits_for_ != room::any && has(waits_for_)) {
      exchange_->client_resumed();
    }
  }

  /// The text that waits for this client is sent, or is not to be any more.
  void let_text_go() {
    text_.reset();
    owner_.reset();
  }

  /// What it keeps in memory besides what is in the session. Of a text that others wait for too, its part.
  [[nodiscard]] auto held_octets() const -> std::size_t {
    auto const users = owner_.use_count();
    return (exchange_ ? exchange_->waiting_octets() : 0) +
           (users > 0 ? text_octets_ / static_cast<std::size_t>(users) : 0);
  }

  /// True when it is the client that is waited for, to send the rest of its request.
  [[nodiscard]] auto waits_for_content() const -> bool {
    return !stream_->request_is_complete() && !(exchange_ && exchange_->is_above_high_watermark());
  }
  [[nodiscard]] auto received_at() const -> instant { return received_at_; }
  /// When content of the response began to wait for the client.
  [[nodiscard]] auto waiting_since() const -> instant { return waiting_since_; }

  // For the exchange.

  void send_interim(wire::response_head const& head) override {
    auto const lines = lines_of(head, {}, {});
    connection_.session_.send_interim(*stream_, head.status(), lines);
    connection_.write_soon();
  }

  void send_head(wire::response_head const& head, wire::field_set const& drop,
                 std::string_view field_lines) override {
    auto const lines = lines_of(head, drop, field_lines);
    head_sent_ = true;
    connection_.session_.send_head(*stream_, head.status(), lines,
                                   head.body().kind == wire::body_kind::none);
    connection_.write_soon();
  }

  void send_own_head(int status, std::string_view field_lines,
                     std::optional<std::uint64_t> length) override {
    auto& lines = connection_.worker_.http2_text;
    lines.assign(field_lines);
    if (length) {
      wire::append_field(lines, "content-length", *length);
    }
    head_sent_ = true;
    connection_.session_.send_head(*stream_, status, lines, false);
    connection_.write_soon();
  }

  void send_body(std::string_view bytes) override {
    if (!bytes.empty()) {
      if (stream_->waiting_octets() == 0) {
        waiting_since_ = connection_.worker_.loop.now();
      }
      connection_.session_.send_content(*stream_, bytes);
      connection_.write_soon();
    }
  }

  void send_end(bool is_cut) override {
    if (is_cut) {
      connection_.session_.reset(*stream_, wire::http2_error::internal_error);
    } else {
      connection_.session_.send_end(*stream_);
    }
    is_over();
  }

  void send_whole(whole_response const& response) override {
    auto& on = connection_.worker_;
    auto& lines = on.http2_text;
    lines.clear();
    bool const has_type = !response.content_type.empty();
    if (has_type && !response.content.empty()) {
      wire::append_field(lines, "content-type", response.content_type);
    }
    if (has_type || (response.status != 204 && response.status != 304)) {
      wire::append_field(lines, "content-length",
                         response.content_begin.size() + response.content.size());
    }
    lines.append(response.field_lines);
    head_sent_ = true;
    wire::http2_content content;
    if (!is_head_request_) {
      content = {response.content_begin, response.content, response.owner};
    }
    connection_.session_.send_whole(*stream_, response.status, lines, content);
    if (stream_->waiting_octets() > 0) {
      waiting_since_ = on.loop.now();
      if (content.owner) {
        text_ = on.shedder.hold_text(content.rest);
        owner_ = content.owner;
        text_octets_ = content.rest.size();
      }
    }
    is_over();
  }

  void give_up() override {
    abandon(503);
    connection_.session_.reset(*stream_, wire::http2_error::internal_error);
    connection_.write_soon();
  }

  void flush() override {}  // at the end of the turn

  [[nodiscard]] auto wants_framing() const -> bool override { return false; }
  [[nodiscard]] auto protocol() const -> std::string_view override { return "HTTP/2"; }

  [[nodiscard]] auto is_above_high_watermark() const -> bool override {
    return !has(room::for_piece);
  }

  [[nodiscard]] auto takes_answers() -> bool override { return has(room::for_answer); }

  [[nodiscard]] auto may_ask_directory() -> bool override {
    if (!has(room::for_page)) {
      return false;
    }
    asks_ = true;
    ++connection_.asking_;
    return true;
  }

  void resume() override {
    connection_.session_.let_send(*stream_);
    connection_.write_soon();
  }

 private:
  /// What there has to be room for before whoever answers goes on.
  enum class room : std::uint8_t { any, for_piece, for_answer, for_page };

  /// When there is none, it is waited for.
  [[nodiscard]] auto has(room what) const -> bool {
    auto const waiting = stream_->waiting_octets();
    bool there = true;
    switch (what) {
      case room::any: break;
      case room::for_piece:
        there = waiting <= waiting_octets_max &&
                connection_.session_.pending_octets() <= waiting_octets_max &&
                (waiting == 0 || !connection_.is_full());
        break;
      case room::for_answer: there = !connection_.is_full(); break;
      case room::for_page: there = !connection_.is_full() && connection_.may_ask(); break;
    }
    waits_for_ = there ? room::any : what;
    connection_.has_full_stream_ = connection_.has_full_stream_ || !there;
    return there;
  }

  void has_asked() {
    if (std::exchange(asks_, false)) {
      --connection_.asking_;
    }
  }

  /// The field lines of a response as they are sent on, without what is HTTP/1.1's own.
  [[nodiscard]] auto lines_of(wire::response_head const& head, wire::field_set const& drop,
                              std::string_view field_lines) const -> std::string_view {
    wire::response_forwarding how;
    how.drop = drop;
    how.field_lines = field_lines;
    how.body = head.body();
    if (how.body.kind == wire::body_kind::chunked) {
      how.body.kind = wire::body_kind::until_close;  // that is: nothing says where it ends
    }
    auto& out = connection_.worker_.http2_text;
    out.clear();
    wire::append_response_head(out, head, how);
    std::string_view lines = out;
    lines.remove_prefix(lines.find("\r\n") + 2);
    lines.remove_suffix(2);
    return lines;
  }

  /// The exchange has said all it has to say, and is called no more.
  void is_over() {
    has_asked();
    if (exchange_) {
      connection_.worker_.recycle(std::move(exchange_));
    }
    connection_.write_soon();
  }

  http2_connection& connection_;
  wire::http2_stream* stream_;
  std::unique_ptr<exchange> exchange_;
  bool chunks_ = false;  // the request's body is framed here
  bool is_head_request_ = false;
  bool head_sent_ = false;
  mutable room waits_for_ = room::any;
  bool asks_ = false;       // the directory
  slow_client_shedder::held_text text_;  // that others may send as well
  std::weak_ptr<void const> owner_;
  std::size_t text_octets_ = 0;
  std::uint64_t body_octets_ = 0;
  instant received_at_{};
  instant waiting_since_{};
};

http2_connection::http2_connection(worker& on, worker::client_place at, engine::transport transport,
                                   client_address from)
    : worker_(on),
      transport_(std::move(transport)),
      from_(std::move(from)),
      session_(limits_of(*on.current->active), *this, on.request),
      place_(at) {
  from_.becomes_http2();
  *place_ = this;
}

http2_connection::~http2_connection() = default;

void http2_connection::start(std::string_view bytes, bool closing) {
  closing_ = closing;
  if (!worker_.loop.watch_instead(transport_.socket(), *this)) {
    close();
    return;
  }
  auto const wait = worker_.current->active->config.http.header_timeout;
  idle_until_ = worker_.loop.now() + wait;
  set_deadline(wait);
  write_soon();
  take(bytes);
  if (worker_.shared.drain.draining.load(std::memory_order_relaxed)) {
    drain();
  }
}

void http2_connection::set_deadline(std::chrono::nanoseconds wait) {
  set(worker_.loop.timers(), worker_.loop.now() + wait);
}

// ---- input ----

void http2_connection::ready(engine::readiness what) {
  if (phase_ == phase::closed) {
    return;
  }
  if (what.hung_up) {
    close();
    return;
  }
  closing_ = closing_ || what.closing;
  readable_ = readable_ || what.readable;
  writable_ = writable_ || what.writable;
  if (readable_) {
    read();
  }
  if (phase_ != phase::closed && what.writable && (!out_.empty() || session_.wants_output())) {
    write_soon();
  }
}

void http2_connection::read() {
  while (readable_ && phase_ != phase::closed) {
    auto const [state, size] = transport_.read(worker_.input);
    if (state == engine::io_state::again) {
      readable_ = false;
      return;
    }
    if (state != engine::io_state::done) {
      close();
      return;
    }
    readable_ = closing_ || size == worker_.input.size();
    take({worker_.input.data(), size});
  }
}

void http2_connection::take(std::string_view bytes) {
  if (phase_ == phase::open && !session_.receive(bytes, worker_.loop.now())) {
    phase_ = phase::ending;
    set_deadline(linger_timeout);
  }
  // Settings and windows may let us send what could not be sent before; a reset makes room for others.
  if (phase_ == phase::ending || has_full_stream_ || session_.wants_output()) {
    write_soon();
  }
}

auto http2_connection::add_stream(wire::http2_stream& on) -> stream& {
  std::unique_ptr<stream> made;
  if (spare_streams_.empty()) {
    made = std::make_unique<stream>(*this, on);
  } else {
    made = std::move(spare_streams_.back());
    spare_streams_.pop_back();
    made->reuse(on);
  }
  if (session_.streams_count() == 1 && writable_) {
    auto const& settings = worker_.current->active->config.http;
    set_deadline(std::min(settings.body_timeout, settings.idle_timeout));
  }
  on.user = made.get();
  return *made.release();
}

void http2_connection::request(wire::http2_stream& on, wire::request_head const& head) {
  add_stream(on).begin(head);
}

void http2_connection::refused_request(wire::http2_stream& on, wire::head_fault fault) {
  add_stream(on).refuse(wire::status_of(fault));
}

auto http2_connection::content(wire::http2_stream& on, std::string_view bytes) -> bool {
  return stream::of(on)->take(bytes);
}

void http2_connection::end_of_request(wire::http2_stream& on) {
  stream::of(on)->take_end();
}

void http2_connection::closed(wire::http2_stream& on) {
  if (std::unique_ptr<stream> done(stream::of(on)); done) {  // else it was never a request
    done->abandon();
    done->let_text_go();
    if (spare_streams_.size() < spare_streams_max) {
      spare_streams_.push_back(std::move(done));
    }
  }
  if (session_.streams_count() == 1) {
    std::chrono::nanoseconds const wait = worker_.current->active->config.http.idle_timeout;
    idle_until_ = worker_.loop.now() + wait;
    if (writable_) {  // else nothing that the client does gives it more time to take what waits
      set_deadline(std::min<std::chrono::nanoseconds>(wait, rest_after));
    }
  }
}

// ---- output ----

void http2_connection::write_soon() {
  if (phase_ != phase::closed && !std::exchange(writes_soon_, true)) {
    worker_.loop.at_end_of_turn(*this);
  }
}

void http2_connection::turn_ends() {
  writes_soon_ = false;
  if (phase_ == phase::open || phase_ == phase::ending) {
    write();
  } else if (phase_ == phase::lingering) {
    linger();
  }
}

void http2_connection::write() {
  auto const sent_before = content_octets_sent_;
  int writes = 0;
  while (writable_ && writes < writes_max && write_some()) {
    ++writes;
  }
  if (phase_ == phase::closed) {
    return;
  }
  if (writes == writes_max) {
    write_soon();
  } else if (out_.empty() && (phase_ == phase::ending || session_.is_over())) {
    linger();
    return;
  }
  resume_streams();
  pace_.note(content_octets_sent_ - sent_before, out_.size() + session_.waiting_octets(),
             worker_.loop.now());
  worker_.count_buffered(counted_, out_.size() + session_.own_waiting_octets());
}

/// Writes once. False when there was nothing to write, or the connection is closed by it.
auto http2_connection::write_some() -> bool {
  // What waits for the socket goes first; most of the time nothing does, and no buffer is kept.
  auto& gathered = worker_.http2_output;
  gathered.assign(out_);
  if (!session_.take_output(gathered, write_octets_max) && phase_ == phase::open) {
    phase_ = phase::ending;
    set_deadline(linger_timeout);
  }
  if (gathered.empty()) {
    return false;
  }
  auto const [state, sent] = transport_.write(gathered);
  if (state == engine::io_state::failed) {
    gathered.clear();
    close();
    return false;
  }
  writable_ = sent == gathered.size();
  if (sent > 0 || out_.empty()) {
    written_at_ = worker_.loop.now();
  }
  // Answers to PING give nobody more time to take content, as long as nothing else waits for the socket.
  if (auto const octets = session_.content_octets_sent();
      std::exchange(content_octets_sent_, octets) != octets || (sent > 0 && !out_.empty())) {
    content_sent_at_ = worker_.loop.now();
  }
  if (writable_) {
    (void)std::exchange(out_, {});  // with its buffer
  } else {
    out_.assign(gathered, sent);
  }
  gathered.clear();
  return true;
}

/// Whoever is told to go on and still cannot says so again.
void http2_connection::resume_streams() {
  if (!std::exchange(has_full_stream_, false)) {
    return;
  }
  for (std::size_t i = 0; i < session_.streams_count(); ++i) {
    if (auto* const each = stream::of(session_.stream_at(i)); each != nullptr) {
      each->resume_waiting();
    }
  }
}

auto http2_connection::is_full() const -> bool {
  return out_.size() + session_.waiting_octets() > connection_octets_max;
}

auto http2_connection::may_ask() const -> bool {
  return asking_ == 0 ||
         asking_ < worker_.share_of_buffers(page_octets, asking_max * page_octets) / page_octets;
}

auto http2_connection::waiting_octets() const -> std::size_t {
  if (phase_ == phase::closed) {
    return 0;  // its streams are gone
  }
  auto octets = out_.size() + session_.own_waiting_octets();
  for (std::size_t i = 0; i < session_.streams_count(); ++i) {
    if (auto const* const each = stream::of(session_.stream_at(i)); each != nullptr) {
      octets += each->held_octets();
    }
  }
  return octets;
}

auto http2_connection::waiting_since(instant now) const -> instant {
  if (out_.size() + session_.waiting_octets() > 0) {
    return pace_.since();
  }
  for (std::size_t i = 0; i < session_.streams_count(); ++i) {
    auto const* const each = stream::of(session_.stream_at(i));
    if (each != nullptr && each->waits_for_content() && each->held_octets() > 0) {
      now = std::min(now, each->received_at());
    }
  }
  return now;
}

/// What the client still sends would make the system throw away what it has not read yet of the last words,
/// so it is taken in for a moment.
void http2_connection::linger() {
  if (phase_ != phase::lingering) {
    phase_ = phase::lingering;
    set_deadline(linger_timeout);
    transport_.finish();
  }
  if (closing_) {
    close();
  }
}

void http2_connection::drain() {
  if (phase_ == phase::open && !std::exchange(drains_, true)) {
    session_.drain();
    write_soon();
  }
}

void http2_connection::expired() {
  try {
    time_is_up();
  } catch (std::bad_alloc const&) {
    out_of_memory();
    throw;
  }
}

void http2_connection::time_is_up() {
  auto const& settings = worker_.current->active->config.http;
  if (phase_ != phase::open) {
    close();
    return;
  }
  auto const now = worker_.loop.now();
  if (!writable_ && now - written_at_ >= settings.idle_timeout) {
    close();  // it takes nothing, so that there is nothing to tell it
    return;
  }
  if (session_.streams_count() == 0 && now < idle_until_) {
    session_.rest();
    spare_streams_.clear();
    spare_streams_.shrink_to_fit();
    set_deadline(idle_until_ - now);
    return;
  }
  if (session_.streams_count() == 0) {  // idle
    session_.terminate(wire::http2_error::no_error);
    phase_ = phase::ending;
    set_deadline(linger_timeout);
    write_soon();
    return;
  }
  for (std::size_t i = 0; i < session_.streams_count(); ++i) {
    auto& on = session_.stream_at(i);
    auto* const each = stream::of(on);
    if (each == nullptr) {
      // Its head does not come to an end, or the reset that it got is not read.
      if (now - on.opened_at() >= settings.header_timeout) {
        close();
        return;
      }
      continue;
    }
    if (on.is_over()) {
      continue;
    }
    if (each->waits_for_content() && now - each->received_at() >= settings.body_timeout) {
      each->refuse(408);
    } else if (on.waiting_octets() > 0 &&
               now - std::max(content_sent_at_, each->waiting_since()) >= settings.idle_timeout) {
      each->abandon();
      session_.reset(on, wire::http2_error::cancel);
      write_soon();
    }
  }
  set_deadline(std::min({settings.header_timeout, settings.body_timeout, settings.idle_timeout}));
}

void http2_connection::close() {
  if (phase_ == phase::closed) {
    return;
  }
  phase_ = phase::closed;
  cancel();
  for (std::size_t i = 0; i < session_.streams_count(); ++i) {
    std::unique_ptr<stream> const each(stream::of(session_.stream_at(i)));
    if (each) {
      try {
        each->abandon();
      } catch (std::bad_alloc const&) {  // the others and the connection have to end all the same
      }
    }
  }
  worker_.count_buffered(counted_, 0);
  worker_.remove_client(place_);
  transport_.close();
  worker_.loop.dispose(std::unique_ptr<watched>(this));
}

}  // namespace tidegate::gateway
