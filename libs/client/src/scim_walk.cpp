// SPDX-License-Identifier: Apache-2.0
#include <tidegate/client/scim_walk.hpp>

#include <tidegate/base/sha256.hpp>
#include <tidegate/json/string.hpp>
#include <tidegate/scim/service_provider_config.hpp>

#include "exchange.hpp"

#include <algorithm>
#include <utility>

namespace tidegate::client {

namespace {

using scim::pagination_method;
using scim::scim_type;

[[nodiscard]] auto id_of(json::value const& resource) -> std::string_view {
  auto const* const id = resource.find("id");
  auto const* const text = id == nullptr ? nullptr : id->if_string();
  return text == nullptr ? std::string_view() : std::string_view(*text);
}

/// `sort.supported` and the like.
[[nodiscard]] auto supports(json::value const& configuration, std::string_view feature) -> bool {
  auto const* const value = configuration.find(feature);
  auto const* const supported = value == nullptr ? nullptr : value->find("supported");
  return supported != nullptr && *supported == json::value(true);
}

[[nodiscard]] auto text_of(json::value const& from, std::string_view name) -> std::string {
  auto const* const value = from.find(name);
  auto const* const text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::string() : *text;
}

[[nodiscard]] auto number_of(json::value const& from, std::string_view name)
    -> std::optional<std::uint64_t> {
  auto const* const value = from.find(name);
  auto const* const number = value == nullptr ? nullptr : value->if_integer();
  return number == nullptr || *number < 0 ? std::nullopt
                                          : std::optional(static_cast<std::uint64_t>(*number));
}

[[nodiscard]] auto is_true(json::value const& from, std::string_view name) -> bool {
  auto const* const value = from.find(name);
  return value != nullptr && *value == json::value(true);
}

/// A URL without what stands behind "?" or "#".
[[nodiscard]] auto without_query(std::string_view url) -> std::string_view {
  return url.substr(0, url.find_first_of("?#"));
}

}  // namespace

auto name_of(scim_fault fault) noexcept -> std::string_view {
  switch (fault) {
    case scim_fault::no_answer: return "no-answer";
    case scim_fault::answer_too_large: return "answer-too-large";
    case scim_fault::refused: return "refused";
    case scim_fault::invalid_answer: return "invalid-answer";
    case scim_fault::place_lost: return "place-lost";
    case scim_fault::stuck: return "stuck";
    case scim_fault::no_way_back: break;
  }
  return "no-way-back";
}

auto to_string(scim_error const& error) -> std::string {
  std::string out;
  switch (error.fault) {
    case scim_fault::no_answer: out = "there is no answer"; break;
    case scim_fault::answer_too_large: out = "the answer is too large"; break;
    case scim_fault::refused: out = "the server answered " + std::to_string(error.status); break;
    case scim_fault::invalid_answer: out = "the answer is no list of resources"; break;
    case scim_fault::place_lost: out = "the server does not take its cursor any more"; break;
    case scim_fault::stuck: out = "the server brings nothing new and is not at its end"; break;
    case scim_fault::no_way_back: out = "the server gives no way back"; break;
  }
  if (auto const type = to_string(error.type); !type.empty()) {
    out.append(" ").append(type);
  }
  if (!error.detail.empty()) {
    out.append(": ").append(error.detail);
  }
  return out;
}

auto refusal_of(int status, std::string_view body) -> scim_error {
  scim_error out{.fault = scim_fault::refused, .status = status};
  if (auto read = scim::parse_error(body)) {
    out.type = read->type;
    out.detail = std::move(read->detail);
  } else if (auto const problem = json::parse(body)) {
    out.detail = text_of(*problem, "detail");
    if (out.detail.empty()) {
      out.detail = text_of(*problem, "title");
    }
  }
  return out;
}

auto to_json(scim_place const& place) -> std::string {
  json::object out;
  if (place.method) {
    out.append("method", *place.method == pagination_method::cursor ? "cursor" : "index");
  }
  out.append("cursor", place.cursor);
  out.append("start_index", static_cast<std::int64_t>(place.start_index));
  if (place.count) {
    out.append("count", static_cast<std::int64_t>(*place.count));
  }
  out.append("by_id", place.by_id);
  out.append("descending", place.descending);
  out.append("backward", place.backward);
  out.append("beyond", place.beyond);
  out.append("edge", place.edge);
  auto const& in_order = place.ids_in_order;
  out.append("ids_in_order", in_order ? json::value(std::int64_t(*in_order)) : json::value());
  if (place.total_results) {
    out.append("total_results", static_cast<std::int64_t>(*place.total_results));
  }
  out.append("shrunk", place.shrunk);
  return to_string(json::value(std::move(out)));
}

auto scim_place_of(json::value const& value) -> std::optional<scim_place> {
  auto const start_index = number_of(value, "start_index");
  if (!start_index) {
    return std::nullopt;
  }
  scim_place place{.cursor = text_of(value, "cursor"),
                   .start_index = *start_index,
                   .by_id = is_true(value, "by_id"),
                   .descending = is_true(value, "descending"),
                   .backward = is_true(value, "backward"),
                   .beyond = text_of(value, "beyond"),
                   .edge = text_of(value, "edge"),
                   .ids_in_order = number_of(value, "ids_in_order"),
                   .total_results = number_of(value, "total_results"),
                   .shrunk = is_true(value, "shrunk")};
  if (auto const method = text_of(value, "method"); !method.empty()) {
    place.method = method == "cursor" ? pagination_method::cursor : pagination_method::index;
  }
  if (auto const count = number_of(value, "count")) {
    place.count = static_cast<std::uint32_t>(*count);
  }
  return place;
}

scim_walk::scim_walk(scim_query query, scim_walk_options options)
    : query_(std::move(query)), options_(options), discovering_(options.discover) {
  if (query_.page_size > 0) {
    count_ = query_.page_size;
  }
  place_.count = count_;
  place_.descending = query_.descending;
  barren_max_ = options_.barren_pages_max;
}

scim_walk::scim_walk(scim_query query, scim_place place, scim_walk_options options)
    : query_(std::move(query)),
      options_(options),
      place_(std::move(place)),
      has_cursors_(place_.method == pagination_method::cursor),
      count_(place_.count),
      // Going back is not going through all of it.
      turned_(place_.backward) {
  discovering_ = options_.discover && !place_.method;
  barren_max_ = options_.barren_pages_max;
}

auto scim_walk::digest_of(std::string_view id) -> digest {
  auto const whole = sha256::of(id);
  digest part;
  std::copy_n(whole.begin(), part.size(), part.begin());
  return part;
}

void scim_walk::has_seen(std::string_view id) {
  if (seen_.size() >= options_.seen_max) {
    knows_all_seen_ = false;
    return;
  }
  seen_.insert(digest_of(id));
}

auto scim_walk::is_known(json::value const& resource) const -> bool {
  return seen_.contains(digest_of(id_of(resource)));
}

auto scim_walk::is_new(json::value const& resource) -> bool {
  auto const id = id_of(resource);
  if (id.empty()) {
    knows_all_seen_ = false;
    return true;
  }
  if (is_known(resource)) {
    return false;
  }
  has_seen(id);
  return true;
}

auto scim_walk::next() -> result<walk_step, scim_error> {
  if (failed_) {
    return failure(*failed_);
  }
  if (discovering_) {
    return walk_request{configuration_url()};
  }
  if (has_page_) {
    if (place_.backward && at_ > 0) {
      return &page_[--at_];
    }
    if (!place_.backward && at_ < page_.size()) {
      return &page_[at_++];
    }
    if (!leave_page()) {
      return walk_end{};
    }
    if (failed_) {
      return failure(*failed_);
    }
  }
  return walk_request{list_url()};
}

/// Makes `place_` that of the page behind the one that was given. False when there is none.
auto scim_walk::leave_page() -> bool {
  if (auto const& edge = place_.backward ? page_first_ : page_last_; !edge.empty()) {
    place_.edge = edge;
  }
  if (auto onward = next_place()) {
    place_ = *std::move(onward);
    return true;
  }
  if (has_no_way_back()) {
    find_another_way({.fault = scim_fault::no_way_back});
    return true;
  }
  if (turned_ || !knows_all_seen_ || (!place_.shrunk && !is_short())) {
    return false;
  }
  if (passes_ < options_.passes_max) {
    // What moved to the front of a place that was passed is found by going through all of it again.
    ++passes_;
    begin_anew();
    return true;
  }
  if (is_short() && news_ == 0 && total_least_ && seen_.size() < *total_least_) {
    // Nobody else's doing: all the while there were more than this server gives.
    fail({.fault = scim_fault::stuck,
          .detail = "it speaks of " + std::to_string(*total_least_) + " resources and gives " +
                    std::to_string(seen_.size())});
    return true;
  }
  return false;
}

/// Whether pages by index had fewer resources than the server says there are.
auto scim_walk::is_short() const -> bool {
  return place_.method == pagination_method::index && place_.beyond.empty() &&
         place_.total_results && seen_.size() < *place_.total_results;
}

auto scim_walk::next_place() const -> std::optional<scim_place> {
  auto place = place_;
  place.count = count_;
  if (place_.method == pagination_method::cursor) {
    place.cursor = place_.backward ? head_.previous_cursor : head_.next_cursor;
    return place.cursor.empty() ? std::nullopt : std::optional(std::move(place));
  }
  if (!place_.backward) {
    place.start_index = page_index_ + page_items_;
    bool const is_over =
        page_items_ == 0 || (place_.total_results && place.start_index > *place_.total_results);
    return is_over ? std::nullopt : std::optional(std::move(place));
  }
  if (page_index_ <= 1) {
    return std::nullopt;
  }
  auto const items = std::min<std::uint64_t>(std::max<std::size_t>(stride_, 1), page_index_ - 1);
  place.start_index = page_index_ - items;
  place.count = static_cast<std::uint32_t>(items);
  return place;
}

/// Whether there may be more before this page, which the server does not lead to.
auto scim_walk::has_no_way_back() const -> bool {
  if (!place_.backward) {
    return false;
  }
  bool const is_first =
      place_.method == pagination_method::index || page_cursor_.empty() || has_previous_cursors_;
  return !is_first || !place_.beyond.empty();
}

void scim_walk::take(int status, std::string_view body) {
  if (failed_) {
    return;
  }
  if (discovering_) {
    discovering_ = false;
    if (status == 200) {
      take_configuration(body);
    }
    return;
  }
  if (status != 200) {
    auto refusal = refusal_of(status, body);
    if (refusal.type != scim_type::too_many || !asks_for_less()) {
      take_refusal(std::move(refusal));
    }
    return;
  }
  if (body.size() > options_.answer.octets_max) {
    take(client_error{.fault = client_fault::response_too_large});
    return;
  }
  auto page = scim::parse_list_response(body, options_.answer);
  if (!page) {
    fail({scim_fault::invalid_answer, status, page.error().type, page.error().detail});
    return;
  }
  take_page(*std::move(page));
}

/// After a page that was too large: half as many resources, as long as that is possible.
auto scim_walk::asks_for_less() -> bool {
  constexpr std::uint32_t when_the_server_chose = 100;
  auto const before = count_.value_or(2 * when_the_server_chose);
  if (before <= 1) {
    return false;
  }
  count_ = place_.count = before / 2;
  return true;
}

void scim_walk::take(client_error const& error) {
  if (error.fault == client_fault::response_too_large && !discovering_) {
    if (!failed_ && !asks_for_less()) {
      fail({.fault = scim_fault::answer_too_large,
            .detail = "a page of one resource has more than the client takes"});
    }
    return;
  }
  fail({.fault = scim_fault::no_answer, .detail = to_string(error)});
}

void scim_walk::take_configuration(std::string_view body) {
  auto const read = json::parse(body, options_.answer);
  if (!read) {
    return;
  }
  place_.by_id = options_.sort_by_id && query_.sort_by.empty() && supports(*read, "sort") &&
                 supports(*read, "filter");
  auto const* const pagination = read->find("pagination");
  auto const support = scim::parse_pagination_support(body);
  if (pagination == nullptr || pagination->if_object() == nullptr || !support) {
    return;  // a server that says nothing may still have cursors
  }
  has_cursors_ = support->cursor;
  if (!support->cursor) {
    place_.method = pagination_method::index;
  }
  if (count_ && support->max_page_size) {
    count_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(*count_, *support->max_page_size));
    place_.count = count_;
  }
}

