// SPDX-License-Identifier: Apache-2.0
#include "phases/scim/bridge.hpp"

#include "request/caller.hpp"

#include <tidegate/wire/http1_write.hpp>

#include <sys/random.h>

namespace tidegate::gateway {

namespace {

using scim::pagination_method;
using wire::known_field;

constexpr json::limits answer_limits{.octets_max = bridged_octets_max};

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

/// Who asks: as the gateway knows it, else by what the upstream knows it by.
[[nodiscard]] auto cursor_holder_of(request_context const& context) -> std::string {
  auto const who = principal_of(context);
  return std::string(who.empty() ? context.head->value_of(known_field::authorization) : who);
}

[[nodiscard]] auto last_segment(std::string_view path) -> std::string_view {
  return path.substr(path.rfind('/') + 1);
}

[[nodiscard]] auto has_parameter(std::string_view query, std::string_view lower_case_name) -> bool {
  while (!query.empty()) {
    auto const pair = take_until(query, '&');
    if (equal_ignoring_case(pair.substr(0, pair.find('=')), lower_case_name)) {
      return true;
    }
  }
  return false;
}

}  // namespace

auto bridge_subject_of(request_context const& context) -> std::optional<bridge_subject> {
  auto const& options = *context.route_settings().settings->bridge;
  auto query = context.head->query();
  query.remove_prefix(std::min<std::size_t>(1, query.size()));
  if (context.method == wire::method::post && last_segment(context.path) == ".search") {
    return bridge_subject::search;
  }
  if (context.method != wire::method::get) {
    return std::nullopt;
  }
  if (last_segment(context.path) == "ServiceProviderConfig") {
    return bridge_subject::abilities;
  }
  if (has_parameter(query, "cursor")) {
    return bridge_subject::list;
  }
  if (options.default_method == scim::pagination_method::cursor &&
      !has_parameter(query, "startindex")) {
    return bridge_subject::list_or_resource;
  }
  return std::nullopt;
}

void open_head(std::string& head) {
  head.resize(head.size() - 2);
  constexpr std::string_view no_content = "Content-Length: 0\r\n";
  if (auto const at = head.find("\r\n" + std::string(no_content)); at != std::string::npos) {
    head.erase(at + 2, no_content.size());
  }
}

bridge_phase::bridge_phase(request_context const& context, bridge_subject subject,
                           scim::cursor_sealer const& cursors)
    : cursors_(cursors),
      options_(*context.route_settings().settings->bridge),
      subject_(subject),
      endpoint_(context.path),
      principal_(cursor_holder_of(context)),
      decoder_(context.head->body()) {
  if (subject == bridge_subject::search) {
    endpoint_.resize(context.path.rfind('/'));
  }
}

auto bridge_phase::find_page(scim::list_request asked, scim::wall_time now)
    -> result<void, scim::error> {
  asked_ = std::move(asked);
  filter_ = scim::bridged_filter(asked_.filter.value_or(""));
  TIDEGATE_TRY(page_, scim::bridge_request(asked_, cursors_, binding(), options_, now));
  return {};
}

auto bridge_phase::binding() const -> scim::cursor_binding {
  scim::cursor_binding made;
  made.principal = principal_;
  made.endpoint = endpoint_;
  made.filter = filter_;
  made.sort_by = asked_.sort_by;
  made.descending = asked_.descending;
  made.attributes = asked_.attributes;
  made.excluded_attributes = asked_.excluded_attributes;
  return made;
}

auto bridge_phase::make_target(request_context const& context, scim::wall_time now)
    -> result<std::string, scim::error> {
  std::string target(context.path);
  auto query = context.head->query();
  query.remove_prefix(std::min<std::size_t>(1, query.size()));
  if (subject_ == bridge_subject::abilities) {
    return target.append(context.head->query());
  }
  TIDEGATE_TRY(auto asked, scim::parse_list_query(query, options_));
  TIDEGATE_TRY_VOID(find_page(std::move(asked), now));
  return target.append("?").append(scim::bridged_query(query, page_));
}

auto bridge_phase::take_content(std::string_view framed) -> result<void, scim::error> {
  while (!framed.empty() && !decoder_.done()) {
    auto const fed = decoder_.feed(framed);
    if (content_.size() + fed.content.size() > search_octets_max) {
      return failure(scim::error{413, scim::scim_type::none, "The search is larger than allowed."});
    }
    content_.append(fed.content);
    if (fed.consumed == 0 || fed.state == wire::body_state::refused) {
      break;  // what is broken was refused when it was read from the client
    }
    framed.remove_prefix(fed.consumed);
  }
  return {};
}

auto bridge_phase::make_search(scim::wall_time now) -> result<std::string, scim::error> {
  auto asked = scim::parse_search_request(content_, options_);
  if (!asked && asked.error().type != scim::scim_type::invalid_syntax) {
    return failure(asked.error());
  }
  // A search without a cursor goes through as it is: its faults are for the upstream to tell.
  goes_through_ = !asked || asked->method != pagination_method::cursor;
  if (goes_through_) {
    return std::exchange(content_, {});
  }
  TIDEGATE_TRY_VOID(find_page(*std::move(asked), now));
  TIDEGATE_TRY(auto made, scim::bridged_search(content_, page_));
  content_.clear();
  return made;
}

auto bridge_phase::takes_answer(wire::response_head const& head, wire::field_set const& drop)
    -> bool {
  if (goes_through_ || head.status() != 200 ||
      !scim::is_json(head.value_of(known_field::content_type)) ||
      head.has(known_field::content_encoding)) {
    goes_through_ = true;
    return false;
  }
  for (auto const& field : head.fields()) {
    if (!is_left_out(field.known) && !wire::is_of_connection(head, field) &&
        !drop.contains(field.known)) {
      fields_.push_back({std::string(field.name), std::string(field.value)});
    }
  }
  return true;
}

auto bridge_phase::take_body(std::string_view content) -> result<void, scim::error> {
  if (answer_.size() + content.size() > bridged_octets_max) {
    return failure(scim::error{502, scim::scim_type::none,
                               "The server behind this gateway sent a page that is too large."});
  }
  answer_.append(content);
  return {};
}

auto bridge_phase::finish(scim::wall_time now) -> scim_answer {
  auto changed = [&]() -> result<std::string, scim::error> {
    if (subject_ == bridge_subject::abilities) {
      return scim::bridge_service_provider_config(answer_, options_, answer_limits);
    }
    scim::bridge_nonces random{};
    if (::getrandom(&random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) {
      return failure(scim::error{500, scim::scim_type::none, "The cursor could not be created."});
    }
    return scim::bridge_response(answer_, page_, cursors_, binding(), options_, now, random,
                                 answer_limits);
  }();
  if (!changed && subject_ == bridge_subject::list_or_resource) {
    changed = std::move(answer_);  // one resource
  }
  if (!changed) {
    limit_lines_.clear();
    return scim_error_answer(
        {502, scim::scim_type::none,
         "The server behind this gateway sent a response that is not a list: " +
             changed.error().detail});
  }
  return {.status = 200, .fields = std::move(fields_), .content = *std::move(changed)};
}

void bridge_phase::drop_answer() {
  fields_.clear();
  limit_lines_.clear();
  answer_.clear();
}

}  // namespace tidegate::gateway
