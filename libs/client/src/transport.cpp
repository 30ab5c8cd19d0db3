// SPDX-License-Identifier: Apache-2.0
#include "transport.hpp"

#include "socket_set.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/idempotency/make_key.hpp>

#include <curl/curl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>

namespace tidegate::TIDEGATE_ABI::client {

using idempotency::delivery;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

struct free_easy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct free_multi {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct free_url {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
struct free_list {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using easy_handle = std::unique_ptr<CURL, free_easy>;
using multi_handle = std::unique_ptr<CURLM, free_multi>;
using url_handle = std::unique_ptr<CURLU, free_url>;
using string_list = std::unique_ptr<curl_slist, free_list>;

[[nodiscard]] auto append(string_list& list, std::string const& line) -> bool {
  auto* const longer = curl_slist_append(list.get(), line.c_str());
  if (longer == nullptr) {
    return false;
  }
  (void)list.release();
  list.reset(longer);
  return true;
}

[[nodiscard]] auto in_milliseconds(nanoseconds time) -> long {
  constexpr nanoseconds longest = std::chrono::hours(24 * 24);  // curl counts in 32 bits
  return static_cast<long>(
      std::chrono::ceil<milliseconds>(std::clamp(time, nanoseconds(1), longest)).count());
}

}  // namespace

/// A handle of curl, with the attempt that it serves. Used again and again, for its connections and
/// memory.
struct transfer {
  // What curl parses itself it also puts together again, which costs more than all that we do.
  // Where it can be, this is the origin alone, and path and query go past it.
  url_handle url{curl_url()};
  std::string url_text;  // what it was made from
  easy_handle easy;
  exchange* served = nullptr;
  string_list fields;
  std::size_t head_max = 0;
  std::size_t body_max = 0;
  unsigned sends = 0;  // how often curl has begun to send the request
  bool has_head = false;
  bool is_too_large = false;
  bool is_plain = false;  // the last request was a GET without fields and content
  long time_max = 0;      // of the last request, in milliseconds
  std::array<char, CURL_ERROR_SIZE> error{};

  /// The URL of the next attempt, often the same as before.
  [[nodiscard]] auto set_url(std::string_view text) -> CURLUcode {
    if (text == url_text) {
      return CURLUE_OK;
    }
    url_text = text;
    auto const code = curl_url_set(url.get(), CURLUPART_URL, url_text.c_str(), 0);
    if (code != CURLUE_OK) {
      url_text.clear();
    }
    return code;
  }

  /// One line of a header or trailer section. Those of 1xx come before the one that counts.
  [[nodiscard]] auto take_line(std::string_view line) -> bool {
    auto& answer = served->answer;
    if (has_head && answer.status >= 200) {
      return true;  // a trailer
    }
    if (line.starts_with("HTTP/")) {
      auto const code = line.substr(std::min(line.find(' ') + 1, line.size()));
      answer.fields.clear();
      answer.status = 0;
      std::from_chars(code.data(), code.data() + code.size(), answer.status);
      has_head = false;
      return true;
    }
    while (line.ends_with('\n') || line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (line.empty()) {
      has_head = true;
      return true;
    }
    auto const colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0 || is_blank(line.front())) {
      return true;  // no field
    }
    answer.fields.add(line.substr(0, colon), trimmed(line.substr(colon + 1)));
    is_too_large = answer.fields.octets() > head_max;
    return !is_too_large;
  }

  [[nodiscard]] auto take_content(std::string_view piece) -> bool {
    auto& body = served->answer.body;
    is_too_large = piece.size() > body_max - std::min(body.size(), body_max);
    if (!is_too_large) {
      body.append(piece);
    }
    return !is_too_large;
  }