void scim_walk::take_refusal(scim_error error) {
  if (!place_.cursor.empty() && (error.status == 400 || error.status == 410)) {
    error.fault = scim_fault::place_lost;
    find_another_way(std::move(error));
  } else if (!asks_for_less(error)) {
    fail(std::move(error));
  }
}

/// Leaves something out that the server may not know. False when there is nothing, or nothing that
/// would help.
auto scim_walk::asks_for_less(scim_error const& error) -> bool {
  bool const is_first = place_.cursor.empty() && place_.start_index == 1;
  if (!is_first || (error.status != 400 && error.status != 403 && error.status != 501)) {
    return false;
  }
  if (!place_.beyond.empty()) {
    takes_ids_ = false;
    auto lost = error;
    lost.fault = scim_fault::place_lost;
    find_another_way(std::move(lost));
    return true;
  }
  if (error.status == 403 || error.type == scim_type::invalid_filter) {
    return false;
  }
  // NOLINTNEXTLINE(bugprone-branch-clone): the last does what the first does, after all else
  if (error.type == scim_type::invalid_count && count_) {
    count_ = place_.count = std::nullopt;
  } else if (place_.by_id) {
    place_.by_id = false;
  } else if (!place_.method && !has_cursors_) {
    place_.method = pagination_method::index;
  } else if (count_) {
    count_ = place_.count = std::nullopt;
  } else {
    return false;
  }
  return true;
}

