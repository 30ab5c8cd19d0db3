// SPDX-License-Identifier: Apache-2.0
#include <tidegate/store_redis/idempotency_store.hpp>

#include <tidegate/base/number.hpp>
#include <tidegate/engine/loop.hpp>
#include <tidegate/store/record_table.hpp>

#include "keys/bucket_counts.hpp"
#include "keys/server_check.hpp"
#include "keys/stored_record.hpp"
#include "keys/task_inbox.hpp"
#include "protocol/client.hpp"
#include "protocol/script.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>

namespace tidegate::store_redis {

namespace {

using namespace std::chrono_literals;
using idempotency::lookup_key;
using idempotency::wall_time;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using store::apply_answer;
using store::find_answer;
using store::store_error;
using store::store_fault;

constexpr std::int64_t time_max = 999'999'999'999;
/// How far from now something may be due: further away is as good as never.
constexpr milliseconds due_max = std::chrono::years(1'000);

auto random_id() -> writer_id {
  std::random_device random;
  return writer_id{random()} << 32 | random();
}

auto steady_now() -> nanoseconds {
  return std::chrono::steady_clock::now().time_since_epoch();
}

auto damaged(std::string text) -> store_error {
  return {store_fault::damaged, std::move(text)};
}

/// The answer to TIME: seconds, and microseconds of the next one.
auto read_time(resp_value const& value) -> std::optional<milliseconds> {
  std::array<std::int64_t, 2> numbers{};
  if (value.items.size() != numbers.size()) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = parse_number<std::int64_t>(value.items[i].text).value_or(-1);
    if (numbers[i] < 0 || numbers[i] > time_max) {
      return std::nullopt;
    }
  }
  return milliseconds(numbers[0] * 1'000 + numbers[1] / 1'000);
}

/// Unknown outcomes on their way, from every bucket.
struct listing {
  std::size_t records = 0;
  std::size_t waiting = buckets;  // answers
  store::list_answer all;
  store::list_callback answer;
};

/// A thread with a loop that asks Redis what all threads want to know.
class idempotency_session final : public store::idempotency_store {
 public:
  idempotency_session(idempotency_options options, std::unique_ptr<engine::loop> loop);
  ~idempotency_session() override;

  /// Connects and looks whether this Redis will do.
  [[nodiscard]] auto open() -> result<void, store::store_error>;

  void find(idempotency::lookup_key const& key, store::find_callback answer) override;
  void apply(idempotency::change change, store::apply_callback answer) override;
  void list_unknown(std::size_t records, store::list_callback answer) override;
  void sweep(idempotency::wall_time now, std::size_t records) override;
  [[nodiscard]] auto is_shared() const -> bool override { return true; }
  /// Records by the last answers; nothing of them is in the memory of this process.
  [[nodiscard]] auto used() const -> usage override { return counts_.used(); }

 private:
  [[nodiscard]] auto clock() const -> idempotency::wall_time;
  [[nodiscard]] auto too_many() const -> store_error {
    return {store_fault::unavailable, name_ + ": too many requests wait"};
  }

  // ---- on the thread of the loop ----
  void do_find(idempotency::lookup_key const& key, store::find_callback answer);
  void do_apply(idempotency::change change, store::apply_callback answer);
  void do_list(std::shared_ptr<listing> const& what);
  void take_listed(listing& what, answer const& got);
  void do_sweep(idempotency::wall_time now, std::size_t records);
  void check_eviction();
  void take_due(std::size_t bucket, idempotency::wall_time now, answer const& got);
  [[nodiscard]] auto read_applied(idempotency::lookup_key const& key, answer const& got)
      -> store::apply_answer;
  [[nodiscard]] auto read_found(idempotency::lookup_key const& key, resp_value const& record,
                                resp_value const& response, std::chrono::milliseconds store_time)
      -> store::find_answer;

