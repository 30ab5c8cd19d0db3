// SPDX-License-Identifier: Apache-2.0
#include "api/api_try.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/engine/transport.hpp>
#include <tidegate/explain/fields.hpp>
#include <tidegate/explain/finding.hpp>
#include <tidegate/http/field.hpp>
#include <tidegate/json/parse.hpp>
#include <tidegate/json/writer.hpp>
#include <tidegate/wire/http1_body.hpp>
#include <tidegate/wire/http1_head.hpp>
#include <tidegate/wire/http1_write.hpp>

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;

/// Less than a connection to the admin address may take, so that the answer is still told.
constexpr auto try_timeout = 8s;
constexpr std::size_t tries_max = 16;
constexpr std::size_t target_octets_max = 8 * 1024;
constexpr std::size_t fields_max = 100;
/// What is shown of the content of an answer, and what is read of it.
constexpr std::size_t shown_octets_max = 16 * 1024;
constexpr std::size_t read_octets_max = std::size_t{1} << 20;

/// A request, as it is sent.
struct tried_request {
  std::string method = "GET";
  std::string path;
  std::string bytes;
  std::string host_name;  ///< for TLS
};

[[nodiscard]] auto problem(std::string const& detail) {
  return failure(admin_problem(400, detail));
}

[[nodiscard]] auto is_visible(std::string_view text) -> bool {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

/// Those that say how a message is sent, which is not the caller's affair.
[[nodiscard]] auto is_made_here(std::string_view name) -> bool {
  constexpr std::array<std::string_view, 9> made = {
      "host", "content-length", "transfer-encoding", "connection", "expect", "upgrade",
      "te",   "keep-alive",     "proxy-connection",
  };
  return std::ranges::any_of(
      made, [&](std::string_view each) { return equal_ignoring_case(name, each); });
}

[[nodiscard]] auto text_member(json::value const& object, std::string_view name,
                               std::string otherwise) -> result<std::string, admin_answer> {
  auto const* const found = object.find(name);
  if (found == nullptr) {
    return otherwise;
  }
  if (found->if_string() == nullptr) {
    return problem(std::string(name) + " must be a string.");
  }
  return *found->if_string();
}

[[nodiscard]] auto append_fields(std::string& out, json::value const* fields)
    -> result<void, admin_answer> {
  if (fields == nullptr) {
    return {};
  }
  std::string const form = "fields must be an array of at most 100 pairs, [\"Name\", \"value\"].";
  auto const* const list = fields->if_array();
  if (list == nullptr || list->size() > fields_max) {
    return problem(form);
  }
  for (auto const& each : *list) {
    auto const* const pair = each.if_array();
    if (pair == nullptr || pair->size() != 2 || (*pair)[0].if_string() == nullptr ||
        (*pair)[1].if_string() == nullptr) {
      return problem(form);
    }
    auto const& name = *(*pair)[0].if_string();
    auto const& value = *(*pair)[1].if_string();
    if (!http::is_token(name)) {
      return problem("The name of a header has characters that HTTP does not allow there.");
    }
    if (is_made_here(name)) {
      return problem("The header " + name + " is set by the gateway: leave it out" +
                     (equal_ignoring_case(name, "host") ? ", and use host." : "."));
    }
    if (!http::is_field_value(value)) {
      return problem("The value of " + name + " has characters that HTTP does not allow there.");
    }
    wire::append_field(out, name, value);
  }
  return {};
}

/// `authority` is that of the listener, for a request that names no host.
[[nodiscard]] auto read_request(std::string_view content, std::string const& authority)
    -> result<tried_request, admin_answer> {
  auto const read = json::parse(content, {.depth_max = 8});
  if (!read || read->if_object() == nullptr) {
    return problem(read ? "The body must be a JSON object."
                        : "The body is not JSON: " + to_string(read.error()) + ".");
  }
  for (auto const& member : read->if_object()->members()) {
    constexpr std::array<std::string_view, 5> known = {"method", "path", "host", "fields", "body"};
    if (std::ranges::find(known, member.name) == known.end()) {
      return problem("Unknown member: expected method, path, host, fields, body.");
    }
  }
  tried_request made;
  TIDEGATE_TRY(made.method, text_member(*read, "method", "GET"));
  TIDEGATE_TRY(made.path, text_member(*read, "path", ""));
  TIDEGATE_TRY(auto const host, text_member(*read, "host", authority));
  TIDEGATE_TRY(auto const body, text_member(*read, "body", ""));
  if (!http::is_token(made.method) || made.method.size() > 32 || made.method == "CONNECT") {
    return problem("method must be an HTTP method other than CONNECT, such as GET or POST.");
  }
  if (!made.path.starts_with('/') || made.path.size() > target_octets_max ||
      !is_visible(made.path) || made.path.contains('#')) {
    return problem("path must begin with \"/\", without spaces, and may have a query.");
  }
  if (host.empty() || host.size() > 255 || !is_visible(host)) {
    return problem("host must be a name or an address, with or without a port.");
  }
  made.host_name =
      host.starts_with('[') ? host.substr(1, host.find(']') - 1) : host.substr(0, host.find(':'));
  auto& out = made.bytes;
  out = made.method + " " + made.path + " HTTP/1.1\r\n";
  wire::append_field(out, "Host", host);
  TIDEGATE_TRY_VOID(append_fields(out, read->find("fields")));
  bool const has_content = made.method == "POST" || made.method == "PUT" || made.method == "PATCH";
  if (!body.empty() || has_content) {
    wire::append_field(out, "Content-Length", body.size());
  }
  wire::append_field(out, "Connection", "close");
  wire::append_end_of_head(out);
  out += body;
  return made;
}

[[nodiscard]] auto method_of(std::string_view text) -> wire::method {
  return text == "HEAD" ? wire::method::head
                        : wire::method::get;  // all that reading an answer needs
}

}  // namespace

