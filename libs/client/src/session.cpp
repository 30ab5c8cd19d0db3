// SPDX-License-Identifier: Apache-2.0
#include "exchange.hpp"
#include "scheduler.hpp"
#include "transport.hpp"

#include <tidegate/client/session.hpp>

#include <pthread.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <mutex>
#include <system_error>
#include <thread>

namespace tidegate::TIDEGATE_ABI::client {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

[[nodiscard]] auto steady_now() -> instant {
  return instant(
      std::chrono::duration_cast<nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()));
}

template <class Duration>
[[nodiscard]] auto wall_now() -> std::chrono::sys_time<Duration> {
  return std::chrono::floor<Duration>(std::chrono::system_clock::now());
}

template <std::size_t N>
[[nodiscard]] auto fill_randomly(std::array<std::uint8_t, N>& out) -> bool {
  return ::getrandom(out.data(), out.size(), 0) == static_cast<ssize_t>(out.size());
}

[[nodiscard]] auto time_until(instant at, instant now) -> nanoseconds {
  constexpr nanoseconds longest = std::chrono::hours(1);
  return at <= now ? nanoseconds(0) : at - now > longest ? longest : at - now;
}

}  // namespace

/// The thread of a session, and what others leave for it.
class session::loop {
 public:
  loop(session_options options, std::uint64_t seed)
      : options_(std::move(options)), scheduler_(options_, seed) {}

  [[nodiscard]] auto open() -> result<void, client_error> {
    TIDEGATE_TRY(transport_, transport::make(options_));
    // Signals are for the threads of the program.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = true;
    try {
      thread_ = std::thread([this] { run(); });
    } catch (std::system_error const&) {
      started = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!started) {
      return failure(client_error{.fault = client_fault::out_of_resources});
    }
    return {};
  }

  void close() {
    {
      std::lock_guard const lock(mutex_);
      closing_ = true;
    }
    transport_->wake();
    thread_.join();
  }

  [[nodiscard]] auto send(request wanted, completion done) -> result<request_id, client_error> {
    std::array<std::uint8_t, 10> randomness{};
    if ((wanted.idempotent && wanted.key.empty()) && !fill_randomly(randomness)) {
      return failure(client_error{.fault = client_fault::out_of_resources});
    }
    TIDEGATE_TRY(auto made, prepare(std::move(wanted), options_,
                                    {steady_now(), wall_now<milliseconds>(), randomness}));
    made->done = std::move(done);
    bool wakes = false;
    request_id id = 0;
    {
      std::lock_guard const lock(mutex_);
      if (closing_) {
        return failure(client_error{.fault = client_fault::cancelled});
      }
      if (size_ >= options_.requests_max) {
        return failure(client_error{.fault = client_fault::too_many_requests});
      }
      ++size_;
      id = ++last_id_;
      made->id = id;
      wakes = submitted_.empty() && !is_awake_;
      submitted_.push_back(std::move(made));
    }
    if (wakes) {
      transport_->wake();
    }
    return id;
  }

  void cancel(request_id id) {
    {
      std::lock_guard const lock(mutex_);
      cancelled_.push_back(id);
      if (is_awake_) {
        return;
      }
    }
    transport_->wake();
  }

  [[nodiscard]] auto activity() const -> session_activity {
    session_activity out;
    std::lock_guard const lock(mutex_);
    out.under_way = under_way_;
    out.waiting = size_ - std::min(size_, under_way_);
    out.retries = retries_;
    if (next_ != instant::max()) {
      out.next_in = std::max(next_ - steady_now(), nanoseconds(0));
    }
    return out;
  }

 private:
  void run() {
    for (;;) {
      bool const closing = take_orders();
      start_what_may_go();
      deliver();
      if (closing && scheduler_.size() == 0) {
        return;
      }
      transport_->move_bytes(
          may_sleep() ? time_until(scheduler_.next(), steady_now()) : nanoseconds(0), on_end_);
    }
  }

