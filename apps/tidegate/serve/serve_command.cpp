// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "command_line.hpp"
#include "serve/config_file.hpp"
#include "serve/stores.hpp"

#include <tidegate/config/config.hpp>
#include <tidegate/config/values.hpp>
#include <tidegate/engine/listening.hpp>
#include <tidegate/engine/memory_wait.hpp>
#include <tidegate/gateway/server.hpp>
#include <tidegate/proxy/event_log.hpp>

#include <CLI/CLI.hpp>

#include <malloc.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace tidegate::app {

namespace {

using gateway::config;
using gateway::config_fault;

/// What the command line says of the configuration: a file, or flags in its place.
struct serve_settings {
  std::string file;
  gateway::serve_flags flags;
  std::string listen;
  std::string admin;
  std::string idempotency;
  std::string log_level;
};

auto read(serve_settings const& settings, config_reading how)
    -> result<config, std::vector<config_fault>> {
  if (settings.file.empty()) {
    return gateway::config_from_flags(settings.flags);
  }
  return load_config_file(settings.file, how);
}

auto load(serve_settings const& settings, config_reading how)
    -> result<config, std::vector<config_fault>> {
  auto loaded = read(settings, how);
  if (loaded && !settings.log_level.empty()) {
    loaded->log = *gateway::log_level_named(settings.log_level);
  }
  return loaded;
}

void print(std::vector<config_fault> const& faults) {
  for (auto const& fault : faults) {
    std::cerr << (fault.file.starts_with("--") ? "error: " : "") << gateway::to_string(fault)
              << '\n';
  }
}

/// `100 requests a minute for each client-ip`
auto in_words(gateway::policy_config const& limit) -> std::string {
  constexpr std::array<std::pair<std::int64_t, std::string_view>, 4> windows = {
      {{1, " a second"}, {60, " a minute"}, {3600, " an hour"}, {86'400, " a day"}}};
  auto const quota = limit.policy.quota();
  auto const window = limit.policy.window();
  auto text = std::to_string(quota) + (quota == 1 ? " request" : " requests");
  auto const* const named =
      std::ranges::find(windows, window.count(), &std::pair<std::int64_t, std::string_view>::first);
  text += named != windows.end() ? std::string(named->second)
                                 : " in " + gateway::format_duration(window);
  for (auto const& source : limit.partition.sources()) {
    text += (&source == limit.partition.sources().data() ? " for each " : " and ") +
            ratelimit::to_string(source);
  }
  return text;
}

/// What a gateway without a file does, as it follows its own address.
auto in_words(config const& settings) -> std::string {
  auto const& route = settings.routes.front();
  auto text = " -> " + to_string(settings.upstreams.front().servers.front()) + ", ";
  if (settings.policies.empty()) {
    text += "no limits";
  }
  for (auto const& limit : settings.policies) {
    text += (&limit == settings.policies.data() ? "" : ", ") + in_words(limit);
  }
  if (route.idempotency) {
    text +=
        std::string("; Idempotency-Key ") + (route.idempotency->required ? "required" : "optional");
  }
  return text;
}

/// As a browser or curl takes it; the path of a socket as it is.
auto with_http(std::string const& address) -> std::string {
  return address.starts_with("unix:") ? address : "http://" + address;
}

/// Sends a state to the service manager, if there is one (see sd_notify(3)).
void notify(std::string_view message) {
  auto const* const path = std::getenv("NOTIFY_SOCKET");  // NOLINT(concurrency-mt-unsafe)
  sockaddr_un to{};
  if (path == nullptr || std::strlen(path) == 0 || std::strlen(path) >= sizeof to.sun_path) {
    return;
  }
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, path, std::strlen(path));
  if (to.sun_path[0] == '@') {
    to.sun_path[0] = '\0';
  }
  auto const socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket >= 0) {
    (void)::sendto(socket, message.data(), message.size(), MSG_NOSIGNAL,
                   reinterpret_cast<sockaddr const*>(&to),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(path)));
    ::close(socket);
  }
}

auto monotonic_microseconds() -> std::int64_t {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000 + time.tv_nsec / 1000;
}

/// Each connection takes a descriptor or two, and many systems give 1024 unless they are asked for
/// more.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

/// Memory of large answers is kept for the next ones: giving it back and getting it again, page by
/// page, takes longer than filling it. The bound holds for each heap, since malloc_trim() does not
/// give back the top of those of threads. Blocks above 640 KiB go back at once. Each heap takes
/// 64 MiB of addresses, so that threads that allocate little share some.
void keep_memory(std::int64_t workers) {
  (void)::mallopt(M_TRIM_THRESHOLD, 4 << 20);
  (void)::mallopt(M_MMAP_THRESHOLD, 640 << 10);
  (void)::mallopt(M_ARENA_MAX, static_cast<int>(2 * workers));
}

/// Gives back to the system what many clients at once needed for a while. The allocator does so by
/// itself only where nothing lies behind it.
class spare_memory {
 public:
  static constexpr std::chrono::seconds interval{5};

