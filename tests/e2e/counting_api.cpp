// SPDX-License-Identifier: Apache-2.0
#include "counting_api.hpp"

namespace tidegate::e2e {

auto counting_api::effects(std::string const& key) const -> std::size_t {
  std::lock_guard const lock(mutex_);
  auto const found = keys_.find(key);
  return found == keys_.end() ? 0 : found->second.effects;
}

auto counting_api::counts() const -> std::map<std::size_t, std::size_t> {
  std::lock_guard const lock(mutex_);
  std::map<std::size_t, std::size_t> out;
  for (auto const& [key, done] : keys_) {
    ++out[done.effects];
  }
  return out;
}

auto counting_api::answer(message const& request) -> std::string {
  std::lock_guard const lock(mutex_);
  auto const has_path = [&](std::string_view path) {
    return request.start_line.starts_with("POST " + std::string(path));
  };
  auto& key = keys_[request.field("Idempotency-Key")];
  ++key.requests;
  if (has_path("/busy") && key.requests == 1) {
    return response("429 Too Many Requests", "not now");
  }
  if (has_path("/deduplicated") && key.effects > 0) {
    return key.answer;
  }
  ++key.effects;
  auto const name = std::to_string(++number_);
  if (has_path("/error")) {
    key.answer = response("500 Internal Server Error", "error " + name);
  } else if (has_path("/large")) {
    key.answer = response("200 OK", name + std::string(200'000 - name.size(), 'x'));
  } else if (has_path("/lost")) {
    key.answer = response("503 Service Unavailable", "lost " + name);
  } else {
    key.answer = response("201 Created", "done " + name, "Location: /done/" + name + "\r\n");
  }
  return key.answer;
}

}  // namespace tidegate::e2e
