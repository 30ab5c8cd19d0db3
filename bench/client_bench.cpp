// SPDX-License-Identifier: Apache-2.0
//
// What the client costs over libcurl: CPU time for each request, next to the same requests by
// libcurl's multi interface alone, in both ways in which people use it: curl_multi_poll, and
// sockets in an epoll of their own. A server of its own on cpu 0, the client on cpu 1; all take
// turns, since the speed of the machine drifts. `ratio` is the median over the rounds, to the
// cheaper of the two.
//
//   ./dev bench client [-n REQUESTS] [-r ROUNDS] [-c AT_A_TIME] [-o client|poll|sockets]
//
// With -o only one of them runs, for a profiler.
#include <tidegate/client/session.hpp>

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;

/// What APIs answer, and what the client has to look at.
constexpr std::string_view answer =
    "HTTP/1.1 200 OK\r\n"
    "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
    "Content-Type: application/json\r\n"
    "Cache-Control: no-store\r\n"
    "RateLimit-Policy: \"default\";q=100000000;w=10\r\n"
    "RateLimit: \"default\";r=99999999;t=10\r\n"
    "Content-Length: 256\r\n"
    "\r\n";

void pin_to(unsigned cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  (void)::sched_setaffinity(0, sizeof set, &set);
}

[[nodiscard]] auto listen_anywhere() -> int {
  auto const socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(socket, reinterpret_cast<sockaddr const*>(&address), sizeof address) != 0 ||
      ::listen(socket, 1024) != 0) {
    std::perror("bench client");
    std::exit(1);
  }
  return socket;
}

[[nodiscard]] auto url_of(int socket) -> std::string {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/v1/orders?page=";
}

/// Answers whatever comes, until it is killed. A request without content is small enough to come
/// whole.
[[noreturn]] void serve(int listening) {
  pin_to(0);
  auto const whole = std::string(answer) + std::string(256, 'x');
  auto const epoll = ::epoll_create1(0);
  epoll_event added{.events = EPOLLIN, .data = {.fd = listening}};
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, listening, &added);
  std::array<epoll_event, 64> events{};
  std::array<char, 65536> bytes{};
  for (;;) {
    auto const count = ::epoll_wait(epoll, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      auto const socket = events[static_cast<std::size_t>(i)].data.fd;
      if (socket == listening) {
        added.data.fd = ::accept(listening, nullptr, nullptr);
        ::epoll_ctl(epoll, EPOLL_CTL_ADD, added.data.fd, &added);
      } else if (::recv(socket, bytes.data(), bytes.size(), 0) > 0) {
        (void)::send(socket, whole.data(), whole.size(), MSG_NOSIGNAL);
      } else {
        ::close(socket);
      }
    }
  }
}

struct load {
  std::string url;
  std::size_t requests = 10'000;
  std::size_t at_a_time = 64;
  std::size_t rounds = 9;
};

void fail(char const* what) {
  (void)std::fprintf(stderr, "bench client: %s\n", what);
  std::exit(1);
}

auto append(char* piece, std::size_t size, std::size_t count, void* to) -> std::size_t {
  static_cast<std::string*>(to)->append(piece, size * count);
  return size * count;
}

