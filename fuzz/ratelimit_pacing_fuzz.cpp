// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a script: a pacer is asked, requests are answered with any fields, and time goes by.
//
// - never a crash, and no more requests under way than allowed;
// - two requests are never closer than the cap on the rate allows;
// - no request is told to wait longer than twice the longest wait, and with nothing under way there
//   is always a time to wait for: after a few waits a request goes.
#include "check.hpp"

#include <tidegate/http/field.hpp>
#include <tidegate/ratelimit/pacing.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace tidegate::ratelimit;
using tidegate::instant;
using tidegate::fuzz::check;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;

// Mon, 05 Aug 2019 09:27:00 GMT
constexpr std::chrono::sys_seconds wall_clock{1'564'997'220s};

class script {
 public:
  script(std::string_view text, pacing_options const& options)
      : options_(options), pacer_(options), text_(text) {}

  void run() {
    while (!text_.empty()) {
      switch (auto const step = static_cast<unsigned char>(take()); step % 4) {
        case 0: ask(); break;
        case 1: now_ += nanoseconds(std::int64_t{step} * step * step * 1000); break;
        case 2: answer(); break;
        default:
          if (!under_way_.empty()) {
            pacer_.failed(pick(step), now_);
          }
      }
      check(pacer_.in_flight() == under_way_.size(), "knows what is under way");
      (void)pacer_.current();
    }
    for (auto const ticket : under_way_) {
      pacer_.failed(ticket, now_);
    }
    under_way_.clear();
    for (int i = 0; i < 8; ++i) {
      auto const answer = pacer_.ask(now_);
      if (answer.go) {
        return;
      }
      check(answer.at != instant::max(), "with nothing under way there is a time to wait for");
      now_ = answer.at;
    }
    check(false, "after a few waits a request goes");
  }

 private:
  auto take() -> char {
    auto const c = text_.front();
    text_.remove_prefix(1);
    return c;
  }
  auto take_line() -> std::string_view {
    auto const end = std::min(text_.find('\n'), text_.size());
    auto const line = text_.substr(0, end);
    text_.remove_prefix(std::min(end + 1, text_.size()));
    return line;
  }
  auto pick(unsigned which) -> std::uint64_t {
    auto const at = under_way_.begin() + static_cast<std::ptrdiff_t>(which % under_way_.size());
    auto const ticket = *at;
    under_way_.erase(at);
    return ticket;
  }

  void ask() {
    auto const answer = pacer_.ask(now_);
    if (!answer.go) {
      check(answer.at > now_, "a wait leads into the future");
      check(answer.at == instant::max() || answer.at - now_ <= 2 * options_.wait_max,
            "no wait lasts for ever");
      check(answer.at != instant::max() || !under_way_.empty(), "there is an answer to wait for");
      return;
    }
    check(last_ == instant::min() || now_ - last_ >= options_.interval_min, "keeps to the cap");
    last_ = now_;
    under_way_.push_back(answer.ticket);
    check(under_way_.size() <= options_.in_flight_max, "keeps to what may be under way");
  }

  void answer() {
    if (under_way_.empty()) {
      return;
    }
    auto const which = static_cast<unsigned char>(text_.empty() ? 0 : take());
    std::vector<tidegate::http::field_view> fields;
    for (int i = which % 8; i > 0 && !text_.empty(); --i) {
      auto const line = take_line();
      auto const colon = std::min(line.find(':'), line.size());
      auto value = line.substr(std::min(colon + 1, line.size()));
      value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
      fields.push_back({line.substr(0, colon), value});
    }
    auto const status = which % 16 < 8 ? 200 : which % 32 < 16 ? 429 : 503;
    pacer_.answered(pick(which), {status, fields, wall_clock}, now_, which * 0x9e3779b97f4a7c15);
  }

  pacing_options options_;
  pacer pacer_;
  std::string_view text_;
  instant now_{1000s};
  instant last_{instant::min()};
  std::vector<std::uint64_t> under_way_;
};

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) -> int {
  auto const text = std::string_view(reinterpret_cast<char const*>(data), size);
  script(text, {}).run();
  script(text, {.strategy = pacing_strategy::burst, .in_flight_max = 3}).run();
  return 0;
}
