// SPDX-License-Identifier: Apache-2.0
#include "api/api_directory.hpp"

#include <tidegate/engine/loop.hpp>
#include <tidegate/json/parse.hpp>
#include <tidegate/scim_server/call.hpp>

#include <tidegate/http/query.hpp>
#include <tidegate/json/writer.hpp>
#include <tidegate/scim/error.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace tidegate::gateway {

namespace {

/// Whether a URL says more than scheme and host.
[[nodiscard]] auto has_path(std::string_view url) -> bool {
  return url.find('/', url.find("//") + 2) != std::string_view::npos;
}

constexpr std::string_view api_path = "/api/v1/directory";
/// No token has such a name: names are printable.
constexpr std::string_view console_principal = "\1console";
constexpr std::uint32_t page_size = 25;
constexpr std::uint32_t page_size_max = 200;
constexpr std::size_t answer_octets = std::size_t{4} << 20;
/// So many attributes of a type are named, for the columns of a table.
constexpr std::size_t attributes_max = 8;

[[nodiscard]] auto name_of(directory_access access) -> std::string_view {
  switch (access) {
    case directory_access::off: return "off";
    case directory_access::read: return "read";
    case directory_access::write: break;
  }
  return "write";
}

// ---- what there is ----

/// Whose data the tokens of a route see.
[[nodiscard]] auto tenants_of(route_config const& route) -> std::set<std::string> {
  if (!route.auth) {
    return {"default"};
  }
  std::set<std::string> tenants;
  for (auto const& token : route.auth->tokens) {
    tenants.insert(token.tenant);
  }
  return tenants;
}

/// The path of a route without its `/**`.
[[nodiscard]] auto base_path(route_config const& route) -> std::string_view {
  std::string_view path = route.match.path;
  if (path.ends_with("/**")) {
    path.remove_suffix(3);
  }
  return path;
}

/// Whether people can read it at a glance, and lists have it.
[[nodiscard]] auto is_for_columns(scim::attribute const& attribute) -> bool {
  bool const is_shown = attribute.returned == scim::attribute_returned::always ||
                        attribute.returned == scim::attribute_returned::by_default;
  return is_shown && !attribute.multi_valued && attribute.type != scim::attribute_type::complex &&
         attribute.type != scim::attribute_type::binary && attribute.name != "id" &&
         attribute.name != "externalId";
}

void append_type(json::writer& out, scim::model_type const& type) {
  auto const& described = type.definition.type();
  out.begin_object().member("name", described.name).member("endpoint", described.endpoint);
  out.begin_array("attributes");
  std::size_t count = 0;
  for (auto const& attribute : type.definition.base().attributes) {
    if (is_for_columns(attribute) && count++ < attributes_max) {
      out.value(attribute.name);
    }
  }
  out.end_array().begin_array("indexes");
  for (auto const& index : type.indexes) {
    out.value(index.name);
  }
  out.end_array().end_object();
}

[[nodiscard]] auto overview(config const& settings, scim_service const* scim) -> admin_answer {
  std::string text;
  json::writer out(text);
  out.begin_object().member("access", name_of(settings.console_directory)).begin_array("routes");
  for (auto const& route : settings.routes) {
    if (!route.scim || scim == nullptr || settings.console_directory == directory_access::off) {
      continue;
    }
    out.begin_object().member("route", route.name).member("base", base_path(route));
    out.list("tenants", tenants_of(route)).begin_array("types");
    for (auto const& type : scim->model().types()) {
      append_type(out, type);
    }
    out.end_array().end_object();
  }
  out.end_array().end_object();
  return admin_json(std::move(text));
}

// ---- what is asked ----

/// The first segment of a path, decoded. It is taken off, and so is the "/" before it.
[[nodiscard]] auto take_segment(std::string_view& path) -> std::string {
  path.remove_prefix(std::min<std::size_t>(1, path.size()));
  auto const segment = path.substr(0, path.find('/'));
  path.remove_prefix(segment.size());
  std::string out;
  for (std::size_t begin = 0; begin < segment.size();) {  // a "+" stands for itself in a path
    auto const end = std::min(segment.find('+', begin), segment.size());
    http::append_query_decoded(out, segment.substr(begin, end - begin));
    out += end < segment.size() ? "+" : "";
    begin = end + 1;
  }
  return out;
}

[[nodiscard]] auto method_text(wire::method method) -> std::string_view {
  using enum wire::method;
  switch (method) {
    case get: return "GET";
    case head: return "HEAD";
    case patch: return "PATCH";
    case delete_: return "DELETE";
    default: return "";
  }
}

/// The service as the console uses it: it always goes by cursor, whatever clients may do.
[[nodiscard]] auto as_console(scim_config settings) -> scim_config {
  auto& pages = settings.pagination;
  pages.cursor = true;
  pages.default_method = scim::pagination_method::cursor;
  pages.default_page_size = page_size;
  pages.max_page_size = page_size_max;
  pages.count_over_max_is_error = false;
  return settings;
}

[[nodiscard]] auto base_of(route_config const& route) -> std::string {
  auto base = route.scim->public_url;
  if (!has_path(base)) {
    base.append(base_path(route));
  }
  return base;
}

[[nodiscard]] auto answer_of(scim_answer made) -> admin_answer {
  if (made.status == 204) {
    return {204, {}, {}};
  }
  made.content_begin.append(made.content);
  return {made.status, scim::scim_json, std::move(made.content_begin)};
}

}  // namespace

