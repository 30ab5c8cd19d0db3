// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "client/client_settings.hpp"
#include "client/progress.hpp"
#include "exit_status.hpp"

#include <tidegate/client/session.hpp>
#include <tidegate/json/string.hpp>

#include <CLI/CLI.hpp>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidegate::app {

namespace {

using client::client_error;
using client::response;
using client::session;
using std::chrono::nanoseconds;
using clock = std::chrono::steady_clock;

/// So many requests are with the session at a time. It lets them go as servers allow.
constexpr std::size_t outstanding_max = 100;

struct call_settings : client_settings {
  client::request wanted;
  std::string method;
  std::optional<std::string> data;
  std::string max_time;
  std::uint64_t repeat = 1;
  std::string output;
  bool include = false;
  bool idempotent = false;
  bool json = false;
};

[[noreturn]] void refuse(std::string const& option, std::string const& why) {
  throw CLI::ValidationError(option, why);
}

[[nodiscard]] auto read_data(std::string const& data) -> std::string {
  if (!data.starts_with('@')) {
    return data;
  }
  auto const name = data.substr(1);
  auto const all_of = [](std::istream& from) {
    return std::string(std::istreambuf_iterator<char>(from), std::istreambuf_iterator<char>());
  };
  if (name == "-") {
    return all_of(std::cin);
  }
  std::ifstream file(name, std::ios::binary);
  if (!file) {
    refuse("-d", "cannot read " + name);
  }
  return all_of(file);
}

void take_request(call_settings& settings) {
  auto& wanted = settings.wanted;
  wanted.fields = fields_of(settings);
  if (settings.data) {
    wanted.body = read_data(*settings.data);
    // As curl does, since people know it from there.
    auto const is_type = [](client::field const& each) {
      return CLI::detail::to_lower(each.name) == "content-type";
    };
    if (std::ranges::none_of(wanted.fields, is_type)) {
      wanted.fields.push_back({"Content-Type", "application/x-www-form-urlencoded"});
    }
  }
  wanted.method = !settings.method.empty() ? settings.method : settings.data ? "POST" : "GET";
  wanted.idempotent = settings.idempotent;
}

[[nodiscard]] auto milliseconds_of(nanoseconds time) -> std::string {
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), "%.1f",
                      std::chrono::duration<double, std::milli>(time).count());
  return text.data();
}

/// One line of JSON, member by member.
class json_line {
 public:
  void text(std::string_view name, std::string_view value) {
    begin(name);
    json::append_string(out_, value);
  }
  /// A number, a truth value or JSON that is made already.
  void raw(std::string_view name, std::string_view value) {
    begin(name);
    out_.append(value);
  }
  [[nodiscard]] auto finish() -> std::string { return out_ + "}\n"; }

 private:
  void begin(std::string_view name) {
    out_.append(out_.size() == 1 ? "" : ",");
    json::append_string(out_, name);
    out_.push_back(':');
  }
  std::string out_ = "{";
};

[[nodiscard]] auto to_json(std::uint64_t number, response const& answer) -> std::string {
  json_line line;
  line.raw("number", std::to_string(number));
  line.raw("ok", answer.status < 400 ? "true" : "false");
  line.raw("status", std::to_string(answer.status));
  line.raw("attempts", std::to_string(answer.attempts));
  line.raw("took_ms", milliseconds_of(answer.took));
  line.raw("waited_ms", milliseconds_of(answer.waited));
  if (!answer.key.empty()) {
    line.text("key", answer.key);
    line.raw("replayed", answer.fields.find("idempotent-replayed") == "true" ? "true" : "false");
  }
  std::string fields = "[";
  for (std::size_t i = 0; i < answer.fields.size(); ++i) {
    fields.append(i == 0 ? "[" : ",[");
    json::append_string(fields, answer.fields[i].name);
    fields.push_back(',');
    json::append_string(fields, answer.fields[i].value);
    fields.push_back(']');
  }
  line.raw("fields", fields + "]");
  line.text("body", answer.body);
  return line.finish();
}

[[nodiscard]] auto to_json(std::uint64_t number, client_error const& error) -> std::string {
  json_line line;
  line.raw("number", std::to_string(number));
  line.raw("ok", "false");
  line.text("fault", client::name_of(error.fault));
  line.text("error", client::to_string(error));
  line.raw("attempts", std::to_string(error.attempts));
  line.raw("may_have_run", error.may_have_run ? "true" : "false");
  if (!error.key.empty()) {
    line.text("key", error.key);
  }
  return line.finish();
}

/// How long the last attempt took, and what was waited for before it: a turn, and other attempts.
[[nodiscard]] auto to_line(std::uint64_t number, response const& answer) -> std::string {
  auto out = std::to_string(number) + " " + std::to_string(answer.status) + " " +
             milliseconds_of(answer.took - answer.waited) + " ms";
  if (answer.waited >= std::chrono::milliseconds(1)) {
    out += " after a wait of " + milliseconds_of(answer.waited) + " ms";
  }
  if (answer.attempts > 1) {
    out += ", " + std::to_string(answer.attempts) + " attempts";
  }
  if (answer.fields.find("idempotent-replayed") == "true") {
    out += ", replayed";
  }
  return out + "\n";
}