  /// curl sends a request again by itself when a connection that was used before is closed without
  /// an answer, whatever the method. Only a request that may run twice is let through twice.
  [[nodiscard]] auto may_send() -> bool {
    return ++sends == 1 || served->repeats.idempotent_method || served->repeats.has_key;
  }
};

namespace {

auto on_line(char* line, std::size_t size, std::size_t count, void* self) -> std::size_t {
  return static_cast<transfer*>(self)->take_line({line, size * count}) ? size * count : 0;
}

auto on_content(char* piece, std::size_t size, std::size_t count, void* self) -> std::size_t {
  return static_cast<transfer*>(self)->take_content({piece, size * count}) ? size * count
                                                                           : size * count + 1;
}

auto on_send(void* self, char* /*their_ip*/, char* /*our_ip*/, int /*their_port*/, int /*our_port*/)
    -> int {
  return static_cast<transfer*>(self)->may_send() ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

[[nodiscard]] auto has_proxy_in_environment() -> bool {
  constexpr std::array names = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                "ALL_PROXY"};
  // NOLINTNEXTLINE(concurrency-mt-unsafe): curl does the same
  return std::ranges::any_of(names, [](auto name) { return std::getenv(name) != nullptr; });
}

/// What is the same for every request of a session. False when curl lacks something or the memory
/// is gone.
[[nodiscard]] auto set_up(transfer& each, session_options const& options) -> bool {
  auto* const easy = each.easy.get();
  auto const set = [easy](CURLoption option, auto value) {
    return curl_easy_setopt(easy, option, value) == CURLE_OK;
  };
  // Else curl would look for all of the variables before each request.
  bool const asks_environment = options.proxy.empty() && has_proxy_in_environment();
  auto const version = options.version == http_version::http1 ? CURL_HTTP_VERSION_1_1
                       : options.version == http_version::http2
                           ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
                           : CURL_HTTP_VERSION_2TLS;
  return each.url != nullptr && set(CURLOPT_CURLU, each.url.get()) && set(CURLOPT_PRIVATE, &each) &&
         set(CURLOPT_NOSIGNAL, 1L) && set(CURLOPT_PROTOCOLS_STR, "http,https") &&
         set(CURLOPT_FOLLOWLOCATION, 0L) && set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L) &&
         set(CURLOPT_HTTP_VERSION, long{version}) &&
         // With HTTP/2, requests wait for one connection instead of opening many.
         set(CURLOPT_PIPEWAIT, options.version == http_version::http1 ? 0L : 1L) &&
         set(CURLOPT_CONNECTTIMEOUT_MS, in_milliseconds(options.connect_time_max)) &&
         set(CURLOPT_ERRORBUFFER, each.error.data()) && set(CURLOPT_HEADERFUNCTION, &on_line) &&
         set(CURLOPT_HEADERDATA, &each) && set(CURLOPT_WRITEFUNCTION, &on_content) &&
         set(CURLOPT_WRITEDATA, &each) && set(CURLOPT_PREREQFUNCTION, &on_send) &&
         set(CURLOPT_PREREQDATA, &each) && set(CURLOPT_USERAGENT, options.user_agent.c_str()) &&
         (asks_environment || set(CURLOPT_PROXY, options.proxy.c_str())) &&
         (options.ca_file.empty() || set(CURLOPT_CAINFO, options.ca_file.c_str()));
}

/// The field lines of a request, as curl takes them.
[[nodiscard]] auto make_fields(exchange const& each, bool has_content, string_list& out) -> bool {
  bool has_type = false;
  std::string line;
  for (auto const& [name, value] : each.wanted.fields) {
    has_type = has_type || equal_ignoring_case(name, "content-type");
    // An empty value has a notation of its own.
    line.assign(name).append(value.empty() ? ";" : ": ").append(value);
    if (!append(out, line)) {
      return false;
    }
  }
  if (!each.key.empty()) {
    line.assign("Idempotency-Key: ");
    if (!idempotency::append_key_field(line, each.key) || !append(out, line)) {
      return false;
    }
  }
  // What curl would add by itself: a type that the caller has not said, and a wait before content.
  return !has_content || ((has_type || append(out, "Content-Type:")) && append(out, "Expect:"));
}

[[nodiscard]] auto set_request(transfer& on, exchange& each, nanoseconds time_max) -> bool {
  auto* const easy = on.easy.get();
  auto const set = [easy](CURLoption option, auto value) {
    return curl_easy_setopt(easy, option, value) == CURLE_OK;
  };
  auto const& wanted = each.wanted;
  auto const& method = wanted.method;
  if (auto const time = in_milliseconds(time_max); time != on.time_max) {
    on.time_max = time;
    if (!set(CURLOPT_TIMEOUT_MS, time)) {
      return false;
    }
  }
  bool const is_plain =
      method == "GET" && wanted.body.empty() && wanted.fields.empty() && each.key.empty();
  if (is_plain && on.is_plain) {
    return true;
  }
  on.is_plain = false;
  // These say how much content there is even when it is none.
  bool const has_content =
      !wanted.body.empty() || method == "POST" || method == "PUT" || method == "PATCH";
  std::string_view implied;  // the method that curl takes by itself
  bool is_set = set(CURLOPT_NOBODY, 0L);
  if (has_content) {
    implied = "POST";
    is_set = is_set && set(CURLOPT_POST, 1L) &&
             set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(wanted.body.size())) &&
             set(CURLOPT_POSTFIELDS, wanted.body.c_str());
  } else if (method == "HEAD") {
    implied = "HEAD";
    is_set = is_set && set(CURLOPT_NOBODY, 1L);
  } else {
    implied = "GET";
    is_set = is_set && set(CURLOPT_HTTPGET, 1L);
  }
  on.fields.reset();
  is_set = is_set && set(CURLOPT_CUSTOMREQUEST, method == implied ? nullptr : method.c_str()) &&
           make_fields(each, has_content, on.fields) && set(CURLOPT_HTTPHEADER, on.fields.get());
  on.is_plain = is_plain && is_set;
  return is_set;
}

[[nodiscard]] auto out_of_memory() -> attempt_end {
  return {
      .delivery = delivery::not_sent, .fault = client_fault::out_of_resources, .permanent = true};
}

/// What an error of curl means.
[[nodiscard]] auto judge(transfer const& on, CURLcode code) -> attempt_end {
  attempt_end out{
      .delivery = on.sends > 0 ? delivery::no_answer : delivery::not_sent,
      .fault = on.sends > 0 ? client_fault::connection_lost : client_fault::cannot_connect,
      .detail = on.error[0] != '\0' ? on.error.data() : curl_easy_strerror(code)};
  if (on.is_too_large) {
    out.fault = client_fault::response_too_large;
    out.detail.clear();
    out.permanent = true;
    return out;
  }
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      if (on.sends > 0) {
        out.fault = client_fault::attempt_timed_out;
      }
      break;
    case CURLE_OUT_OF_MEMORY: return out_of_memory();
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      out.fault = client_fault::invalid_request;
      out.permanent = true;
      break;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS: out.permanent = true; break;
    default: break;
  }
  return out;
}

}  // namespace