void scim_walk::take_page(scim::list_response page) {
  if (std::ranges::any_of(page.resources,
                          [](json::value const& each) { return each.if_object() == nullptr; })) {
    fail({.fault = scim_fault::invalid_answer, .detail = "a resource is no object"});
    return;
  }
  if (is_too_long(page)) {
    fail({.fault = scim_fault::invalid_answer, .detail = "a cursor or an id is too long"});
    return;
  }
  bool const leads_on = !page.head.next_cursor.empty();
  if (!place_.method) {
    place_.method = leads_on || has_cursors_ ? pagination_method::cursor : pagination_method::index;
  } else if (leads_on && !page.head.start_index) {
    place_.method = pagination_method::cursor;  // of a server that has nothing else
  }
  if (place_.method == pagination_method::index && place_.total_results &&
      page.head.total_results && *page.head.total_results < *place_.total_results) {
    // Resources have moved forward, perhaps from this page to one that was read before.
    if (can_go_on_by_id()) {
      find_another_way({.fault = scim_fault::place_lost});
      return;
    }
    place_.shrunk = true;
  }
  if (page.head.total_results) {
    place_.total_results = page.head.total_results;
    total_least_ =
        std::min(total_least_.value_or(*page.head.total_results), *page.head.total_results);
  }
  if (place_.method == pagination_method::index && page.head.start_index &&
      *page.head.start_index != place_.start_index && !page.resources.empty() &&
      std::ranges::all_of(page.resources,
                          [this](json::value const& each) { return is_known(each); })) {
    find_another_way({.fault = scim_fault::stuck, .detail = "it does not follow startIndex"});
    return;
  }

  ++pages_;
  look_at_order(page.resources);
  has_page_ = true;
  page_cursor_ = place_.cursor;
  page_index_ = place_.start_index;
  page_items_ = page.resources.size();
  stride_ = std::max(stride_, page_items_);
  page_first_ = page.resources.empty() ? "" : id_of(page.resources.front());
  page_last_ = page.resources.empty() ? "" : id_of(page.resources.back());
  head_ = std::move(page.head);
  has_previous_cursors_ = has_previous_cursors_ || !head_.previous_cursor.empty();

  auto const known = seen_.size();
  page_ = std::move(page.resources);
  std::erase_if(page_, [this](json::value const& each) { return !is_new(each); });
  at_ = place_.backward ? page_.size() : 0;
  if (seen_.size() > known || seen_.size() >= options_.seen_max) {
    barren_ = 0;
    fruitless_ = 0;
    ++news_;
    return;
  }
  auto const& onward = place_.backward ? head_.previous_cursor : head_.next_cursor;
  if (++barren_ > barren_max_ || (!onward.empty() && onward == page_cursor_)) {
    fail({.fault = scim_fault::stuck});
  }
}

