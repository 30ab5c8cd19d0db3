// SPDX-License-Identifier: Apache-2.0
//
// What an exchange does for a request to the SCIM service: it collects the content, asks, and sends the answer.
#include "request/exchange_service.hpp"

#include <tidegate/http/accept.hpp>
#include "exchange.hpp"
#include "request/request_values.hpp"

#include <tidegate/http/forwarded.hpp>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

namespace tidegate::gateway {

namespace {

using wire::known_field;

/// A turn of a loop that has lasted longer than this leaves reads of the directory to its threads.
constexpr std::chrono::milliseconds turn_time_max{4};

/// How much of `path` the pattern of a route matches without its `/**`.
[[nodiscard]] auto base_size(std::string_view pattern, std::string_view path) -> std::size_t {
  auto segments = std::ranges::count(pattern, '/') - 1;
  std::size_t at = 0;
  while (segments-- > 0 && at < path.size()) {
    at = std::min(path.find('/', at + 1), path.size());
  }
  return at;
}

}  // namespace

auto exchange::path_below_base(std::string_view path) const -> std::string_view {
  return path.substr(base_size(route_of().settings->match.path, path));
}

auto exchange::scim_request_of(wire::request_head const& request, std::string_view path,
                               client_address const& from) -> scim_request {
  auto const& settings = *route_of().settings;
  scim_request made;
  made.owner = runtime_->settings;
  made.options = &*settings.scim;
  made.route = settings.name;
  made.has_auth = settings.auth.has_value();
  made.method = request.method_text();
  made.path = path_below_base(path);
  scim_operation_ = scim_operation_of(made.method, made.path);
  auto query = request.query();
  query.remove_prefix(std::min<std::size_t>(1, query.size()));
  made.query = query;
  made.base = settings.scim->public_url;
  if (made.base.empty() && !request.authority().empty()) {
    auto const client = find_forwarded_client(request, from, *runtime_->settings, worker_.lines);
    made.base.assign(http::x_forwarded_proto(client.proto, true, from.scheme));
    made.base.append("://").append(http::x_forwarded_host(client.host, true, request.authority()));
  }
  if (!has_path(made.base)) {
    made.base.append(path.substr(0, path.size() - made.path.size()));
  }
  made.tenant = context_.token != nullptr ? context_.token->tenant : "default";
  made.principal = context_.token != nullptr ? context_.token->name : "";
  made.read_only = context_.token != nullptr && context_.token->read_only;
  made.content_type = request.value_of(known_field::content_type);
  made.accept = accepted_types(request);
  made.if_match = request.value_of(known_field::if_match);
  made.if_none_match = request.value_of(known_field::if_none_match);
  return made;
}

void exchange::begin_service(wire::request_head const& request, std::string_view path,
                             client_address const& from) {
  service_ = std::make_shared<service_call>(*this, scim_request_of(request, path, from),
                                            wire::body_decoder(request.body()));
  if (request.body().kind == wire::body_kind::content_length &&
      request.body().length > service_->request.content_octets_max()) {
    refuse_content();
    return;
  }
  invite_content(request);
  if (request_done_) {
    ask_service();
  }
}

void exchange::invite_content(wire::request_head const& request) {
  if (!request.has(known_field::expect) || request_done_) {
    return;
  }
  constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
  if (wire::parse_response_head(go_on, 0, {}, context_.method, worker_.response).state ==
      wire::head_state::complete) {
    client_->send_interim(worker_.response);
  }
}

void exchange::refuse_content() {
  auto const most = std::to_string(service_->request.content_octets_max());
  auto answer =
      scim_error_answer({413, scim::scim_type::none,
                         "The content is longer than the " + most + " octets that are allowed."});
  set_accepted_type(answer, service_->request.accept);
  context_.reason = "body-too-large";
  answer_service(std::move(answer));
}

void exchange::service_content(std::string_view framed, bool last) {
  auto& call = *service_;
  while (!framed.empty() && !call.decoder.done()) {
    auto const fed = call.decoder.feed(framed);
    auto& content = call.request.content;
    if (content.size() + fed.content.size() > call.request.content_octets_max()) {
      refuse_content();
      return;
    }
    content.append(fed.content);
    if (fed.consumed == 0 || fed.state == wire::body_state::refused) {
      break;  // what is broken was refused by whoever read it from the client
    }
    framed.remove_prefix(fed.consumed);
  }
  if (last) {
    ask_service();
  } else {
    count_held();
  }
}

void exchange::ask_service() {
  if (!client_->may_ask_directory()) {
    service_->waits = true;
    count_held();
    return;
  }
  auto const call = std::weak_ptr(service_);
  auto request = std::move(service_->request);
  service_->asked_octets = request.content.size();
  count_held();
  bool const has_time =
      !client_->is_clogged() &&
      std::chrono::steady_clock::now().time_since_epoch() - worker_.loop.now().time_since_epoch() <
          turn_time_max;
  worker_.shared.scim->handle(std::move(request), has_time,
                              answered_on(worker_.loop, [call](scim_answer answer) {
                                auto const there = call.lock();
                                if (!there || there->of == nullptr) {
                                  return;
                                }
                                auto* const client = there->of->client_;
                                try {
                                  there->of->answer_service(std::move(answer));
                                } catch (std::bad_alloc const&) {
                                  client->give_up();
                                  throw;
                                }
                              }));
}

void exchange::answer_service(scim_answer answer, std::optional<std::string_view> limit_lines) {
  context_.status = answer.status;
  auto& lines = worker_.field_lines;
  lines.assign(worker_.date_line());
  for (auto const& field : answer.fields) {
    wire::append_field(lines, field.name, std::string_view(field.value));
  }
  if (limit_lines) {
    lines.append(*limit_lines);
  } else {
    append_limit_fields(lines, nullptr, context_.status);
  }
  auto const size = answer.content_begin.size() + answer.content.size();
  if (context_.method == wire::method::head) {
    service_.reset();
    auto* const client = end();
    client->send_own_head(answer.status, lines, size);
    client->send_end();
    return;
  }
  service_.reset();
  context_.response_octets = size;
  local_response response{.status = answer.status,
                          .field_lines = lines,
                          .content = answer.content,
                          .closes = answer.status == 413,  // the rest is not waited for
                          .is_whole = true,
                          .content_begin = answer.content_begin};
  if (answer.content.size() >= large_octets_min) {
    auto kept = std::make_shared<std::string const>(std::move(answer.content));
    response.content = *kept;
    response.owner = std::move(kept);
  }
  end()->send_local(response);
}

}  // namespace tidegate::gateway