  /// What others have left. True when the session closes.
  [[nodiscard]] auto take_orders() -> bool {
    bool closing = false;
    {
      std::lock_guard const lock(mutex_);
      is_awake_ = true;
      std::swap(submitted_, taken_);
      std::swap(cancelled_, taken_cancels_);
      closing = closing_;
    }
    auto const now = steady_now();
    scheduler_.pass_time(now);
    for (auto& each : taken_) {
      scheduler_.submit(std::move(each), now);
    }
    taken_.clear();
    if (closing) {
      taken_cancels_ = scheduler_.ids();
    }
    for (auto const id : taken_cancels_) {
      if (auto* const each = scheduler_.cancel(id)) {
        scheduler_.finish(*each, transport_->drop(*each), now, wall_now<std::chrono::seconds>());
      }
    }
    taken_cancels_.clear();
    return closing;
  }

  void start_what_may_go() {
    auto const now = steady_now();
    while (auto* const each = scheduler_.start(now)) {
      auto const time = std::min(options_.attempt_time_max, each->deadline - now);
      if (auto const how = transport_->start(*each, time)) {
        scheduler_.finish(*each, *how, now, wall_now<std::chrono::seconds>());
      }
    }
  }

  void deliver() {
    scheduler_.take_outcomes(outcomes_);
    if (outcomes_.empty()) {
      return;
    }
    {
      std::lock_guard const lock(mutex_);
      is_awake_ = true;  // completions that send something need not wake it
      size_ -= outcomes_.size();
    }
    for (auto& [ended, answer] : outcomes_) {
      ended->done(std::move(answer));
    }
    outcomes_.clear();
  }

  /// True when other threads have left nothing; from then on those that do wake this one.
  [[nodiscard]] auto may_sleep() -> bool {
    std::lock_guard const lock(mutex_);
    is_awake_ = !submitted_.empty() || !cancelled_.empty() || closing_;
    under_way_ = scheduler_.under_way();
    retries_ = scheduler_.retries();
    next_ = scheduler_.next();
    return !is_awake_;
  }

  session_options const options_;
  std::unique_ptr<transport> transport_;

  mutable std::mutex mutex_;
  // Behind the mutex.
  std::vector<std::unique_ptr<exchange>> submitted_;
  std::vector<request_id> cancelled_;
  std::size_t size_ = 0;  // requests without an outcome
  request_id last_id_ = 0;
  bool is_awake_ = true;  // and looks at what is left before it sleeps
  bool closing_ = false;
  std::size_t under_way_ = 0;
  std::uint64_t retries_ = 0;
  instant next_ = instant::max();

  // Of the thread.
  scheduler scheduler_;
  std::vector<std::unique_ptr<exchange>> taken_;
  std::vector<request_id> taken_cancels_;
  std::vector<scheduler::outcome> outcomes_;
  // Each is delivered before the next is looked at, so that what a caller lets go of is used again
  // at once.
  transport::on_end on_end_ = [this](exchange& each, attempt_end const& how) {
    scheduler_.finish(each, how, steady_now(), wall_now<std::chrono::seconds>());
    deliver();
  };
  std::thread thread_;
};

auto session::open(session_options options) -> result<std::unique_ptr<session>, client_error> {
  std::array<std::uint8_t, 8> randomness{};
  if (!fill_randomly(randomness)) {
    return failure(client_error{.fault = client_fault::out_of_resources});
  }
  std::uint64_t seed = 0;
  for (auto const octet : randomness) {
    seed = seed << 8 | octet;
  }
  auto made = std::make_unique<loop>(std::move(options), seed);
  TIDEGATE_TRY_VOID(made->open());
  return std::unique_ptr<session>(new session(std::move(made)));
}

session::session(std::unique_ptr<loop> loop) noexcept : loop_(std::move(loop)) {}

session::~session() {
  loop_->close();
}

auto session::send(request wanted, completion done) -> result<request_id, client_error> {
  return loop_->send(std::move(wanted), std::move(done));
}

auto session::send(request wanted) -> std::future<result<response, client_error>> {
  auto const promise = std::make_shared<std::promise<result<response, client_error>>>();
  auto future = promise->get_future();
  auto const sent = send(std::move(wanted), [promise](result<response, client_error> what) {
    promise->set_value(std::move(what));
  });
  if (!sent) {
    promise->set_value(failure(sent.error()));
  }
  return future;
}

void session::cancel(request_id id) {
  loop_->cancel(id);
}

auto session::activity() const -> session_activity {
  return loop_->activity();
}

}  // namespace tidegate::TIDEGATE_ABI::client
