// SPDX-License-Identifier: Apache-2.0
#include "protocol/connection.hpp"

#include "protocol/command_queue.hpp"
#include "protocol/greeting.hpp"
#include "protocol/resolver.hpp"

#include <tidegate/engine/transport.hpp>

#include <algorithm>
#include <array>
#include <random>
#include <utility>

namespace tidegate::store_redis {

namespace {

using namespace std::chrono_literals;
using store::store_error;
using store::store_fault;

/// One that was up for less did not prove that the server is well.
constexpr auto proven_after = 1s;
/// A server that sends without end has to wait for the others of the loop.
constexpr int reads_per_turn = 64;

auto unavailable(std::string text) -> store_error {
  return {store_fault::unavailable, std::move(text)};
}

}  // namespace

auto backoff_limit(connection_options const& options, unsigned failures) noexcept
    -> std::chrono::milliseconds {
  auto limit = options.backoff_first;
  while (failures-- > 1 && limit < options.backoff_max) {
    limit *= 2;
  }
  return std::min(limit, options.backoff_max);
}

namespace {

/// How long to wait before the next attempt, by how many failed one after the other.
class retry_backoff {
 public:
  void add_failure() noexcept { ++failures_; }
  void reset() noexcept { failures_ = 0; }
  /// With full jitter, so that many gateways do not come back at the same moment.
  [[nodiscard]] auto delay(connection_options const& options) -> std::chrono::milliseconds {
    auto const limit = backoff_limit(options, failures_);
    return std::chrono::milliseconds(
        std::uniform_int_distribution<std::int64_t>(0, limit.count())(random_));
  }

 private:
  unsigned failures_ = 0;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace

/// What there is of a connection from its first attempt to its end. It outlives its owner until the
/// end of the turn, so that answers may destroy the owner.
class connection::link final : public engine::watched, private engine::timer {
 public:
  link(engine::loop& on, connection_options options)
      : loop_(on),
        options_(std::move(options)),
        name_(to_string(options_.server)),
        resolver_(on),
        reader_(options_.limits) {
    loop_.at_end_of_turn(*this);  // only a turn knows what time it is
  }

  void send(command const& request, answer_function answer) {
    ++counts_.commands;
    if (known_down_) {
      refuse(unavailable(error_text_), std::move(answer));
      return;
    }
    if (queue_.size() >= options_.commands_max ||
        queue_.unsent().size() + request.octets() > options_.octets_max) {
      refuse(unavailable(name_ + ": too many commands wait"), std::move(answer));
      return;
    }
    queue_.push(request, std::move(answer));
    loop_.at_end_of_turn(*this);
  }

  [[nodiscard]] auto is_up() const noexcept -> bool { return !known_down_; }
  [[nodiscard]] auto is_connected() const noexcept -> bool { return phase_ == phase::up; }
  [[nodiscard]] auto error_text() const noexcept -> std::string const& { return error_text_; }
  [[nodiscard]] auto counted() const noexcept -> counts const& { return counts_; }
  void on_change(std::move_only_function<void()> changed) { changed_ = std::move(changed); }

  /// The owner goes.
  void end() {
    changed_ = nullptr;
    known_down_ = true;
    error_text_ = name_ + ": the connection is being closed";
    if (phase_ == phase::up) {
      flush();  // what was asked for in this turn is on its way at least
    }
    hang_up();
    phase_ = phase::ended;
    cancel();
    fail(queue_.take_all(), {store_fault::stopped, error_text_});
  }

 private:
  enum class phase : std::uint8_t {
    fresh,
    resolving,
    connecting,
    handshaking,
    greeting,
    up,
    waiting,
    ended,
  };

  void refuse(store_error error, answer_function answer) {
    ++counts_.failed;
    answer(failure(std::move(error)));
  }

  void fail(command_queue::entries which, store_error const& error) {
    for (auto& each : which) {
      refuse(error, std::move(each.answer));
    }
  }

  // ---- attempts ----

  void begin() {
    phase_ = phase::resolving;
    connect_deadline_ = loop_.now() + options_.connect_timeout;
    set_deadline();
    resolver_.find(options_.server, [this](addresses found) {
      if (phase_ != phase::resolving) {
        return;
      }
      if (!found || found->empty()) {
        attempt_failed(found ? "the name has no address" : found.error());
        return;
      }
      connect((*found)[next_address_++ % found->size()]);
    });
  }