/// The requests by libcurl alone: handles that are used again, a bound on the time, and the content
/// of the answers.
class bare {
 public:
  explicit bare(load const& load)
      : load_(load), multi_(curl_multi_init()), contents_(load.at_a_time) {
    for (auto& content : contents_) {
      auto* const easy = curl_easy_init();
      curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
      curl_easy_setopt(easy, CURLOPT_USERAGENT, "tidegate");
      curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 30'000L);
      curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &append);
      curl_easy_setopt(easy, CURLOPT_WRITEDATA, &content);
      curl_easy_setopt(easy, CURLOPT_PRIVATE, &content);
      handles_.push_back(easy);
    }
  }
  bare(bare const&) = delete;
  auto operator=(bare const&) -> bare& = delete;
  virtual ~bare() {
    for (auto* const each : handles_) {
      curl_easy_cleanup(each);
    }
    curl_multi_cleanup(multi_);
  }

  void run() {
    begun_ = 0;
    ended_ = 0;
    for (auto* const each : handles_) {
      begin(each);
    }
    while (ended_ < load_.requests) {
      move_bytes();
      if (!collect() && ended_ < load_.requests) {
        wait();
      }
    }
  }

 protected:
  [[nodiscard]] auto multi() const -> CURLM* { return multi_; }

 private:
  virtual void move_bytes() = 0;
  virtual void wait() = 0;

  void begin(CURL* easy) {
    curl_easy_setopt(easy, CURLOPT_URL, (load_.url + std::to_string(++begun_)).c_str());
    curl_multi_add_handle(multi_, easy);
  }

  /// True when something has ended, so that there is something new to be sent.
  [[nodiscard]] auto collect() -> bool {
    auto const before = ended_;
    int left = 0;
    while (auto const* const said = curl_multi_info_read(multi_, &left)) {
      auto* const easy = said->easy_handle;
      char* content = nullptr;
      long status = 0;
      curl_easy_getinfo(easy, CURLINFO_PRIVATE, &content);
      curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
      auto& body = *reinterpret_cast<std::string*>(content);
      if (said->data.result != CURLE_OK || status != 200 || body.size() != 256) {
        fail("libcurl got no answer");
      }
      body.clear();
      curl_multi_remove_handle(multi_, easy);
      ++ended_;
      if (begun_ < load_.requests) {
        begin(easy);
      }
    }
    return ended_ != before;
  }

  load const& load_;
  CURLM* multi_;
  std::vector<std::string> contents_;
  std::vector<CURL*> handles_;
  std::size_t begun_ = 0;
  std::size_t ended_ = 0;
};

class bare_poll final : public bare {
 public:
  using bare::bare;

 private:
  void move_bytes() override {
    int left = 0;
    curl_multi_perform(multi(), &left);
  }
  void wait() override { curl_multi_poll(multi(), nullptr, 0, 1000, nullptr); }
};

class bare_sockets final : public bare {
 public:
  explicit bare_sockets(load const& load) : bare(load), epoll_(::epoll_create1(0)) {
    curl_multi_setopt(multi(), CURLMOPT_SOCKETFUNCTION, &on_socket);
    curl_multi_setopt(multi(), CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi(), CURLMOPT_TIMERFUNCTION, &on_timer);
    curl_multi_setopt(multi(), CURLMOPT_TIMERDATA, this);
  }
  ~bare_sockets() override { ::close(epoll_); }

 private:
  static auto on_socket(CURL* /*easy*/, curl_socket_t socket, int what, void* self, void* known)
      -> int {
    auto const& own = *static_cast<bare_sockets*>(self);
    epoll_event event{.events = ((what & CURL_POLL_IN) != 0 ? EPOLLIN : 0U) |
                                ((what & CURL_POLL_OUT) != 0 ? EPOLLOUT : 0U),
                      .data = {.fd = socket}};
    if (what == CURL_POLL_REMOVE) {
      ::epoll_ctl(own.epoll_, EPOLL_CTL_DEL, socket, nullptr);
    } else {
      ::epoll_ctl(own.epoll_, known == nullptr ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, socket, &event);
      curl_multi_assign(own.multi(), socket, self);
    }
    return 0;
  }

  static auto on_timer(CURLM* /*multi*/, long timeout, void* self) -> int {
    static_cast<bare_sockets*>(self)->timeout_ = timeout;
    return 0;
  }

  void move_bytes() override {
    int left = 0;
    for (auto const& event : std::exchange(came_, {})) {
      curl_multi_socket_action(multi(), event.data.fd,
                               ((event.events & EPOLLIN) != 0 ? CURL_CSELECT_IN : 0) |
                                   ((event.events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0),
                               &left);
    }
    if (timeout_ == 0) {
      timeout_ = -1;
      curl_multi_socket_action(multi(), CURL_SOCKET_TIMEOUT, 0, &left);
    }
  }

  void wait() override {
    auto const count = ::epoll_wait(epoll_, events_.data(), static_cast<int>(events_.size()),
                                    static_cast<int>(timeout_));
    came_ = std::span(events_).first(static_cast<std::size_t>(std::max(count, 0)));
    if (count == 0) {
      timeout_ = 0;
    }
  }

  int epoll_;
  long timeout_ = -1;
  std::array<epoll_event, 64> events_{};
  std::span<epoll_event const> came_;
};

/// The same by a session: what ends sends the next.
class ours {
 public:
  explicit ours(load const& load) : load_(load) {
    auto opened = tidegate::client::session::open({.pacing = {.interval_min = 0ns}});
    if (!opened) {
      fail("no session");
    }
    session_ = *std::move(opened);
  }

