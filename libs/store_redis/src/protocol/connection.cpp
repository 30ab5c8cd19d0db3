// SPDX-License-Identifier: Apache-2.0
#include "protocol/connection.hpp"

#include "protocol/resolver.hpp"

#include <tidegate/engine/transport.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

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

/// What there is of a connection from its first attempt to its end. It outlives its owner until the
/// end of the turn, so that answers may destroy the owner.
class connection::link final : public engine::watched, private engine::timer {
 public:
  link(engine::loop& on, connection_options options)
      : loop_(on),
        options_(std::move(options)),
        name_(to_string(options_.server)),
        resolver_(on),
        reader_(options_.limits),
        random_(std::random_device{}()) {
    ask_for_end_of_turn();  // only a turn knows what time it is
  }

  void send(command const& what, answer_function answer) {
    ++counts_.commands;
    if (known_down_) {
      refuse(unavailable(trouble_), std::move(answer));
      return;
    }
    if (pending_.size() >= options_.commands_max ||
        out_.size() - out_at_ + what.octets() > options_.octets_max) {
      refuse(unavailable(name_ + ": too many commands wait"), std::move(answer));
      return;
    }
    pending_.push_back({.answer = std::move(answer),
                        .begin = out_begin_ + out_.size(),
                        .replies_left = what.count(),
                        .value = {.kind = resp_kind::array}});
    what.append_to(out_);
    ask_for_end_of_turn();
  }

  [[nodiscard]] auto is_up() const noexcept -> bool { return !known_down_; }
  [[nodiscard]] auto is_connected() const noexcept -> bool { return phase_ == phase::up; }
  [[nodiscard]] auto trouble() const noexcept -> std::string const& { return trouble_; }
  [[nodiscard]] auto counted() const noexcept -> counts const& { return counts_; }
  void on_change(std::move_only_function<void()> changed) { changed_ = std::move(changed); }

  /// The owner goes.
  void end() {
    changed_ = nullptr;
    known_down_ = true;
    trouble_ = name_ + ": the connection is being closed";
    if (phase_ == phase::up) {
      flush();  // what was asked for in this turn is on its way at least
    }
    hang_up();
    phase_ = phase::ended;
    cancel();
    fail(take_all(), {store_fault::stopped, trouble_});
  }

 private:
  enum class phase : std::uint8_t { fresh, resolving, connecting, greeting, up, waiting, ended };
  enum class step : std::uint8_t { hello, select, role, ping };

  struct pending {
    answer_function answer;
    instant deadline = instant::max();  // set at the end of the turn
    std::uint64_t begin = 0;            // of its octets, among all that ever were to be sent
    std::size_t replies_left = 1;
    resp_value value;  // of several commands: what was answered so far
  };
  using pendings = std::deque<pending>;

  void refuse(store_error error, answer_function answer) {
    ++counts_.failed;
    answer(failure(std::move(error)));
  }

  void fail(pendings which, store_error const& error) {
    for (auto& each : which) {
      refuse(error, std::move(each.answer));
    }
  }

  [[nodiscard]] auto take_all() -> pendings {
    out_begin_ += out_.size();
    out_.clear();
    out_at_ = 0;
    return std::exchange(pending_, {});
  }

