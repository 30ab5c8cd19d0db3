// SPDX-License-Identifier: Apache-2.0
#include "api/api_idempotency.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/config/key_scope.hpp>
#include <tidegate/engine/loop.hpp>
#include <tidegate/http/date.hpp>
#include <tidegate/http/problem.hpp>
#include <tidegate/http/query.hpp>
#include <tidegate/http/target.hpp>
#include <tidegate/idempotency/change.hpp>
#include <tidegate/idempotency/key.hpp>
#include <tidegate/json/canonical.hpp>
#include <tidegate/json/parse.hpp>
#include <tidegate/json/writer.hpp>
#include <tidegate/wire/http1_write.hpp>

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace tidegate::gateway {

namespace {

using idempotency::lookup_key;
using idempotency::record;
using idempotency::record_state;
using idempotency::wall_time;

constexpr std::string_view api_path = "/api/v1/idempotency";

// ---- what is shown ----

[[nodiscard]] auto time_text(wall_time time) -> std::string {
  std::string out;
  http::append_rfc3339(out, std::chrono::floor<std::chrono::seconds>(time));
  return out;
}

/// A record as an operator sees it: neither key nor credentials, and of the request only what tells
/// what it was for. `scope` is the same in all records of one scope.
void append_shown(std::string& text, lookup_key const& key, record const& found,
                  record_state state) {
  auto const id = to_string(key);
  json::writer out(text);
  out.begin_object().member("id", id).member(
      "scope", id.substr(2 * lookup_key::scope_offset, 2 * sizeof(key.scope())));
  if (auto const& from = found.origin; !from.empty()) {
    out.member("route", from.route).member("method", from.method).member("host", from.host);
    out.member("path", from.path);
    if (!from.principal.empty()) {
      out.member("principal", from.principal);
    }
  }
  out.member("state", name_of(state));
  if (state == record_state::unknown) {
    // The next sweep stores that a lease has ended.
    bool const is_written = found.state == record_state::unknown;
    out.member("reason",
               name_of(is_written ? found.reason : idempotency::unknown_reason::gateway_stopped));
  }
  out.member("attempt", found.attempt);
  if (found.status != 0) {
    out.member("status", found.status);
  }
  out.member("replayable", state == record_state::completed && found.replayable)
      .member("created", time_text(found.created))
      .member("changed", time_text(found.changed));
  if (state == record_state::dispatched) {
    out.member("lease-until", time_text(found.lease_until));
  } else {
    if (state == record_state::completed) {
      out.member("replayed-until", time_text(expires(found)));
    }
    out.member("remembered-until", time_text(forgotten(found)));
  }
  out.end_object();
}

[[nodiscard]] auto shown(lookup_key const& key, record const& found, record_state state)
    -> admin_answer {
  std::string out;
  append_shown(out, key, found, state);
  return admin_json(std::move(out));
}

// ---- what is asked ----

/// The values of a parameter, decoded, at most `values_max` and one more.
[[nodiscard]] auto values_of(std::string_view query, std::string_view name)
    -> std::vector<std::string> {
  constexpr std::size_t values_max = 16;
  std::vector<std::string> values;
  while (!query.empty() && values.size() <= values_max) {
    auto const parameter = take_until(query, '&');
    if (auto const value = http::find_query_value(parameter, name)) {
      http::append_query_decoded(values.emplace_back(), *value);
    }
  }
  return values;
}

/// What a key may be stored under. A route whose keys are UUIDs stores one spelling of them, and
/// which route it is is not known here.
[[nodiscard]] auto keys_named(idempotency_service const& state, std::vector<std::string> hosts,
                              std::vector<std::string> const& scopes,
                              std::vector<std::string> const& keys)
    -> result<std::vector<lookup_key>, std::string> {
  if (scopes.empty()) {
    return failure(
        std::string("scope is missing: one value for each source of the route's scope, empty where "
                    "the request had none"));
  }
  if (keys.size() != 1 || keys.front().empty()) {
    return failure(std::string("key must be given once and must not be empty"));
  }
  for (auto const& host : hosts) {
    if (auto const read = http::parse_host(host); !read && !host.empty()) {
      return failure("host: " + std::string(message(read.error().fault)));
    }
  }
  if (hosts.empty()) {
    hosts = state.hosts.all();
  }
  std::string scope;
  for (auto const& value : scopes) {
    append_scope_value(scope, value);
  }
  // In quotes it is what the field says; otherwise it is the key itself.
  std::string_view const line = keys.front();
  std::string scratch;
  std::string key(line);
  idempotency::key_options how{.length_max = line.size()};
  if (line.starts_with('"')) {
    auto const read = idempotency::read_key(std::span(&line, 1), how, {}, scratch);
    if (!read) {
      return failure("key: " + to_string(read.error()));
    }
    key = *read;
  }
  how.format = idempotency::key_format::uuid;
  how.accept_unquoted = true;
  auto const uuid = idempotency::read_key(std::span(&line, 1), how, {}, scratch);
  std::vector<lookup_key> asked;
  for (auto const& host : hosts) {
    std::string of_host;
    append_scope_value(of_host, host_of(host));
    of_host += scope;
    asked.push_back(state.secret.lookup(of_host, key));
    if (uuid && *uuid != key) {
      asked.push_back(state.secret.lookup(of_host, *uuid));
    }
  }
  return asked;
}

[[nodiscard]] auto keys_asked_for(idempotency_service const& state, std::string_view query)
    -> result<std::vector<lookup_key>, std::string> {
  return keys_named(state, values_of(query, "host"), values_of(query, "scope"),
                    values_of(query, "key"));
}

/// The same from `{"scope": ["S", …], "key": "K"}`; a scope of one value may be a string.
/// `"host": "H"` may be there, too.
[[nodiscard]] auto keys_in(idempotency_service const& state, std::string_view content)
    -> result<std::vector<lookup_key>, std::string> {
  auto const read = json::parse(content, {.depth_max = 4});
  if (!read || read->if_object() == nullptr) {
    return failure(std::string(R"(the body must be {"scope": ["S", ...], "key": "K"})"));
  }
  std::vector<std::string> scopes;
  std::vector<std::string> keys;
  std::vector<std::string> hosts;
  for (auto const& [name, value] : read->if_object()->members()) {
    auto& to = name == "key" ? keys : name == "host" ? hosts : scopes;
    if (name != "scope" && name != "key" && name != "host") {
      return failure(std::string("unknown member (expected scope, key, host)"));
    }
    if (auto const* const text = value.if_string()) {
      to.push_back(*text);
      continue;
    }
    auto const* const list = name == "scope" ? value.if_array() : nullptr;
    if (list == nullptr || !std::ranges::all_of(*list, [](json::value const& each) {
          return each.if_string() != nullptr;
        })) {
      return failure(name + " must be a string" + (name == "scope" ? ", or an array of them" : ""));
    }
    for (auto const& each : *list) {
      to.push_back(*each.if_string());
    }
  }
  return keys_named(state, std::move(hosts), scopes, keys);
}

/// `{"outcome": "executed"}` or `{"outcome": "not-executed"}`, however it is spelled, and nothing
/// else.
[[nodiscard]] auto read_resolution(std::string_view content)
    -> std::optional<idempotency::resolution> {
  std::string canonical;
  if (!json::append_canonical(canonical, content)) {
    return std::nullopt;
  }
  if (canonical == R"({"outcome":"executed"})") {
    return idempotency::resolution::executed;
  }
  if (canonical == R"({"outcome":"not-executed"})") {
    return idempotency::resolution::not_executed;
  }
  return std::nullopt;
}

// ---- what is done ----

enum class command : std::uint8_t { look_up, resolve, purge };

/// One request on its way: finds the record, computes the change and has it made.
class operation : public std::enable_shared_from_this<operation> {
 public:
  operation(engine::loop& on, std::shared_ptr<idempotency_service> const& keys,
            std::vector<lookup_key> asked, command to_do, idempotency::resolution outcome,
            admin_reply reply)
      : loop_(on),
        keys_(keys),
        asked_(std::move(asked)),
        command_(to_do),
        outcome_(outcome),
        reply_(std::move(reply)) {}

  /// To be called once, by an owner of the shared pointer.
  void start() {
    if (asked_.empty()) {
      reply_(no_such_key());
    } else {
      find();
    }
  }

 private:
  /// An answer of the store, taken on the thread of the admin address.
  template <class Answer>
  auto on_own_thread(void (operation::*take)(Answer)) {
    return engine::on_loop(loop_, [self = shared_from_this(), take](Answer answer) {
      (self.get()->*take)(std::move(answer));
    });
  }

  void find() {
    if (auto const keys = keys_.lock()) {
      keys->store->find(asked_.front(), on_own_thread(&operation::found));
    }
  }

  void found(store::find_answer answer) {
    if (!answer) {
      reply_(store_failed());
      return;
    }
    auto const keys = keys_.lock();
    if (!keys) {
      return;  // the gateway ends
    }
    auto const now = keys->clock.at(loop_.now());
    auto const& there = *answer;
    auto const state = there ? state_at(there->record, now) : std::nullopt;
    if (!state && asked_.size() > 1) {
      asked_.erase(asked_.begin());
      find();
      return;
    }
    if (!state) {
      reply_(no_such_key());
      return;
    }
    auto const& key = asked_.front();
    if (command_ == command::look_up) {
      reply_(shown(key, there->record, *state));
      return;
    }
    auto change = command_ == command::resolve ? resolve(key, there->record, outcome_, now)
                                               : purge(key, there->record, now);
    if (!change) {
      reply_(conflict(message(change.error())));
      return;
    }
    next_ = change->next;
    keys->store->apply(*std::move(change), on_own_thread(&operation::made));
  }

  void made(store::apply_answer answer) {
    if (auto const keys = keys_.lock()) {
      if (answer && answer->made) {
        keys->running.forget(asked_.front());
      }
      keys->waiters.wake(asked_.front());  // waiters look at what is stored now
    }
    if (!answer) {
      reply_(store_failed());
    } else if (!answer->made) {
      reply_(conflict("the record has changed meanwhile"));
    } else if (command_ == command::purge) {
      reply_({204, {}, {}});
    } else if (next_) {
      reply_(shown(asked_.front(), *next_, next_->state));
    } else {
      reply_(admin_json("{\"id\":\"" + to_string(asked_.front()) + R"(","state":"absent"})"));
    }
  }

  [[nodiscard]] static auto conflict(std::string_view why) -> admin_answer {
    return admin_problem(409, "Nothing was changed: " + std::string(why) + ".");
  }
  [[nodiscard]] static auto no_such_key() -> admin_answer {
    return admin_problem(
        404,
        "There is no such key. A key belongs to a host: without \"host\" the lookup tries the "
        "hosts of routes, of unknown outcomes, and of requests with keys since the start.");
  }
  [[nodiscard]] static auto store_failed() -> admin_answer {
    return admin_problem(503, "The store of idempotency keys does not answer.");
  }

  engine::loop& loop_;
  std::weak_ptr<idempotency_service> keys_;  // it answers to this, so it is not held by this
  std::vector<lookup_key> asked_;            // the first is looked at
  command command_;
  idempotency::resolution outcome_;
  std::optional<record> next_;  // what the change stores
  admin_reply reply_;
};

/// How many unknown outcomes are listed when nothing is said, and at most.
constexpr std::size_t unknown_default = 50;
constexpr std::size_t unknown_most = 500;

/// Lists unknown outcomes. One more than is shown is asked for, to see whether there are more.
void list_unknown(engine::loop& on, std::shared_ptr<idempotency_service> const& keys,
                  std::string_view query, admin_reply reply) {
  std::string scratch;
  std::size_t most = unknown_default;
  if (auto const text = http::query_value(query, "limit", scratch)) {
    auto const [end, fault] = std::from_chars(text->data(), text->data() + text->size(), most);
    if (fault != std::errc{} || end != text->data() + text->size() || most == 0 ||
        most > unknown_most) {
      reply(admin_problem(400, "limit is a number from 1 to 500."));
      return;
    }
  }
  auto made = [&on, most, owner = std::weak_ptr(keys),
               reply = std::move(reply)](store::list_answer const& answer) mutable {
    auto const there = owner.lock();
    if (!there) {
      return;  // the gateway ends
    }
    if (!answer) {
      reply(admin_problem(503, "The store of idempotency keys does not answer."));
      return;
    }
    auto const now = there->clock.at(on.now());
    std::string out = "{\"unknown\":[";
    std::size_t count = 0;
    for (auto const& [key, found] : *answer) {
      if (count < most && state_at(found, now) == record_state::unknown) {
        ++count;
        append_shown(out, key, found, record_state::unknown);
      }
    }
    json::writer(out).end_array().member("more", answer->size() > most).end_object();
    reply(admin_json(std::move(out)));
  };
  auto const carried = std::make_shared<decltype(made)>(std::move(made));
  keys->store->list_unknown(
      most + 1, engine::on_loop(on, [carried](store::list_answer answer) { (*carried)(answer); }));
}

}  // namespace

void answer_idempotency(engine::loop& on, std::shared_ptr<idempotency_service> const& keys,
                        admin_request const& request, admin_reply reply) {
  using enum wire::method;
  auto const begin = [&](std::vector<lookup_key> asked, command to_do,
                         idempotency::resolution outcome = {}) {
    if (!keys) {
      reply(admin_problem(404, "No route has idempotency keys."));
      return;
    }
    std::make_shared<operation>(on, keys, std::move(asked), to_do, outcome, std::move(reply))
        ->start();
  };
  bool const is_read = request.method == get || request.method == head;
  auto rest = std::string_view(request.path).substr(api_path.size());
  bool const is_root = rest.empty();
  rest.remove_prefix(std::min<std::size_t>(1, rest.size()));
  if (is_root || rest == "unknown" || rest == "lookup") {
    if (rest == "lookup" && !is_json(request.content_type)) {
      reply(admin_problem(415, "The Content-Type must be application/json."));
    } else if (!keys) {
      begin({}, command::look_up);
    } else if (rest == "unknown") {
      list_unknown(on, keys, request.query, std::move(reply));
    } else if (auto asked = is_root ? keys_asked_for(*keys, request.query)
                                    : keys_in(*keys, request.content)) {
      begin(*std::move(asked), command::look_up);
    } else {
      reply(admin_problem(400, asked.error()));
    }
    return;
  }
  auto const end_of_id = std::min(rest.find('/'), rest.size());
  auto const id = idempotency::parse_lookup_key(rest.substr(0, end_of_id));
  auto const action = rest.substr(end_of_id);
  if (!id || (!action.empty() && action != "/resolve")) {
    reply(admin_problem(404, "There is no such key."));
  } else if (action.empty()) {
    if (is_read || request.method == delete_) {
      begin({*id}, is_read ? command::look_up : command::purge);
    } else {
      reply(method_not_allowed("GET, HEAD, DELETE"));
    }
  } else if (request.method != post) {
    reply(method_not_allowed("POST"));
  } else if (!is_json(request.content_type)) {
    reply(admin_problem(415, "The Content-Type must be application/json."));
  } else if (auto const outcome = read_resolution(request.content)) {
    begin({*id}, command::resolve, *outcome);
  } else {
    reply(admin_problem(
        400, R"(The body must be {"outcome": "executed"} or {"outcome": "not-executed"}.)"));
  }
}

}  // namespace tidegate::gateway