void answer_directory(engine::loop& on, active_config const& active, scim_service* scim,
                      admin_request const& request, admin_reply reply) {
  auto const& configured = active.config;
  bool const is_read = request.method == wire::method::get || request.method == wire::method::head;
  auto rest = std::string_view(request.path).substr(api_path.size());
  if (rest.empty()) {
    reply(is_read ? overview(configured, scim) : method_not_allowed("GET, HEAD"));
    return;
  }
  if (configured.console_directory == directory_access::off) {
    reply(admin_problem(403, "The directory is not shown here: console.directory is off."));
    return;
  }
  auto const name = take_segment(rest);
  auto const tenant = take_segment(rest);
  auto const route = std::ranges::find_if(configured.routes, [&](route_config const& each) {
    return each.scim.has_value() && each.name == name;
  });
  if (scim == nullptr || route == configured.routes.end()) {
    reply(admin_problem(404, "There is no such route with service: scim."));
    return;
  }
  if (!tenants_of(*route).contains(tenant)) {
    reply(admin_problem(404, "No token of this route has such a tenant."));
    return;
  }
  auto const place = find_scim_target(scim->model(), rest).endpoint;
  bool const is_resource = place == scim_endpoint::resource;
  if (!is_resource && place != scim_endpoint::type) {
    reply(admin_problem(404, "There is no such resource type."));
    return;
  }
  bool const changes =
      request.method == wire::method::patch || request.method == wire::method::delete_;
  if (!is_read && !(is_resource && changes)) {
    reply(method_not_allowed(is_resource ? "GET, HEAD, PATCH, DELETE" : "GET, HEAD"));
    return;
  }
  if (changes && configured.console_directory != directory_access::write) {
    reply(admin_problem(
        403, "The directory is read-only here; console.directory: write allows changes."));
    return;
  }
  auto const how = std::make_shared<scim_config const>(as_console(*route->scim));
  scim_request asked;
  asked.owner = how;
  asked.options = how.get();
  asked.has_auth = route->auth.has_value();
  asked.method = method_text(request.method);
  asked.path = rest;
  asked.query = request.query;
  asked.base = base_of(*route);
  asked.tenant = tenant;
  asked.principal = console_principal;
  asked.content_type = request.content_type;
  asked.content = request.content;
  asked.answer_octets_max = answer_octets;
  auto const to = std::make_shared<admin_reply>(std::move(reply));
  scim->handle(std::move(asked), false, engine::on_loop(on, [to](scim_answer answer) {
                 (*to)(answer_of(std::move(answer)));
               }));
}

auto patch_in_words(std::string_view content) -> std::string {
  constexpr std::size_t operations_max = 8;
  constexpr std::size_t name_octets_max = 80;
  auto const read = json::parse(content, {.octets_max = content.size()});
  auto const* const listed = read ? read->find("Operations") : nullptr;
  auto const* const operations = listed != nullptr ? listed->if_array() : nullptr;
  if (operations == nullptr) {
    return {};
  }
  std::string out;
  for (auto const& each :
       std::span(*operations).first(std::min(operations->size(), operations_max))) {
    out += out.empty() ? " (" : ", ";
    for (auto const* const name : {"op", "path"}) {
      auto const* const value = each.find(name);
      auto const* const text = value != nullptr ? value->if_string() : nullptr;
      if (text != nullptr) {
        out.append(out.back() == '(' || out.back() == ' ' ? "" : " ");
        // A path may have a filter, with values in it.
        out.append(*text, 0, std::min(text->find('['), name_octets_max));
      }
    }
    auto const* const value = each.find("value");
    if (auto const* const object = value != nullptr ? value->if_object() : nullptr;
        object != nullptr && each.find("path") == nullptr) {
      auto left = operations_max;
      for (auto const& member : object->members()) {
        if (left-- == 0) {
          out += " ...";
          break;
        }
        out.append(" ").append(member.name, 0, name_octets_max);
      }
    }
    if (auto const* const flag = value != nullptr ? value->if_bool() : nullptr) {
      out += *flag ? " true" : " false";
    }
  }
  out += operations->size() > operations_max ? ", ..." : "";
  out += out.empty() ? "" : ")";
  return out;
}

}  // namespace tidegate::gateway
