// SPDX-License-Identifier: Apache-2.0
//
// What an exchange does on a route with `bridge: scim-cursor`: pages by cursor are made of the upstream's pages by
// index, and its ServiceProviderConfig says so. Everything else goes through as it is.
#include "exchange.hpp"
#include "request/field_names.hpp"

#include <tidegate/base/sha256.hpp>
#include <tidegate/json/parse.hpp>

#include <sys/random.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

namespace tidegate::gateway {

namespace {

using scim::pagination_method;
using wire::known_field;

constexpr json::limits answer_limits{.octets_max = bridged_octets_max};

[[nodiscard]] auto now_on_the_wall() -> scim::wall_time {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

[[nodiscard]] auto last_segment(std::string_view path) -> std::string_view {
  return path.substr(path.rfind('/') + 1);
}

[[nodiscard]] auto has_parameter(std::string_view query, std::string_view lower_case_name) -> bool {
  while (!query.empty()) {
    auto const end = std::min(query.find('&'), query.size());
    auto const pair = query.substr(0, end);
    if (equal_names(pair.substr(0, pair.find('=')), lower_case_name)) {
      return true;
    }
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return false;
}

[[nodiscard]] auto is_json(std::string_view content_type) -> bool {
  auto type = content_type.substr(0, content_type.find(';'));
  while (type.ends_with(' ') || type.ends_with('\t')) {
    type.remove_suffix(1);
  }
  return equal_names(type, "application/scim+json") || equal_names(type, "application/json");
}

/// What says something of the upstream's octets, and not of what the client gets.
[[nodiscard]] auto is_left_out(known_field name) -> bool {
  switch (name) {
    case known_field::content_length:
    case known_field::trailer:
    case known_field::date:
    case known_field::etag:
    case known_field::accept_ranges: return true;
    default: return false;
  }
}

}  // namespace

/// False for what goes through as it is.
auto exchange::begin_bridge(wire::request_head const& request, std::string_view path,
                            client_address const& from) -> bool {
  auto const& options = *route_of().settings->bridge;
  auto query = request.query();
  query.remove_prefix(std::min<std::size_t>(1, query.size()));
  auto call = std::make_unique<bridge_call>();
  call->endpoint = path;
  if (context_.method == wire::method::post && last_segment(path) == ".search") {
    call->what = bridge_call::subject::search;
    call->endpoint.resize(path.rfind('/'));
  } else if (context_.method != wire::method::get) {
    return false;
  } else if (last_segment(path) == "ServiceProviderConfig") {
    call->what = bridge_call::subject::abilities;
  } else if (has_parameter(query, "cursor")) {
    call->what = bridge_call::subject::list;
  } else if (options.default_method == pagination_method::cursor &&
             !has_parameter(query, "startindex")) {
    call->what = bridge_call::subject::list_or_resource;
  } else {
    return false;
  }
  holdable const held{request, from};
  if (is_overloaded()) {
    respond();
    return true;
  }
  if (admit(&held) != admission::admitted) {
    return true;
  }
  // Who asks: as the gateway knows it, else by what the upstream knows it by.
  call->principal = context_.token != nullptr
                        ? context_.token->name
                        : std::string(request.value_of(known_field::authorization));

  // The answer has to be read, and is made anew.
  forwarding how{.drop = {known_field::accept_encoding, known_field::if_none_match,
                          known_field::if_modified_since, known_field::range, known_field::expect}};
  request_.clear();
  if (call->what == bridge_call::subject::search) {
    how.body = wire::body_framing{};
    call->decoder = wire::body_decoder(request.body());
    append_forwarded_head(request_, request, path, from, how);
    // How long the content will be is not known yet: neither the empty line, nor that there is none.
    request_.resize(request_.size() - 2);
    constexpr std::string_view no_content = "Content-Length: 0\r\n";
    if (auto const at = request_.find("\r\n" + std::string(no_content)); at != std::string::npos) {
      request_.erase(at + 2, no_content.size());
    }
    bridge_ = std::move(call);
    invite_content(request);
    if (request_done_) {
      bridge_content({}, true);
    }
    return true;
  }
  std::string target(path);
  if (call->what != bridge_call::subject::abilities) {
    auto asked = scim::parse_list_query(query, options);
    auto page = asked ? find_bridged_page(*call, *std::move(asked))
                      : result<scim::bridged_page, scim::error>(failure(asked.error()));
    if (!page) {
      answer_service(scim_error_answer(page.error()));
      return true;
    }
    call->page = *page;
    target.append("?").append(scim::bridged_query(query, call->page));
    how.target = target;
  }
  append_forwarded_head(request_, request, path, from, how);
  may_retry_ = request.body().kind == wire::body_kind::none;
  bridge_ = std::move(call);
  send_when_whole(request);
  return true;
}

auto exchange::find_bridged_page(bridge_call& call, scim::list_request asked) const
    -> result<scim::bridged_page, scim::error> {
  call.asked = std::move(asked);
  call.filter = scim::bridged_filter(call.asked.filter.value_or(""));
  return scim::bridge_request(call.asked, *worker_.shared.bridge_cursors, call.binding(),
                              *route_of().settings->bridge, now_on_the_wall());
}

auto bridge_call::binding() const -> scim::cursor_binding {
  scim::cursor_binding made;
  made.principal = principal;
  made.endpoint = endpoint;
  made.filter = filter;
  made.sort_by = asked.sort_by;
  made.descending = asked.descending;
  made.attributes = asked.attributes;
  made.excluded_attributes = asked.excluded_attributes;
  return made;
}

/// The content of a search, framed as it came.
void exchange::bridge_content(std::string_view framed, bool last) {
  auto& call = *bridge_;
  while (!framed.empty() && !call.decoder.done()) {
    auto const fed = call.decoder.feed(framed);
    if (call.content.size() + fed.content.size() > bridge_call::search_octets_max) {
      answer_service(scim_error_answer(
          {413, scim::scim_type::none, "The search is longer than the octets that are allowed."}));
      return;
    }
    call.content.append(fed.content);
    if (fed.consumed == 0 || fed.state == wire::body_state::refused) {
      break;  // what is broken was refused by whoever read it from the client
    }
    framed.remove_prefix(fed.consumed);
  }
  if (!last) {
    count_held();
    return;
  }
  // What is no search by cursor goes through as it is: its faults are for the upstream to tell.
  bool goes_through = true;
  auto asked = scim::parse_search_request(call.content, *route_of().settings->bridge);
  if (!asked && asked.error().type != scim::scim_type::invalid_syntax) {
    answer_service(scim_error_answer(asked.error()));
    return;
  }
  if (asked && asked->method == pagination_method::cursor) {
    auto const page = find_bridged_page(call, *std::move(asked));
    auto content = page ? scim::bridged_search(call.content, *page)
                        : result<std::string, scim::error>(failure(page.error()));
    if (!content) {
      answer_service(scim_error_answer(content.error()));
      return;
    }
    call.page = *page;
    call.content = *std::move(content);
    goes_through = false;
  }
  request_.append("Content-Length: ")
      .append(std::to_string(call.content.size()))
      .append("\r\n\r\n")
      .append(call.content);
  if (goes_through) {
    bridge_.reset();
  }
  send_upstream(false);
}

/// True when the answer is kept, to be changed when it is all there.
auto exchange::bridge_head(wire::response_head const& head) -> bool {
  if (head.status() != 200 || !is_json(head.value_of(known_field::content_type)) ||
      head.has(known_field::content_encoding)) {
    bridge_.reset();
    return false;
  }
  context_.status = head.status();
  context_.answered_at = worker_.loop.now();
  auto const& drop = route_of().fields_made_anew;
  for (auto const& field : head.fields()) {
    if (!is_left_out(field.known) && !wire::is_of_connection(head, field) &&
        !drop.contains(field.known)) {
      bridge_->fields.push_back({std::string(field.name), std::string(field.value)});
    }
  }
  append_limit_fields(bridge_->limit_lines, &head, context_.status);
  return true;
}

void exchange::bridge_body(std::string_view content) {
  if (bridge_->answer.size() + content.size() > bridged_octets_max) {
    std::exchange(upstream_, nullptr)->abandon();
    answer_service(scim_error_answer(
        {502, scim::scim_type::none, "The server behind gave a page that is too large."}));
    return;
  }
  bridge_->answer.append(content);
  count_held();
}

void exchange::bridge_done() {
  auto const call = std::move(bridge_);
  auto const& options = *route_of().settings->bridge;
  auto changed = [&]() -> result<std::string, scim::error> {
    if (call->what == bridge_call::subject::abilities) {
      return scim::bridge_service_provider_config(call->answer, options, answer_limits);
    }
    scim::bridge_nonces random{};
    if (::getrandom(&random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) {
      return failure(scim::error{500, scim::scim_type::none, "The cursor could not be made."});
    }
    return scim::bridge_response(call->answer, call->page, *worker_.shared.bridge_cursors,
                                 call->binding(), options, now_on_the_wall(), random,
                                 answer_limits);
  }();
  if (!changed && call->what == bridge_call::subject::list_or_resource) {
    changed = std::move(call->answer);  // one resource
  }
  if (!changed) {
    answer_service(scim_error_answer(
        {502, scim::scim_type::none,
         "The server behind gave an answer that is no list: " + changed.error().detail}));
    return;
  }
  answer_service({.status = 200, .fields = std::move(call->fields), .content = *std::move(changed)},
                 call->limit_lines);
}

}  // namespace tidegate::gateway
