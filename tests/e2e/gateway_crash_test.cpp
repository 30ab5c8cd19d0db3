// SPDX-License-Identifier: Apache-2.0
//
// The gateway is killed at chosen places and at any time, and started again with the same data.
// Promised is: no key has two effects, and an answer that a client has seen is the answer of every
// retry. `tests/crash_run` does it longer.
#include "counting_api.hpp"
#include "keyed.hpp"

#include <tidegate/base/fail_point.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <thread>

namespace tidegate::e2e {
namespace {

constexpr int killed = 128 + SIGKILL;

auto crash_config(std::string const& url, data_folder const& data) -> std::string {
  return "data: " + data.path() + "\nupstreams: {api: \"" + url +
         "\"}\nroutes:\n"
         "  - match: {path: /deduplicated}\n    upstream: api\n    idempotency: {mode: required, "
         "upstream-deduplicates: true, on-unknown-outcome: retry}\n"
         "  - match: {path: /**}\n    upstream: api\n    idempotency: {mode: required, "
         "max-response: 4KiB}\n";
}

auto fail_at(std::string const& point) -> gateway_options {
  return {.workers = 2, .environment = {"TIDEGATE_FAIL_POINT=" + point}};
}

// ---- under load ----

/// What a client was told.
struct seen_answer {
  int status = 0;
  std::string code;  // of a problem of the gateway
  bool is_replayed = false;
  std::string content;  // Location and body

  explicit seen_answer(message const& answer)
      : status(answer.status()),
        code(code_of(answer)),
        is_replayed(answer.field("Idempotent-Replayed") == "true"),
        content(answer.field("Location") + "\n" + answer.body) {}
};

/// Whether a client may be told `later` when it asks after another was told `earlier`.
auto may_follow(std::string_view path, seen_answer const& earlier, seen_answer const& later)
    -> bool {
  if (earlier.code == "in-flight") {
    return true;
  }
  if (!earlier.code.empty()) {  // a request that ran once does not run again
    return later.code == earlier.code;
  }
  if (path == "/busy" && earlier.status == 429) {
    return true;
  }
  if (path == "/lost") {
    return later.code == "outcome-unknown";
  }
  if (path == "/large") {
    return later.code == "response-not-replayable";
  }
  return later.is_replayed && later.status == earlier.status && later.content == earlier.content;
}

/// Whether a client may be told that at all.
auto may_be(std::string_view path, seen_answer const& answer) -> bool {
  if (answer.code == "outcome-unknown") {
    return answer.status == 409 && path != "/deduplicated";
  }
  if (answer.code == "response-not-replayable") {
    return answer.status == 409 && path == "/large";
  }
  return answer.code.empty() || (answer.code == "in-flight" && answer.status == 409);
}

class tracked_key {
 public:
  tracked_key(std::string name, std::string path)
      : name_(std::move(name)), path_(std::move(path)) {}

  [[nodiscard]] auto name() const -> std::string const& { return name_; }
  [[nodiscard]] auto path() const -> std::string const& { return path_; }
  [[nodiscard]] auto request(bool waits) const -> std::string {
    return post(name_, "content of " + name_, path_, waits ? "Prefer: wait=20\r\n" : "");
  }
  /// How many answers have come.
  [[nodiscard]] auto answers() const -> std::size_t {
    std::lock_guard const lock(mutex_);
    return answers_.size();
  }
  /// Notes an answer to a request that was sent when `before` answers had come; returns what is
  /// wrong with it.
  [[nodiscard]] auto note(seen_answer answer, std::size_t before) -> std::string {
    std::lock_guard const lock(mutex_);
    bool is_right = may_be(path_, answer);
    for (std::size_t i = 0; i < before; ++i) {
      is_right = is_right && may_follow(path_, answers_[i], answer);
    }
    answers_.push_back(std::move(answer));
    if (is_right) {
      return "";
    }
    auto out = path_ + " " + name_ + ":";
    for (auto const& each : answers_) {
      out += " " + std::to_string(each.status) + " " + each.code + (each.is_replayed ? "R" : "") +
             " " + each.content.substr(0, 40) + ";";
    }
    return out;
  }

 private:
  std::string name_;
  std::string path_;
  mutable std::mutex mutex_;
  std::vector<seen_answer> answers_;
};

/// Clients that ask the gateway for the same keys again and again.
class crash_load {
 public:
  explicit crash_load(unsigned seed) : random_(seed) {}

  /// Sends requests until the gateway is gone; kills it after so many of them.
  void run(gateway const& with, std::size_t requests) {
    std::atomic<std::size_t> sent = 0;
    std::vector<std::thread> clients;
    for (int i = 0; i < 6; ++i) {
      clients.emplace_back([&] {
        try {
          auto connection = with.connect();
          for (;;) {
            if (++sent == requests) {
              with.signal(SIGKILL);
            }
            if (chance(16)) {
              auto leaves = with.connect();
              leaves.send(pick().request(false));
              ++requests_;
              continue;
            }
            ask(connection, pick());
          }
        } catch (std::runtime_error const& error) {
          if (std::string_view(error.what()).starts_with("waited in vain")) {
            fault(error.what());
          }  // else the gateway is gone
        }
      });
    }
    for (auto& each : clients) {
      each.join();
    }
  }

