// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "client/client_settings.hpp"
#include "client/completion_queue.hpp"
#include "client/progress.hpp"
#include "command_line.hpp"

#include <tidegate/client/session.hpp>
#include <tidegate/http/field.hpp>
#include <tidegate/json/string.hpp>
#include <tidegate/json/writer.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace tidegate::app {

namespace {

using client::client_error;
using client::response;
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

void take_request(call_settings& settings) {
  auto& wanted = settings.wanted;
  wanted.fields = fields_of(settings.field_lines);
  if (settings.data) {
    wanted.body = read_content("-d", *settings.data);
    // As curl does, since people know it from there.
    auto const is_type = [](http::field const& each) {
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

[[nodiscard]] auto to_json(std::uint64_t number, response const& answer) -> std::string {
  std::string line;
  json::writer out(line);
  out.begin_object()
      .member("number", number)
      .member("ok", answer.status < 400)
      .member("status", answer.status)
      .member("attempts", answer.attempts)
      .member_raw("took_ms", milliseconds_of(answer.took))
      .member_raw("waited_ms", milliseconds_of(answer.waited));
  if (!answer.key.empty()) {
    out.member("key", answer.key);
    out.member("replayed", answer.fields.find("idempotent-replayed") == "true");
  }
  out.begin_array("fields");
  for (std::size_t i = 0; i < answer.fields.size(); ++i) {
    out.begin_array().value(answer.fields[i].name).value(answer.fields[i].value).end_array();
  }
  out.end_array().member("body", answer.body).end_object();
  return line + "\n";
}

[[nodiscard]] auto to_json(std::uint64_t number, client_error const& error) -> std::string {
  std::string line;
  json::writer out(line);
  out.begin_object()
      .member("number", number)
      .member("ok", false)
      .member("fault", client::name_of(error.fault))
      .member("error", client::to_string(error))
      .member("attempts", error.attempts)
      .member("may_have_run", error.may_have_run);
  if (!error.key.empty()) {
    out.member("key", error.key);
  }
  out.end_object();
  return line + "\n";
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

  [[nodiscard]] auto run(client::session_options options) -> int {
    auto opened = completion_queue::open(std::move(options));
    if (!opened) {
      std::cerr << "error: " << opened.error() << '\n';
      return exit_failure;
    }
    queue_ = *std::move(opened);
    while (sent_ < settings_.repeat && sent_ < outstanding_max) {
      if (auto const sent = send_next(); !sent) {
        std::cerr << "error: " << to_string(sent.error()) << '\n';
        return exit_usage;
      }
    }
    while (!stopping_ && done_ < sent_ && !queue_->is_interrupted()) {
      if (auto const came = queue_->wait(progress::tick)) {
        take(*came);
      }
      progress_.show(done_, settings_.repeat, queue_->activity());
    }
    bool const interrupted = queue_->is_interrupted();
    stopping_ = true;
    while (auto const came = queue_->wait(std::chrono::milliseconds(0))) {
      take(*came);  // what was there already
    }
    progress_.clear();
    summarize(queue_->activity().retries);
    return interrupted ? exit_interrupted : ok_ == settings_.repeat ? exit_success : exit_failure;
  }

 private:
  [[nodiscard]] auto send_next() -> result<void, client_error> {
    auto wanted = settings_.wanted;
    wanted.time_max = ends_ - clock::now();
    TIDEGATE_TRY_VOID(queue_->send(std::move(wanted), sent_ + 1));
    ++sent_;
    return {};
  }

  /// What ends sends the next.
  void take(completion const& came) {
    ++done_;
    bool const is_ok = came.answer && came.answer->status < 400;
    ok_ += is_ok ? 1U : 0U;
    failed_ += is_ok ? 0U : 1U;
    print(came.tag, came.answer);
    if (!std::cout) {
      stopping_ = true;  // standard output is closed
    }
    if (!stopping_ && sent_ < settings_.repeat && clock::now() < ends_ && !send_next()) {
      stopping_ = true;
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

  void summarize(std::uint64_t retries) {
    auto const seconds = std::chrono::duration<double>(clock::now() - began_).count();
    if (settings_.json) {
      std::string line;
      json::writer(line)
          .begin_object()
          .begin_object("summary")
          .member("wanted", settings_.repeat)
          .member("ok", ok_)
          .member("failed", failed_)
          .member("unfinished", settings_.repeat - ok_ - failed_)
          .member("retries", retries)
          .member_raw("seconds", std::to_string(seconds))
          .end_object()
          .end_object();
      std::cout << line << '\n';
    } else if (settings_.repeat > 1) {
      auto const unfinished = settings_.repeat - ok_ - failed_;
      std::cerr << ok_ << " ok, " << failed_ << " failed, "
                << (unfinished > 0 ? std::to_string(unfinished) + " not finished, " : "") << retries
                << (retries == 1 ? " retry, " : " retries, ")
                << milliseconds_of(clock::now() - began_) << " ms\n";
    }
  }

  call_settings const settings_;
  clock::time_point const began_;
  clock::time_point const ends_;
  progress progress_;
  std::uint64_t sent_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t ok_ = 0;
  std::uint64_t failed_ = 0;
  bool stopping_ = false;
  std::unique_ptr<completion_queue> queue_;
};

auto call(call_settings settings) -> int {
  take_request(settings);
  settings.wanted.url = with_scheme(settings.wanted.url);
  if ((settings.include || !settings.output.empty()) && (settings.repeat > 1 || settings.json)) {
    throw CLI::ValidationError(settings.include ? "-i" : "-o", "is for one request without --json");
  }
  auto time = longest;
  if (!settings.max_time.empty()) {
    auto const given = parse_duration(settings.max_time);
    if (!given) {
      throw CLI::ValidationError("--max-time", "invalid duration \"" + settings.max_time +
                                                   "\" (expected e.g. 500ms, 10s, 5m)");
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
  command->add_option("-X,--request", settings->method, "The method; GET, or POST with -d")
      ->type_name("METHOD");
  command
      ->add_option("-d,--data", settings->data, "The body; @FILE reads a file, @- standard input")
      ->type_name("BODY");
  command->add_flag(
      "--idempotent", settings->idempotent,
      "Send an Idempotency-Key, a new one for each request and the same with its retries");
  command->add_option("--repeat", settings->repeat, "Send this number of requests")
      ->check(number_within(1, 1'000'000'000))
      ->type_name("N")
      ->capture_default_str();
  add_client_options(*command, *settings);
  command
      ->add_option("--max-time", settings->max_time,
                   "Of the whole command, waits and retries included")
      ->type_name("TIME");
  command->add_flag("-i,--include", settings->include, "Print the headers, too");
  command->add_option("-o,--output", settings->output, "Write the body to this file")
      ->type_name("FILE");
  command->add_flag("--json", settings->json,
                    "One JSON object a line: each request, then a summary");
  command->footer(
      R"(Obeys RateLimit (draft-09 and draft-07), X-RateLimit-* and Retry-After. Sends
again only what is safe: idempotent methods, requests with a key, and what was
never sent.

One request prints the body of its response, --repeat one line for each: number,
status, how long it took, and how long it waited for its turn before. Progress
is on standard error.

Examples:
  tidegate call -i https://api.example.com/v1/orders
  tidegate call --idempotent -d '{"amount": 5}' https://api.example.com/payments
  tidegate call --repeat 1000 --rate 10/s 127.0.0.1:8080/v1/orders

Exit status: 0 all responses were below 400; 1 some were not, or did not come;
2 the command line is wrong; 130 interrupted.)");
  command->callback([settings, &status] { status = call(*settings); });
}

}  // namespace tidegate::app