struct transport::state {
  explicit state(session_options const& given) : options(given), multi(curl_multi_init()) {}
  state(state const&) = delete;
  auto operator=(state const&) -> state& = delete;
  ~state() {
    for (auto const& each : all) {
      if (each->served != nullptr) {
        curl_multi_remove_handle(multi.get(), each->easy.get());
      }
    }
  }

  session_options const& options;
  socket_set sockets;
  // Before the handles that are in it, so that it goes after them.
  multi_handle multi;
  std::vector<std::unique_ptr<transfer>> all;
  std::vector<transfer*> idle;
  // A proxy is told the whole URL.
  bool const has_proxy = !options.proxy.empty() || has_proxy_in_environment();

  static auto open_socket(void* self, curlsocktype /*purpose*/, curl_sockaddr* address)
      -> curl_socket_t {
    auto const socket = ::socket(address->family, address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                                 address->protocol);
    if (socket < 0) {
      return CURL_SOCKET_BAD;
    }
    static_cast<state*>(self)->sockets.add(socket);
    return socket;
  }

  static auto close_socket(void* self, curl_socket_t socket) -> int {
    static_cast<state*>(self)->sockets.remove(socket);
    return ::close(socket);
  }

  [[nodiscard]] auto take_idle() -> transfer* {
    if (!idle.empty()) {
      auto* const out = idle.back();
      idle.pop_back();
      return out;
    }
    auto made = std::make_unique<transfer>();
    made->easy.reset(curl_easy_init());
    made->head_max = options.response_head_octets_max;
    made->body_max = options.response_body_octets_max;
    auto* const easy = made->easy.get();
    if (easy == nullptr || !set_up(*made, options) ||
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, &open_socket) != CURLE_OK ||
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, this) != CURLE_OK ||
        curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, &close_socket) != CURLE_OK ||
        curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, this) != CURLE_OK) {
      return nullptr;
    }
    all.push_back(std::move(made));
    return all.back().get();
  }

  void release(transfer& each) {
    curl_multi_remove_handle(multi.get(), each.easy.get());
    each.served->on = nullptr;
    each.served = nullptr;
    idle.push_back(&each);
  }

  static auto on_socket(CURL* /*easy*/, curl_socket_t socket, int what, void* self, void* /*ours*/)
      -> int {
    static_cast<state*>(self)->sockets.want(socket, what);
    return 0;
  }

  /// True when something has ended.
  auto collect(on_end& tell) -> bool {
    bool has_ended = false;
    int left = 0;
    while (auto const* const said = curl_multi_info_read(multi.get(), &left)) {
      if (said->msg != CURLMSG_DONE) {
        continue;
      }
      void* found = nullptr;
      curl_easy_getinfo(said->easy_handle, CURLINFO_PRIVATE, &found);
      auto& on = *static_cast<transfer*>(found);
      auto& ended = *on.served;
      auto const how = said->data.result == CURLE_OK ? attempt_end{} : judge(on, said->data.result);
      release(on);
      tell(ended, how);
      has_ended = true;
    }
    return has_ended;
  }

  /// The URL of an attempt: all of it, or the origin and what is sent to it.
  [[nodiscard]] auto set_target(transfer& on, exchange const& each) const -> CURLUcode {
    auto const& url = each.wanted.url;
    auto const begin = has_proxy ? 0 : each.target_begin;
    auto const code =
        on.set_url(begin == 0 ? std::string_view(url) : std::string_view(url).substr(0, begin));
    if (code == CURLUE_OK &&
        curl_easy_setopt(on.easy.get(), CURLOPT_REQUEST_TARGET,
                         begin == 0 ? nullptr : url.c_str() + begin) != CURLE_OK) {
      return CURLUE_OUT_OF_MEMORY;
    }
    return code;
  }
};