/// One request on its way.
class probe_connection final : public engine::watched, private engine::timer {
 public:
  probe_connection(try_api& api, engine::transport to, tried_request request,
                   std::move_only_function<void(int status)> noted, admin_reply reply)
      : api_(api),
        transport_(std::move(to)),
        method_(method_of(request.method)),
        out_(std::move(request.bytes)),
        noted_(std::move(noted)),
        reply_(std::move(reply)) {}

  [[nodiscard]] auto start() -> bool {
    set(api_.control_.loop.timers(), api_.control_.loop.now() + try_timeout);
    return api_.control_.loop.watch(transport_.socket(), *this).has_value();
  }

  /// The last thing that is called of it. `status` is that of the answer, where there was one.
  void end(admin_answer answer, std::optional<int> status = std::nullopt) {
    cancel();
    transport_.close();
    if (noted_) {
      noted_(status.value_or(answer.status));
    }
    auto reply = std::move(reply_);
    api_.control_.loop.dispose(std::move(api_.open_.extract(this).mapped()));
    reply(std::move(answer));
  }

 private:
  void expired() override {
    end(admin_problem(
        504, "There was no response within 8 seconds. The request may have been executed."));
  }

  void ready(engine::readiness events) override {
    if (!transport_.socket().is_open()) {
      return;
    }
    if (!connected_) {
      if (!events.writable && !events.hung_up) {
        return;
      }
      if (engine::connect_error(transport_.socket()) != 0) {
        end(admin_problem(
            502, "The listener does not accept connections: the gateway may be draining."));
        return;
      }
      connected_ = true;
    }
    if (!has_shaken_hands_) {
      auto const state = transport_.handshake();
      if (state == engine::io_state::again) {
        return;
      }
      if (state != engine::io_state::done) {
        end(admin_problem(502, "The TLS handshake with the listener failed."));
        return;
      }
      has_shaken_hands_ = true;
    }
    if (write()) {
      read();
    }
  }

  /// False when that was the end.
  [[nodiscard]] auto write() -> bool {
    while (!out_.empty()) {
      auto const [state, sent] = transport_.write(out_);
      out_.erase(0, sent);
      if (state == engine::io_state::again) {
        return true;
      }
      if (state != engine::io_state::done) {
        out_.clear();  // the answer may have come before
      }
    }
    return true;
  }

  void read() {
    std::array<char, 8192> bytes;  // NOLINT: what is not read is not looked at
    for (;;) {
      auto const [state, size] = transport_.read(bytes);
      if (state == engine::io_state::again) {
        return;
      }
      if (state != engine::io_state::done) {
        if (has_head_ && body_.may_end_here()) {
          finish();
        } else {
          end(admin_problem(502, has_head_ ? "The response is incomplete."
                                           : "The connection was closed without a response."));
        }
        return;
      }
      if (take({bytes.data(), size})) {
        return;
      }
    }
  }

  /// True when that was the end.
  [[nodiscard]] auto take(std::string_view bytes) -> bool {
    in_.append(bytes);
    while (!has_head_) {
      auto const head = wire::parse_response_head(in_, seen_, {}, method_, response_);
      if (head.state == wire::head_state::incomplete) {
        seen_ = head.size;
        return false;
      }
      if (head.state != wire::head_state::complete) {
        end(admin_problem(502, "The response is not valid HTTP."));
        return true;
      }
      seen_ = 0;
      if (!response_.interim()) {
        has_head_ = true;
        note_head();
      }
      in_.erase(0, head.size);
    }
    std::string_view rest = in_;
    while (!body_.done() && !rest.empty()) {
      auto const fed = body_.feed(rest);
      if (fed.state == wire::body_state::refused) {
        end(admin_problem(502, "The response is not valid HTTP."));
        return true;
      }
      content_octets_ += fed.content.size();
      content_.append(fed.content.substr(0, shown_octets_max - content_.size()));
      if (fed.consumed == 0) {
        break;
      }
      rest.remove_prefix(fed.consumed);
    }
    in_.erase(0, in_.size() - rest.size());
    if (body_.done() || content_octets_ > read_octets_max) {
      finish();
      return true;
    }
    return false;
  }