  void release() {
    constexpr std::int64_t spare_octets_min = 2 << 20;
    auto const before = spare();
    if (before > unavoidable_ + spare_octets_min) {
      (void)::malloc_trim(0);
      // Other threads free memory meanwhile: what is left is unavoidable once nothing changes.
      auto const after = spare();
      unavoidable_ = std::abs(before - after) < spare_octets_min ? after : 0;
    }
  }

 private:
  /// Resident memory that is of no file and that the allocator keeps without a user.
  [[nodiscard]] static auto spare() -> std::int64_t {
    std::int64_t pages = 0;
    std::int64_t resident = 0;
    std::int64_t of_files = 0;
    std::ifstream("/proc/self/statm") >> pages >> resident >> of_files;
    auto const used = ::mallinfo2();
    return (resident - of_files) * ::sysconf(_SC_PAGESIZE) -
           static_cast<std::int64_t>(used.uordblks + used.hblkhd);
  }

  std::int64_t unavoidable_ = 0;  // stacks, and what is too small to be given back
};

/// Waits for so long, or until another signal says to stop now.
void wait_at_most(std::chrono::nanoseconds time, sigset_t const& signals) {
  auto const end = std::chrono::steady_clock::now() + time;
  for (;;) {
    auto const left =
        std::chrono::ceil<std::chrono::nanoseconds>(end - std::chrono::steady_clock::now());
    if (left <= std::chrono::nanoseconds(0)) {
      return;
    }
    timespec const wait{static_cast<time_t>(left / std::chrono::seconds(1)),
                        static_cast<long>((left % std::chrono::seconds(1)).count())};
    auto const number = ::sigtimedwait(&signals, nullptr, &wait);
    if (number == SIGTERM || number == SIGINT) {
      return;
    }
  }
}

/// Blocks the signals that are waited for. Threads inherit the mask, so that they come to the one
/// that waits.
auto block_signals() -> sigset_t {
  sigset_t signals;
  sigemptyset(&signals);
  for (auto const number : {SIGHUP, SIGTERM, SIGINT}) {
    sigaddset(&signals, number);
  }
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

/// `proxied` is what a gateway without a file does.
void print_addresses(gateway::server const& server, std::string const& proxied) {
  for (auto const& address : server.addresses()) {
    std::cout << "listening on " << address << '\n';
  }
  if (!server.admin_address().empty()) {
    std::cout << "admin on " << server.admin_address() << '\n';
  }
  if (!proxied.empty()) {
    std::cout << with_http(server.addresses().front()) << proxied << "; console: "
              << (server.admin_address().empty() ? "add --admin 127.0.0.1:9901"
                                                 : with_http(server.admin_address()))
              << '\n';
  }
  std::cout << std::flush;
}

/// Until a signal says to stop; SIGHUP reloads.
void wait_for_stop(gateway::server& server, sigset_t const& signals) {
  spare_memory memory;
  for (;;) {
    timespec const wait{spare_memory::interval.count(), 0};
    auto const number = ::sigtimedwait(&signals, nullptr, &wait);
    if (number < 0) {  // nothing came
      memory.release();
      engine::restore_memory_reserve();
      continue;
    }
    if (number != SIGHUP) {
      return;
    }
    notify("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(monotonic_microseconds()));
    (void)server.reload();
    notify("READY=1");
  }
}

auto serve(serve_settings const& settings, program_version const& version) -> int {
  auto loaded = load(settings, config_reading::first);
  if (!loaded) {
    print(loaded.error());
    return exit_usage;
  }
  keep_memory(loaded->workers.value_or(std::thread::hardware_concurrency()));
  engine::wait_for_memory();
  raise_descriptor_limit();
  // A file that may not grow is an error of that write, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  auto const signals = block_signals();

  // From here on all messages go through it.
  auto const events = std::make_shared<gateway::event_log>(STDERR_FILENO);
  events->use(loaded->log);
  for (auto const& warning : loaded->warnings) {
    events->warning(gateway::to_string(warning));
  }
  auto const proxied = settings.file.empty() ? in_words(*loaded) : std::string();
  std::array<std::uint64_t, 4> randomness{};
  if (::getrandom(randomness.data(), sizeof randomness, 0) != sizeof randomness) {
    events->error("cannot get random numbers from the system");
    return exit_failure;
  }
  auto passed = engine::take_passed_sockets();
  if (!passed) {
    events->error(passed.error());
    return exit_failure;
  }
  auto const hidden = loaded->hidden;
  auto started =
      gateway::server::start(*std::move(loaded), randomness,
                             {.stores = store_openers(events),
                              .events = events,
                              .load = [settings] { return load(settings, config_reading::again); },
                              .version = version.version,
                              .commit = version.commit},
                             *std::move(passed));
  if (!started) {
    events->error(hidden.hide(started.error()));
    return exit_failure;
  }
  auto const& server = *started;
  print_addresses(*server, proxied);
  notify("READY=1");
  wait_for_stop(*server, signals);
  notify("STOPPING=1");
  auto const times = server->begin_drain();
  wait_at_most(times.delay, signals);
  if (!server->drain(std::chrono::ceil<std::chrono::milliseconds>(times.timeout))) {
    events->warning("some requests were still in flight and are dropped (drain-timeout)");
  }
  return exit_success;
}

}  // namespace

void add_serve_command(CLI::App& app, program_version const& version, int& status) {
  auto* const command = app.add_subcommand("serve", "Run the gateway");
  auto const settings = std::make_shared<serve_settings>();
  auto* const file =
      command->add_option("-c,--config,FILE", settings->file, "The configuration file (YAML)")
          ->type_name("FILE");
  auto* const upstream =
      command
          ->add_option("--upstream", settings->flags.upstream, "Without a file: the URL of the API")
          ->type_name("URL");
  command
      ->add_option("--listen", settings->listen,
                   "Without a file: where to listen, 127.0.0.1:8080 when left out")
      ->type_name("ADDRESS")
      ->needs(upstream);
  command
      ->add_option("--admin", settings->admin,
                   "Without a file: where the console and metrics are, such as 127.0.0.1:9901. "
                   "Addresses that others reach need a file with tokens")
      ->type_name("ADDRESS")
      ->needs(upstream);
  command
      ->add_option("--limit", settings->flags.limits,
                   "Without a file: such as '100/m by header:x-api-key'; may be given again")
      ->type_name("LIMIT")
      ->allow_extra_args(false)
      ->needs(upstream);
  command
      ->add_option("--idempotency", settings->idempotency,
                   "Without a file: whether requests have to have an Idempotency-Key")
      ->check(one_of({"required", "optional", "off"}))
      ->type_name("MODE")
      ->needs(upstream);
  command
      ->add_option("--log-level", settings->log_level,
                   "What is said on standard error, in the place of the file's log-level")
      ->check(one_of({"error", "warning", "info", "debug"}))
      ->type_name("LEVEL");
  file->excludes(upstream);
  command->footer(R"(Examples:
  tidegate serve gateway.yaml
  tidegate serve --upstream http://127.0.0.1:3000 --admin 127.0.0.1:9901
  tidegate serve --upstream http://127.0.0.1:3000 --limit '9/s by header:x-key'

SIGHUP reads the configuration again. SIGTERM finishes what is in flight, then
stops.

Exit status: 0 it was stopped; 1 it could not start; 2 the command line or the
configuration is wrong.)");
  command->callback([settings, version, &status] {
    if (settings->file.empty() && settings->flags.upstream.empty()) {
      throw CLI::RequiredError("FILE or --upstream");
    }
    if (!settings->listen.empty()) {
      settings->flags.listen = settings->listen;
    }
    if (!settings->admin.empty()) {
      settings->flags.admin = settings->admin;
    }
    if (!settings->idempotency.empty()) {
      settings->flags.idempotency = settings->idempotency;
    }
    status = serve(*settings, version);
  });
}

}  // namespace tidegate::app