  void connect(engine::socket_address const& address) {
    auto socket = engine::connect_to(address);
    if (!socket) {
      attempt_failed(engine::to_string(socket.error()));
      return;
    }
    transport_.emplace(
        options_.tls ? engine::transport(*std::move(socket), *options_.tls, options_.server.host)
                     : engine::transport(*std::move(socket)));
    phase_ = phase::connecting;
    if (auto const watching = loop_.watch(transport_->socket(), *this); !watching) {
      attempt_failed(engine::to_string(watching.error()));
    }
  }

  void hang_up() {
    resolver_.forget();
    if (transport_) {
      transport_->close();
    }
    reader_ = resp_reader(options_.limits);
    readable_ = false;
    closing_ = false;
  }

  void attempt_failed(std::string const& why) {
    hang_up();
    error_text_ = name_ + ": " + why;
    backoff_.add_failure();
    known_down_ = true;
    wait();
    fail(queue_.take_all(), unavailable(error_text_));
    tell();
  }

  void wait() {
    phase_ = phase::waiting;
    set(loop_.timers(), loop_.now() + backoff_.delay(options_));
  }

  /// After it was up: what was sent has failed, what was not yet sent may go with the next
  /// connection.
  void lost(std::string const& why) {
    hang_up();
    error_text_ = name_ + ": " + why;
    auto failed = queue_.take_sent();
    if (loop_.now() - up_since_ >= proven_after) {
      backoff_.reset();
      begin();
    } else {
      backoff_.add_failure();
      known_down_ = true;
      std::ranges::move(queue_.take_all(), std::back_inserter(failed));
      wait();
    }
    fail(std::move(failed), unavailable(error_text_));
    tell();
  }

  void tell() {
    if (changed_) {
      // It may set another, or destroy the owner.
      auto changed = std::move(changed_);
      changed_ = nullptr;
      changed();
      if (phase_ != phase::ended && !changed_) {
        changed_ = std::move(changed);
      }
    }
  }

  void take_greeting(resp_value const& value) {
    auto const complete = greeting_.take_reply(value);
    if (!complete) {
      attempt_failed(complete.error());
      return;
    }
    if (!*complete) {
      return;
    }
    phase_ = phase::up;
    up_since_ = loop_.now();
    known_down_ = false;
    ++counts_.connects;
    set_deadline();
    loop_.at_end_of_turn(*this);
    tell();
  }

  // ---- octets ----

  void ready(engine::readiness what) override {
    if (phase_ == phase::connecting || phase_ == phase::handshaking) {
      finish_connecting(what);
    }
    if (phase_ != phase::greeting && phase_ != phase::up) {
      return;
    }
    closing_ = closing_ || what.closing || what.hung_up;
    readable_ = readable_ || what.readable || what.hung_up;
    if (what.writable) {
      flush();
    }
    read();
  }

  void finish_connecting(engine::readiness what) {
    if (phase_ == phase::connecting) {
      if (!what.writable && !what.hung_up) {
        return;
      }
      if (auto const code = engine::connect_error(transport_->socket()); code != 0) {
        attempt_failed(engine::to_string({"connect", code}));
        return;
      }
      phase_ = phase::handshaking;
    }
    auto const state = transport_->handshake();
    if (state == engine::io_state::again) {
      return;
    }
    if (state != engine::io_state::done) {
      attempt_failed("the TLS handshake failed");
      return;
    }
    phase_ = phase::greeting;
    greeting_ = greeting(options_);
    flush();
  }

  void flush() {
    bool const is_up = phase_ == phase::up;
    for (;;) {
      auto const octets = is_up ? queue_.unsent() : greeting_.unsent();
      if (octets.empty()) {
        break;
      }
      auto const [state, size] = transport_->write(octets);
      if (state != engine::io_state::done) {
        // A peer that is gone may have said why: reading finds out.
        readable_ = readable_ || state != engine::io_state::again;
        closing_ = closing_ || state != engine::io_state::again;
        break;
      }
      if (is_up) {
        ++counts_.writes;
        queue_.note_sent(size);
      } else {
        greeting_.note_sent(size);
      }
    }
  }

  void read() {
    std::array<char, std::size_t{64} << 10> into;  // NOLINT: filled by the system
    for (int i = 0; readable_ && i < reads_per_turn; ++i) {
      auto const [state, size] = transport_->read(into);
      if (state == engine::io_state::again) {
        readable_ = false;
        return;
      }
      if (state != engine::io_state::done) {
        drop("the server closed the connection");
        return;
      }
      // A short read means that there is no more; an end of the stream comes with an event of its
      // own.
      readable_ = closing_ || size == into.size();
      reader_.feed({into.data(), size});
      if (!take_answers()) {
        return;
      }
    }
    if (readable_) {
      loop_.at_end_of_turn(*this);
    }
  }

