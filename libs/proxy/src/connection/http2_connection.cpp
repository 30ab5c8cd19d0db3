// SPDX-License-Identifier: Apache-2.0
#include "connection/http2_connection.hpp"

#include "connection/http2_client_stream.hpp"

#include <new>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;

/// What may wait for a client in all. Beyond that stores are asked for no further answers, and an
/// upstream whose response waits is not read; each stream may have a piece, so that one that is not
/// read stops no other.
constexpr std::size_t connection_octets_max = 1024 * 1024;
/// Streams that may wait for the directory at the same time, where each answer is likely to fit
/// into this; fewer when many clients share the memory.
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

/// Null for a stream that has no request.
[[nodiscard]] auto stream_of(wire::http2_stream const& on) -> http2_client_stream* {
  return static_cast<http2_client_stream*>(on.user);
}

[[nodiscard]] auto limits_of(active_config const& active) -> wire::http2_limits {
  wire::http2_limits limits;
  limits.head = active.head_limits;
  limits.extended_connect = active.upgrades_websocket;
  return limits;
}

}  // namespace

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
  // Settings and windows may let us send what had to wait; a reset makes room for others.
  if (phase_ == phase::ending || has_full_stream_ || session_.wants_output()) {
    write_soon();
  }
}

auto http2_connection::add_stream(wire::http2_stream& on) -> http2_client_stream& {
  std::unique_ptr<http2_client_stream> made;
  if (spare_streams_.empty()) {
    made = std::make_unique<http2_client_stream>(*this, on);
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
  return stream_of(on)->take(bytes);
}

void http2_connection::end_of_request(wire::http2_stream& on, std::string_view trailers) {
  stream_of(on)->take_end(trailers);
}

void http2_connection::closed(wire::http2_stream& on) {
  if (std::unique_ptr<http2_client_stream> done(stream_of(on));
      done) {  // else it was never a request
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

void http2_connection::turn_ends() {
  writes_soon_ = false;
  if (phase_ == phase::open || phase_ == phase::ending) {
    write();
  } else if (phase_ == phase::lingering) {
    linger();
  }
}

void http2_connection::write() {
  auto const sent_before = progress_.content_octets_sent;
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
  progress_.pace.note(progress_.content_octets_sent - sent_before,
                      out_.size() + session_.waiting_octets(), worker_.loop.now());
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
    progress_.written_at = worker_.loop.now();
  }
  // Answers to PING give a client no more time to take content, as long as nothing else waits for
  // the socket.
  if (auto const octets = session_.content_octets_sent();
      std::exchange(progress_.content_octets_sent, octets) != octets ||
      (sent > 0 && !out_.empty())) {
    progress_.content_sent_at = worker_.loop.now();
  }
  if (writable_) {
    (void)std::exchange(out_, {});  // with its buffer
  } else {
    out_.assign(gathered, sent);
  }
  gathered.clear();
  return true;
}

/// A stream that is resumed and still has no room sets the flag again.
void http2_connection::resume_streams() {
  if (!std::exchange(has_full_stream_, false)) {
    return;
  }
  for (std::size_t i = 0; i < session_.streams_count(); ++i) {
    if (auto* const each = stream_of(session_.stream_at(i)); each != nullptr) {
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
    if (auto const* const each = stream_of(session_.stream_at(i)); each != nullptr) {
      octets += each->held_octets();
    }
  }
  return octets;
}

auto http2_connection::waiting_since(instant now) const -> instant {
  if (out_.size() + session_.waiting_octets() > 0) {
    return progress_.pace.since();
  }
  for (std::size_t i = 0; i < session_.streams_count(); ++i) {
    auto const* const each = stream_of(session_.stream_at(i));
    if (each != nullptr && each->waits_for_content() && each->held_octets() > 0) {
      now = std::min(now, each->received_at());
    }
  }
  return now;
}

/// What the client still sends would make the system throw away what it has not read yet of the
/// last words, so it is taken in for a moment.
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
  if (!writable_ && now - progress_.written_at >= settings.idle_timeout) {
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
    auto* const each = stream_of(on);
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
    } else if (on.waiting_octets() > 0 && !each->is_tunnel() &&
               now - std::max(progress_.content_sent_at, each->waiting_since()) >=
                   settings.idle_timeout) {
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
    std::unique_ptr<http2_client_stream> const each(stream_of(session_.stream_at(i)));
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
