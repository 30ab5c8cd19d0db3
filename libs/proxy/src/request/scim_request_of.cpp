// SPDX-License-Identifier: Apache-2.0
#include "request/scim_request_of.hpp"

#include "request/request_fields.hpp"

namespace tidegate::gateway {

namespace {

using wire::known_field;

/// Whether a URL says more than scheme and host.
[[nodiscard]] auto has_path(std::string_view url) -> bool {
  return url.find('/', url.find("//") + 2) != std::string_view::npos;
}

}  // namespace

auto path_below_base(request_context const& context) -> std::string_view {
  auto segments = std::ranges::count(context.route_settings().settings->match.path, '/') - 1;
  std::size_t at = 0;
  while (segments-- > 0 && at < context.path.size()) {
    at = std::min(context.path.find('/', at + 1), context.path.size());
  }
  return context.path.substr(at);
}

auto scim_request_of(request_context const& context,
                     std::shared_ptr<active_config const> const& active,
                     std::vector<std::string_view>& room) -> scim_request {
  auto const& request = *context.head;
  auto const& from = *context.from;
  auto const& settings = *context.route_settings().settings;
  scim_request made;
  made.owner = active;
  made.options = &*settings.scim;
  made.route = settings.name;
  made.has_auth = settings.auth.has_value();
  made.method = request.method_text();
  made.path = path_below_base(context);
  auto query = request.query();
  query.remove_prefix(std::min<std::size_t>(1, query.size()));
  made.query = query;
  made.base = settings.scim->public_url;
  if (made.base.empty() && !request.authority().empty()) {
    auto const client = find_forwarded_client(request, from, *context.active, room);
    made.base.assign(http::x_forwarded_proto(client.proto, true, from.scheme));
    made.base.append("://").append(http::x_forwarded_host(client.host, true, request.authority()));
  }
  if (!has_path(made.base)) {
    made.base.append(context.path.substr(0, context.path.size() - made.path.size()));
  }
  made.tenant = context.token != nullptr ? context.token->tenant : "default";
  made.principal = context.token != nullptr ? context.token->name : "";
  made.read_only = context.token != nullptr && context.token->read_only;
  made.content_type = request.value_of(known_field::content_type);
  made.accept = accepted_types(request);
  made.if_match = request.value_of(known_field::if_match);
  made.if_none_match = request.value_of(known_field::if_none_match);
  return made;
}

}  // namespace tidegate::gateway