  idempotency_options options_;
  std::string name_;
  writer_id const id_;
  key_scripts scripts_;
  std::unique_ptr<engine::loop> loop_;
  std::unique_ptr<client> client_;
  task_inbox inbox_;
  bucket_counts counts_;
  server_check server_;
  std::atomic<std::chrono::nanoseconds> ahead_;  // of the steady clock
  std::size_t sweeping_ = 0;                     // answers that the last sweep waits for
  std::size_t next_checked_ = 0;                 // the bucket whose server is asked next
  std::thread thread_;
};

idempotency_session::idempotency_session(idempotency_options options,
                                         std::unique_ptr<engine::loop> loop)
    : options_(std::move(options)),
      name_(to_string(options_.where)),
      id_(random_id()),
      loop_(std::move(loop)),
      inbox_(*loop_, options_.queue_max, options_.queue_octets_max),
      server_(name_, options_.secret_digest),
      ahead_(std::chrono::system_clock::now().time_since_epoch() - steady_now()) {}

idempotency_session::~idempotency_session() {
  if (thread_.joinable()) {
    inbox_.wait_until_empty();
    loop_->stop();
    thread_.join();
  }
  client_ = nullptr;  // what it answers now looks at the rest
}

auto idempotency_session::open() -> result<void, store_error> {
  connection_options settings;
  settings.command_timeout =
      options_.command_timeout +
      (options_.replicas_min > 0 ? options_.replicas_timeout : milliseconds(0));
  settings.commands_max = options_.queue_max + buckets;
  auto made = client::make(*loop_, options_.where, std::move(settings));
  if (!made) {
    return failure(store_error{store_fault::unavailable, name_ + ": " + made.error()});
  }
  client_ = *std::move(made);
  thread_ = std::thread([this] { loop_->run(); });
  auto const end = std::chrono::steady_clock::now() + options_.open_timeout;
  for (;;) {
    std::promise<result<void, store_error>> all;
    loop_->post([this, &all] {
      server_.run(*client_, scripts_, counts_,
                  [&all](result<void, store_error> checked) { all.set_value(std::move(checked)); });
    });
    auto checked = all.get_future().get();
    bool const is_refused =
        server_.drops_keys() || (!checked && checked.error().fault == store_fault::damaged);
    if (checked || is_refused || std::chrono::steady_clock::now() >= end) {
      return checked;
    }
    std::this_thread::sleep_for(20ms);  // it may come up
  }
}

// ---- by any thread ----

auto idempotency_session::clock() const -> wall_time {
  if (options_.clock) {
    return options_.clock();
  }
  return wall_time(
      std::chrono::floor<milliseconds>(steady_now() + ahead_.load(std::memory_order_relaxed)));
}

void idempotency_session::find(lookup_key const& key, store::find_callback answer) {
  if (!inbox_.enter(0)) {
    answer(failure(too_many()));
    return;
  }
  inbox_.post([this, key, answer = std::move(answer)]() mutable {
    do_find(key, [this, answer = std::move(answer)](find_answer got) mutable {
      answer(std::move(got));
      inbox_.leave(0);
    });
  });
}

void idempotency_session::apply(idempotency::change change, store::apply_callback answer) {
  auto const octets = change.response ? store::octets_of(*change.response) : 0;
  if (!inbox_.enter(octets)) {
    answer(failure(too_many()));
    return;
  }
  inbox_.post([this, octets, change = std::move(change), answer = std::move(answer)]() mutable {
    do_apply(std::move(change),
             [this, octets, answer = std::move(answer)](apply_answer got) mutable {
               answer(std::move(got));
               inbox_.leave(octets);
             });
  });
}

void idempotency_session::list_unknown(std::size_t records, store::list_callback answer) {
  if (!inbox_.enter(0)) {
    answer(failure(too_many()));
    return;
  }
  auto what = std::make_shared<listing>();
  what->records = records;
  what->answer = std::move(answer);
  inbox_.post([this, what = std::move(what)] { do_list(what); });
}

void idempotency_session::sweep(wall_time now, std::size_t records) {
  ahead_.store(now.time_since_epoch() - steady_now(), std::memory_order_relaxed);
  if (!inbox_.enter(0)) {
    return;  // the next one does it
  }
  inbox_.post([this, now, records] {
    do_sweep(now, records);
    inbox_.leave(0);
  });
}

// ---- on the thread of the loop ----

void idempotency_session::do_find(lookup_key const& key, store::find_callback answer) {
  auto const bucket = bucket_of(key);
  auto const name = to_string(key);
  auto const record = record_key_prefix(bucket) + name;
  auto const response = response_key_prefix(bucket) + name;
  command both{"MGET", record, response, secret_key(bucket)};
  both.then({"TIME"});
  client_->send(record, std::move(both),
                [this, key, answer = std::move(answer)](store_redis::answer got) mutable {
                  if (!got) {
                    answer(failure(std::move(got).error()));
                    return;
                  }
                  auto const& found = got->items.at(0);
                  auto const& time = got->items.at(1);
                  if (found.is_error() || time.is_error()) {
                    answer(failure(error_of(found.is_error() ? found : time, name_)));
                    return;
                  }
                  auto const at = read_time(time);
                  if (found.items.size() != 3 || !at) {
                    answer(failure(damaged(name_ + ": an answer makes no sense")));
                    return;
                  }
                  if (server_.is_other_secret(found.items[2])) {
                    answer(failure(store::stored_with_another_secret(name_)));
                    return;
                  }
                  answer(read_found(key, found.items[0], found.items[1], *at));
                });
}

auto idempotency_session::read_found(lookup_key const& key, resp_value const& record,
                                     resp_value const& response, milliseconds store_time)
    -> find_answer {
  if (record.is_null()) {
    return std::nullopt;
  }
  auto read = read_stored(record.text, {id_, clock(), store_time});
  if (!read) {
    return failure(damaged(name_ + ": " + read.error()));
  }
  store::found_record out{*std::move(read), nullptr};
  if (out.record.state != idempotency::record_state::completed || response.is_null()) {
    if (out.record.replayable) {
      return failure(damaged(name_ + ": a response is missing"));
    }
    return out;
  }
  TIDEGATE_TRY(auto const text,
               store::unseal(options_.seal_keys, {key, out.record.token}, response.text));
  auto opened = idempotency::read_response(text);
  if (!opened) {
    return failure(damaged(name_ + ": a response " + to_string(opened.error())));
  }
  out.response = std::make_shared<idempotency::stored_response const>(*std::move(opened));
  return out;
}

void idempotency_session::do_apply(idempotency::change change, store::apply_callback answer) {
  if (server_.drops_keys() && change.next &&
      !change.when.token) {  // a new key, which might be forgotten
    answer(failure(*server_.drops_keys()));
    return;
  }
  auto const bucket = bucket_of(change.key);
  auto const name = to_string(change.key);
  word_list keys;
  keys.add(record_key_prefix(bucket) + name);
  keys.add(response_key_prefix(bucket) + name);
  keys.add(due_key(bucket));
  keys.add(scopes_key(bucket));
  keys.add(unknown_key(bucket));
  keys.add(secret_key(bucket));

  auto const now = clock();
  std::string states;
  for (auto const state :
       {idempotency::record_state::dispatched, idempotency::record_state::completed,
        idempotency::record_state::unknown, idempotency::record_state::tombstone}) {
    if (change.when.states.contains(state)) {
      states += static_cast<char>('0' + static_cast<int>(state));
    }
  }
  std::string record;
  std::string sealed;
  milliseconds until_due{0};
  milliseconds until_changed{0};
  if (change.next) {
    append_record(record, *change.next);
    until_due = std::clamp(due(*change.next) - now, -due_max, due_max);
    until_changed = std::clamp(milliseconds(change.next->changed - now), -due_max, due_max);
  }
  if (change.response) {
    std::string text;
    append_response(text, *change.response);
    auto const with = change.seal ? std::span<store::seal_key const>(options_.seal_keys)
                                  : std::span<store::seal_key const>();
    auto made = store::seal(with, {change.key, change.next ? change.next->token : 0}, text);
    if (!made) {
      answer(failure(std::move(made).error()));
      return;
    }
    sealed = *std::move(made);
  }
  word_list arguments;
  arguments.add(change.when.token ? stored_token(*change.when.token) : "");
  arguments.add(states);
  arguments.add(change.next ? stored_head(*change.next, {id_, now}) : "");
  arguments.add(record);
  arguments.add(change.response ? "1" : "0");
  arguments.add(sealed);
  arguments.add(name);
  arguments.add(stored_token(change.key.scope()));
  arguments.add(std::to_string(change.scope_keys_max));
  arguments.add(std::to_string(change.bounded ? counts_.room_in(bucket, options_.records_max)
                                              : std::numeric_limits<std::int32_t>::max()));
  arguments.add(std::to_string(until_due.count()));
  arguments.add(std::to_string(until_changed.count()));
  arguments.add(options_.secret_digest);
  command wait;
  if (options_.replicas_min > 0) {
    wait = command{"WAIT"}.add(options_.replicas_min).add(options_.replicas_timeout.count());
  }
  run(
      *client_, scripts_.change, std::move(keys), std::move(arguments),
      [this, key = change.key, answer = std::move(answer)](store_redis::answer const& got) mutable {
        answer(read_applied(key, got));
      },
      std::move(wait));
}

auto idempotency_session::read_applied(lookup_key const& key, answer const& got) -> apply_answer {
  if (!got) {
    return failure(got.error());
  }
  auto const& answer = options_.replicas_min > 0 ? got->items.at(0) : *got;
  if (answer.is_error()) {
    return failure(error_of(answer, name_));
  }
  if (answer.items.size() < 3) {
    return failure(damaged(name_ + ": an answer makes no sense"));
  }
  counts_.set_records(bucket_of(key), answer.items[2]);
  auto const& outcome = answer.items[0].text;
  if (outcome == "made") {
    if (answer.items.size() > 3) {
      counts_.set_unknown(bucket_of(key), answer.items[3]);
    }
    if (options_.replicas_min > 0) {
      auto const& replicas = got->items.at(1);
      if (replicas.is_error()) {
        return failure(error_of(replicas, name_));
      }
      if (replicas.integer < options_.replicas_min) {
        return failure(store_error{store_fault::unavailable,
                                   name_ + ": a change is on " + std::to_string(replicas.integer) +
                                       " replicas of " + std::to_string(options_.replicas_min)});
      }
    }
    return store::applied{.made = true, .found = std::nullopt};
  }
  if (outcome == "full") {
    return failure(store_error{store_fault::full, name_ + ": has the maximum number of keys"});
  }
  if (outcome == "scope_full") {
    return failure(store_error{store_fault::scope_full, ""});
  }
  if (outcome == "other_secret") {
    return failure(store::stored_with_another_secret(name_));
  }
  static resp_value const nothing;
  auto const at = [&](std::size_t i) -> resp_value const& {
    return i < answer.items.size() ? answer.items[i] : nothing;
  };
  TIDEGATE_TRY(auto found, read_found(key, at(3), at(4), milliseconds(answer.items[1].integer)));
  return store::applied{.made = false, .found = std::move(found)};
}

void idempotency_session::do_list(std::shared_ptr<listing> const& what) {
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    word_list keys;
    keys.add(unknown_key(bucket));
    word_list arguments;
    arguments.add(record_key_prefix(bucket));
    arguments.add(std::to_string(what->records));
    run(*client_, scripts_.unknown, std::move(keys), std::move(arguments),
        [this, what](answer const& got) { take_listed(*what, got); });
  }
}

void idempotency_session::take_listed(listing& what, answer const& got) {
  if (!got) {
    what.all = failure(got.error());
  } else if (got->is_error()) {
    what.all = failure(error_of(*got, name_));
  } else if (got->items.empty()) {
    what.all = failure(damaged(name_ + ": an answer makes no sense"));
  } else if (what.all) {
    reader const by{id_, clock(), milliseconds(got->items[0].integer)};
    for (std::size_t i = 1; i + 1 < got->items.size(); i += 2) {
      auto const key = idempotency::parse_lookup_key(got->items[i].text);
      auto record = read_stored(got->items[i + 1].text, by);
      // One that is damaged is an error for the caller that asks for it.
      if (key && record && record->state == idempotency::record_state::unknown) {
        what.all->push_back({*key, *std::move(record)});
      }
    }
  }
  if (--what.waiting > 0) {
    return;
  }
  if (what.all) {
    store::keep_newest(*what.all, what.records);
  }
  what.answer(std::move(what.all));
  inbox_.leave(0);
}

void idempotency_session::do_sweep(wall_time now, std::size_t records) {
  if (sweeping_ > 0) {
    return;
  }
  check_eviction();
  auto const each_max = std::max<std::size_t>(records / buckets, 1);
  auto const from_now = std::clamp(milliseconds(now - clock()), -due_max, due_max);
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    word_list keys;
    keys.add(due_key(bucket));
    keys.add(unknown_key(bucket));
    word_list arguments;
    arguments.add(record_key_prefix(bucket));
    arguments.add(std::to_string(from_now.count()));
    arguments.add(std::to_string(each_max));
    ++sweeping_;
    run(*client_, scripts_.due, std::move(keys), std::move(arguments),
        [this, bucket, now](answer const& got) {
          take_due(bucket, now, got);
          --sweeping_;
        });
  }
}

