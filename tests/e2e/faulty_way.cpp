// SPDX-License-Identifier: Apache-2.0
#include "faulty_way.hpp"

#include <stdexcept>
#include <string_view>
#include <utility>

namespace tidegate::e2e {

namespace {

[[nodiscard]] auto as_bytes(message const& of) -> std::string {
  auto out = of.start_line + "\r\n";
  for (auto const& [name, value] : of.fields) {
    out += name + ": " + value + "\r\n";
  }
  return out + "\r\n" + of.body;
}

}  // namespace

faulty_way::faulty_way(gateway const& to) : to_(to), thread_([this] { accept_all(); }) {}

faulty_way::~faulty_way() {
  stopping_ = true;
  (void)connect_to(listening_.port());
  thread_.join();
  for (auto& each : threads_) {
    each.join();
  }
}

void faulty_way::accept_all() {
  for (;;) {
    auto accepted = listening_.accept();
    if (stopping_) {
      return;
    }
    threads_.emplace_back([this, client = std::move(accepted)]() mutable {
      try {
        while (serve(client)) {
        }
      } catch (std::runtime_error const&) {
        // The client has gone.
      }
    });
  }
}

auto faulty_way::serve(connection& client) -> bool {
  auto const request = client.read_request();
  auto const number = requests_++ % 12;
  if (number == 0) {  // reset before anything has happened
    client.abort();
    return false;
  }
  if (number == 8) {
    client.send(response("503 Service Unavailable", "", "Retry-After: 1\r\n"));
    return true;
  }
  auto const answer = ask(request);
  switch (number) {
    case 2: client.abort(); return false;  // reset, and the answer is lost
    case 4:                                // reset within the answer
      client.send(std::string_view(answer).substr(0, answer.size() / 2));
      client.abort();
      return false;
    case 6:  // reset behind the answer
      client.send(answer);
      client.abort();
      return false;
    case 10:  // the answer never comes
      (void)client.is_closed();
      return false;
    default: client.send(answer); return true;
  }
}

auto faulty_way::ask(message const& request) const -> std::string {
  auto server = to_.connect();
  server.send(as_bytes(request));
  return as_bytes(server.read_response());
}

}  // namespace tidegate::e2e
