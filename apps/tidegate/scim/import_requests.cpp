// SPDX-License-Identifier: Apache-2.0
#include "scim/import_requests.hpp"

#include <tidegate/base/sha256.hpp>
#include <tidegate/http/query.hpp>
#include <tidegate/idempotency/make_key.hpp>
#include <tidegate/json/parse.hpp>
#include <tidegate/json/string.hpp>
#include <tidegate/scim/error.hpp>
#include <tidegate/scim/list_request.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace tidegate::app {

namespace {

constexpr std::size_t bulk_octets_max = std::size_t{1} << 20;

/// The schema of the resources of a standard endpoint.
[[nodiscard]] auto schema_of(std::string_view url) -> std::string {
  if (url.ends_with("/Users")) {
    return "urn:ietf:params:scim:schemas:core:2.0:User";
  }
  return url.ends_with("/Groups") ? "urn:ietf:params:scim:schemas:core:2.0:Group" : "";
}

/// Of the server, before the endpoint; and the endpoint, with its slash.
[[nodiscard]] auto base_of(std::string const& url) -> std::string {
  return url.substr(0, url.find_last_of('/'));
}
[[nodiscard]] auto endpoint_of(std::string const& url) -> std::string {
  return url.substr(url.find_last_of('/'));
}

/// An Idempotency-Key, the same each time for the same request of one import.
[[nodiscard]] auto key_of(import_identity const& identity, std::string const& name,
                          std::string_view content) -> std::string {
  auto const digest = sha256::of(identity.seed + "\n" + name + "\n" + std::string(content));
  std::array<std::uint8_t, 10> randomness{};
  std::ranges::transform(std::span(digest).first<10>(), randomness.begin(),
                         [](std::byte each) { return std::to_integer<std::uint8_t>(each); });
  return idempotency::make_key(identity.began, randomness);
}

}  // namespace

auto parse_bulk_limits(std::string_view config, std::size_t operations_max) -> bulk_limits {
  auto const read = json::parse(config);
  auto const* const bulk = read ? read->find("bulk") : nullptr;
  auto const* const supported = bulk != nullptr ? bulk->find("supported") : nullptr;
  if (supported == nullptr || *supported != json::value(true)) {
    return {};
  }
  auto const limit = [&](std::string_view name, std::size_t most) {
    auto const* const value = bulk->find(name);
    auto const* const number = value != nullptr ? value->if_integer() : nullptr;
    return number == nullptr || *number < 0 ? std::size_t{0}
                                            : std::min(most, static_cast<std::size_t>(*number));
  };
  bulk_limits const found{limit("maxOperations", operations_max),
                          limit("maxPayloadSize", bulk_octets_max)};
  return found.operations < 2 || found.octets <= bulk_frame_octets ? bulk_limits() : found;
}

import_requests::import_requests(import_settings const& settings)
    : given_url_(settings.url),
      url_(settings.url.substr(0, settings.url.find_first_of("?#"))),
      schema_(schema_of(url_)),
      fields_(scim_fields_of(settings)) {
  fields_.push_back({"Accept", std::string(scim::scim_json)});
}

auto import_requests::request(std::string method, std::string url, std::string body) const
    -> client::request {
  client::request made{.method = std::move(method),
                       .url = std::move(url),
                       .fields = fields_,
                       .body = std::move(body)};
  if (!made.body.empty()) {
    made.fields.push_back({"Content-Type", std::string(scim::scim_json)});
  }
  made.time_max = longest;
  return made;
}

auto import_requests::config() const -> client::request {
  return request("GET", base_of(url_) + "/ServiceProviderConfig");
}

auto import_requests::create(import_identity const& identity, std::uint64_t line,
                             std::string_view text, json::value const& resource) const
    -> client::request {
  auto made = request("POST", given_url_, body_of(resource));
  made.idempotent = true;
  made.key = key_of(identity, std::to_string(line), text);
  return made;
}

auto import_requests::bulk_operation(std::uint64_t line, json::value const& resource) const
    -> std::string {
  return R"({"method":"POST","path":")" + endpoint_of(url_) + R"(","bulkId":")" +
         std::to_string(line) + R"(","data":)" + body_of(resource) + "}";
}

auto import_requests::bulk(import_identity const& identity, std::uint64_t first,
                           std::string_view operations) const -> client::request {
  auto made =
      request("POST", base_of(url_) + "/Bulk",
              R"({"schemas":["urn:ietf:params:scim:api:messages:2.0:BulkRequest"],"Operations":[)" +
                  std::string(operations) + "]}");
  made.idempotent = true;
  made.key = key_of(identity, "bulk\n" + std::to_string(first), made.body);
  return made;
}

auto import_requests::find(json::value const& resource) const -> std::optional<client::request> {
  for (std::string_view const name : {"userName", "externalId", "displayName"}) {
    auto const* const value = resource.find(name);
    if (value == nullptr || value->if_string() == nullptr) {
      continue;
    }
    std::string filter(name);
    json::append_string(filter += " eq ", *value->if_string());
    auto url = url_ + "?";
    scim::append_list_query(url, {.count = 2, .filter = std::move(filter)});
    return request("GET", std::move(url));
  }
  return std::nullopt;
}

auto import_requests::replace(std::string_view id, json::value const& resource) const
    -> client::request {
  auto url = url_ + "/";
  http::append_query_encoded(url, id);
  return request("PUT", std::move(url), body_of(resource));
}

/// The server gives `id` and `meta` (RFC 7643, section 3.1), and wants `schemas`.
auto import_requests::body_of(json::value resource) const -> std::string {
  auto& members = *resource.if_object();
  members.erase("id");
  members.erase("meta");
  if (members.find("schemas") == nullptr && !schema_.empty()) {
    members.append("schemas", json::array{json::value(schema_)});
  }
  return to_string(resource);
}

}  // namespace tidegate::app