  void drop(std::string const& why) {
    if (phase_ == phase::up) {
      lost(why);
    } else {
      attempt_failed(why);
    }
  }

  /// False when the connection is there no more.
  [[nodiscard]] auto take_answers() -> bool {
    for (;;) {
      auto value = reader_.next();
      if (!value) {
        drop("the server does not speak as it should: " +
             std::string(message(value.error().fault)));
        return false;
      }
      if (!*value) {
        break;
      }
      if ((*value)->kind == resp_kind::push) {
        continue;
      }
      if (phase_ == phase::greeting) {
        take_greeting(**value);
      } else if (!take_answer(**std::move(value))) {
        return false;
      }
      if (phase_ != phase::greeting && phase_ != phase::up) {
        return false;
      }
    }
    set_deadline();
    return true;
  }

  [[nodiscard]] auto take_answer(resp_value value) -> bool {
    if (!queue_.is_answer_due()) {
      drop("the server answers what was not asked");
      return false;
    }
    auto done = queue_.take_reply(std::move(value));
    if (!done) {
      return true;
    }
    bool const is_replica = done->first_reply().is_error("READONLY");
    done->answer(std::move(done->value));
    if (is_replica && phase_ == phase::up) {
      lost("it is a replica");  // its name may stand for another server by now
    }
    return phase_ == phase::up;
  }

  void turn_ends() override {
    if (phase_ == phase::fresh) {
      begin();
    }
    // Until when the commands of this turn may wait.
    if (queue_.set_deadlines(loop_.now() + options_.command_timeout)) {
      set_deadline();
    }
    if (phase_ == phase::up) {
      flush();
    }
    if (phase_ == phase::up || phase_ == phase::greeting) {
      read();
    }
  }

  // ---- time ----

  void set_deadline() {
    auto at = instant::max();
    if (phase_ == phase::up) {
      at = loop_.now() + options_.idle_check;
    } else if (phase_ == phase::resolving || phase_ == phase::connecting ||
               phase_ == phase::handshaking || phase_ == phase::greeting) {
      at = connect_deadline_;
    } else {
      return;
    }
    set(loop_.timers(), std::min(at, queue_.first_deadline()));
  }

  void expired() override {
    auto const now = loop_.now();
    switch (phase_) {
      case phase::waiting: begin(); return;
      case phase::fresh:
      case phase::ended: return;
      case phase::up:
        if (now >= queue_.first_deadline()) {
          lost("no answer in time");
        } else if (queue_.is_empty()) {
          send({"PING"}, [](answer const&) {});
        } else {
          set_deadline();
        }
        return;
      default:
        if (now >= connect_deadline_) {
          attempt_failed("no connection in time");
        } else {
          // Commands wait for a connection no longer than for an answer.
          auto expired = queue_.take_expired(now);
          set_deadline();
          fail(std::move(expired), unavailable(name_ + ": no connection in time"));
        }
    }
  }

  engine::loop& loop_;
  connection_options options_;
  std::string name_;
  resolver resolver_;
  std::optional<engine::transport> transport_;
  resp_reader reader_;
  phase phase_ = phase::fresh;
  bool readable_ = false;
  bool closing_ = false;
  bool known_down_ = false;
  retry_backoff backoff_;
  std::size_t next_address_ = 0;
  instant connect_deadline_{};
  instant up_since_{};
  std::string error_text_;
  std::move_only_function<void()> changed_;
  counts counts_;

  greeting greeting_;
  command_queue queue_;
};

connection::connection(engine::loop& on, connection_options options)
    : loop_(on), link_(std::make_unique<link>(on, std::move(options))) {}

connection::~connection() {
  auto& ending = *link_;
  loop_.dispose(std::move(link_));
  ending.end();
}

void connection::send(command const& request, answer_function answer) {
  link_->send(request, std::move(answer));
}

auto connection::is_up() const noexcept -> bool {
  return link_->is_up();
}

auto connection::is_connected() const noexcept -> bool {
  return link_->is_connected();
}

auto connection::error_text() const noexcept -> std::string const& {
  return link_->error_text();
}

void connection::on_change(std::move_only_function<void()> changed) {
  link_->on_change(std::move(changed));
}

auto connection::counted() const noexcept -> counts const& {
  return link_->counted();
}

}  // namespace tidegate::store_redis
