// SPDX-License-Identifier: Apache-2.0
#include "upstream/http2_upstream_connection.hpp"

#include "upstream/upstream_pool.hpp"

#include <tidegate/config/values.hpp>

#include <new>
#include <system_error>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;

/// What is written at most in one turn, so that other connections have theirs.
constexpr std::size_t write_octets_max = 64 * 1024;
constexpr int writes_max = 8;
/// Heads and the like that wait for a server before it gets no more requests by that connection:
/// those that were cancelled wait as well.
constexpr std::size_t pending_octets_max = 1024 * 1024;
/// How long a connection is avoided by requests that it, or another one, has refused.
constexpr auto refusal_is_remembered = 1s;

[[nodiscard]] auto limits_of() -> wire::http2_limits {
  wire::http2_limits limits;
  limits.concurrent_streams_max = 100;  // as many as servers are advised to take at least
  return limits;
}

/// How many streams there may be, as far as is known.
[[nodiscard]] auto streams_max(wire::http2_client_session const& session, server_slot const& server)
    -> std::size_t {
  return session.has_settings() ? session.streams_max()
                                : std::min(session.streams_max(), server.http2_streams_max);
}

/// Null when nothing waits for the response any more.
[[nodiscard]] auto stream_of(wire::http2_stream const& on) -> http2_upstream_stream* {
  return static_cast<http2_upstream_stream*>(on.user);
}

[[nodiscard]] auto describe(upstream_failure why, upstream_config const& settings) -> std::string {
  switch (why) {
    case upstream_failure::connect_timeout:
      return "no connection within " + format_duration(settings.connect_timeout) +
             " (connect-timeout)";
    case upstream_failure::malformed: return "its response is not valid HTTP/2";
    case upstream_failure::timeout: return describe_timeout(settings.timeout);
    case upstream_failure::idle:
      return "nothing arrived for " + format_duration(settings.idle_timeout) +
             " in the middle of a response, which was aborted (idle-timeout)";
    case upstream_failure::refused_stream: return "it refused the request";
    default: return "it closed the connection";
  }
}

}  // namespace

http2_upstream_connection::http2_upstream_connection(worker& on, upstream_pool& pool,
                                                     server_slot& server,
                                                     engine::transport transport, bool is_check)
    : worker_(on),
      pool_(pool),
      server_(&server),
      transport_(std::move(transport)),
      session_(limits_of(), *this, on.response),
      received_at_(on.loop.now()) {
  use_.is_check = is_check;
}

http2_upstream_connection::~http2_upstream_connection() = default;

void http2_upstream_connection::set_deadline(std::chrono::nanoseconds wait) {
  set(worker_.loop.timers(), worker_.loop.now() + wait);
}

void http2_upstream_connection::count_waiting() {
  auto octets = out_.size() + session_.waiting_octets();
  for (auto const& each : streams_) {
    if (auto const kept = each->kept_.size(); kept > spare_streams::kept_octets_max) {
      octets += kept;
    }
  }
  worker_.count_buffered(counted_, phase_ == phase::closed ? 0 : octets);
}

// ---- its requests ----

auto http2_upstream_connection::has_room() const -> bool {
  return !use_.is_check && phase_ <= phase::open && session_.takes_requests() &&
         streams_.size() < streams_max(session_, *server_) &&
         session_.pending_octets() <= pending_octets_max;
}

auto http2_upstream_connection::has_refused() const -> bool {
  return worker_.loop.now() - refused_at_ < refusal_is_remembered;
}

auto http2_upstream_connection::add_stream() -> http2_upstream_stream& {
  auto made = spare_.take();
  if (made == nullptr) {
    made = std::make_unique<http2_upstream_stream>(*this, *server_);
  }
  made->position_ = streams_.size();
  made->follows_others_ = use_.answered;
  made->is_told_ = phase_ != phase::connecting && (session_.has_settings() || told_ == 0);
  told_ += std::size_t{made->is_told_};
  streams_.push_back(std::move(made));
  if (streams_.size() == 1 && phase_ == phase::open) {
    set_deadline(pool_.target().settings->idle_timeout / 2);
  }
  use_.note(pool_.limit_, phase_ == phase::open && streams_.empty());
  return *streams_.back();
}

auto http2_upstream_connection::release(http2_upstream_stream& stream) -> upstream_user* {
  auto* const user = std::exchange(stream.user_, nullptr);
  if (stream.stream_ != nullptr) {
    stream.stream_->user = nullptr;
    stream.stream_ = nullptr;
  }
  if (fed_ == &stream) {
    fed_ = nullptr;
  }
  stream.cancel();
  if (!use_.is_check && !stream.tunnel_.is_left) {
    server_->leave();
  }
  auto& place = streams_[stream.position_];
  auto done = std::move(place);
  if (auto& last = streams_.back(); &last != &place) {
    place = std::move(last);
    place->position_ = done->position_;
  }
  streams_.pop_back();
  told_ -= std::size_t{done->is_told_};
  if (streams_.empty() && phase_ == phase::open) {
    set_deadline(pool_.target().settings->idle_timeout);
    write_soon();  // or it is closed, if it takes no more of them
  }
  use_.note(pool_.limit_, phase_ == phase::open && streams_.empty());
  if (!use_.is_check) {
    pool_.limit_.has_room();
  }
  done->forget();
  spare_.put(std::move(done));
  return user;
}