/// Whether something came that could not be asked with, nor kept in a place.
auto scim_walk::is_too_long(scim::list_response const& page) const -> bool {
  auto const is_long = [this](std::string_view text) {
    return text.size() > options_.text_octets_max;
  };
  return is_long(page.head.next_cursor) || is_long(page.head.previous_cursor) ||
         std::ranges::any_of(page.resources,
                             [&](json::value const& each) { return is_long(id_of(each)); });
}

/// Whether the ids are where the server was asked to have them.
void scim_walk::look_at_order(json::array const& resources) {
  if (!is_sorted_by_id() || !place_.ids_in_order) {
    return;
  }
  bool const is_down = place_.descending;
  std::string_view before = place_.backward ? std::string_view() : std::string_view(place_.edge);
  for (auto const& each : resources) {
    auto const id = id_of(each);
    if (id.empty() || (!before.empty() && (is_down ? id >= before : id <= before))) {
      place_.ids_in_order.reset();
      return;
    }
    before = id;
  }
  if (place_.backward && !place_.edge.empty() && !before.empty() &&
      (is_down ? before <= place_.edge : before >= place_.edge)) {
    place_.ids_in_order.reset();
    return;
  }
  *place_.ids_in_order += resources.size();
}

auto scim_walk::is_sorted_by_id() const -> bool {
  return place_.by_id || same_name(query_.sort_by, "id");
}

