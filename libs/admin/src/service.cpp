// SPDX-License-Identifier: Apache-2.0
#include "service.hpp"

#include <tidegate/config/values.hpp>
#include "api_directory.hpp"
#include "api_idempotency.hpp"
#include "api_quotas.hpp"
#include "console.hpp"
#include "random_hex.hpp"

#include <tidegate/http/problem.hpp>
#include <tidegate/json/string.hpp>
#include <tidegate/wire/http1_body.hpp>
#include <tidegate/wire/http1_head.hpp>
#include <tidegate/wire/http1_write.hpp>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t connections_max = 256;
constexpr std::size_t content_octets_max = 16 * 1024;
/// From the first byte to the last one of the answer.
constexpr auto request_timeout = 10s;
/// How long what comes after the answer is taken, so that the client gets to read it.
constexpr auto closing_timeout = 2s;
/// A console is told the figures so often.
constexpr auto event_interval = 1s;
/// Consoles at a time; there must be room for whoever asks how the gateway is.
constexpr std::size_t streams_max = 32;
/// A console that has not read the last event gets no other; one that does not for so many is left.
constexpr int events_missed_max = 30;

constexpr std::string_view session_path = "/api/v1/session";
constexpr std::string_view plain_text = "text/plain; charset=utf-8";

[[nodiscard]] auto equal_ignoring_case(std::string_view a, std::string_view b) -> bool {
  constexpr auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  };
  return std::ranges::equal(a, b, {}, lower, lower);
}

/// Whether whoever connected came by the loopback address.
[[nodiscard]] auto is_loopback(engine::descriptor const& socket) -> bool {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return false;
  }
  if (address.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    return ntohl(v4.sin_addr.s_addr) >> 24U == 127;
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address, sizeof v6);
  bool const is_v4_mapped = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) && v6.sin6_addr.s6_addr[12] == 127;
  return address.ss_family == AF_INET6 && (IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) || is_v4_mapped);
}

/// `127.0.0.1:4711`
[[nodiscard]] auto peer_of(engine::descriptor const& socket) -> std::string {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host.data(), host.size(),
                    port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "somebody";
  }
  return std::string(host.data()) + ":" + port.data();
}

/// Where whoever connected is; 0.0.0.0 for whoever came through a file.
[[nodiscard]] auto ip_of_peer(engine::descriptor const& socket) -> http::ip_address {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&storage), &size) != 0) {
    return {};
  }
  auto const address = engine::socket_address::from_bytes(&storage, size);
  auto const ip = address.ip_bytes();
  auto const* const octets = reinterpret_cast<std::uint8_t const*>(ip.data());
  switch (ip.size()) {
    case 4: return http::ip_address::from_v4(std::span<std::uint8_t const, 4>(octets, 4));
    case 16: return http::ip_address::from_v6(std::span<std::uint8_t const, 16>(octets, 16));
    default: return {};
  }
}

/// The name of the cookie with the session. Browsers send the cookies of a host to all of its ports, and several
/// gateways may be on one host.
[[nodiscard]] auto cookie_of(engine::descriptor const& socket) -> std::string {
  auto const local = engine::local_address(socket);
  return "tidegate_session_" + std::to_string(local ? local->port() : 0);
}

/// Paths that orchestrators ask, who have no token.
[[nodiscard]] auto is_for_everybody(std::string_view path) -> bool {
  return path == "/healthz" || path == "/readyz";
}

/// Requests that are no reading by their method, and change nothing all the same.
[[nodiscard]] auto changes_nothing(std::string_view path) -> bool {
  return path == "/api/v1/explain" || path == session_path || path == "/api/v1/partitions/lookup" ||
         path == "/api/v1/idempotency/lookup";
}