void http2_upstream_connection::switch_to(http2_upstream_stream* next) {
  auto* const last = std::exchange(fed_, next);
  if (last != nullptr && last != next && last->user_ != nullptr) {
    last->user_->flush_client();
  }
}

// ---- the session ----

void http2_upstream_connection::interim(wire::http2_stream& on, wire::response_head const& head) {
  if (auto* const stream = stream_of(on)) {
    switch_to(stream);
    if (!stream->user_->client_is_full()) {  // no window holds them up: a slow client loses some
      stream->user_->upstream_interim(head);
    }
  }
}

void http2_upstream_connection::response(wire::http2_stream& on, wire::response_head const& head) {
  ping_.sent = false;
  auto* const stream = stream_of(on);
  if (stream == nullptr) {
    return;
  }
  switch_to(stream);
  if (head.body().kind != wire::body_kind::none &&
      session_.breaks_off(on, socket_.closing && socket_.read_all)) [[unlikely]] {
    session_.reset(on, wire::http2_error::cancel);
    fail(*stream, upstream_failure::closed, "its response breaks off", true);
    return;  // while the client can still be told
  }
  stream->take_head(head);
}

auto http2_upstream_connection::content(wire::http2_stream& on, std::string_view bytes) -> bool {
  ping_.sent = false;
  auto* const stream = stream_of(on);
  if (stream == nullptr) {
    return true;
  }
  switch_to(stream);
  return stream->take_content(bytes);
}

void http2_upstream_connection::end_of_response(wire::http2_stream& on, std::string_view trailers) {
  if (auto* const stream = stream_of(on)) {
    switch_to(stream);
    stream->take_end(trailers);
  }
}

void http2_upstream_connection::closed(wire::http2_stream& on, wire::http2_stream_end how) {
  auto* const stream = stream_of(on);
  if (stream == nullptr) {
    return;
  }
  switch_to(nullptr);
  if (stream_of(on) != stream) {
    return;
  }
  if (stream->tunnel_.is_left) {
    (void)release(*stream);
    return;
  }
  auto const why = stream->failure_of(how);
  if (why == upstream_failure::refused_stream) {
    refused_at_ = worker_.loop.now();
  }
  // The end of a tunnel is not a failure of the server, whatever it is: it has answered.
  fail(*stream, why, how == wire::http2_stream_end::reset ? "it reset the stream" : std::string(),
       why != upstream_failure::refused_stream && !stream->tunnel_.is_open);
}

// ---- input ----

void http2_upstream_connection::connect() {
  set_deadline(pool_.target().settings->connect_timeout);
}

void http2_upstream_connection::ready(engine::readiness what) {
  if (phase_ == phase::closed) {
    return;
  }
  if (phase_ == phase::connecting) {
    resume_connecting(what);
    if (phase_ != phase::open) {
      return;
    }
  }
  socket_.closing = socket_.closing || what.closing || what.hung_up;
  socket_.readable = socket_.readable || what.readable || what.hung_up;
  if (what.writable) {
    socket_.writable = true;
    if (!out_.empty() || session_.wants_output()) {
      write_soon();
    }
  }
  if (socket_.readable) {
    read();
  }
}

void http2_upstream_connection::resume_connecting(engine::readiness what) {
  if (!socket_.connected) {
    if (!what.writable && !what.hung_up) {
      return;
    }
    if (auto const code = engine::connect_error(transport_.socket()); code != 0) {
      fail_all(upstream_failure::connect_refused, std::system_category().message(code));
      return;
    }
    socket_.connected = true;
  }
  auto const state = transport_.handshake();
  if (state == engine::io_state::again) {
    return;
  }
  if (state != engine::io_state::done) {
    auto const fault = transport_.verify_fault();
    fail_all(upstream_failure::connect_refused,
             "the TLS handshake failed" + (fault.empty() ? "" : ": " + fault));
    return;
  }
  if (transport_.is_secure() && transport_.protocol() != "h2") {
    pool_.note_protocol(*server_, false);
    fail_all(upstream_failure::connect_refused, "it does not agree to HTTP/2 (ALPN)");
    return;
  }
  handshake_is_done();
}