  /// Asks for every key until the answer is final, and once more.
  void finish(gateway const& with, counting_api const& api) {
    auto connection = with.connect();
    for (auto const& key : keys_) {
      auto answer = ask(connection, *key);
      for (int i = 0; i < 1000 && (answer.code == "in-flight" || answer.status == 429); ++i) {
        answer = ask(connection, *key);
      }
      (void)ask(connection, *key);
      auto const effects = api.effects(key->name());
      if (effects > 1) {
        fault(key->path() + " " + key->name() + " has " + std::to_string(effects) + " effects");
      }
      if (answer.code == "outcome-unknown") {
        ++unknown_;
      } else if (effects != 1 || answer.code == "in-flight") {
        fault(key->path() + " " + key->name() + " was answered, and has " +
              std::to_string(effects) + " effects");
      }
    }
  }

  [[nodiscard]] auto chance(unsigned of) -> bool { return number(of) == 0; }
  /// Below `bound`.
  [[nodiscard]] auto number(std::size_t bound) -> std::size_t {
    std::lock_guard const lock(mutex_);
    return random_() % bound;
  }
  [[nodiscard]] auto faults() const -> std::vector<std::string> const& { return faults_; }
  [[nodiscard]] auto keys() const -> std::size_t { return keys_.size(); }
  [[nodiscard]] auto requests() const -> std::size_t { return requests_; }
  [[nodiscard]] auto answers() const -> std::size_t { return answers_; }
  [[nodiscard]] auto unknown() const -> std::size_t { return unknown_; }

 private:
  [[nodiscard]] auto pick() -> tracked_key& {
    static constexpr std::array paths{"/final", "/final", "/final", "/error",
                                      "/large", "/busy",  "/lost",  "/deduplicated"};
    std::lock_guard const lock(mutex_);
    if (keys_.empty() || random_() % 3 == 0) {
      keys_.push_back(std::make_unique<tracked_key>("\"key-" + std::to_string(keys_.size()) + "\"",
                                                    paths[random_() % paths.size()]));
      return *keys_.back();
    }
    auto const recent = random_() % 8 == 0 ? keys_.size() : std::min<std::size_t>(24, keys_.size());
    return *keys_[keys_.size() - 1 - random_() % recent];
  }

  auto ask(connection& through, tracked_key& key) -> seen_answer {
    auto const before = key.answers();
    bool const waits = chance(4);
    ++requests_;
    through.send(key.request(waits));
    seen_answer answer(through.read_response());
    auto const wrong = key.note(answer, before);
    ++answers_;
    if (!wrong.empty()) {
      fault(wrong);
    }
    if (waits && answer.code == "in-flight") {
      fault(key.path() + " " + key.name() + " waited in vain for the first answer");
    }
    return answer;
  }

  void fault(std::string const& what) {
    std::lock_guard const lock(mutex_);
    faults_.push_back(what);
  }