/// The status line and the header section as `curl -i` prints them, but for the version of HTTP.
[[nodiscard]] auto head_of(response const& answer) -> std::string {
  auto out = "HTTP " + std::to_string(answer.status) + "\n";
  for (std::size_t i = 0; i < answer.fields.size(); ++i) {
    out.append(answer.fields[i].name).append(": ").append(answer.fields[i].value).append("\n");
  }
  return out + "\n";
}

/// Sends the requests of one command and prints what becomes of them.
class caller {
 public:
  caller(call_settings settings, nanoseconds time)
      : settings_(std::move(settings)), began_(clock::now()), ends_(began_ + time) {}
  caller(caller const&) = delete;
  auto operator=(caller const&) -> caller& = delete;
  ~caller() {
    ::close(finished_);
    ::close(signals_);
  }

  [[nodiscard]] auto run(client::session_options options) -> int {
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ending, nullptr);
    signals_ = ::signalfd(-1, &ending, SFD_CLOEXEC);
    finished_ = ::eventfd(0, EFD_CLOEXEC);
    auto opened = session::open(std::move(options));
    if (signals_ < 0 || finished_ < 0 || !opened) {
      std::cerr << "error: "
                << (opened ? "cannot make a descriptor for signals" : to_string(opened.error()))
                << '\n';
      return exit_failure;
    }
    session_ = *std::move(opened);
    if (auto const begun = begin(); !begun) {
      std::cerr << "error: " << to_string(begun.error()) << '\n';
      return exit_usage;
    }
    bool const interrupted = wait();
    if (interrupted) {
      // A second signal ends the program at once.
      pthread_sigmask(SIG_UNBLOCK, &ending, nullptr);
    }
    auto const retries = session_->activity().retries;
    session_.reset();  // from here on there is only this thread
    progress_.clear();
    summarize(retries);
    return interrupted ? exit_interrupted : ok_ == settings_.repeat ? exit_success : exit_failure;
  }

 private:
  /// Sends as many as may be outstanding; what ends then sends the next.
  [[nodiscard]] auto begin() -> result<void, client_error> {
    std::lock_guard const lock(mutex_);
    while (sent_ < settings_.repeat && sent_ < outstanding_max) {
      TIDEGATE_TRY_VOID(send_next());
    }
    return {};
  }

  [[nodiscard]] auto send_next() -> result<client::request_id, client_error> {
    auto wanted = settings_.wanted;
    wanted.time_max = ends_ - clock::now();
    auto sent = session_->send(
        std::move(wanted),
        [this, number = sent_ + 1](result<response, client_error> what) { ended(number, what); });
    sent_ += sent ? 1U : 0U;
    return sent;
  }

  /// On the thread of the session.
  void ended(std::uint64_t number, result<response, client_error> const& what) {
    std::lock_guard const lock(mutex_);
    ++done_;
    bool const is_ok = what && what->status < 400;
    ok_ += is_ok ? 1U : 0U;
    bool const is_cancelled = !what && what.error().fault == client::client_fault::cancelled;
    if (!is_cancelled) {
      failed_ += is_ok ? 0U : 1U;
      print(number, what);
    }
    if (!std::cout) {
      stopping_ = true;  // standard output is closed
    }
    if (!stopping_ && sent_ < settings_.repeat && clock::now() < ends_ && !send_next()) {
      stopping_ = true;
    }
    if (stopping_ || done_ == sent_) {
      ::eventfd_write(finished_, 1);
    }
  }

  void print(std::uint64_t number, result<response, client_error> const& what) {
    progress_.clear();
    if (settings_.json) {
      std::cout << (what ? to_json(number, *what) : to_json(number, what.error()));
    } else if (!what) {
      std::cerr << (settings_.repeat > 1 ? std::to_string(number) + " " : "")
                << "error: " << to_string(what.error())
                << (what.error().may_have_run ? "; it may have been carried out" : "") << '\n';
    } else if (settings_.repeat > 1) {
      std::cout << to_line(number, *what);
    } else {
      print_content(*what);
      if (what->status >= 400) {
        std::cerr << "error: the server answered " << what->status << '\n';
      }
    }
    std::cout.flush();
  }

  void print_content(response const& answer) {
    auto const head = settings_.include ? head_of(answer) : std::string();
    if (settings_.output.empty()) {
      std::cout << head << answer.body;
      return;
    }
    std::ofstream file(settings_.output, std::ios::binary);
    file << head << answer.body;
    if (!file.flush()) {
      std::cerr << "error: cannot write " << settings_.output << '\n';
      failed_ += ok_ > 0 ? 1U : 0U;
      ok_ = 0;
    }
  }

  /// Until all is done. True when a signal ended the wait.
  [[nodiscard]] auto wait() -> bool {
    for (;;) {
      std::array<pollfd, 2> polled{{{finished_, POLLIN, 0}, {signals_, POLLIN, 0}}};
      ::poll(polled.data(), polled.size(), static_cast<int>(progress::tick.count()));
      bool const finished = polled[0].revents != 0;
      bool const interrupted = !finished && polled[1].revents != 0;
      if (interrupted) {
        signalfd_siginfo taken{};
        (void)!::read(signals_, &taken, sizeof taken);
      }
      auto const activity = session_->activity();
      std::lock_guard const lock(mutex_);
      if (finished) {
        return false;
      }
      if (interrupted) {
        stopping_ = true;
        return true;
      }
      progress_.show({.done = done_,
                      .total = settings_.repeat,
                      .under_way = activity.under_way,
                      .retries = activity.retries,
                      .next_in = activity.under_way == 0 ? activity.next_in : std::nullopt},
                     clock::now());
    }
  }

  void summarize(std::uint64_t retries) {
    auto const seconds = std::chrono::duration<double>(clock::now() - began_).count();
    if (settings_.json) {
      json_line counts;
      counts.raw("wanted", std::to_string(settings_.repeat));
      counts.raw("ok", std::to_string(ok_));
      counts.raw("failed", std::to_string(failed_));
      counts.raw("unfinished", std::to_string(settings_.repeat - ok_ - failed_));
      counts.raw("retries", std::to_string(retries));
      counts.raw("seconds", std::to_string(seconds));
      auto text = counts.finish();
      text.pop_back();
      json_line line;
      line.raw("summary", text);
      std::cout << line.finish();
    } else if (settings_.repeat > 1) {
      auto const unfinished = settings_.repeat - ok_ - failed_;
      std::cerr << ok_ << " ok, " << failed_ << " failed, "
                << (unfinished > 0 ? std::to_string(unfinished) + " not finished, " : "") << retries
                << " retries, " << milliseconds_of(clock::now() - began_) << " ms\n";
    }
  }

  call_settings const settings_;
  clock::time_point const began_;
  clock::time_point const ends_;
  int finished_ = -1;
  int signals_ = -1;

  std::mutex mutex_;  // of what follows
  progress progress_;
  std::uint64_t sent_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t ok_ = 0;
  std::uint64_t failed_ = 0;
  bool stopping_ = false;

  std::unique_ptr<session> session_;  // the last one: its end calls `ended`
};

