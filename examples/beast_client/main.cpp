// SPDX-License-Identifier: Apache-2.0
//
// The decisions of Tidegate's client with another HTTP stack: Boost.Beast, one request after the other. When a
// request goes, and whether it goes again, is asked of tidegate::ratelimit and tidegate::idempotency, which do
// no I/O; bytes, waits, clocks and randomness are in here.
//
//   beast_client HOST PORT TARGET [COUNT]
//
// Sends COUNT times a POST, each with an Idempotency-Key of its own, and prints how each of them ended. Exits
// with 1 when one of them got no answer below 400.
#include <tidegate/http/field.hpp>
#include <tidegate/http/retry_after.hpp>
#include <tidegate/idempotency/make_key.hpp>
#include <tidegate/idempotency/retry.hpp>
#include <tidegate/ratelimit/pacing.hpp>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace idempotency = tidegate::idempotency;
namespace ratelimit = tidegate::ratelimit;
using idempotency::delivery;
using tidegate::instant;
using namespace std::chrono_literals;

using request = http::request<http::string_body>;
using response = http::response<http::string_body>;

constexpr auto attempt_time_max = 2s;
constexpr auto request_time_max = 60s;

[[nodiscard]] auto steady_now() -> instant {
  return instant(std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::steady_clock::now().time_since_epoch()));
}

template <class Duration>
[[nodiscard]] auto wall_now() -> std::chrono::sys_time<Duration> {
  return std::chrono::floor<Duration>(std::chrono::system_clock::now());
}

[[nodiscard]] auto standard(beast::string_view text) -> std::string_view {
  return {text.data(), text.size()};
}

[[nodiscard]] auto value_of(response const& answer, http::field name) -> std::string_view {
  auto const found = answer.find(name);
  return found == answer.end() ? std::string_view{} : standard(found->value());
}

/// How an attempt ended, and what came back when it was answered.
struct attempt_end {
  delivery how = delivery::not_sent;
  response answer;
};

/// One connection to one server, kept between requests.
class connection {
 public:
  connection(std::string host, std::string port) : host_(std::move(host)), port_(std::move(port)) {}

  [[nodiscard]] auto host() const -> std::string const& { return host_; }

  [[nodiscard]] auto attempt(request const& wanted) -> attempt_end {
    attempt_end out;
    if (!stream_ && !connect()) {
      return out;
    }
    stream_->expires_after(attempt_time_max);
    out.how = delivery::no_answer;
    bool is_done =
        run([&](auto done) { http::async_write(*stream_, wanted, std::move(done)); }) &&
        run([&](auto done) { http::async_read(*stream_, buffer_, out.answer, std::move(done)); });
    if (is_done) {
      out.how = delivery::answered;
    }
    if (!is_done || !out.answer.keep_alive()) {
      stream_.reset();
      buffer_.clear();
    }
    return out;
  }

 private:
  [[nodiscard]] auto connect() -> bool {
    beast::error_code fault;
    auto const found = asio::ip::tcp::resolver(context_).resolve(host_, port_, fault);
    stream_.emplace(context_);
    stream_->expires_after(attempt_time_max);
    if (fault || !run([&](auto done) { stream_->async_connect(found, std::move(done)); })) {
      stream_.reset();
    }
    return stream_.has_value();
  }

  /// Does one thing and waits for it. It is begun as an asynchronous one since only those have time-outs.
  template <class Begin>
  [[nodiscard]] auto run(Begin begin) -> bool {
    beast::error_code fault;
    begin([&fault](beast::error_code how, auto const&) { fault = how; });
    context_.restart();
    context_.run();
    return !fault;
  }

  std::string host_;
  std::string port_;
  asio::io_context context_;
  std::optional<beast::tcp_stream> stream_;
  beast::flat_buffer buffer_;
};

/// Sends requests when the server wants them, and again where that is safe.
class polite_client {
 public:
  polite_client(std::string host, std::string port) : to_(std::move(host), std::move(port)) {}

