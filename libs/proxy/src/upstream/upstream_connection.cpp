// SPDX-License-Identifier: Apache-2.0
#include "upstream/upstream_connection.hpp"

#include "upstream/http2_upstream_connection.hpp"
#include "upstream/upstream_pool.hpp"

#include <tidegate/config/values.hpp>
#include <tidegate/wire/http1_write.hpp>

#include <new>
#include <system_error>

namespace tidegate::gateway {

namespace {

/// What may wait to be sent before no more of a request is read: less when many clients share the
/// memory, but never less than this.
constexpr std::size_t out_octets_max = 256 * 1024;
constexpr std::size_t out_octets_min = 16 * 1024;
/// So much of an answer is looked at as a whole when the connection has ended behind it.
constexpr std::size_t ahead_octets_max = 256 * 1024;

}  // namespace

upstream_connection::upstream_connection(worker& on, upstream_pool& pool, server_slot& server,
                                         engine::transport transport, bool is_check)
    : upstream_stream(server), worker_(on), pool_(pool), transport_(std::move(transport)) {
  request_.is_check = is_check;
}

void upstream_connection::set_deadline(std::chrono::nanoseconds wait) {
  set(worker_.loop.timers(), worker_.loop.now() + wait);
}

void upstream_connection::start(upstream_user& user, wire::method method, std::string_view bytes) {
  user_ = &user;
  request_.method = method;
  request_.since = worker_.loop.now();
  answered_ = false;
  if (phase_ == phase::connecting) {
    out_.append(bytes);
    count_waiting();
    set_deadline(pool_.target().settings->connect_timeout);
    return;
  }
  phase_ = phase::head;
  await_answer();
  send(bytes);
}

void upstream_connection::await_answer() {
  set_deadline(answer_timeout_of(user_, pool_.target().settings->timeout));
}

void upstream_connection::send(std::string_view bytes) {
  if (phase_ == phase::closed || bytes.empty()) {
    return;
  }
  if (phase_ != phase::connecting && out_.empty()) {
    auto const [state, sent] = transport_.write(bytes);
    bytes.remove_prefix(sent);
    if (state == engine::io_state::failed) {
      // The peer is gone; what it may have answered before is still to be read.
      closing_ = true;
      readable_ = true;
      bytes = {};
    }
  }
  if (!bytes.empty()) {
    out_.append(bytes);
    count_waiting();
  }
}

auto upstream_connection::is_above_high_watermark() const noexcept -> bool {
  return out_.size() > out_octets_min &&
         out_.size() > worker_.share_of_buffers(out_octets_min, out_octets_max);
}

void upstream_connection::count_waiting() {
  worker_.count_buffered(counted_, out_.size());
}

void upstream_connection::flush() {
  if (out_.empty() && phase_ == phase::finishing) {
    if (user_ == nullptr) {
      close();
    } else {
      transport_.finish();
    }
  }
  if (out_.empty() || phase_ == phase::connecting) {
    return;
  }
  auto const [state, sent] = transport_.write(out_);
  if (state == engine::io_state::done) {
    if (sent == out_.size()) {
      (void)std::exchange(out_, {});  // with its buffer
    } else {
      out_.erase(0, sent);
    }
    count_waiting();
    if (phase_ == phase::finishing && out_.empty()) {
      flush();
    } else if (user_ != nullptr && !is_above_high_watermark()) {
      user_->upstream_resumed();
    }
  } else if (state == engine::io_state::failed) {
    out_.clear();
    count_waiting();
  }
}

void upstream_connection::ready(engine::readiness what) {
  if (phase_ == phase::closed) {
    return;
  }
  if (phase_ == phase::connecting) {
    if (!connected_) {
      if (!what.writable && !what.hung_up) {
        return;
      }
      if (auto const code = engine::connect_error(transport_.socket()); code != 0) {
        fail(upstream_failure::connect_refused, std::system_category().message(code));
        return;
      }
      connected_ = true;
    }
    auto const state = transport_.handshake();
    if (state == engine::io_state::again) {
      return;
    }
    if (state != engine::io_state::done) {
      auto const fault = transport_.verify_fault();
      fail(upstream_failure::connect_refused,
           "the TLS handshake failed" + (fault.empty() ? "" : ": " + fault));
      return;
    }
    if (transport_.protocol() == "h2") {
      become_http2();
      return;
    }
    what.writable = true;  // it was, and the request waits
    phase_ = phase::head;
    await_answer();
    if (user_ != nullptr) {
      user_->upstream_connected();
    }
    if (phase_ == phase::closed) {
      return;
    }
  }
  closing_ = closing_ || what.closing || what.hung_up;
  readable_ = readable_ || what.readable || what.hung_up;
  if (what.hung_up && phase_ >= phase::tunnel && engine::connect_error(transport_.socket()) != 0) {
    tunnel_has_ended(false);
    return;
  }
  if (what.writable) {
    flush();
  }
  if (readable_ && !paused_ && phase_ != phase::closed) {
    read();
  }
}

void upstream_connection::become_http2() {
  auto* const next = pool_.add_http2(*server_, std::move(transport_), request_.is_check);
  auto* const user = std::exchange(user_, nullptr);
  auto request = std::exchange(out_, {});
  if (next == nullptr) {
    leave();
    close();
    user->upstream_failed(upstream_failure::connect_refused, std::move(request));
    return;
  }
  close();
  auto& stream = next->add_stream();
  user->upstream_moved(stream);
  stream.start(*user, request_.method, request);
  next->handshake_is_done();
}

void upstream_connection::resume() {
  if (!std::exchange(paused_, false) || taking_) {
    return;
  }
  if (phase_ == phase::head && !in_.text.empty()) {  // what came behind an interim answer
    taking_ = true;
    take({});
    taking_ = false;
  }
  if (readable_ && !paused_) {
    read();
  }
}

void upstream_connection::read() {
  if (user_ != nullptr) {
    user_->prefetch();
  }
  while (readable_ && !paused_ && phase_ != phase::closed) {
    auto const [state, size] = transport_.read(worker_.input);
    if (state != engine::io_state::done) {
      readable_ = false;
      if (state == engine::io_state::again) {
        return;
      }
      if (phase_ >= phase::tunnel) {
        tunnel_has_ended(state == engine::io_state::closed);
        return;
      }
      if (state == engine::io_state::closed && phase_ == phase::body && body_.may_end_here()) {
        finish(false);
      } else {
        fail(answered_ || !used_before_ ? upstream_failure::closed
                                        : upstream_failure::closed_unanswered);
      }
      return;
    }
    // A short read means that there is no more; the end of the stream has an event of its own.
    readable_ = closing_ || size == worker_.input.size();
    if (phase_ == phase::idle) {
      close();  // there was no request
      return;
    }
    answered_ = true;
    taking_ = true;
    if (closing_ && phase_ == phase::head) [[unlikely]] {
      take_to_end(size);
    } else {
      take({worker_.input.data(), size});
    }
    taking_ = false;
  }
}

void upstream_connection::take_to_end(std::size_t size) {
  std::string all(worker_.input.data(), size);
  while (all.size() < ahead_octets_max) {
    auto const [state, more] = transport_.read(worker_.input);
    if (state != engine::io_state::done) {
      in_.is_last = state != engine::io_state::again;
      break;
    }
    all.append(worker_.input.data(), more);
  }
  take(all);
}

auto upstream_connection::is_whole(std::string_view body) const -> bool {
  auto decoder = body_;
  while (!decoder.done() && !body.empty()) {
    auto const fed = decoder.feed(body);
    if (fed.state == wire::body_state::refused || fed.consumed == 0) {
      return false;
    }
    body.remove_prefix(fed.consumed);
  }
  return decoder.done() || decoder.may_end_here();
}

void upstream_connection::take(std::string_view bytes) {
  if (phase_ == phase::body) {
    take_body(bytes);
    return;
  }
  if (phase_ >= phase::tunnel) {
    take_octets(bytes);
    return;
  }
  bool const stashed = !in_.text.empty();
  if (stashed) {
    in_.text.append(bytes);
    bytes = in_.text;
  }
  auto const stash = [&] {
    if (stashed) {
      in_.text.erase(0, in_.text.size() - bytes.size());
    } else {
      in_.text.assign(bytes);
    }
  };
  while (phase_ == phase::head) {
    auto const head =
        wire::parse_response_head(bytes, in_.seen, {}, request_.method, worker_.response);
    if (head.state == wire::head_state::incomplete) {
      in_.seen = head.size;
      stash();
      return;
    }
    in_.seen = 0;
    if (head.state != wire::head_state::complete) {
      fail(upstream_failure::malformed);
      return;
    }
    if (worker_.response.status() == 101) {
      take_upgrade(bytes.substr(head.size));
      return;
    }
    if (worker_.response.interim()) {
      user_->upstream_interim(worker_.response);
      if (user_ == nullptr) {
        return;  // the client is gone, and this connection with it
      }
      bytes.remove_prefix(head.size);
      paused_ = user_->client_is_full();  // there may be any number of them
      if (bytes.empty() || paused_) {
        stash();
        return;
      }
      continue;
    }
    if (!begin_body(bytes.substr(head.size))) {
      return;
    }
    phase_ = phase::body;
    note_head();
    keep_alive_ = worker_.response.keep_alive();
    user_->upstream_head(worker_.response);
    if (user_ == nullptr) {
      return;
    }
    bytes.remove_prefix(head.size);
  }
  if (phase_ != phase::body) {
    return;
  }
  if (stashed) {
    // What follows may stash again.
    auto const rest = std::string(bytes);
    in_.text.clear();
    take_body(rest);
  } else {
    take_body(bytes);
  }
}

/// The body of the response in `worker_.response`, which begins with `bytes`. False when it is
/// known to be broken, while the client can still be told.
auto upstream_connection::begin_body(std::string_view bytes) -> bool {
  body_ = wire::body_decoder(worker_.response.body());
  std::string rewritten;
  if (auto first = body_; worker_.response.body().kind == wire::body_kind::chunked &&
                          first.pass(bytes, rewritten).state == wire::body_state::refused) {
    fail(upstream_failure::malformed);
    return false;
  }
  if (in_.is_last && !is_whole(bytes)) [[unlikely]] {
    fail(upstream_failure::closed);
    return false;
  }
  return true;
}

void upstream_connection::note_head() {
  if (!request_.is_check) {
    auto const now = worker_.loop.now();
    request_.has_failed = !server_->note_head(worker_.response.status(), now - request_.since, now);
  }
}

void upstream_connection::take_body(std::string_view bytes) {
  std::string joined;
  if (!in_.text.empty()) {  // the beginning of a trailer line
    joined = std::exchange(in_.text, {});
    joined.append(bytes);
    bytes = joined;
  }
  if (user_->wants_framing()) {
    std::string rewritten;
    auto const passed = body_.pass(bytes, rewritten);
    if (passed.state == wire::body_state::refused) {
      fail(upstream_failure::malformed);
      return;
    }
    user_->upstream_body(passed.send, passed.content_octets);
    if (user_ == nullptr) {
      return;
    }
    bytes.remove_prefix(passed.consumed);
  } else if (!take_content(bytes)) {
    return;
  }
  if (body_.done()) {
    finish(bytes.empty());
    return;
  }
  set_deadline(pool_.target().settings->idle_timeout);
  in_.text.assign(bytes);
  user_->flush_client();
  if (user_ != nullptr && user_->client_is_full()) {
    paused_ = true;
  }
}

/// Without its framing. False when the exchange is over.
auto upstream_connection::take_content(std::string_view& bytes) -> bool {
  while (!body_.done() && !bytes.empty()) {
    auto const fed = body_.feed(bytes);
    if (fed.state == wire::body_state::refused) {
      fail(upstream_failure::malformed);
      return false;
    }
    if (!fed.content.empty()) {
      user_->upstream_body(fed.content, fed.content.size());
      if (user_ == nullptr) {
        return false;
      }
    }
    if (fed.state == wire::body_state::trailer) {
      wire::append_field(in_.trailers, fed.trailer.name, fed.trailer.value);
    }
    if (fed.consumed == 0) {
      break;
    }
    bytes.remove_prefix(fed.consumed);
  }
  return true;
}

void upstream_connection::finish(bool reusable) {
  auto* const user = std::exchange(user_, nullptr);
  auto const trailers = std::exchange(in_.trailers, {});
  if (!request_.is_check && !request_.has_failed) {
    server_->note_answer(worker_.loop.now());
  }
  leave();
  auto& idle = server_->idle;
  paused_ = false;
  if (reusable && user->request_done() && keep_alive_ && !closing_ && out_.empty() &&
      !request_.is_check && server_->is_listed && idle.size() < upstream_pool::idle_max) {
    phase_ = phase::idle;
    used_before_ = true;
    in_.seen = 0;
    in_.text.clear();
    set_deadline(pool_.target().settings->idle_timeout);
    idle.push_back(this);
    pool_.limit_.rests();
  } else {
    close();
  }
  user->upstream_done(trailers);
}

/// For people.
auto upstream_connection::describe(upstream_failure why) const -> std::string {
  auto const& settings = *pool_.target().settings;
  switch (why) {
    case upstream_failure::connect_refused: return "the connection was refused";
    case upstream_failure::connect_timeout:
      return "no connection within " + format_duration(settings.connect_timeout) +
             " (connect-timeout)";
    case upstream_failure::closed_unanswered:
    case upstream_failure::closed:
      return answered_ ? "it closed the connection in the middle of a response"
                       : "it closed the connection without a response";
    case upstream_failure::malformed: return "its response is not valid HTTP";
    case upstream_failure::timeout:
      return describe_timeout(answer_timeout_of(user_, pool_.target().settings->timeout));
    case upstream_failure::idle:
      return "nothing arrived for " + format_duration(settings.idle_timeout) +
             " in the middle of a response, which was aborted (idle-timeout)";
    case upstream_failure::refused_stream: return "it refused the request";
    case upstream_failure::no_websocket:
    case upstream_failure::no_descriptor:
    case upstream_failure::busy:
    case upstream_failure::no_server: break;  // not the server's
  }
  return "";
}

void upstream_connection::fail(upstream_failure why, std::string const& detail) {
  auto* const user = std::exchange(user_, nullptr);
  if (user != nullptr) {
    leave();
    if (why != upstream_failure::closed_unanswered) {
      note_failure(why, detail);
    }
  }
  auto unsent = phase_ == phase::connecting ? std::move(out_) : std::string();
  close();
  if (user != nullptr) {
    user->upstream_failed(why, std::move(unsent));
  }
}

void upstream_connection::leave() {
  if (!request_.is_check) {
    server_->leave();
  }
}

void upstream_connection::note_failure(upstream_failure why, std::string const& detail) {
  if (!request_.is_check) {
    try {
      server_->note_failure(detail.empty() ? describe(why) : detail, worker_.loop.now());
    } catch (std::bad_alloc const&) {  // its user has to know in any case
    }
  }
}

void upstream_connection::abandon() {
  user_ = nullptr;
  leave();
  close();
}

void upstream_connection::close() {
  if (phase_ == phase::closed) {
    return;
  }
  phase_ = phase::closed;
  std::erase(pool_.all_, this);
  bool const rested = std::erase(server_->idle, this) != 0;
  pool_.closed(*server_, request_.is_check, rested);
  cancel();
  out_.clear();
  count_waiting();
  transport_.close();
  worker_.loop.dispose(std::unique_ptr<watched>(this));
}

void upstream_connection::out_of_memory() {
  taking_ = false;
  fail(upstream_failure::closed);
}

void upstream_connection::expired() {
  switch (phase_) {
    case phase::connecting: fail(upstream_failure::connect_timeout); break;
    case phase::head:
      if (auto const more = user_->upstream_is_late()) {
        // The answer is waited for, and the client was told 504.
        note_failure(upstream_failure::timeout, {});
        set_deadline(*more);
      } else {
        fail(upstream_failure::timeout, describe(upstream_failure::timeout));
      }
      break;
    case phase::body:
      if (paused_) {  // it is the client that is slow, and has its own time
        set_deadline(pool_.target().settings->idle_timeout);
      } else {
        fail(upstream_failure::idle);
      }
      break;
    case phase::idle:
    case phase::tunnel:
    case phase::finishing: close(); break;
    case phase::closed: break;
  }
}

}  // namespace tidegate::gateway