auto call(call_settings settings) -> int {
  take_request(settings);
  settings.wanted.url = with_scheme(settings.wanted.url);
  if ((settings.include || !settings.output.empty()) && (settings.repeat > 1 || settings.json)) {
    refuse(settings.include ? "-i" : "-o", "is for one request without --json");
  }
  auto time = longest;
  if (!settings.max_time.empty()) {
    auto const given = parse_duration(settings.max_time);
    if (!given) {
      refuse("--max-time",
             "invalid duration \"" + settings.max_time + "\" (expected e.g. 500ms, 10s, 5m)");
    }
    time = *given;
  }
  auto options = session_options_of(settings, outstanding_max);
  return caller(std::move(settings), time).run(std::move(options));
}

}  // namespace

void add_call_command(CLI::App& app, int& status) {
  auto* const command = app.add_subcommand(
      "call", "Send requests at the pace that the server allows, and again where that is safe");
  auto const settings = std::make_shared<call_settings>();
  command
      ->add_option("URL", settings->wanted.url,
                   "With http:// or https://; without either: http for this machine, else https")
      ->required();
  command->add_option("-X,--request", settings->method, "The method; GET, or POST with -d");
  command->add_option("-d,--data", settings->data,
                      "The content; @FILE reads a file, @- standard input");
  command->add_flag(
      "--idempotent", settings->idempotent,
      "Send an Idempotency-Key, a new one for each request and the same with its retries");
  command->add_option("--repeat", settings->repeat, "So many requests")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000}).description(""))
      ->type_name("N")
      ->capture_default_str();
  add_client_options(*command, *settings);
  command->add_option("--max-time", settings->max_time,
                      "Of the whole command, waits and retries included");
  command->add_flag("-i,--include", settings->include, "Print the header section, too");
  command->add_option("-o,--output", settings->output, "Write the content to this file");
  command->add_flag("--json", settings->json,
                    "One JSON object a line: each request, then a summary");
  command->footer(
      "Obeys RateLimit (draft-09 and draft-07), X-RateLimit-* and Retry-After. Sends again only "
      "what is\n"
      "safe: idempotent methods, requests with a key, and what was never sent.\n"
      "One request prints the content of its answer, --repeat one line for each: number, status, "
      "how "
      "long\n"
      "it took, and how long it waited for its turn before; progress is on standard error.\n"
      "Exit status: 0 all answers were below 400; 1 some were not, or did not come; 2 the command "
      "line\n"
      "is wrong; 130 interrupted.");
  command->callback([settings, &status] { status = call(*settings); });
}

}  // namespace tidegate::app