  /// The final answer, if there is one.
  [[nodiscard]] auto post(std::string const& target, std::string const& content)
      -> std::optional<response> {
    auto const deadline = steady_now() + request_time_max;
    auto const wanted = make_post(target, content);
    budget_.earn(steady_now());
    for (std::uint32_t retries = 0;;) {
      auto const ticket = wait_for_turn(deadline);
      if (!ticket) {
        return std::nullopt;
      }
      auto ended = to_.attempt(wanted);
      tell_pacer(*ticket, ended);
      auto const verdict =
          idempotency::decide_retry({.idempotent_method = false, .has_key = true}, describe(ended),
                                    retries, rules_, random_bits());
      auto const now = steady_now();
      if (!verdict.again || now + verdict.wait >= deadline ||
          (!verdict.asked_for && !budget_.take(now))) {
        return ended.how == delivery::answered ? std::optional(std::move(ended.answer))
                                               : std::nullopt;
      }
      retries += verdict.counts ? 1 : 0;
      std::this_thread::sleep_for(verdict.wait);
    }
  }

 private:
  /// With a key that all attempts of the request share.
  [[nodiscard]] auto make_post(std::string const& target, std::string const& content) -> request {
    std::array<std::uint8_t, 10> randomness{};
    for (auto& octet : randomness) {
      octet = static_cast<std::uint8_t>(random_());
    }
    auto const key = idempotency::make_key(wall_now<std::chrono::milliseconds>(), randomness);
    std::string field;
    (void)idempotency::append_key_field(field, key);  // our own keys always fit
    request out(http::verb::post, target, 11);
    out.set(http::field::host, to_.host());
    out.set(http::field::content_type, "text/plain");
    out.set("Idempotency-Key", field);
    out.body() = content;
    out.prepare_payload();
    return out;
  }

  [[nodiscard]] auto wait_for_turn(instant deadline) -> std::optional<std::uint64_t> {
    for (;;) {
      auto const now = steady_now();
      auto const may = paces_.ask(now);
      if (may.go) {
        return may.ticket;
      }
      if (may.at >= deadline) {
        return std::nullopt;
      }
      std::this_thread::sleep_for(may.at - now);
    }
  }

  void tell_pacer(std::uint64_t ticket, attempt_end const& ended) {
    if (ended.how != delivery::answered) {
      paces_.failed(ticket, steady_now());
      return;
    }
    std::vector<tidegate::http::field_view> lines;
    for (auto const& field : ended.answer) {
      lines.push_back({standard(field.name_string()), standard(field.value())});
    }
    paces_.answered(ticket,
                    {.status = static_cast<int>(ended.answer.result_int()),
                     .fields = lines,
                     .wall_clock = wall_now<std::chrono::seconds>()},
                    steady_now(), random_bits());
  }

  [[nodiscard]] static auto describe(attempt_end const& ended) -> idempotency::attempt {
    if (ended.how != delivery::answered) {
      return {.delivery = ended.how};
    }
    auto const& answer = ended.answer;
    return {.delivery = ended.how,
            .status = static_cast<int>(answer.result_int()),
            .retry_after = tidegate::http::parse_retry_after(
                value_of(answer, http::field::retry_after), wall_now<std::chrono::seconds>()),
            .code = idempotency::read_problem_code(value_of(answer, http::field::content_type),
                                                   answer.body())};
  }

  [[nodiscard]] auto random_bits() -> std::uint64_t {
    return std::uint64_t{random_()} << 32 | random_();
  }

  connection to_;
  std::random_device random_;
  ratelimit::pacer paces_;
  idempotency::retry_rules rules_{.retries_max = 10};
  idempotency::retry_budget budget_;
};

}  // namespace

auto main(int argc, char** argv) -> int {
  auto const count = argc > 4 ? std::atoi(argv[4]) : 1;
  if (argc < 4 || argc > 5 || count < 1) {
    (void)std::fputs("usage: beast_client HOST PORT TARGET [COUNT]\n", stderr);
    return 2;
  }
  polite_client client(argv[1], argv[2]);
  bool all_well = true;
  for (int i = 1; i <= count; ++i) {
    auto const answer = client.post(argv[3], "order " + std::to_string(i));
    if (answer) {
      std::printf("%d %u %s\n", i, answer->result_int(), answer->body().c_str());
    } else {
      std::printf("%d no answer\n", i);
    }
    all_well = all_well && answer && answer->result_int() < 400;
  }
  return all_well ? 0 : 1;
}