/// An operator may change it, and another server may become the master: one server is asked at each
/// sweep, and the same one for as long as it may drop keys.
void idempotency_session::check_eviction() {
  ++sweeping_;
  client_->send(due_key(next_checked_), command{"INFO", "memory"}, [this](answer const& got) {
    --sweeping_;
    if (!got || got->is_error()) {
      return;
    }
    server_.take_info(*got);
    if (!server_.drops_keys()) {
      next_checked_ = (next_checked_ + 1) % buckets;
    }
  });
}

void idempotency_session::take_due(std::size_t bucket, wall_time now, answer const& got) {
  if (!got || got->items.size() < 3) {
    return;  // the next sweep
  }
  counts_.set_records(bucket, got->items[1]);
  counts_.set_unknown(bucket, got->items[2]);
  reader const by{id_, clock(), milliseconds(got->items[0].integer)};
  for (std::size_t i = 3; i + 1 < got->items.size(); i += 2) {
    auto const key = idempotency::parse_lookup_key(got->items[i].text);
    std::optional<idempotency::change> expiry;
    if (key && got->items[i + 1].is_null()) {
      expiry = idempotency::change{.key = *key};  // deleted by hand
    } else if (auto const record = read_stored(got->items[i + 1].text, by); key && record) {
      expiry = expire(*key, *record, now);
    }
    // Whatever is damaged stays for people to see.
    if (expiry) {
      ++sweeping_;
      do_apply(*std::move(expiry), [this](apply_answer const&) { --sweeping_; });
    }
  }
}

}  // namespace

auto open_idempotency_store(idempotency_options options)
    -> result<std::unique_ptr<store::idempotency_store>, store_error> {
  auto loop = engine::loop::make();
  if (!loop) {
    return failure(store_error{store_fault::unavailable, engine::to_string(loop.error())});
  }
  auto made = std::make_unique<idempotency_session>(std::move(options), *std::move(loop));
  TIDEGATE_TRY_VOID(made->open());
  return made;
}

}  // namespace tidegate::store_redis