  void note_head() {
    status_ = response_.status();
    for (auto const& field : response_.fields()) {
      fields_.emplace_back(field.name, field.value);
    }
    body_ = wire::body_decoder(response_.body());
  }

  void finish() {
    std::string text;
    json::writer out(text);
    out.begin_object().member("status", status_).member("reason", wire::reason_phrase(status_));
    out.begin_array("fields");
    std::vector<http::field_view> lines;
    for (auto const& [name, value] : fields_) {
      lines.push_back({name, value});
      out.begin_array().value(name).value(value).end_array();
    }
    std::array<char, 40> milliseconds{};
    (void)std::snprintf(
        milliseconds.data(), milliseconds.size(), "%.2f",
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun_)
            .count());
    out.end_array().member("body", content_).member("body-octets", content_octets_);
    out.member("whole", body_.done() || body_.may_end_here());
    out.member_raw("milliseconds", milliseconds.data()).begin_array("findings");
    auto const now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    for (auto const& each : explain::explain_fields({lines, status_}, now)) {
      std::string finding;
      explain::append_json(finding, each);
      out.raw(finding);
    }
    out.end_array().end_object();
    end(admin_json(std::move(text)), status_);
  }

  try_api& api_;
  engine::transport transport_;
  wire::method method_;
  std::string out_;
  std::move_only_function<void(int status)> noted_;  // when it may change something
  admin_reply reply_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  bool connected_ = false;
  bool has_shaken_hands_ = false;  // there is no handshake to wait for
  bool has_head_ = false;
  std::string in_;
  std::size_t seen_ = 0;
  wire::response_head response_;
  int status_ = 0;
  std::vector<std::pair<std::string, std::string>> fields_;
  wire::body_decoder body_;
  std::string content_;  // its beginning
  std::uint64_t content_octets_ = 0;
};

try_api::try_api(control const& seen) : control_(seen) {}

try_api::~try_api() = default;

void try_api::answer(admin_request const& request, admin_note note, admin_reply reply) {
  if (!is_json(request.content_type)) {
    reply(admin_problem(415, "The Content-Type must be application/json."));
    return;
  }
  // The first that any client may use: the PROXY protocol is for proxies that are trusted.
  auto const& active = *control_.active;
  auto const& listen = active.config.listen;
  bound_listener const* place = nullptr;
  std::size_t position = 0;
  for (auto const& each : control_.listeners()) {
    auto const found = std::ranges::find(listen, each.configured, &listener_config::address);
    if (place == nullptr && found != listen.end() && !found->proxy_protocol) {
      place = &each;
      position = static_cast<std::size_t>(found - listen.begin());
    }
  }
  if (place == nullptr) {
    reply(admin_problem(409,
                        "No listener accepts requests from here: each of them requires the PROXY "
                        "protocol, or is no longer in the configuration."));
    return;
  }
  bool const is_path = place->address.family() == AF_UNIX;
  auto made = read_request(request.content, is_path ? "localhost" : place->address.to_string());
  if (!made) {
    reply(std::move(made).error());
    return;
  }
  if (open_.size() >= tries_max) {
    reply(admin_problem(503, "Too many requests are in flight."));
    return;
  }
  std::move_only_function<void(int)> noted;
  if (made->method != "GET" && made->method != "HEAD") {
    // A query may hold secrets.
    noted = [words = "send " + made->method + " " + made->path.substr(0, made->path.find('?')),
             note = std::move(note)](int status) mutable { note(words, status); };
  }
  auto socket = engine::connect_to(place->address);
  if (!socket) {
    reply(admin_problem(502, "The listener does not accept connections: " +
                                 engine::to_string(socket.error()) + "."));
    return;
  }
  std::optional<engine::transport> transport;
  if (active.config.listen[position].tls) {
    // Its certificate is our own.
    auto context = engine::tls_context::for_client({.verify = false, .ca = std::nullopt});
    if (!context) {
      reply(admin_problem(502, "TLS cannot be used: " + context.error() + "."));
      return;
    }
    transport.emplace(*std::move(socket), *context, made->host_name);
  } else {
    transport.emplace(*std::move(socket));
  }
  auto added = std::make_unique<probe_connection>(*this, *std::move(transport), *std::move(made),
                                                  std::move(noted), std::move(reply));
  auto* const started = added.get();
  open_.emplace(started, std::move(added));
  if (!started->start()) {
    started->end(admin_problem(502, "The system cannot open another connection."));
  }
}

}  // namespace tidegate::gateway
