// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

/// A gateway that runs as users run it, and both ends of what it connects: sockets of the test,
/// whose bytes a test writes and reads one after the other. Every wait has a bound; one that is
/// exceeded throws.
namespace tidegate::e2e {

/// How long anything may take. Far more than it takes, unless the disk is busy with other things.
inline constexpr std::chrono::milliseconds patience{30'000};

/// A descriptor that closes itself.
class descriptor {
 public:
  explicit descriptor(int number = -1) : number_(number) {}
  descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  auto operator=(descriptor&& other) noexcept -> descriptor& {
    std::swap(number_, other.number_);
    return *this;
  }
  ~descriptor() { close(); }
  [[nodiscard]] auto get() const -> int { return number_; }
  void close();

 private:
  int number_;
};

/// A request or a response.
struct message {
  std::string start_line;
  std::vector<std::pair<std::string, std::string>> fields;
  std::string body;      ///< the content, without its framing
  std::string trailers;  ///< behind the last chunk, as it came

  /// Of a response.
  [[nodiscard]] auto status() const -> int;
  /// How many lines a field has.
  [[nodiscard]] auto count(std::string_view name) const -> std::size_t;
  /// The value of a field, with ", " between those of several lines; "(none)" where there is none.
  [[nodiscard]] auto field(std::string_view name) const -> std::string;
};

/// One end of a connection.
class connection {
 public:
  explicit connection(descriptor socket) : socket_(std::move(socket)) {}

  /// Sends all of it.
  void send(std::string_view bytes);
  /// Sends what the other end takes until it has taken nothing for a moment, or is gone; returns
  /// how much that was.
  [[nodiscard]] auto send_until_blocked(std::string_view bytes) -> std::size_t;
  /// Reads to the end of a head, which it returns without the empty line.
  [[nodiscard]] auto read_head() -> message;
  [[nodiscard]] auto read_request() -> message;
  /// Reads one response; `to_head` when it answers a HEAD request. A 1xx is a response of its own.
  [[nodiscard]] auto read_response(bool to_head = false) -> message;
  /// Reads that many bytes.
  [[nodiscard]] auto read(std::size_t size) -> std::string;
  /// Reads what has come, at least a byte; nothing at the end.
  [[nodiscard]] auto read_some() -> std::string;
  /// Reads until the other end closes; an abort counts as the end.
  [[nodiscard]] auto read_to_end() -> std::string;
  /// Waits for the other end to close and tells whether nothing came before that.
  [[nodiscard]] auto is_closed() -> bool { return read_to_end().empty(); }
  /// True when nothing has come so far.
  [[nodiscard]] auto is_silent() -> bool;
  void shut_down_sending();
  /// Closes; the other end gets a FIN.
  void close() { socket_.close(); }
  /// Closes; the other end gets a RST.
  void abort();
  [[nodiscard]] auto socket() const -> int { return socket_.get(); }

 private:
  [[nodiscard]] auto read_more() -> bool;
  void read_body(message& of, bool until_close);
  [[nodiscard]] auto read_line() -> std::string;

  descriptor socket_;
  std::string in_;
};

/// Connects to a port of this machine, from an address of the loop.
[[nodiscard]] auto connect_to(std::uint16_t port, std::string const& from = "127.0.0.1")
    -> connection;

/// A server behind the gateway. The test accepts and answers by hand.
class origin {
 public:
  origin() : origin(true) {}
  /// One that refuses connections. It keeps its port, which else the gateway could get.
  [[nodiscard]] static auto refusing() -> origin { return origin(false); }
  [[nodiscard]] auto port() const -> std::uint16_t { return port_; }
  /// `http://127.0.0.1:PORT`
  [[nodiscard]] auto url() const -> std::string;
  /// `127.0.0.1:PORT`
  [[nodiscard]] auto authority() const -> std::string;
  [[nodiscard]] auto accept() -> connection;
  /// Begins to connect to it and does not wait for that: fills its queue.
  [[nodiscard]] auto begin_to_connect() const -> descriptor;
  /// True when no client has connected so far.
  [[nodiscard]] auto is_untouched() const -> bool;
  [[nodiscard]] auto socket() const -> int { return socket_.get(); }

 private:
  explicit origin(bool listens);

  descriptor socket_;
  std::uint16_t port_ = 0;
};

/// A server behind the gateway that answers every request at once, on a thread of its own.
class serving_origin {
 public:
  /// Every request the same.
  explicit serving_origin(std::string answer);
  /// Each by `answer`, on that thread.
  explicit serving_origin(std::function<std::string(message const&)> answer);
  ~serving_origin();
  [[nodiscard]] auto url() const -> std::string { return listening_.url(); }
  /// How many requests came.
  [[nodiscard]] auto requests() const -> std::size_t { return requests_.load(); }

 private:
  void serve();

  origin listening_;
  std::function<std::string(message const&)> answer_;
  std::atomic<std::size_t> requests_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

/// How a gateway is started.
struct gateway_options {
  int workers = 1;
  std::string listen = "\"127.0.0.1:0\"";  ///< as in the configuration
  std::string admin = "\"127.0.0.1:0\"";   ///< the same
  std::vector<int> passed{};               ///< sockets, by the protocol of sd_listen_fds(3)
  std::vector<std::string> environment{};  ///< `NAME=VALUE`
  std::string shell{};  ///< what a shell does before it becomes the gateway: `ulimit -n 64`
};

/// `tidegate serve`, started by the constructor and stopped by the destructor, which expects it to
/// end in good order.
class gateway {
 public:
  /// With a configuration file. `listen`, `admin` (on free ports) and `workers: 1` come before
  /// `config`.
  explicit gateway(std::string const& config, int workers = 1)
      : gateway(config, gateway_options{.workers = workers}) {}
  gateway(std::string const& config, gateway_options options);
  /// With flags of `serve`.
  explicit gateway(std::vector<std::string> const& flags);
  gateway(gateway const&) = delete;
  auto operator=(gateway const&) -> gateway& = delete;
  ~gateway();

  /// Connects from an address of the loop, by which the gateway sees who asks.
  [[nodiscard]] auto connect(std::string const& from = "127.0.0.1") const -> connection;
  /// True when a connection comes about.
  [[nodiscard]] auto accepts() const -> bool;
  /// Sends one request over a connection of its own.
  [[nodiscard]] auto ask(std::string_view request) const -> message;
  /// `GET target` with more field lines.
  [[nodiscard]] auto get(std::string_view target, std::string_view field_lines = "") const
      -> message;
  /// `GET path` of the admin address.
  [[nodiscard]] auto admin(std::string_view path) const -> message;
  /// `http://127.0.0.1:PORT` of the admin address.
  [[nodiscard]] auto admin_url() const -> std::string {
    return "http://127.0.0.1:" + std::to_string(admin_port_);
  }
  /// Connects to the admin address.
  [[nodiscard]] auto connect_admin() const -> connection;
  /// The value of a line of /metrics, 0 where it is missing.
  [[nodiscard]] auto metric(std::string_view name_and_labels) const -> double;
  [[nodiscard]] auto authority() const -> std::string;

  /// Writes the configuration again and sends SIGHUP; returns the line that the gateway says then.
  [[nodiscard]] auto reload(std::string const& config) -> std::string;
  /// Writes the configuration again, and nothing else.
  void write_config(std::string const& config) const;
  /// What the configuration begins with when it is written the next time.
  [[nodiscard]] auto options() -> gateway_options& { return options_; }
  [[nodiscard]] auto file() const -> std::string { return file_.string(); }
  /// What it has said on standard error since the last read.
  [[nodiscard]] auto errors() -> std::string;
  /// What it says on standard error until a line has `end` in it; that is the last one. Its log is
  /// written by a thread, so that a line may come a moment after the answer that it is about.
  [[nodiscard]] auto errors_until(std::string_view end) -> std::string;
  /// The next line that it says on standard output.
  [[nodiscard]] auto output() -> std::string { return read_line(out_, out_pending_); }
  void signal(int number) const;
  [[nodiscard]] auto process() const -> pid_t { return process_; }
  /// Waits for the program to end.
  [[nodiscard]] auto wait() -> int;
  /// Resident memory in bytes.
  [[nodiscard]] auto memory() const -> std::size_t;
  /// What it has of addresses, in bytes, whether there is memory there or not.
  [[nodiscard]] auto address_space() const -> std::size_t;
  /// What of it is the program's alone, because it has written to it.
  [[nodiscard]] auto own_memory() const -> std::size_t;

 private:
  void start(std::vector<std::string> arguments, bool has_admin);
  [[nodiscard]] static auto read_line(descriptor const& from, std::string& pending) -> std::string;

  gateway_options options_;
  std::filesystem::path file_;
  pid_t process_ = -1;
  descriptor out_;
  descriptor err_;
  std::string out_pending_;
  std::string err_pending_;
  std::uint16_t port_ = 0;
  std::uint16_t admin_port_ = 0;
};

/// Asks again and again, until it is so.
void expect_eventually(std::function<bool()> const& is_so, std::string_view what);

/// A configuration with one route for all paths to one server, and `more` at its end.
[[nodiscard]] auto proxy_config(std::string const& url, std::string const& more = "")
    -> std::string;

/// `HTTP/1.1 STATUS` with a Content-Length and more field lines.
[[nodiscard]] auto response(std::string_view status, std::string_view body,
                            std::string_view field_lines = "") -> std::string;

}  // namespace tidegate::e2e
