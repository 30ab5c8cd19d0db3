// SPDX-License-Identifier: Apache-2.0
#include <tidegate/proxy/route_edge.hpp>

#include <algorithm>
#include <string_view>

namespace tidegate::gateway {

namespace {

constexpr std::string_view hsts_name = "Strict-Transport-Security";

/// Whether a server that the route sends to has a path that is put before that of requests.
[[nodiscard]] auto has_base_path(route_config const& settings, config const& all) -> bool {
  auto const has_one = [&all](std::size_t position) {
    return position < all.upstreams.size() &&
           std::ranges::any_of(all.upstreams[position].servers,
                               [](upstream_server const& server) { return !server.path.empty(); });
  };
  return settings.service == route_service::upstream &&
         (has_one(settings.upstream) || std::ranges::any_of(settings.split, [&](auto const& share) {
            return has_one(share.upstream);
          }));
}

}  // namespace

auto make_route_edge(route_config const& settings, config const& all)
    -> std::shared_ptr<route_edge const> {
  bool const has_networks = !settings.allow.empty() || !settings.deny.empty();
  bool const has_any = settings.cors || has_networks || !settings.request.empty() ||
                       !settings.response.empty() || settings.hsts || settings.rewrite ||
                       settings.redirect || has_base_path(settings, all);
  if (!has_any) {
    return nullptr;
  }
  auto made = std::make_shared<route_edge>();
  if (settings.cors) {
    made->cors.emplace(settings, all);
  }
  if (has_networks) {
    made->networks = {http::cidr_set(settings.allow), http::cidr_set(settings.deny),
                      !settings.allow.empty()};
  }
  made->request = field_edits(settings.request);
  if (settings.hsts) {
    made->has_hsts = true;
    auto by_https = settings.response;
    by_https.set.push_back(
        {std::string(hsts_name), "max-age=" + std::to_string(settings.hsts->count())});
    made->response_by_https = field_edits(by_https);
    // What the upstream says of it must not be said over http (RFC 6797, section 7.2).
    auto by_http = settings.response;
    by_http.remove.emplace_back(hsts_name);
    made->response = field_edits(by_http);
  } else {
    made->response = field_edits(settings.response);
  }
  made->has_base_path = has_base_path(settings, all);
  if (settings.rewrite) {
    made->rewrite.emplace(*settings.rewrite, settings.match.path);
  }
  if (settings.redirect) {
    made->redirect.emplace(settings.redirect->to, settings.match.path);
  }
  return made;
}

}  // namespace tidegate::gateway