void http2_upstream_connection::handshake_is_done() {
  socket_.connected = true;
  phase_ = phase::open;
  received_at_ = worker_.loop.now();
  set_deadline(pool_.target().settings->idle_timeout / 2);
  pool_.note_protocol(*server_, true);
  use_.note(pool_.limit_, phase_ == phase::open && streams_.empty());
  for (auto const& each : streams_) {
    each->await_turn();
  }
  tell_waiting();
  write_soon();
}

/// Until the server has said how many requests it takes there is only one: the others would be
/// refused where they are more.
void http2_upstream_connection::tell_waiting() {
  auto const may_be_told = [this] {
    return phase_ == phase::open &&
           told_ < (session_.has_settings() ? session_.streams_max() : std::size_t{1});
  };
  for (std::size_t i = 0; i < streams_.size() && may_be_told();) {
    if (auto& each = *streams_[i]; std::exchange(each.is_told_, true)) {
      ++i;
    } else {
      ++told_;
      each.connected();
      i = 0;  // what it leads to may have ended others
    }
  }
  if (!session_.has_settings()) {
    return;
  }
  auto const why =
      session_.streams_max() > 0 ? upstream_failure::busy : upstream_failure::refused_stream;
  for (std::size_t i = 0; i < streams_.size() && phase_ == phase::open;) {
    if (auto& each = *streams_[i++]; !each.is_told_) {
      fail(each, why, {}, false);
      i = 0;
    }
  }
}

void http2_upstream_connection::read() {
  while (socket_.readable && phase_ == phase::open) {
    auto const [state, size] = transport_.read(worker_.upstream_input);
    if (state != engine::io_state::done) {
      socket_.readable = false;
      if (state != engine::io_state::again) {
        fail_all(upstream_failure::closed, {});
      }
      return;
    }
    socket_.read_all = size < worker_.upstream_input.size();
    socket_.readable = socket_.closing || !socket_.read_all;
    received_at_ = worker_.loop.now();
    ping_.answered = true;
    bool const had_settings = session_.has_settings();
    bool const is_sound = session_.receive({worker_.upstream_input.data(), size}, received_at_);
    switch_to(nullptr);
    if (phase_ != phase::open) {
      return;
    }
    if (!is_sound) {
      phase_ = phase::ending;
      fail_all(upstream_failure::malformed, {});
      return;
    }
    if (session_.has_settings() && !had_settings) {
      server_->http2_streams_max = std::max<std::size_t>(session_.streams_max(), 1);
      settle_unsent();
      tell_waiting();
    } else if (!session_.takes_requests()) {
      settle_unsent();
    }
  }
  if (phase_ == phase::open) {
    count_waiting();  // less is kept of what was answered
    if (session_.wants_output()) {
      write_soon();
    }
  }
}

/// Requests whose head was not sent: because the server takes no more of them, or none of their
/// kind, or because its settings have to say so, which have come now.
void http2_upstream_connection::settle_unsent() {
  has_refused_ = false;
  bool const takes_none = !session_.takes_requests();
  for (std::size_t i = 0; i < streams_.size() && phase_ == phase::open;) {
    auto& each = *streams_[i++];
    if (each.stream_ != nullptr || each.user_ == nullptr) {
      continue;
    }
    if (takes_none || each.tunnel_.is_unwanted) {
      fail(each,
           each.tunnel_.is_unwanted ? upstream_failure::no_websocket
                                    : upstream_failure::refused_stream,
           {}, false);
      i = 0;  // what it leads to may have ended others
    } else if (each.is_told_ && !each.kept_.empty()) {
      each.open();
    }
  }
  if (streams_.empty() && takes_none && phase_ == phase::open) {
    close();
  }
}

// ---- output ----

void http2_upstream_connection::wake() {
  worker_.loop.at_end_of_turn(*this);
}

void http2_upstream_connection::turn_ends() {
  writes_soon_ = false;
  spare_.drop_retired();
  if (has_refused_ && phase_ == phase::open) {
    settle_unsent();
  }
  if (phase_ == phase::open) {
    write();
  }
  if (phase_ == phase::open && streams_.empty() &&
      (use_.is_check || !session_.takes_requests() || !server_->is_listed)) {
    close();
  }
}

void http2_upstream_connection::write() {
  int writes = 0;
  while (socket_.writable && writes < writes_max && phase_ == phase::open && write_some()) {
    ++writes;
  }
  if (phase_ != phase::open) {
    return;
  }
  if (writes == writes_max) {
    write_soon();
  }
  count_waiting();
  resume_full();
}