/// True for `localhost` and for addresses, with or without a port.
[[nodiscard]] auto names_this_machine(std::string_view authority) -> bool {
  if (authority.starts_with('[')) {
    return true;
  }
  auto const host = authority.substr(0, authority.find(':'));
  return equal_ignoring_case(host, "localhost") ||
         host.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace

class admin_connection final : public engine::watched, private engine::timer {
 public:
  admin_connection(admin_service& of, engine::descriptor socket)
      : service_(of), socket_(std::move(socket)), number_(++of.accepted_) {}

  /// Those that came before have lower numbers.
  [[nodiscard]] auto number() const -> std::uint64_t { return number_; }
  [[nodiscard]] auto asks_nothing() const -> bool { return stage_ == stage::head; }

  [[nodiscard]] auto start() -> bool {
    set(service_.control_.loop.timers(), service_.control_.loop.now() + request_timeout);
    return service_.control_.loop.watch(socket_, *this).has_value();
  }
  void close() {
    service_.streams_ -= stage_ == stage::streaming ? 1 : 0;
    cancel();
    socket_.close();
    self_.reset();
    service_.control_.loop.dispose(std::move(service_.open_.extract(this).mapped()));
  }

 private:
  enum class stage : std::uint8_t { head, content, working, answering, streaming, closing };

  void expired() override {
    if (stage_ != stage::streaming || missed_ >= events_missed_max) {
      close();
      return;
    }
    try {
      send_event();
    } catch (std::bad_alloc const&) {
      close();
      throw;
    }
  }

  void out_of_memory() override { close(); }

  void ready(engine::readiness what) override {
    if (!socket_.is_open()) {
      return;
    }
    if (what.hung_up) {
      close();
      return;
    }
    if (what.readable || what.closing) {
      read();
    }
    if (socket_.is_open() && (stage_ == stage::answering || stage_ == stage::streaming)) {
      write();
    }
  }

  void read() {
    std::array<char, 8192> bytes;  // NOLINT: what is not read is not looked at
    for (;;) {
      auto const size = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
      if (size < 0 && errno == EAGAIN) {
        return;
      }
      if (size == 0 && (stage_ == stage::working || stage_ == stage::answering)) {
        return;  // it sends no more, but may still read
      }
      if (size <= 0) {
        close();
        return;
      }
      std::string_view const came(bytes.data(), static_cast<std::size_t>(size));
      if (stage_ == stage::head) {
        take_head(came);
      } else if (stage_ == stage::content) {
        take_content(came);
      }
      if (!socket_.is_open()) {
        return;
      }
    }
  }

  void take_head(std::string_view bytes) {
    in_.append(bytes);
    auto const request = std::make_unique<wire::request_head>();
    auto const head = wire::parse_request_head(in_, seen_, {}, *request);
    seen_ = head.size;
    if (head.state == wire::head_state::incomplete) {
      return;
    }
    if (head.state != wire::head_state::complete) {
      bool const is_fault = head.state == wire::head_state::refused;
      respond(admin_problem(is_fault ? wire::status_of(head.fault) : 400,
                            is_fault ? to_string(head.fault) : "This address speaks HTTP/1.1."));
      return;
    }
    request_.method = request->method();
    request_.path = request->path();
    request_.query = request->query().substr(std::min<std::size_t>(1, request->query().size()));
    request_.content_type = request->value_of(wire::known_field::content_type);
    // Somebody else's name may be made to lead here, so that pages of theirs count as of this origin. Where a token
    // is needed that gets them nothing: a session is that of another name.
    if (!service_.access_.needs_token() && is_loopback(socket_) &&
        !names_this_machine(request->authority())) {
      respond(admin_problem(421, "Here this address is known as localhost, or by its number."));
      return;
    }
    if (!is_for_everybody(request_.path) && !is_let_in(*request)) {
      return;
    }
    if (request->body().kind == wire::body_kind::content_length &&
        request->body().length > content_octets_max) {
      refuse_content();
      return;
    }
    decoder_ = wire::body_decoder(request->body());
    stage_ = stage::content;
    if (request->expects_continue() && !decoder_.done() && in_.size() == head.size) {
      constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
      (void)::send(socket_.get(), go_on.data(), go_on.size(), MSG_NOSIGNAL);
    }
    auto const rest = in_.substr(head.size);
    in_.clear();
    take_content(rest);
  }

  /// Finds out who asks. False when that was answered.
  [[nodiscard]] auto is_let_in(wire::request_head const& request) -> bool {
    auto& access = service_.access_;
    auto const now = service_.control_.loop.now();
    cookie_ = cookie_of(socket_);
    is_by_tls_ = request.value_of(wire::known_field::origin).starts_with("https://");
    auto caller = access.let_in(request, cookie_, ip_of_peer(socket_), now);
    bool const is_read =
        request_.method == wire::method::get || request_.method == wire::method::head;
    if (auto const failures = access.take_failures(now); failures) {
      service_.control_.events()->warning(
          "the admin address refused " + std::to_string(failures->count) +
          (failures->count == 1 ? " wrong token" : " wrong tokens") + "; the last came from " +
          (failures->last_from == http::ip_address{} ? "somebody"
                                                     : to_string(failures->last_from)));
    }
    if (!caller) {
      bool const asks_for_page = is_read && request_.path == "/" && caller.error().status == 401 &&
                                 !asks_by_token(request);
      if (auto note = caller.error().status == 403 ? note_of_change() : std::nullopt) {
        (*note)(403);
      }
      respond(asks_for_page ? login_page() : std::move(caller.error()));
      return false;
    }
    caller_ = *std::move(caller);
    if (!is_read && caller_.read_only && !changes_nothing(request_.path)) {
      if (auto note = note_of_change()) {
        (*note)(403);
      }
      respond(admin_problem(403, "This token is for reading only."));
      return false;
    }
    return true;
  }

  void take_content(std::string_view bytes) {
    in_.append(bytes);
    std::string_view rest = in_;
    while (!decoder_.done() && !rest.empty()) {
      auto const fed = decoder_.feed(rest);
      if (request_.content.size() + fed.content.size() > content_octets_max) {
        refuse_content();
        return;
      }
      request_.content.append(fed.content);
      if (fed.state == wire::body_state::refused) {
        respond(admin_problem(400, to_string(fed.fault)));
        return;
      }
      if (fed.consumed == 0) {
        break;
      }
      rest.remove_prefix(fed.consumed);
    }
    in_.erase(0, in_.size() - rest.size());
    if (decoder_.done()) {
      in_.clear();
      answer();
    }
  }

  void refuse_content() { respond(admin_problem(413, "No request here needs so much content.")); }

  void answer() {
    stage_ = stage::working;
    if (is_idempotency_path(request_.path)) {
      answer_idempotency(service_.control_.loop, service_.control_.keys, request_, respond_later());
      return;
    }
    if (is_config_path(request_.path)) {
      answer_config(service_.control_.loop, service_.control_.active->config, service_.reloader_,
                    request_, respond_later());
      return;
    }
    if (request_.path == session_path) {
      answer_session();
      return;
    }
    if (is_directory_path(request_.path)) {
      answer_directory(service_.control_.loop, *service_.control_.active, service_.control_.scim,
                       request_, respond_later());
      return;
    }
    if (is_partition_path(request_.path)) {
      service_.partitions_.answer(request_, noted(), replied());
      return;
    }
    if (request_.path == "/api/v1/try") {
      service_.tries_.answer(request_, noted(), replied());
      return;
    }
    if (request_.path == "/api/v1/explain") {
      explain();
      return;
    }
    bool const is_known = request_.path == "/" || request_.path == "/metrics" ||
                          request_.path == "/healthz" || request_.path == "/readyz" ||
                          request_.path == "/api/v1/events" || is_quota_path(request_.path);
    if (!is_known) {
      respond(admin_problem(404, "There is nothing at this path."));
    } else if (request_.method != wire::method::get && request_.method != wire::method::head) {
      auto refusal = admin_problem(405, "Allowed here: GET, HEAD.");
      refusal.allow = "GET, HEAD";
      respond(std::move(refusal));
    } else if (is_quota_path(request_.path)) {
      respond(answer_quotas(service_.control_, service_.partitions_.shown(), request_,
                            service_.control_.loop.now()));
    } else if (request_.path == "/") {
      respond(console_page(figures(), caller_json()));
    } else if (request_.path == "/api/v1/events") {
      stream();
    } else if (request_.path == "/metrics") {
      respond({200, "text/plain; version=0.0.4; charset=utf-8", metrics()});
    } else if (request_.path == "/healthz") {
      respond({200, plain_text, "ok\n"});
    } else {
      respond(readiness());
    }
  }

  /// Answers whenever it is called, if anybody still waits, and has it logged when it was a change.
  [[nodiscard]] auto respond_later() -> std::move_only_function<void(admin_answer)> {
    return [self = std::weak_ptr(self_), note = note_of_change()](admin_answer what) mutable {
      if (note) {
        (*note)(what.status);
      }
      if (auto const there = self.lock()) {
        (*there)->respond(std::move(what));
      }
    };
  }

  /// Answers, if whoever asked is still there.
  [[nodiscard]] auto replied() const -> std::move_only_function<void(admin_answer)> {
    return [self = std::weak_ptr(self_)](admin_answer what) {
      if (auto const there = self.lock()) {
        (*there)->respond(std::move(what));
      }
    };
  }

  /// Who was let in, for the page: without a name where no token is needed.
  [[nodiscard]] auto caller_json() const -> std::string {
    std::string out = "{\"token\":";
    if (caller_.token.empty()) {
      out.append("null");
    } else {
      json::append_string(out, caller_.token);
    }
    out.append(",\"read-only\":").append(caller_.read_only ? "true" : "false");
    out.append(",\"session\":").append(caller_.session ? "true" : "false");
    return out + "}";
  }

  /// Log-in and log-out of browsers: a token becomes a cookie that no program of a page can read.
  void answer_session() {
    auto cookie = [&](std::string_view value, std::chrono::seconds lifetime) {
      return cookie_ + "=" + std::string(value) +
             "; Path=/; HttpOnly; SameSite=Strict; Max-Age=" + std::to_string(lifetime.count()) +
             (is_by_tls_ ? "; Secure" : "");
    };
    auto& access = service_.access_;
    admin_answer done{200, "application/json", {}};
    if (request_.method == wire::method::delete_) {
      access.close_session(caller_);
      done.status = 204;
      done.fields.emplace_back("Set-Cookie", cookie("", {}));
    } else if (request_.method == wire::method::post) {
      if (caller_.token.empty() || caller_.session) {
        respond(admin_problem(409, caller_.session ? "There is a session already."
                                                   : "This address asks for no token."));
        return;
      }
      auto const id = random_hex();
      if (id.empty()) {
        respond(admin_problem(503, "The system gives no random numbers."));
        return;
      }
      access.open_session(caller_, id, service_.control_.loop.now());
      done.fields.emplace_back("Set-Cookie", cookie(id, admin_access::session_lifetime));
      caller_.session = sha256::of(id);
    } else if (request_.method != wire::method::get && request_.method != wire::method::head) {
      done = admin_problem(405, "Allowed here: GET, HEAD, POST, DELETE.");
      done.allow = "GET, HEAD, POST, DELETE";
    }
    if (done.status == 200) {
      done.content = caller_json() + "\n";
    }
    if (auto note = note_of_change()) {
      (*note)(done.status);
    }
    respond(std::move(done));
  }

  /// For the log: `127.0.0.1:4711 (token ops)`.
  [[nodiscard]] auto who() const -> std::string {
    return peer_of(socket_) + (caller_.token.empty() ? "" : " (token " + caller_.token + ")");
  }

  /// Says what somebody changed, in words that have no secrets.
  [[nodiscard]] auto noted() const -> std::move_only_function<void(std::string_view, int)> {
    return [events = service_.control_.events(), by = who()](std::string_view what, int status) {
      events->info("the admin address was asked by " + by + " to " + std::string(what) +
                   ": answered " + std::to_string(status));
    };
  }

  /// Says what somebody changed, and how that was answered. Nothing for whoever only looks.
  [[nodiscard]] auto note_of_change() const -> std::optional<std::move_only_function<void(int)>> {
    bool const is_resolve = request_.method == wire::method::post;
    bool const is_patch = request_.method == wire::method::patch;
    bool const is_lookup = request_.path.ends_with("/lookup");
    if (is_lookup || (!is_resolve && !is_patch && request_.method != wire::method::delete_)) {
      return std::nullopt;
    }
    return [events = service_.control_.events(),
            what = std::string(is_resolve ? "POST "
                               : is_patch ? "PATCH "
                                          : "DELETE ") +
                   request_.path +
                   (is_patch ? patch_in_words(request_.content)
                    // What else was sent may have secrets.
                    : request_.path.ends_with("/resolve") ? " " + request_.content
                                                          : ""),
            by = who()](int status) {
      events->info("the admin address was asked by " + by + " to " + what + ": answered " +
                   std::to_string(status));
    };
  }

  void explain() {
    if (request_.method == wire::method::post) {
      respond(explain_pasted(request_.content, std::chrono::system_clock::now()));
      return;
    }
    auto refusal = admin_problem(405, "Allowed here: POST.");
    refusal.allow = "POST";
    respond(std::move(refusal));
  }

  [[nodiscard]] auto metrics() const -> std::string {
    std::string text;
    auto const& about = service_.about_;
    service_.control_.append_metrics(text,
                                     {.version = about.version,
                                      .commit = about.commit,
                                      .started = about.started,
                                      .last_reload_is_good = about.last_reload_is_good.load(),
                                      .last_good_reload = about.last_good_reload.load(),
                                      .reload_failures = about.reload_failures.load(),
                                      .out_of_memory = service_.out_of_memory_},
                                     service_.stores_.figures());
    return text;
  }
  /// All consoles are told the same.
  /// Other gateways have the same servers: to send requests there instead does not help, and would take routes away that need
  /// no store. A store in a file is of this gateway alone.
  [[nodiscard]] auto readiness() const -> admin_answer {
    bool is_ready = !service_.control_.is_draining();
    std::string text = is_ready ? "" : "draining\n";
    for (auto const& store : service_.stores_.figures()) {
      if (store.failing_since) {
        is_ready = is_ready && store.kind != "sqlite";
        text.append("the store fails: ").append(store.store).append(" (");
        text.append(store.kind).append(")\n");
      }
    }
    return {is_ready ? 200 : 503, plain_text, is_ready ? "ready\n" + text : text};
  }

  [[nodiscard]] auto figures() const -> std::string const& {
    auto const now = service_.control_.loop.now();
    if (service_.figures_.empty() || now >= service_.figures_at_ + event_interval / 2) {
      service_.figures_ = console_figures(metrics(), std::chrono::system_clock::now());
      service_.figures_at_ = now;
    }
    return service_.figures_;
  }

  /// Server-sent events, until the client goes.
  void stream() {
    bool const is_head = request_.method == wire::method::head;
    if (!is_head && service_.streams_ >= streams_max) {
      respond(admin_problem(503, "As many consoles are open as there may be."));
      return;
    }
    in_ = {};
    wire::append_status_line(out_, 200);
    wire::append_field(out_, "Content-Type", "text/event-stream");
    wire::append_field(out_, "Cache-Control", "no-store");
    wire::append_field(out_, "X-Content-Type-Options", "nosniff");
    wire::append_field(out_, "Connection", "close");
    wire::append_end_of_head(out_);
    stage_ = is_head ? stage::answering : stage::streaming;
    if (is_head) {
      write();
      return;
    }
    ++service_.streams_;
    append_event();
  }

  void send_event() {
    if (!service_.access_.holds(caller_, service_.control_.loop.now())) {
      close();
      return;
    }
    if (out_.empty()) {
      append_event();
    } else {
      ++missed_;
      set(service_.control_.loop.timers(), service_.control_.loop.now() + event_interval);
    }
  }

  void append_event() {
    missed_ = 0;
    out_.append("event: metrics\ndata: ").append(figures()).append("\n\n");
    set(service_.control_.loop.timers(), service_.control_.loop.now() + event_interval);
    write();
  }

  void respond(admin_answer const& what) {
    in_ = {};
    wire::append_status_line(out_, what.status);
    if (what.status != 204) {
      wire::append_field(out_, "Content-Type", what.content_type);
      wire::append_field(out_, "Content-Length", what.content.size());
    }
    if (!what.allow.empty()) {
      wire::append_field(out_, "Allow", what.allow);
    }
    for (auto const& [name, value] : what.fields) {
      wire::append_field(out_, name, value);
    }
    if (!what.security_policy.empty()) {
      wire::append_field(out_, "Content-Security-Policy", what.security_policy);
      wire::append_field(out_, "Referrer-Policy", "no-referrer");
    }
    wire::append_field(out_, "Cache-Control", "no-store");
    wire::append_field(out_, "X-Content-Type-Options", "nosniff");
    wire::append_field(out_, "Connection", "close");
    wire::append_end_of_head(out_);
    if (request_.method != wire::method::head) {
      out_.append(what.content);
    }
    stage_ = stage::answering;
    write();
  }

  void write() {
    while (!out_.empty()) {
      auto const sent = ::send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
      if (sent < 0) {
        if (errno != EAGAIN) {
          close();
        }
        return;
      }
      out_.erase(0, static_cast<std::size_t>(sent));
    }
    if (stage_ == stage::streaming) {
      return;
    }
    // Closed with bytes unread, the connection would be reset, and the answer could be lost with it.
    ::shutdown(socket_.get(), SHUT_WR);
    stage_ = stage::closing;
    set(service_.control_.loop.timers(), service_.control_.loop.now() + closing_timeout);
  }

  admin_service& service_;
  engine::descriptor socket_;
  std::shared_ptr<admin_connection*> self_ = std::make_shared<admin_connection*>(this);
  std::uint64_t number_;
  stage stage_ = stage::head;
  std::string in_;
  std::size_t seen_ = 0;
  admin_request request_;
  admin_caller caller_;
  std::string cookie_;      // the name of the one with the session
  bool is_by_tls_ = false;  // as the page sees it: TLS ends before this
  wire::body_decoder decoder_;
  std::string out_;
  int missed_ = 0;  // events that it could not be told
};

admin_service::admin_service(control of, engine::descriptor socket, admin_config const& settings,
                             config_reloader& reloader, program_facts const& about)
    : control_(std::move(of)),
      socket_(std::move(socket)),
      access_(!is_local_address(settings.address)),
      reloader_(reloader),
      about_(about),
      partitions_(control_),
      tries_(control_),
      stores_(control_) {
  access_.use(settings.tokens);
  control_.loop.when_out_of_memory([this] { note_out_of_memory(); });
  (void)control_.loop.watch(socket_, *this);
}

admin_service::~admin_service() = default;

void admin_service::follow_config() {
  if (control_.active->config.admin) {
    access_.use(control_.active->config.admin->tokens);
  }
}

void admin_service::note_out_of_memory() noexcept {
  ++out_of_memory_;
  try {
    control_.events()->write_limited(
        "admin out of memory", log_level::warning,
        "there was no memory for a request to the admin address; its connection was closed");
  } catch (std::bad_alloc const&) {  // not even for this line
  }
}

/// The one that has taken longest. Whoever opens many connections and says nothing must not keep others out.
auto admin_service::close_one_that_asks_nothing() -> bool {
  admin_connection* oldest = nullptr;
  for (auto const& [each, owned] : open_) {
    if (each->asks_nothing() && (oldest == nullptr || each->number() < oldest->number())) {
      oldest = each;
    }
  }
  if (oldest != nullptr) {
    oldest->close();
  }
  return open_.size() < connections_max;
}

void admin_service::ready(engine::readiness /*what*/) {
  for (;;) {
    engine::descriptor accepted(
        ::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!accepted.is_open()) {
      return;
    }
    if (open_.size() >= connections_max && !close_one_that_asks_nothing()) {
      continue;  // and it is closed
    }
    auto made = std::make_unique<admin_connection>(*this, std::move(accepted));
    auto* const added = made.get();
    open_.emplace(added, std::move(made));
    if (!added->start()) {
      added->close();
    }
  }
}

admin_server::admin_server(control seen, engine::descriptor socket, admin_config const& settings,
                           config_reloader& reloader, program_facts const& about)
    : service_(std::make_unique<admin_service>(std::move(seen), std::move(socket), settings,
                                               reloader, about)) {}

admin_server::~admin_server() = default;

auto admin_server::seen() -> control& {
  return service_->seen();
}

void admin_server::follow_config() {
  service_->follow_config();
}

}  // namespace tidegate::gateway