auto scim_walk::can_go_on_by_id() const -> bool {
  return is_sorted_by_id() && place_.ids_in_order && *place_.ids_in_order >= options_.order_proof &&
         takes_ids_ && !place_.edge.empty() && fruitless_ < options_.restarts_max;
}

void scim_walk::find_another_way(scim_error why) {
  if (can_go_on_by_id()) {
    ++restarts_;
    ++fruitless_;
    place_.descending = place_.descending != place_.backward;
    place_.backward = false;
    place_.beyond = place_.edge;
    place_.cursor.clear();
    place_.start_index = 1;
    place_.count = count_;
    place_.total_results.reset();
    has_page_ = false;
  } else if (!turned_ && knows_all_seen_ && anew_ < options_.restarts_max) {
    ++restarts_;
    ++anew_;
    begin_anew();
  } else {
    fail(std::move(why));
  }
}

void scim_walk::begin_anew() {
  place_ = {.method = place_.method,
            .count = count_,
            .by_id = place_.by_id,
            .descending = query_.descending,
            .ids_in_order = place_.ids_in_order};
  has_page_ = false;
  news_ = 0;
  total_least_.reset();
  barren_ = 0;
  barren_max_ = options_.barren_pages_max + pages_;
}

void scim_walk::turn() {
  if (!has_page_) {
    fail({.fault = scim_fault::no_way_back});
    return;
  }
  turned_ = true;
  place_.backward = !place_.backward;
  place_.edge.clear();  // that of this page is taken when it is left
  seen_.clear();
  for (auto const& each : page_) {
    has_seen(id_of(each));
  }
}

void scim_walk::fail(scim_error error) {
  failed_ = std::move(error);
}

auto scim_walk::list_url() const -> std::string {
  scim::list_request request{.method = place_.method.value_or(pagination_method::cursor),
                             .cursor = place_.cursor,
                             .count = place_.count,
                             .start_index = place_.start_index,
                             .sort_by = place_.by_id ? "id" : query_.sort_by,
                             .descending = place_.descending,
                             .attributes = query_.attributes,
                             .excluded_attributes = query_.excluded_attributes};
  if (!query_.filter.empty()) {
    request.filter = query_.filter;
  }
  if (!place_.beyond.empty()) {
    std::string condition = place_.descending ? "id lt " : "id gt ";
    json::append_string(condition, place_.beyond);
    request.filter = query_.filter.empty() ? condition : "(" + query_.filter + ") and " + condition;
  }
  auto url = query_.url.substr(0, query_.url.find('#'));
  url += url.find('?') == std::string::npos ? '?' : '&';
  scim::append_list_query(url, request);
  return url;
}

auto scim_walk::configuration_url() const -> std::string {
  auto url = without_query(query_.url);
  if (url.ends_with('/')) {
    url.remove_suffix(1);
  }
  auto const scheme = url.find("://");
  auto const host = scheme == std::string_view::npos ? 0 : scheme + 3;
  if (auto const slash = url.rfind('/'); slash != std::string_view::npos && slash > host) {
    url = url.substr(0, slash);
  }
  return std::string(url) + "/ServiceProviderConfig";
}

}  // namespace tidegate::client