auto transport::make(session_options const& options)
    -> result<std::unique_ptr<transport>, client_error> {
  // Safe from any thread since curl 7.84; never undone, since others may use curl too.
  static auto const is_ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  auto made = std::make_unique<state>(options);
  auto const set = [&](CURLMoption option, auto value) {
    return curl_multi_setopt(made->multi.get(), option, value) == CURLM_OK;
  };
  auto const kept = static_cast<long>(std::clamp<std::size_t>(options.in_flight_max, 1, 1'000'000));
  if (!is_ready || made->multi == nullptr || !made->sockets.is_usable() ||
      !set(CURLMOPT_MAXCONNECTS, kept) || !set(CURLMOPT_SOCKETFUNCTION, &state::on_socket) ||
      !set(CURLMOPT_SOCKETDATA, made.get())) {
    return failure(client_error{.fault = client_fault::out_of_resources});
  }
  return std::unique_ptr<transport>(new transport(std::move(made)));
}

transport::transport(std::unique_ptr<state> state) noexcept : state_(std::move(state)) {}
transport::~transport() = default;

auto transport::start(exchange& each, nanoseconds time_max) -> std::optional<attempt_end> {
  auto* const on = state_->take_idle();
  if (on == nullptr) {
    return out_of_memory();
  }
  on->served = &each;
  on->sends = 0;
  on->has_head = false;
  on->is_too_large = false;
  on->error[0] = '\0';
  if (auto const code = state_->set_target(*on, each); code != CURLUE_OK) {
    on->served = nullptr;
    state_->idle.push_back(on);
    return attempt_end{.delivery = delivery::not_sent,
                       .fault = code == CURLUE_OUT_OF_MEMORY ? client_fault::out_of_resources
                                                             : client_fault::invalid_request,
                       .detail = curl_url_strerror(code),
                       .permanent = true};
  }
  if (!set_request(*on, each, time_max) ||
      curl_multi_add_handle(state_->multi.get(), on->easy.get()) != CURLM_OK) {
    on->served = nullptr;
    state_->idle.push_back(on);
    return out_of_memory();
  }
  each.on = on;
  return std::nullopt;
}

auto transport::drop(exchange& each) -> attempt_end {
  auto const how = each.on->sends > 0 ? delivery::no_answer : delivery::not_sent;
  state_->release(*each.on);
  return {.delivery = how, .fault = client_fault::cancelled};
}

void transport::wake() {
  state_->sockets.wake();
}

void transport::move_bytes(nanoseconds time, on_end& ended) {
  auto& own = *state_;
  auto* const multi = own.multi.get();
  int left = 0;
  long due = -1;  // milliseconds until curl wants to be called; -1: never
  bool has_ended = false;
  curl_multi_timeout(multi, &due);
  if (due == 0) {  // what was added just now begins like this
    curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &left);
    has_ended = own.collect(ended);
    curl_multi_timeout(multi, &due);
  }
  if (has_ended) {
    time = nanoseconds(0);
  } else if (due >= 0) {
    time = std::min<nanoseconds>(time, milliseconds(due));
  }
  for (auto const& event : own.sockets.wait(time)) {
    auto const what = ((event.events & (EPOLLIN | EPOLLHUP)) != 0 ? CURL_CSELECT_IN : 0) |
                      ((event.events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
                      ((event.events & EPOLLERR) != 0 ? CURL_CSELECT_ERR : 0);
    curl_multi_socket_action(multi, event.data.fd, what, &left);
    (void)own.collect(ended);
  }
}

}  // namespace tidegate::TIDEGATE_ABI::client
