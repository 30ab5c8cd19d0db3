// SPDX-License-Identifier: Apache-2.0
#include <tidegate/client/scim_walk.hpp>

#include <tidegate/base/ascii.hpp>
#include <tidegate/base/sha256.hpp>
#include <tidegate/json/string.hpp>
#include <tidegate/scim/service_provider_config.hpp>

#include "exchange.hpp"

#include <algorithm>
#include <utility>

namespace tidegate::TIDEGATE_ABI::client {

namespace {

using scim::pagination_method;
using scim::scim_type;

[[nodiscard]] auto id_of(json::value const& resource) -> std::string_view {
  return text_of(resource, "id");
}

/// `sort.supported` and the like.
[[nodiscard]] auto supports(json::value const& configuration, std::string_view feature) -> bool {
  auto const* const value = configuration.find(feature);
  return value != nullptr && is_true(*value, "supported");
}

/// Of ServiceProviderConfig, beside the resources at `url`.
[[nodiscard]] auto configuration_url(std::string_view url) -> std::string {
  url = url.substr(0, url.find_first_of("?#"));
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

/// Whether a cursor or an id is too long to be sent back in a URL, or to be kept in a position.
[[nodiscard]] auto is_too_long(scim::list_response const& page, std::size_t octets_max) -> bool {
  auto const is_long = [&](std::string_view text) { return text.size() > octets_max; };
  return is_long(page.head.next_cursor) || is_long(page.head.previous_cursor) ||
         std::ranges::any_of(page.resources,
                             [&](json::value const& each) { return is_long(id_of(each)); });
}

}  // namespace

auto seen_ids::digest_of(std::string_view id) -> digest {
  auto const whole = sha256::of(id);
  digest part;
  std::copy_n(whole.begin(), part.size(), part.begin());
  return part;
}

void seen_ids::add(std::string_view id) {
  if (digests_.size() >= count_max_) {
    is_complete_ = false;
    return;
  }
  digests_.insert(digest_of(id));
}

auto seen_ids::contains(json::value const& resource) const -> bool {
  return digests_.contains(digest_of(id_of(resource)));
}

auto seen_ids::add_new(json::value const& resource) -> bool {
  auto const id = id_of(resource);
  if (id.empty()) {
    is_complete_ = false;
    return true;
  }
  if (contains(resource)) {
    return false;
  }
  add(id);
  return true;
}

scim_walk::scim_walk(scim_query query, scim_walk_options options)
    : query_(std::move(query)),
      options_(options),
      discovering_(options.discover),
      seen_(options.seen_max) {
  if (query_.page_size > 0) {
    server_.count = query_.page_size;
  }
  position_.count = server_.count;
  position_.descending = query_.descending;
  attempts_.barren_pages_max = options_.barren_pages_max;
}

scim_walk::scim_walk(scim_query query, scim_position position, scim_walk_options options)
    : query_(std::move(query)),
      options_(options),
      position_(std::move(position)),
      seen_(options.seen_max),
      // Going back is not going through all of it.
      turned_(position_.backward) {
  server_.has_cursors = position_.method == pagination_method::cursor;
  server_.count = position_.count;
  discovering_ = options_.discover && !position_.method;
  attempts_.barren_pages_max = options_.barren_pages_max;
}

auto scim_walk::next() -> result<walk_step, scim_error> {
  if (failed_) {
    return failure(*failed_);
  }
  if (discovering_) {
    return walk_request{configuration_url(query_.url)};
  }
  if (has_page_) {
    if (position_.backward && page_.at > 0) {
      return &page_.resources[--page_.at];
    }
    if (!position_.backward && page_.at < page_.resources.size()) {
      return &page_.resources[page_.at++];
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

/// Makes `position_` that of the page behind the one that was given. False when there is none.
auto scim_walk::leave_page() -> bool {
  if (auto const& edge = position_.backward ? page_.first_id : page_.last_id; !edge.empty()) {
    position_.edge = edge;
  }
  if (auto next = next_position()) {
    position_ = *std::move(next);
    return true;
  }
  if (has_no_way_back()) {
    find_another_way({.fault = scim_fault::no_way_back});
    return true;
  }
  if (turned_ || !seen_.is_complete() || (!position_.shrunk && !is_short())) {
    return false;
  }
  if (attempts_.passes < options_.passes_max) {
    // What moved to the front of a place that was passed is found by going through all of it again.
    ++attempts_.passes;
    start_again();
    return true;
  }
  if (is_short() && index_pass_.fruitful_pages == 0 && index_pass_.total_least &&
      seen_.size() < *index_pass_.total_least) {
    // No change by others explains it: all the while there were more than this server gives.
    fail({.fault = scim_fault::stuck,
          .detail = "it says that there are " + std::to_string(*index_pass_.total_least) +
                    " resources and gives " + std::to_string(seen_.size())});
    return true;
  }
  return false;
}

/// Whether pages by index had fewer resources than the server says there are.
auto scim_walk::is_short() const -> bool {
  return position_.method == pagination_method::index && position_.beyond.empty() &&
         position_.total_results && seen_.size() < *position_.total_results;
}

auto scim_walk::next_position() const -> std::optional<scim_position> {
  auto next = position_;
  next.count = server_.count;
  if (position_.method == pagination_method::cursor) {
    next.cursor = position_.backward ? page_.head.previous_cursor : page_.head.next_cursor;
    return next.cursor.empty() ? std::nullopt : std::optional(std::move(next));
  }
  if (!position_.backward) {
    next.start_index = page_.start_index + page_.items;
    bool const is_over = page_.items == 0 ||
                         (position_.total_results && next.start_index > *position_.total_results);
    return is_over ? std::nullopt : std::optional(std::move(next));
  }
  if (page_.start_index <= 1) {
    return std::nullopt;
  }
  auto const items =
      std::min<std::uint64_t>(std::max<std::size_t>(stride_, 1), page_.start_index - 1);
  next.start_index = page_.start_index - items;
  next.count = static_cast<std::uint32_t>(items);
  return next;
}

/// Whether there may be more before this page, which the server does not lead to.
auto scim_walk::has_no_way_back() const -> bool {
  if (!position_.backward) {
    return false;
  }
  bool const is_first = position_.method == pagination_method::index || page_.cursor.empty() ||
                        server_.has_previous_cursors;
  return !is_first || !position_.beyond.empty();
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
    if (refusal.type != scim_type::too_many || !ask_for_smaller_page()) {
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
auto scim_walk::ask_for_smaller_page() -> bool {
  constexpr std::uint32_t when_the_server_chose = 100;
  auto const before = server_.count.value_or(2 * when_the_server_chose);
  if (before <= 1) {
    return false;
  }
  server_.count = position_.count = before / 2;
  return true;
}

void scim_walk::take(client_error const& error) {
  if (error.fault == client_fault::response_too_large && !discovering_) {
    if (!failed_ && !ask_for_smaller_page()) {
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
  position_.by_id = options_.sort_by_id && query_.sort_by.empty() && supports(*read, "sort") &&
                    supports(*read, "filter");
  auto const* const pagination = read->find("pagination");
  auto const support = scim::parse_pagination_support(body);
  if (pagination == nullptr || pagination->if_object() == nullptr || !support) {
    return;  // a server that says nothing may still have cursors
  }
  server_.has_cursors = support->cursor;
  if (!support->cursor) {
    position_.method = pagination_method::index;
  }
  if (server_.count && support->max_page_size) {
    server_.count = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(*server_.count, *support->max_page_size));
    position_.count = server_.count;
  }
}

void scim_walk::take_refusal(scim_error error) {
  if (!position_.cursor.empty() && (error.status == 400 || error.status == 410)) {
    error.fault = scim_fault::place_lost;
    find_another_way(std::move(error));
  } else if (!drop_parameter(error)) {
    fail(std::move(error));
  }
}

/// Leaves something out that the server may not know. False when there is nothing, or nothing that
/// would help.
auto scim_walk::drop_parameter(scim_error const& error) -> bool {
  bool const is_first = position_.cursor.empty() && position_.start_index == 1;
  if (!is_first || (error.status != 400 && error.status != 403 && error.status != 501)) {
    return false;
  }
  if (!position_.beyond.empty()) {
    server_.takes_ids = false;
    auto lost = error;
    lost.fault = scim_fault::place_lost;
    find_another_way(std::move(lost));
    return true;
  }
  if (error.status == 403 || error.type == scim_type::invalid_filter) {
    return false;
  }
  // NOLINTNEXTLINE(bugprone-branch-clone): the last does what the first does, after all else
  if (error.type == scim_type::invalid_count && server_.count) {
    server_.count = position_.count = std::nullopt;
  } else if (position_.by_id) {
    position_.by_id = false;
  } else if (!position_.method && !server_.has_cursors) {
    position_.method = pagination_method::index;
  } else if (server_.count) {
    server_.count = position_.count = std::nullopt;
  } else {
    return false;
  }
  return true;
}

void scim_walk::take_page(scim::list_response page) {
  if (std::ranges::any_of(page.resources,
                          [](json::value const& each) { return each.if_object() == nullptr; })) {
    fail({.fault = scim_fault::invalid_answer, .detail = "a resource is not an object"});
    return;
  }
  if (is_too_long(page, options_.text_octets_max)) {
    fail({.fault = scim_fault::invalid_answer, .detail = "a cursor or an id is too long"});
    return;
  }
  bool const leads_on = !page.head.next_cursor.empty();
  if (!position_.method) {
    position_.method =
        leads_on || server_.has_cursors ? pagination_method::cursor : pagination_method::index;
  } else if (leads_on && !page.head.start_index) {
    position_.method = pagination_method::cursor;  // of a server that has nothing else
  }
  if (position_.method == pagination_method::index && position_.total_results &&
      page.head.total_results && *page.head.total_results < *position_.total_results) {
    // Resources have moved forward, perhaps from this page to one that was read before.
    if (can_continue_by_id()) {
      find_another_way({.fault = scim_fault::place_lost});
      return;
    }
    position_.shrunk = true;
  }
  if (page.head.total_results) {
    position_.total_results = page.head.total_results;
    index_pass_.total_least = std::min(index_pass_.total_least.value_or(*page.head.total_results),
                                       *page.head.total_results);
  }
  if (position_.method == pagination_method::index && page.head.start_index &&
      *page.head.start_index != position_.start_index && !page.resources.empty() &&
      std::ranges::all_of(page.resources,
                          [this](json::value const& each) { return seen_.contains(each); })) {
    find_another_way({.fault = scim_fault::stuck, .detail = "it does not follow startIndex"});
    return;
  }
  show_page(std::move(page));
}

/// Its resources are given from now on, but for those that were given before.
void scim_walk::show_page(scim::list_response page) {
  ++attempts_.pages;
  check_order(page.resources);
  has_page_ = true;
  page_.cursor = position_.cursor;
  page_.start_index = position_.start_index;
  page_.items = page.resources.size();
  stride_ = std::max(stride_, page_.items);
  page_.first_id = page.resources.empty() ? "" : id_of(page.resources.front());
  page_.last_id = page.resources.empty() ? "" : id_of(page.resources.back());
  page_.head = std::move(page.head);
  server_.has_previous_cursors =
      server_.has_previous_cursors || !page_.head.previous_cursor.empty();

  auto const known = seen_.size();
  page_.resources = std::move(page.resources);
  std::erase_if(page_.resources, [this](json::value const& each) { return !seen_.add_new(each); });
  page_.at = position_.backward ? page_.resources.size() : 0;
  if (seen_.size() > known || seen_.size() >= options_.seen_max) {
    attempts_.barren_pages = 0;
    attempts_.fruitless = 0;
    ++index_pass_.fruitful_pages;
    return;
  }
  auto const& onward = position_.backward ? page_.head.previous_cursor : page_.head.next_cursor;
  if (++attempts_.barren_pages > attempts_.barren_pages_max ||
      (!onward.empty() && onward == page_.cursor)) {
    fail({.fault = scim_fault::stuck});
  }
}

/// Whether the ids are where the server was asked to have them.
void scim_walk::check_order(json::array const& resources) {
  if (!is_sorted_by_id() || !position_.ids_in_order) {
    return;
  }
  bool const is_down = position_.descending;
  std::string_view before =
      position_.backward ? std::string_view() : std::string_view(position_.edge);
  for (auto const& each : resources) {
    auto const id = id_of(each);
    if (id.empty() || (!before.empty() && (is_down ? id >= before : id <= before))) {
      position_.ids_in_order.reset();
      return;
    }
    before = id;
  }
  if (position_.backward && !position_.edge.empty() && !before.empty() &&
      (is_down ? before <= position_.edge : before >= position_.edge)) {
    position_.ids_in_order.reset();
    return;
  }
  *position_.ids_in_order += resources.size();
}

auto scim_walk::is_sorted_by_id() const -> bool {
  return position_.by_id || equal_ignoring_case(query_.sort_by, "id");
}

auto scim_walk::can_continue_by_id() const -> bool {
  return is_sorted_by_id() && position_.ids_in_order &&
         *position_.ids_in_order >= options_.order_proof && server_.takes_ids &&
         !position_.edge.empty() && attempts_.fruitless < options_.restarts_max;
}

void scim_walk::find_another_way(scim_error why) {
  if (can_continue_by_id()) {
    ++attempts_.restarts;
    ++attempts_.fruitless;
    position_.descending = position_.descending != position_.backward;
    position_.backward = false;
    position_.beyond = position_.edge;
    position_.cursor.clear();
    position_.start_index = 1;
    position_.count = server_.count;
    position_.total_results.reset();
    has_page_ = false;
  } else if (!turned_ && seen_.is_complete() && attempts_.from_start < options_.restarts_max) {
    ++attempts_.restarts;
    ++attempts_.from_start;
    start_again();
  } else {
    fail(std::move(why));
  }
}

void scim_walk::start_again() {
  position_ = {.method = position_.method,
               .count = server_.count,
               .by_id = position_.by_id,
               .descending = query_.descending,
               .ids_in_order = position_.ids_in_order};
  has_page_ = false;
  index_pass_.fruitful_pages = 0;
  index_pass_.total_least.reset();
  attempts_.barren_pages = 0;
  attempts_.barren_pages_max = options_.barren_pages_max + attempts_.pages;
}

void scim_walk::turn() {
  if (!has_page_) {
    fail({.fault = scim_fault::no_way_back});
    return;
  }
  turned_ = true;
  position_.backward = !position_.backward;
  position_.edge.clear();  // that of this page is taken when it is left
  seen_.clear();
  for (auto const& each : page_.resources) {
    seen_.add(id_of(each));
  }
}

void scim_walk::fail(scim_error error) {
  failed_ = std::move(error);
}

auto scim_walk::list_url() const -> std::string {
  scim::list_request request{.method = position_.method.value_or(pagination_method::cursor),
                             .cursor = position_.cursor,
                             .count = position_.count,
                             .start_index = position_.start_index,
                             .sort_by = position_.by_id ? "id" : query_.sort_by,
                             .descending = position_.descending,
                             .attributes = query_.attributes,
                             .excluded_attributes = query_.excluded_attributes};
  if (!query_.filter.empty()) {
    request.filter = query_.filter;
  }
  if (!position_.beyond.empty()) {
    std::string condition = position_.descending ? "id lt " : "id gt ";
    json::append_string(condition, position_.beyond);
    request.filter = query_.filter.empty() ? condition : "(" + query_.filter + ") and " + condition;
  }
  auto url = query_.url.substr(0, query_.url.find('#'));
  url += url.find('?') == std::string::npos ? '?' : '&';
  scim::append_list_query(url, request);
  return url;
}

}  // namespace tidegate::TIDEGATE_ABI::client
