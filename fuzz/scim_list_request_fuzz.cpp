// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a query, a SearchRequest, a ListResponse, an Error and a ServiceProviderConfig, with
// the methods of pagination that the first byte turns on:
//
// - never a crash; what is refused has the status 400 and says why;
// - a method that is off is never chosen, and a page never has more than the maximum;
// - what is read is written again as something that is read the same.
#include "check.hpp"

#include <tidegate/scim/list_request.hpp>
#include <tidegate/scim/list_response.hpp>
#include <tidegate/scim/service_provider_config.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace tidegate::scim;
using tidegate::fuzz::check;

auto options_of(unsigned char choice) -> pagination_options {
  constexpr auto cursor = pagination_method::cursor;
  pagination_options made;
  made.count_over_max_is_error = (choice & 4) != 0;
  made.default_method = (choice & 8) != 0 ? cursor : pagination_method::index;
  switch (choice & 3) {
    case 0:
      made.index = false;
      made.default_method = cursor;
      break;
    case 1:
      made.cursor = false;
      made.default_method = pagination_method::index;
      break;
    default: break;
  }
  return made;
}

void check_error(error const& e) {
  check(e.status == 400 && e.type != scim_type::none && !e.detail.empty());
  std::string body;
  append_error(body, e);
  check(parse_error(body).has_value());
}

void check_request(list_request const& request, pagination_options const& options) {
  check(request.method == pagination_method::cursor ? options.cursor : options.index);
  check(request.method == pagination_method::cursor || request.cursor.empty());
  check(request.start_index >= 1);
  check(request.attributes.size() <= attribute_names_max);
  check(request.excluded_attributes.size() <= attribute_names_max);
  if (auto const size = page_size(request, nullptr, options)) {
    check(*size <= options.max_page_size);
    cursor later;
    later.count = *size;
    check(page_size(request, &later, options) == *size, "the same count is good on every page");
  } else {
    check_error(size.error());
  }
  std::string query;
  append_list_query(query, request);
  check(parse_list_query(query, options) == request, query.c_str());
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) -> int {
  if (size == 0) {
    return 0;
  }
  auto const options = options_of(data[0]);
  auto const text = std::string_view(reinterpret_cast<char const*>(data), size).substr(1);

  if (auto const request = parse_list_query(text, options)) {
    check_request(*request, options);
  } else {
    check_error(request.error());
  }
  if (auto const request = parse_search_request(text, options)) {
    check_request(*request, options);
    std::string body;
    append_search_request(body, *request);
    check(parse_search_request(body, options) == *request, body.c_str());
  } else {
    check_error(request.error());
  }
  if (auto const read = parse_list_response(text)) {
    std::vector<std::string> texts;
    for (auto const& resource : read->resources) {
      texts.push_back(to_string(resource));
    }
    std::vector<std::string_view> const views(texts.begin(), texts.end());
    std::string body;
    append_list_response(body, read->head, views);
    auto const again = parse_list_response(body, {.octets_max = body.size()});
    check(again && again->head == read->head && again->resources == read->resources, body.c_str());
  } else {
    check_error(read.error());
  }
  if (auto const read = parse_error(text)) {
    std::string body;
    append_error(body, *read);
    check(parse_error(body) == *read, body.c_str());
  }
  if (auto const read = parse_pagination_support(text); !read) {
    check_error(read.error());
  }
  return 0;
}
