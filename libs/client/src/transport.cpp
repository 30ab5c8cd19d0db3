// SPDX-License-Identifier: Apache-2.0
#include "transport.hpp"

#include <tidegate/idempotency/make_key.hpp>

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>

namespace tidegate::client {

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
struct free_list {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using easy_handle = std::unique_ptr<CURL, free_easy>;
using multi_handle = std::unique_ptr<CURLM, free_multi>;
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

[[nodiscard]] auto trim(std::string_view text) -> std::string_view {
  auto const begin = std::min(text.find_first_not_of(" \t"), text.size());
  return text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
}

}  // namespace

/// A handle of curl, with the attempt that it serves. Used again and again, for its connections and memory.
struct transfer {
  easy_handle easy;
  exchange* of = nullptr;
  string_list fields;
  std::size_t head_max = 0;
  std::size_t body_max = 0;
  unsigned sends = 0;  // how often curl has begun to send the request
  bool has_head = false;
  bool is_too_large = false;
  std::array<char, CURL_ERROR_SIZE> error{};

  /// One line of a header or trailer section. Those of 1xx come before the one that counts.
  [[nodiscard]] auto take_line(std::string_view line) -> bool {
    auto& answer = of->answer;
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
    if (line == "\r\n" || line == "\n") {
      has_head = true;
      return true;
    }
    auto const colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0 || line.front() == ' ' ||
        line.front() == '\t') {
      return true;  // no field
    }
    answer.fields.add(line.substr(0, colon), trim(line.substr(colon + 1)));
    is_too_large = answer.fields.octets() > head_max;
    return !is_too_large;
  }

  [[nodiscard]] auto take_content(std::string_view piece) -> bool {
    auto& body = of->answer.body;
    is_too_large = piece.size() > body_max - std::min(body.size(), body_max);
    if (!is_too_large) {
      body.append(piece);
    }
    return !is_too_large;
  }

