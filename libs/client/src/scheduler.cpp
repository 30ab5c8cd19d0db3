// SPDX-License-Identifier: Apache-2.0
#include "scheduler.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/http/date.hpp>
#include <tidegate/http/retry_after.hpp>

#include <algorithm>
#include <array>

namespace tidegate::TIDEGATE_ABI::client {

using idempotency::delivery;

scheduler::scheduler(session_options const& options, std::uint64_t seed)
    : options_(options), random_state_(seed), budget_(options.budget) {}

/// SplitMix64: good enough to spread retries.
auto scheduler::random() noexcept -> std::uint64_t {
  random_state_ += 0x9e37'79b9'7f4a'7c15U;
  auto z = random_state_;
  z = (z ^ (z >> 30)) * 0xbf58'476d'1ce4'e5b9U;
  z = (z ^ (z >> 27)) * 0x94d0'49bb'1331'11ebU;
  return z ^ (z >> 31);
}

// ---- lanes ----

auto scheduler::lane_of(std::string const& name) -> lane& {
  auto found = lanes_.find(name);
  if (found == lanes_.end()) {
    if (lanes_.size() >= lanes_max) {
      make_room();
    }
    found = lanes_.emplace(name, std::make_unique<lane>(options_.pacing)).first;
    found->second->name = found->first;
  }
  found->second->used = ++uses_;
  return *found->second;
}

/// Forgets the lane that was not used for longest. Those that have something to send stay, so there
/// are never more than `lanes_max` and the number of requests.
void scheduler::make_room() {
  auto oldest = lanes_.end();
  for (auto each = lanes_.begin(); each != lanes_.end(); ++each) {
    auto const& [name, lane] = *each;
    bool const is_idle = lane->queue.empty() && lane->paces.in_flight() == 0;
    if (is_idle && (oldest == lanes_.end() || lane->used < oldest->second->used)) {
      oldest = each;
    }
  }
  if (oldest != lanes_.end()) {
    set_wake(*oldest->second, instant::max());
    std::erase(ready_, oldest->second.get());
    lanes_.erase(oldest);
  }
}

void scheduler::make_ready(lane& each) {
  if (!each.is_ready && !each.queue.empty()) {
    each.is_ready = true;
    ready_.push_back(&each);
  }
}

void scheduler::set_wake(lane& each, instant at) {
  if (each.wake == at) {
    return;
  }
  if (each.wake != instant::max()) {
    wakes_.erase({each.wake, &each});
  }
  each.wake = at;
  if (at != instant::max()) {
    wakes_.emplace(at, &each);
  }
}

void scheduler::set_timer(exchange& each, instant at) {
  if (each.timer == at) {
    return;
  }
  if (each.timer != instant::max()) {
    timers_.erase({each.timer, &each});
  }
  each.timer = at;
  if (at != instant::max()) {
    timers_.emplace(at, &each);
  }
}

void scheduler::enqueue(exchange& each, bool first) {
  auto& queue = each.in->queue;
  each.where = exchange::place::queued;
  if (first) {
    queue.push_front(each);
  } else {
    queue.push_back(each);
  }
  make_ready(*each.in);
}

void scheduler::set_timers_of_fresh() {
  for (auto* const each : fresh_) {
    each->is_fresh = false;
    if (each->where == exchange::place::queued) {
      set_timer(*each, each->deadline);
    }
  }
  fresh_.clear();
}

// ---- requests ----

void scheduler::submit(std::unique_ptr<exchange> fresh, instant now) {
  auto& each = *fresh;
  exchanges_.emplace(each.id, std::move(fresh));
  budget_.earn(now);
  auto& in = lane_of(each.lane_name);
  // The text is not needed any more.
  each.lane_name = {};
  each.in = &in;
  each.is_fresh = true;
  fresh_.push_back(&each);
  enqueue(each, false);
}

auto scheduler::start(instant now) -> exchange* {
  while (!ready_.empty() && under_way_ < std::max<std::size_t>(options_.in_flight_max, 1)) {
    // One from each lane in turn.
    auto& in = *ready_.front();
    ready_.pop_front();
    in.is_ready = false;
    if (in.queue.empty()) {
      continue;
    }
    auto& each = in.queue.front();
    if (each.deadline <= now) {
      end(each, failure(error_of(each, client_fault::deadline_exceeded, {})));
      make_ready(in);
      continue;
    }
    auto const may = in.paces.ask(now, each.wanted.body.size());
    if (!may.go) {
      set_wake(in, may.at);
      continue;
    }
    in.queue.remove(each);
    set_timer(each, instant::max());
    make_ready(in);
    each.where = exchange::place::under_way;
    each.ticket = may.ticket;
    each.began = now;
    each.answer.fields.clear();
    each.answer.body.clear();
    each.answer.status = 0;
    ++each.attempts;
    ++under_way_;
    return &each;
  }
  return nullptr;
}

auto scheduler::retry_after_of(response const& answer, std::chrono::sys_seconds wall_clock) const
    -> std::optional<std::chrono::seconds> {
  // By the clock of the server, if it tells.
  auto const date = answer.fields.find("date");
  auto const now =
      date ? http::parse_http_date(*date, wall_clock).value_or(wall_clock) : wall_clock;
  std::optional<std::chrono::seconds> out;
  for (std::size_t i = 0; i < answer.fields.size(); ++i) {
    if (equal_ignoring_case(answer.fields[i].name, "retry-after")) {
      out = std::max(out, http::parse_retry_after(answer.fields[i].value, now));
    }
  }
  return out;
}

auto scheduler::retries_again(exchange& ended, attempt_end const& how, instant now,
                              std::chrono::sys_seconds wall_clock) -> bool {
  if (how.permanent) {
    return false;
  }
  idempotency::attempt attempt{.delivery = how.delivery};
  if (how.delivery == delivery::answered) {
    attempt.status = ended.answer.status;
    if (attempt.status < 400) {
      return false;
    }
    attempt.retry_after = retry_after_of(ended.answer, wall_clock);
    if (attempt.status == 409 && ended.repeats.has_key) {
      attempt.code = idempotency::read_problem_code(
          ended.answer.fields.find("content-type").value_or(""), ended.answer.body);
    }
  }
  auto const verdict =
      idempotency::decide_retry(ended.repeats, attempt, ended.retries, options_.retries, random());
  // To wait for longer than there is time is to wait in vain.
  if (!verdict.again || verdict.wait >= ended.deadline - now ||
      (!verdict.asked_for && !budget_.take(now))) {
    return false;
  }
  ended.retries += verdict.counts ? 1 : 0;
  ++retries_;
  ended.where = exchange::place::waiting;
  set_timer(ended, now + verdict.wait);
  return true;
}

void scheduler::finish(exchange& ended, attempt_end const& how, instant now,
                       std::chrono::sys_seconds wall_clock) {
  --under_way_;
  auto& in = *ended.in;
  if (how.delivery == delivery::answered) {
    field_lines_.clear();
    for (std::size_t i = 0; i < ended.answer.fields.size(); ++i) {
      field_lines_.push_back(ended.answer.fields[i]);
    }
    in.paces.answered(ended.ticket,
                      {.status = ended.answer.status,
                       .fields = field_lines_,
                       .wall_clock = wall_clock,
                       .content_bytes = ended.answer.body.size()},
                      now, random());
    // A proxy that says so may not know what the server behind it did.
    constexpr std::array unsure = {408, 502, 503, 504};
    ended.may_have_run =
        ended.may_have_run || std::ranges::find(unsure, ended.answer.status) != unsure.end();
  } else {
    in.paces.failed(ended.ticket, now);
    ended.may_have_run = ended.may_have_run || how.delivery == delivery::no_answer;
  }
  make_ready(in);
  if (ended.cancelled) {
    end(ended, failure(error_of(ended, client_fault::cancelled, {})));
  } else if (!retries_again(ended, how, now, wall_clock)) {
    if (how.delivery == delivery::answered) {
      ended.answer.attempts = ended.attempts;
      ended.answer.key = std::move(ended.key);
      ended.answer.took = now - ended.sent_at;
      ended.answer.waited = ended.began - ended.sent_at;
      end(ended, std::move(ended.answer));
    } else {
      bool const is_late = how.fault == client_fault::attempt_timed_out && now >= ended.deadline;
      end(ended, failure(error_of(ended, is_late ? client_fault::deadline_exceeded : how.fault,
                                  how.detail)));
    }
  }
}

auto scheduler::error_of(exchange& ended, client_fault fault, std::string detail) -> client_error {
  return {.fault = fault,
          .detail = std::move(detail),
          .attempts = ended.attempts,
          .may_have_run = ended.may_have_run,
          .key = std::move(ended.key)};
}

void scheduler::end(exchange& ended, result<response, client_error> what) {
  if (ended.where == exchange::place::queued) {
    ended.in->queue.remove(ended);
  }
  if (ended.is_fresh) {
    std::erase(fresh_, &ended);
  }
  set_timer(ended, instant::max());
  ended.where = exchange::place::finished;
  auto const found = exchanges_.find(ended.id);
  outcomes_.push_back({std::move(found->second), std::move(what)});
  exchanges_.erase(found);
}

auto scheduler::cancel(request_id id) -> exchange* {
  auto const found = exchanges_.find(id);
  if (found == exchanges_.end()) {
    return nullptr;
  }
  auto& each = *found->second;
  each.cancelled = true;
  if (each.where == exchange::place::under_way) {
    return &each;
  }
  end(each, failure(error_of(each, client_fault::cancelled, {})));
  return nullptr;
}

auto scheduler::ids() const -> std::vector<request_id> {
  std::vector<request_id> out;
  out.reserve(exchanges_.size());
  for (auto const& [id, each] : exchanges_) {
    out.push_back(id);
  }
  return out;
}

void scheduler::pass_time(instant now) {
  set_timers_of_fresh();
  while (!wakes_.empty() && wakes_.begin()->first <= now) {
    auto& in = *wakes_.begin()->second;
    set_wake(in, instant::max());
    make_ready(in);
  }
  while (!timers_.empty() && timers_.begin()->first <= now) {
    auto& each = *timers_.begin()->second;
    if (each.where == exchange::place::waiting && now < each.deadline) {
      set_timer(each, each.deadline);
      enqueue(each, true);  // it has waited once
    } else {
      end(each, failure(error_of(each, client_fault::deadline_exceeded, {})));
    }
  }
}

auto scheduler::next() -> instant {
  set_timers_of_fresh();
  return std::min(wakes_.empty() ? instant::max() : wakes_.begin()->first,
                  timers_.empty() ? instant::max() : timers_.begin()->first);
}

}  // namespace tidegate::TIDEGATE_ABI::client
