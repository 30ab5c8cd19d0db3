// SPDX-License-Identifier: Apache-2.0
#include "services/name_resolver.hpp"

namespace tidegate::gateway {

namespace {

[[nodiscard]] auto steady_now() -> instant {
  return instant(std::chrono::steady_clock::now().time_since_epoch());
}

[[nodiscard]] auto is_name(upstream_server const& server) -> bool {
  return server.socket.empty() && !http::parse_ip_address(server.host);
}

}  // namespace

name_resolver::~name_resolver() {
  {
    std::lock_guard const lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void name_resolver::use(std::span<upstream const> upstreams, std::chrono::milliseconds wait) {
  std::unique_lock lock(mutex_);
  std::vector<std::shared_ptr<entry>> wanted;
  for (auto const& upstream : upstreams) {
    for (auto const& server : upstream.settings->servers) {
      auto const is_same = [&](std::shared_ptr<entry> const& each) {
        return each->name == server.host && each->servers == upstream.servers;
      };
      if (!is_name(server) || std::ranges::any_of(wanted, is_same)) {
        continue;
      }
      auto const known = std::ranges::find_if(entries_, is_same);
      auto const& settings = upstream.settings->resolve;
      if (known != entries_.end() && (*known)->settings == settings) {
        wanted.push_back(*known);
      } else {
        wanted.push_back(std::make_shared<entry>(
            entry{server.host, upstream.servers, settings, upstream.settings->name}));
      }
    }
  }
  entries_ = std::move(wanted);
  if (entries_.empty()) {
    return;
  }
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { run(); });
  }
  changed_.notify_all();
  (void)asked_.wait_for(lock, wait, [&] {
    return std::ranges::all_of(entries_, [](auto const& each) { return each->was_asked; });
  });
}

auto name_resolver::figures() const -> std::vector<name_figures> {
  std::lock_guard const lock(mutex_);
  std::map<std::string, name_figures> by_name;  // which several upstreams may have
  for (auto const& each : entries_) {
    auto& figures = by_name.try_emplace(each->name, name_figures{each->name}).first->second;
    figures.addresses = std::max(figures.addresses, each->record.addresses().size());
    figures.failures += each->failures;
    figures.is_failing = figures.is_failing || each->record.failures() > 0;
  }
  std::vector<name_figures> all;
  for (auto& [name, figures] : by_name) {
    all.push_back(std::move(figures));
  }
  return all;
}

auto name_resolver::first_due() const -> std::shared_ptr<entry> {
  auto const first = std::ranges::min_element(
      entries_, {}, [](std::shared_ptr<entry> const& each) { return each->record.due(); });
  return first == entries_.end() ? nullptr : *first;
}

void name_resolver::run() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    auto const next = first_due();
    auto const now = steady_now();
    if (!next) {
      changed_.wait(lock);
      continue;
    }
    if (next->record.due() > now) {
      changed_.wait_for(lock, next->record.due() - now);
      continue;
    }
    lock.unlock();
    auto answer = look_up_(next->name, next->settings.server);
    lock.lock();
    take(*next, std::move(answer), steady_now());
    asked_.notify_all();
  }
}

void name_resolver::take(entry& of, result<balance::name_answer, std::string> answer, instant now) {
  of.was_asked = true;
  auto const before = of.record.failures();
  bool const has_changed = answer ? of.record.answered(*std::move(answer), of.settings.bounds, now)
                                  : (of.record.failed(of.settings.bounds, now), false);
  auto const about = "upstream \"" + of.upstream + "\": the name " + of.name;
  if (of.record.failures() > before) {
    ++of.failures;
    if (before == 0) {  // once, until it is found again
      events_.write(log_level::warning,
                    about + " cannot be looked up" + (answer ? "" : ": " + answer.error()) +
                        (of.record.is_known() ? "; its last addresses are used"
                                              : "; requests get 503 until it can be"));
    }
  } else if (before > 0) {
    events_.write(log_level::info, about + " can be looked up again");
  }
  if (has_changed && of.servers->resolved(of.name, of.record.addresses())) {
    std::string addresses;
    for (auto const& each : of.record.addresses()) {
      addresses += (addresses.empty() ? "" : ", ") + http::to_string(each);
    }
    events_.write(log_level::debug, about + " has the addresses " + addresses);
  }
}

}  // namespace tidegate::gateway