  /// curl sends a request again by itself when a connection that was used before is closed without an
  /// answer, whatever the method. Only a request that may run twice is let through twice.
  [[nodiscard]] auto may_send() -> bool {
    return ++sends == 1 || of->repeats.idempotent_method || of->repeats.has_key;
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

/// What is the same for every request of a session. False when curl lacks something or the memory is gone.
[[nodiscard]] auto set_up(transfer& each, session_options const& options) -> bool {
  auto* const easy = each.easy.get();
  auto const set = [easy](CURLoption option, auto value) {
    return curl_easy_setopt(easy, option, value) == CURLE_OK;
  };
  auto const version = options.version == http_version::http1 ? CURL_HTTP_VERSION_1_1
                       : options.version == http_version::http2
                           ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
                           : CURL_HTTP_VERSION_2TLS;
  return set(CURLOPT_PRIVATE, &each) && set(CURLOPT_NOSIGNAL, 1L) &&
         set(CURLOPT_PROTOCOLS_STR, "http,https") && set(CURLOPT_FOLLOWLOCATION, 0L) &&
         set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L) && set(CURLOPT_HTTP_VERSION, long{version}) &&
         // With HTTP/2, requests wait for one connection instead of opening many.
         set(CURLOPT_PIPEWAIT, options.version == http_version::http1 ? 0L : 1L) &&
         set(CURLOPT_CONNECTTIMEOUT_MS, in_milliseconds(options.connect_time_max)) &&
         set(CURLOPT_ERRORBUFFER, each.error.data()) && set(CURLOPT_HEADERFUNCTION, &on_line) &&
         set(CURLOPT_HEADERDATA, &each) && set(CURLOPT_WRITEFUNCTION, &on_content) &&
         set(CURLOPT_WRITEDATA, &each) && set(CURLOPT_PREREQFUNCTION, &on_send) &&
         set(CURLOPT_PREREQDATA, &each) && set(CURLOPT_USERAGENT, options.user_agent.c_str()) &&
         (options.proxy.empty() || set(CURLOPT_PROXY, options.proxy.c_str())) &&
         (options.ca_file.empty() || set(CURLOPT_CAINFO, options.ca_file.c_str()));
}

/// The field lines of a request, as curl takes them.
[[nodiscard]] auto make_fields(exchange const& each, bool has_content, string_list& out) -> bool {
  bool has_type = false;
  std::string line;
  for (auto const& [name, value] : each.wanted.fields) {
    has_type = has_type || same_name(name, "content-type");
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
  // What curl would add by itself: a type that nobody has said, and a wait before content.
  return !has_content || ((has_type || append(out, "Content-Type:")) && append(out, "Expect:"));
}

[[nodiscard]] auto set_request(transfer& on, exchange& each, nanoseconds time_max) -> bool {
  auto* const easy = on.easy.get();
  auto const set = [easy](CURLoption option, auto value) {
    return curl_easy_setopt(easy, option, value) == CURLE_OK;
  };
  auto const& wanted = each.wanted;
  auto const& method = wanted.method;
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
  return is_set && set(CURLOPT_CUSTOMREQUEST, method == implied ? nullptr : method.c_str()) &&
         set(CURLOPT_URL, wanted.url.c_str()) && make_fields(each, has_content, on.fields) &&
         set(CURLOPT_HTTPHEADER, on.fields.get()) &&
         set(CURLOPT_TIMEOUT_MS, in_milliseconds(time_max));
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
  session_options const& options;
  // Before the handles that are in it, so that it goes after them.
  multi_handle multi;
  std::vector<std::unique_ptr<transfer>> all;
  std::vector<transfer*> idle;
  std::vector<ended_attempt> ended;

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
    if (made->easy == nullptr || !set_up(*made, options)) {
      return nullptr;
    }
    all.push_back(std::move(made));
    return all.back().get();
  }

  void release(transfer& each) {
    curl_multi_remove_handle(multi.get(), each.easy.get());
    each.of->on = nullptr;
    each.of = nullptr;
    idle.push_back(&each);
  }
};

auto transport::make(session_options const& options)
    -> result<std::unique_ptr<transport>, client_error> {
  // Safe from any thread since curl 7.84; never undone, since others may use curl too.
  static auto const is_ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  auto made = std::make_unique<state>(options, multi_handle(curl_multi_init()));
  if (!is_ready || made->multi == nullptr ||
      curl_multi_setopt(made->multi.get(), CURLMOPT_MAXCONNECTS,
                        static_cast<long>(std::clamp<std::size_t>(options.in_flight_max, 1,
                                                                  1'000'000))) != CURLM_OK) {
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
  on->of = &each;
  on->sends = 0;
  on->has_head = false;
  on->is_too_large = false;
  on->error[0] = '\0';
  if (!set_request(*on, each, time_max) ||
      curl_multi_add_handle(state_->multi.get(), on->easy.get()) != CURLM_OK) {
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

void transport::wait(milliseconds time) {
  curl_multi_poll(state_->multi.get(), nullptr, 0,
                  static_cast<int>(std::clamp<std::int64_t>(time.count(), 0, 3'600'000)), nullptr);
}

void transport::wake() {
  curl_multi_wakeup(state_->multi.get());
}

auto transport::move_bytes() -> std::vector<ended_attempt> const& {
  state_->ended.clear();
  int left = 0;
  curl_multi_perform(state_->multi.get(), &left);
  while (auto const* const said = curl_multi_info_read(state_->multi.get(), &left)) {
    if (said->msg != CURLMSG_DONE) {
      continue;
    }
    void* found = nullptr;
    curl_easy_getinfo(said->easy_handle, CURLINFO_PRIVATE, &found);
    auto& on = *static_cast<transfer*>(found);
    state_->ended.emplace_back(
        on.of, said->data.result == CURLE_OK ? attempt_end{} : judge(on, said->data.result));
    state_->release(on);
  }
  return state_->ended;
}

}  // namespace tidegate::client