/// Writes once. False when there was nothing to write, or the connection is closed by it.
auto http2_upstream_connection::write_some() -> bool {
  auto& gathered = worker_.http2_output;
  gathered.assign(out_);
  bool const is_sound = session_.take_output(gathered, write_octets_max);
  if (phase_ != phase::open || gathered.empty()) {
    gathered.clear();
    return false;
  }
  if (!is_sound) {
    gathered.clear();
    fail_all(upstream_failure::malformed, {});
    return false;
  }
  auto const [state, sent] = transport_.write(gathered);
  if (state == engine::io_state::failed) {
    gathered.clear();
    out_.clear();
    // The server is gone; what it may have answered before is still to be read.
    socket_.writable = false;
    socket_.closing = true;
    socket_.readable = true;
    read();
    return false;
  }
  socket_.writable = sent == gathered.size();
  if (socket_.writable) {
    (void)std::exchange(out_, {});  // with its buffer
  } else {
    out_.assign(gathered, sent);
  }
  gathered.clear();
  return true;
}

void http2_upstream_connection::resume_full() {
  if (!std::exchange(has_full_, false)) {
    return;
  }
  // From the last one on, since that takes the place of one that ends meanwhile.
  for (auto i = streams_.size(); i-- > 0;) {
    if (i >= streams_.size()) {
      continue;
    }
    auto& each = *streams_[i];
    if (each.was_full_ && each.user_ != nullptr && !each.is_above_high_watermark()) {
      each.user_->upstream_resumed();
    }
  }
}

// ---- ends ----

void http2_upstream_connection::fail(http2_upstream_stream& stream, upstream_failure why,
                                     std::string const& detail, bool counts) {
  if (counts && !use_.is_check) {
    try {
      server_->note_failure(detail.empty() ? describe(why, *pool_.target().settings) : detail,
                            worker_.loop.now());
    } catch (std::bad_alloc const&) {  // its user has to know in any case
    }
  }
  auto unsent = stream.keeps_ ? std::exchange(stream.kept_, {}) : std::string();
  if (auto* const user = release(stream)) {
    user->upstream_failed(why, std::move(unsent));
  }
}

void http2_upstream_connection::fail_all(upstream_failure why, std::string const& detail) {
  if (phase_ == phase::ending) {  // the last word says why
    std::string last;
    (void)session_.take_output(last, write_octets_max);
    (void)transport_.write(out_.append(last));
  }
  auto failed = std::exchange(streams_, {});
  told_ = 0;
  for (auto& each : failed) {
    each->cancel();
    if (each->stream_ != nullptr) {
      each->stream_->user = nullptr;
      each->stream_ = nullptr;
    }
  }
  fed_ = nullptr;
  auto const failure_for = [why](http2_upstream_stream const& each) {
    return why == upstream_failure::closed && !each.answered_ && each.follows_others_
               ? upstream_failure::closed_unanswered
               : why;
  };
  bool counts = true;
  for (auto const& each : failed) {
    if (each->user_ != nullptr && !use_.is_check) {
      server_->leave();
      // It is one failure, of however many requests; the end of a tunnel is none.
      if (failure_for(*each) != upstream_failure::closed_unanswered && !each->tunnel_.is_open &&
          std::exchange(counts, false)) {
        try {
          server_->note_failure(detail.empty() ? describe(why, *pool_.target().settings) : detail,
                                worker_.loop.now());
        } catch (std::bad_alloc const&) {
        }
      }
    }
  }
  close();
  for (auto& each : failed) {
    if (auto* const user = std::exchange(each->user_, nullptr)) {
      user->upstream_failed(failure_for(*each),
                            each->keeps_ ? std::move(each->kept_) : std::string());
    }
  }
}

void http2_upstream_connection::close() {
  if (phase_ == phase::closed) {
    return;
  }
  if (!streams_.empty()) {
    fail_all(upstream_failure::closed, {});
    return;
  }
  phase_ = phase::closed;
  cancel();
  out_.clear();
  count_waiting();
  transport_.close();
  std::erase(server_->http2, this);
  pool_.closed(*server_, use_.is_check, use_.rests);
  worker_.loop.dispose(std::unique_ptr<watched>(this));
}

void http2_upstream_connection::out_of_memory() {
  fail_all(upstream_failure::closed, {});
}

void http2_upstream_connection::expired() {
  auto const half = pool_.target().settings->idle_timeout / 2;
  if (phase_ == phase::connecting) {
    fail_all(upstream_failure::connect_timeout, {});
    return;
  }
  if (phase_ != phase::open) {
    return;
  }
  if (streams_.empty()) {
    close();
    return;
  }
  auto const silent = worker_.loop.now() - received_at_;
  if (ping_.sent && !ping_.answered) {
    fail_all(upstream_failure::closed, "it does not answer to PING");
  } else if (silent < half) {
    set_deadline(half - silent);
  } else if (ping_.sent) {  // once in a silence: some servers close for more
    set_deadline(half);
  } else {
    ping_.sent = true;
    ping_.answered = false;
    session_.send_ping();
    write_soon();
    set_deadline(half);
  }
}

}  // namespace tidegate::gateway