  void run() {
    begun_ = 0;
    ended_ = 0;
    finished_ = {};
    // The first one tells the pacer that it need not be careful.
    for (std::size_t i = 0; i < load_.at_a_time; ++i) {
      send();
    }
    finished_.get_future().get();
  }

 private:
  void send() {
    ++begun_;
    auto const sent =
        session_->send({.url = load_.url + std::to_string(begun_)}, [this](auto const& got) {
          if (!got || got->status != 200 || got->body.size() != 256) {
            fail("the client got no answer");
          }
          if (++ended_ == load_.requests) {
            finished_.set_value();
          } else if (begun_ < load_.requests) {
            send();
          }
        });
    if (!sent) {
      fail("the client does not send");
    }
  }

  load const& load_;
  std::atomic<std::size_t> begun_ = 0;
  std::size_t ended_ = 0;
  std::promise<void> finished_;
  std::unique_ptr<tidegate::client::session> session_;
};

/// Microseconds of CPU time, of all threads.
[[nodiscard]] auto cpu_time() -> double {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  auto const us = [](timeval const& t) {
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
  };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

template <class Contestant>
[[nodiscard]] auto measure(Contestant& who, load const& load) -> double {
  auto const before = cpu_time();
  who.run();
  return (cpu_time() - before) / static_cast<double>(load.requests);
}

[[nodiscard]] auto median(std::vector<double> of) -> double {
  std::ranges::sort(of);
  return of[of.size() / 2];
}

auto run(load const& load) -> int {
  constexpr double bar = 1.05;
  bare_poll poll(load);
  bare_sockets sockets(load);
  ours client(load);
  poll.run();
  sockets.run();
  client.run();
  std::vector<double> poll_us;
  std::vector<double> sockets_us;
  std::vector<double> client_us;
  for (std::size_t i = 0; i < load.rounds; ++i) {
    poll_us.push_back(measure(poll, load));
    client_us.push_back(measure(client, load));
    sockets_us.push_back(measure(sockets, load));
    std::printf("  round %zu: client %.2f us, libcurl with poll %.2f us, with sockets %.2f us\n",
                i + 1, client_us.back(), poll_us.back(), sockets_us.back());
  }
  auto const& peer_us = median(poll_us) < median(sockets_us) ? poll_us : sockets_us;
  std::vector<double> ratios;
  std::ranges::transform(client_us, peer_us, std::back_inserter(ratios), std::divides<>());
  auto const ratio = median(ratios);
  std::printf(
      "\n%.2f us of CPU time a request, libcurl alone %.2f with poll and %.2f with sockets; ratio "
      "%.3f, bar %.2f  %s\n\n",
      median(client_us), median(poll_us), median(sockets_us), ratio, bar,
      ratio <= bar ? "met" : "MISSED");
  std::printf("bench client/overhead cpu_us=%.3f libcurl_cpu_us=%.3f ratio=%.4f bar=%.2f\n",
              median(client_us), median(peer_us), ratio, bar);
  return 0;
}

/// One of them alone, without a word.
template <class Contestant>
void run_alone(load const& load) {
  Contestant who(load);
  for (std::size_t i = 0; i < load.rounds; ++i) {
    who.run();
  }
}

}  // namespace

auto main(int argc, char** argv) -> int {
  load load;
  std::string_view only;
  for (int option = 0; (option = ::getopt(argc, argv, "n:r:c:o:")) != -1;) {
    if (option == 'o') {
      only = optarg;
      continue;
    }
    auto const number = std::strtoul(option == '?' ? "0" : optarg, nullptr, 10);
    if (number == 0) {
      fail(
          "usage: ./dev bench client [-n REQUESTS] [-r ROUNDS] [-c AT_A_TIME] [-o "
          "client|poll|sockets]");
    }
    (option == 'n' ? load.requests : option == 'r' ? load.rounds : load.at_a_time) = number;
  }
  load.requests = std::max(load.requests, load.at_a_time);
  auto const listening = listen_anywhere();
  load.url = url_of(listening);
  auto const server = ::fork();
  if (server == 0) {
    serve(listening);
  }
  ::close(listening);
  pin_to(1);
  curl_global_init(CURL_GLOBAL_DEFAULT);
  auto status = 0;
  if (only == "client") {
    run_alone<ours>(load);
  } else if (only == "poll") {
    run_alone<bare_poll>(load);
  } else if (only == "sockets") {
    run_alone<bare_sockets>(load);
  } else {
    status = run(load);
  }
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
  return status;
}