  std::mutex mutex_;
  std::mt19937 random_;
  std::vector<std::unique_ptr<tracked_key>> keys_;
  std::vector<std::string> faults_;
  std::atomic<std::size_t> requests_ = 0;
  std::atomic<std::size_t> answers_ = 0;
  std::size_t unknown_ = 0;
};

constexpr std::array points{
    "content_came",     "connected",       "claim_asked_for",  "change_written",
    "change_committed", "claim_durable",   "request_begun",    "request_sent",
    "answer_begun",     "answer_complete", "record_asked_for", "record_durable",
    "client_answered",  "stream_begun",    "recovery_written", "recovery_committed",
};

TEST(gateway_crash, has_no_effect_twice_and_loses_no_answer_that_was_seen) {
  auto const* const asked = std::getenv("TIDEGATE_CRASH_KILLS");
  std::size_t const kills = asked != nullptr ? std::strtoul(asked, nullptr, 10) : 50;
  auto const seed = std::random_device()();
  data_folder const data;
  counting_api const api;
  auto const config = crash_config(api.url(), data);
  crash_load load(seed);
  std::size_t at_points = 0;
  for (std::size_t i = 0; i < kills; ++i) {
    // One of three at any time.
    std::string const point =
        has_fail_points && i % 3 != 0 ? points[i * 2 / 3 % points.size()] : "";
    auto const hits = point.starts_with("recovery") ? 1 : 1 + load.number(20);
    try {
      gateway with(config, fail_at(point + ":" + std::to_string(hits)));
      load.run(with, point.empty() ? 10 + load.number(60) : 400);
      ASSERT_EQ(with.wait(), killed) << point << with.errors();
    } catch (std::runtime_error const& error) {
      ASSERT_TRUE(point.starts_with("recovery")) << error.what();
    }
    at_points += point.empty() ? 0U : 1U;
  }
  gateway const with(config);
  load.finish(with, api);

  auto const effects = api.counts();
  auto const once = effects.contains(1) ? effects.at(1) : 0;
  std::cout << kills << " kills, " << at_points << " of them at fail points; " << load.requests()
            << " requests, " << load.answers() << " answers; " << load.keys() << " keys, " << once
            << " with an effect, " << load.unknown() << " with an unknown outcome; "
            << load.faults().size() << " violations; seed " << seed << "\n";
  for (auto const& fault : load.faults()) {
    ADD_FAILURE() << fault;
  }
}

// ---- one request, one place ----

#ifdef TIDEGATE_FAIL_POINTS

struct crash_row {
  char const* point;  // where it is killed
  char const* path;
  std::size_t effects;  // when it has been killed
  char const* retry;    // what a retry gets: "runs", "replay", or a code
  bool client_saw_it = false;
};

TEST(gateway_crash, leaves_at_each_place_what_the_design_says) {
  constexpr std::array rows{
      crash_row{"content_came", "/final", 0, "runs"},  // C1
      crash_row{"connected", "/final", 0, "runs"},     // C2
      crash_row{"change_written:1", "/final", 0, "runs"},
      crash_row{"change_committed:1", "/final", 0, "outcome-unknown"},
      crash_row{"claim_durable", "/final", 0, "outcome-unknown"},
      crash_row{"request_sent", "/final", 1, "outcome-unknown"},     // C3
      crash_row{"answer_begun", "/final", 1, "outcome-unknown"},     // C3
      crash_row{"answer_complete", "/final", 1, "outcome-unknown"},  // C4
      crash_row{"change_written:2", "/final", 1, "outcome-unknown"},
      crash_row{"change_committed:2", "/final", 1, "replay"},
      crash_row{"record_durable", "/final", 1, "replay"},  // C5
      crash_row{"client_answered", "/final", 1, "replay", true},
      crash_row{"client_answered", "/error", 1, "replay", true},
      crash_row{"client_answered", "/lost", 1, "outcome-unknown", true},
      crash_row{"client_answered", "/busy", 0, "runs", true},
      crash_row{"record_durable", "/large", 1, "response-not-replayable"},
      crash_row{"client_answered", "/large", 1, "response-not-replayable", true},
      crash_row{"stream_begun", "/large", 1, "response-not-replayable"},
      crash_row{"claim_durable", "/deduplicated", 0, "runs"},
      crash_row{"request_sent", "/deduplicated", 1, "runs"},
      crash_row{"answer_complete", "/deduplicated", 1, "runs"},
  };
  for (auto const& row : rows) {
    SCOPED_TRACE(std::string(row.point) + " " + row.path);
    data_folder const data;
    counting_api const api;
    auto const config = crash_config(api.url(), data);
    auto const request = post("\"k\"", "content", row.path);
    std::optional<seen_answer> first;
    {
      gateway with(config, fail_at(row.point));
      auto client = with.connect();
      client.send(request);
      ASSERT_EQ(with.wait(), killed) << with.errors();
      if (row.client_saw_it) {
        first.emplace(client.read_response());
      } else if (row.retry != std::string_view("response-not-replayable")) {
        EXPECT_TRUE(client.is_closed());
      }
    }
    expect_eventually([&] { return api.effects("\"k\"") == row.effects; }, "the work is done");
    {
      // Once more before any client was told.
      EXPECT_THROW(gateway(config, fail_at("recovery_written")), std::runtime_error);
      EXPECT_THROW(gateway(config, fail_at("recovery_committed")), std::runtime_error);
    }
    gateway const with(config);
    seen_answer const retry(with.ask(request));
    std::string_view const expected = row.retry;
    if (expected == "runs") {
      EXPECT_EQ(retry.status, 201);
      EXPECT_FALSE(retry.is_replayed);
    } else if (expected == "replay") {
      EXPECT_TRUE(retry.is_replayed);
    } else {
      EXPECT_EQ(retry.status, 409);
      EXPECT_EQ(retry.code, expected);
    }
    if (first) {
      EXPECT_TRUE(may_follow(row.path, *first, retry));
    }
    EXPECT_TRUE(may_follow(row.path, retry, seen_answer(with.ask(request))));
    EXPECT_EQ(api.effects("\"k\""), expected == "runs" ? 1U : row.effects);
  }
}

TEST(gateway_crash, forgets_no_key_while_it_cleans_up) {  // C8
  data_folder const data;
  counting_api const api;
  auto const config = keyed_config(api.url(), data, "ttl: 1s");
  {
    gateway with(config, fail_at("record_aged"));
    EXPECT_EQ(with.ask(post("\"k\"", "content", "/final")).status(), 201);
    ASSERT_EQ(with.wait(), killed) << with.errors();
  }
  gateway const with(config);
  expect_code(with.ask(post("\"k\"", "content", "/final")), 409, "result-expired");
  EXPECT_EQ(api.effects("\"k\""), 1U);
}

#endif

}  // namespace
}  // namespace tidegate::e2e