  void ask_for_end_of_turn() {
    if (!std::exchange(asked_for_end_, true)) {
      loop_.at_end_of_turn(*this);
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
    connected_ = false;
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
    trouble_ = name_ + ": " + why;
    ++failures_;
    known_down_ = true;
    wait();
    fail(take_all(), unavailable(trouble_));
    tell();
  }

  /// With full jitter, so that many gateways do not come back at the same moment.
  void wait() {
    phase_ = phase::waiting;
    auto const limit = backoff_limit(options_, failures_);
    std::uniform_int_distribution<std::int64_t> in(0, limit.count());
    set(loop_.timers(), loop_.now() + std::chrono::milliseconds(in(random_)));
  }

  /// After it was up: what was sent has failed, what was not yet sent may go with the next
  /// connection.
  void lost(std::string const& why) {
    hang_up();
    trouble_ = name_ + ": " + why;
    auto const sent = out_begin_ + out_at_;
    pendings failed;
    while (!pending_.empty() && pending_.front().begin < sent) {
      failed.push_back(std::move(pending_.front()));
      pending_.pop_front();
    }
    auto const keep_from = pending_.empty() ? out_begin_ + out_.size() : pending_.front().begin;
    out_.erase(0, static_cast<std::size_t>(keep_from - out_begin_));
    out_begin_ = keep_from;
    out_at_ = 0;
    failures_ = loop_.now() - up_since_ < proven_after ? failures_ + 1 : 0;
    if (failures_ == 0) {
      begin();
    } else {
      known_down_ = true;
      std::ranges::move(take_all(), std::back_inserter(failed));
      wait();
    }
    fail(std::move(failed), unavailable(trouble_));
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

  // ---- the greeting: what has to be said before commands ----

  void greet() {
    phase_ = phase::greeting;
    command all{"HELLO", "3"};
    steps_ = {step::hello};
    if (!options_.login.password.empty()) {
      all.add("AUTH");
      all.add(options_.login.user.empty() ? "default" : options_.login.user);
      all.add(options_.login.password);
    }
    if (options_.database != 0) {
      all.then(command{"SELECT"}.add(options_.database));
      steps_.push_back(step::select);
    }
    if (options_.must_be_master) {
      all.then(command{"ROLE"});
      steps_.push_back(step::role);
    }
    // It fails while the server still loads what it has on its disk.
    all.then(command{"PING"});
    steps_.push_back(step::ping);
    greeting_.clear();
    all.append_to(greeting_);
    greeting_at_ = 0;
    flush();
  }

  void take_greeting(resp_value const& value) {
    auto const of = steps_.front();
    steps_.pop_front();
    if (value.is_error()) {
      attempt_failed(value.text);
      return;
    }
    if (of == step::role && (value.items.empty() || value.items[0].text != "master")) {
      attempt_failed("it is not the master");
      return;
    }
    if (!steps_.empty()) {
      return;
    }
    phase_ = phase::up;
    up_since_ = loop_.now();
    known_down_ = false;
    ++counts_.connects;
    set_deadline();
    ask_for_end_of_turn();
    tell();
  }

  // ---- octets ----

  void ready(engine::readiness what) override {
    if (phase_ == phase::connecting) {
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
    if (!connected_) {
      if (!what.writable && !what.hung_up) {
        return;
      }
      if (auto const code = engine::connect_error(transport_->socket()); code != 0) {
        attempt_failed(engine::to_string({"connect", code}));
        return;
      }
      connected_ = true;
    }
    auto const state = transport_->handshake();
    if (state == engine::io_state::again) {
      return;
    }
    if (state != engine::io_state::done) {
      attempt_failed("the TLS handshake failed");
      return;
    }
    greet();
  }

  void flush() {
    auto& out = phase_ == phase::greeting ? greeting_ : out_;
    auto& at = phase_ == phase::greeting ? greeting_at_ : out_at_;
    while (at < out.size()) {
      auto const [state, size] = transport_->write(std::string_view(out).substr(at));
      if (state != engine::io_state::done) {
        // A peer that is gone may have said why: reading finds out.
        readable_ = readable_ || state != engine::io_state::again;
        closing_ = closing_ || state != engine::io_state::again;
        break;
      }
      counts_.writes += phase_ == phase::up ? 1 : 0;
      at += size;
    }
    if (phase_ == phase::up && (out_at_ == out_.size() || out_at_ > out_.size() / 2)) {
      out_begin_ += out_at_;
      out_.erase(0, out_at_);
      out_at_ = 0;
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
      ask_for_end_of_turn();
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
    if (pending_.empty() || pending_.front().begin >= out_begin_ + out_at_) {
      drop("the server answers what was not asked");
      return false;
    }
    auto& front = pending_.front();
    bool const is_alone = front.replies_left == 1 && front.value.items.empty();
    if (!is_alone) {
      front.value.items.push_back(std::move(value));
    }
    if (--front.replies_left > 0) {
      return true;
    }
    auto done = std::move(front);
    pending_.pop_front();
    auto& whole = is_alone ? value : done.value;
    bool const is_replica = (is_alone ? whole : whole.items.front()).is_error("READONLY");
    done.answer(std::move(whole));
    if (is_replica && phase_ == phase::up) {
      lost("it is a replica");  // its name may stand for another server by now
    }
    return phase_ == phase::up;
  }

  void turn_ends() override {
    asked_for_end_ = false;
    if (phase_ == phase::fresh) {
      begin();
    }
    date();
    if (phase_ == phase::up) {
      flush();
    }
    if (phase_ == phase::up || phase_ == phase::greeting) {
      read();
    }
  }

  // ---- time ----

  /// Says until when the commands of this turn may wait.
  void date() {
    auto const deadline = loop_.now() + options_.command_timeout;
    bool any = false;
    for (auto each = pending_.rbegin(); each != pending_.rend() && each->deadline == instant::max();
         ++each) {
      each->deadline = deadline;
      any = true;
    }
    if (any) {
      set_deadline();
    }
  }

  void set_deadline() {
    auto at = instant::max();
    if (phase_ == phase::up) {
      at = loop_.now() + options_.idle_check;
    } else if (phase_ == phase::resolving || phase_ == phase::connecting ||
               phase_ == phase::greeting) {
      at = connect_deadline_;
    } else {
      return;
    }
    set(loop_.timers(), pending_.empty() ? at : std::min(at, pending_.front().deadline));
  }

  void expired() override {
    auto const now = loop_.now();
    switch (phase_) {
      case phase::waiting: begin(); return;
      case phase::fresh:
      case phase::ended: return;
      case phase::up:
        if (!pending_.empty() && now >= pending_.front().deadline) {
          lost("no answer in time");
        } else if (pending_.empty()) {
          send({"PING"}, [](answer const&) {});
        } else {
          set_deadline();
        }
        return;
      default:
        if (now >= connect_deadline_) {
          attempt_failed("no connection in time");
        } else {
          drop_late(now);
        }
    }
  }

  /// Commands wait for a connection no longer than for an answer.
  void drop_late(instant now) {
    pendings late;
    while (!pending_.empty() && now >= pending_.front().deadline) {
      late.push_back(std::move(pending_.front()));
      pending_.pop_front();
    }
    auto const keep_from = pending_.empty() ? out_begin_ + out_.size() : pending_.front().begin;
    out_.erase(0, static_cast<std::size_t>(keep_from - out_begin_));
    out_begin_ = keep_from;
    set_deadline();
    fail(std::move(late), unavailable(name_ + ": no connection in time"));
  }

  engine::loop& loop_;
  connection_options options_;
  std::string name_;
  resolver resolver_;
  std::optional<engine::transport> transport_;
  resp_reader reader_;
  std::minstd_rand random_;
  phase phase_ = phase::fresh;
  bool connected_ = false;  // though a handshake may be under way
  bool readable_ = false;
  bool closing_ = false;
  bool known_down_ = false;
  bool asked_for_end_ = false;
  unsigned failures_ = 0;
  std::size_t next_address_ = 0;
  instant connect_deadline_{};
  instant up_since_{};
  std::string trouble_;
  std::move_only_function<void()> changed_;
  counts counts_;

  std::string greeting_;
  std::size_t greeting_at_ = 0;
  std::deque<step> steps_;  // whose answers are awaited

  pendings pending_;
  std::string out_;              // commands that wait to be sent
  std::size_t out_at_ = 0;       // how much of it was
  std::uint64_t out_begin_ = 0;  // how much was sent or dropped before it
};

connection::connection(engine::loop& on, connection_options options)
    : loop_(on), link_(std::make_unique<link>(on, std::move(options))) {}

connection::~connection() {
  auto& ending = *link_;
  loop_.dispose(std::move(link_));
  ending.end();
}

void connection::send(command const& what, answer_function answer) {
  link_->send(what, std::move(answer));
}

auto connection::is_up() const noexcept -> bool {
  return link_->is_up();
}

auto connection::is_connected() const noexcept -> bool {
  return link_->is_connected();
}

auto connection::trouble() const noexcept -> std::string const& {
  return link_->trouble();
}

void connection::on_change(std::move_only_function<void()> changed) {
  link_->on_change(std::move(changed));
}

auto connection::counted() const noexcept -> counts const& {
  return link_->counted();
}

}  // namespace tidegate::store_redis
