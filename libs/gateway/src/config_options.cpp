// SPDX-License-Identifier: Apache-2.0
#include "config_options.hpp"

#include "config_values.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>

namespace tidegate::gateway {

namespace {

using enum option_type;
using enum availability;
using form = option_form;

constexpr std::int64_t second = 1000;
constexpr std::int64_t minute = 60 * second;
constexpr std::int64_t hour = 60 * minute;
constexpr std::int64_t day = 24 * hour;
constexpr std::int64_t kib = 1024;
constexpr std::int64_t mib = 1024 * kib;
constexpr std::int64_t fifteen_digits = 999'999'999'999'999;

constexpr option table[] = {
    // NOLINT(modernize-avoid-c-arrays): its length is counted by the compiler
    {.path = "listen",
     .type = address,
     .form = form::one_or_list,
     .initial = "127.0.0.1:8080",
     .doc = "Where clients connect. Several addresses are a list."},
    {.path = "listen.address", .type = address, .available = required, .doc = "The address."},
    {.path = "listen.tls", .doc = "Speak TLS."},
    {.path = "listen.tls.certificate",
     .type = file,
     .available = required,
     .doc = "The certificate and its chain, PEM."},
    {.path = "listen.tls.key", .type = file, .available = required, .doc = "The private key, PEM."},
    {.path = "listen.http2",
     .type = boolean,
     .initial = "true",
     .doc = "Offer HTTP/2: by ALPN with TLS, by prior knowledge without."},
    {.path = "listen.proxy-protocol",
     .type = boolean,
     .initial = "false",
     .doc = "Connections begin with the PROXY protocol, version 1 or 2. Only `trusted-proxies` may "
            "connect."},

    {.path = "admin",
     .type = address,
     .words = "off",
     .doc = "Console, metrics and health. Left out: off."},
    {.path = "workers",
     .type = integer,
     .initial = "auto",
     .words = "auto",
     .min = 1,
     .max = 1024,
     .doc = "Event loops; `auto` is one for each core."},
    {.path = "data",
     .type = file,
     .initial = "data",
     .doc = "Folder of what outlives a request; created with mode 0700."},
    {.path = "secrets",
     .type = file,
     .doc = "File that keys are derived from; created with mode 0600. Left out: `secrets.key` in "
            "`data`. "
            "Gateways that share a store share it."},

    {.path = "stores", .doc = "Where state is kept."},
    {.path = "stores.quota",
     .type = choice,
     .initial = "memory",
     .words = "memory",
     .later = "redis://|redis+cluster://",
     .doc = "What is left of quotas."},
    {.path = "stores.quota-partitions",
     .type = integer,
     .initial = "1000000",
     .min = 1000,
     .max = 1'000'000'000,
     .doc = "How many partitions are kept in memory at once; beyond, new ones share a quota."},
    {.path = "stores.idempotency", .available = later, .doc = "Idempotency keys and responses."},
    {.path = "stores.directory", .available = later, .doc = "SCIM resources."},

    {.path = "upstreams",
     .type = url,
     .form = form::named,
     .doc = "Servers by name: a URL, or more settings."},
    {.path = "upstreams.servers",
     .type = url,
     .form = form::list,
     .available = required,
     .doc = "The servers; the one with the fewest requests is taken."},
    {.path = "upstreams.connect-timeout",
     .type = duration,
     .initial = "1s",
     .min = 1,
     .max = hour,
     .doc = "How long a connection may take."},
    {.path = "upstreams.timeout",
     .type = duration,
     .initial = "30s",
     .min = 1,
     .max = day,
     .doc = "How long the head of the response may take."},
    {.path = "upstreams.idle-timeout",
     .type = duration,
     .initial = "60s",
     .min = 1,
     .max = day,
     .doc = "How long nothing may come between two bytes."},
    {.path = "upstreams.retries",
     .type = integer,
     .initial = "1",
     .min = 0,
     .max = 10,
     .doc = "How often a request that is safe to repeat is sent again."},
    {.path = "upstreams.tls", .doc = "For servers with `https`."},
    {.path = "upstreams.tls.verify",
     .type = boolean,
     .initial = "true",
     .doc = "Check the certificate of the server."},
    {.path = "upstreams.tls.ca",
     .type = file,
     .doc = "Certificates to trust, PEM. Left out: the system's."},
    {.path = "upstreams.tls.server-name",
     .type = host,
     .doc = "Name to ask for and to verify. Left out: the host of the URL."},
    {.path = "upstreams.http2",
     .type = choice,
     .initial = "false",
     .words = "false",
     .later = "true",
     .doc = "Speak HTTP/2 to the servers."},
    {.path = "upstreams.overload",
     .doc =
         "Protect the servers: answers 503 and advertises less as their latency and errors grow. "
         "At least one of its two options is needed."},
    {.path = "upstreams.overload.max-in-flight",
     .type = integer,
     .min = 1,
     .max = 1'000'000,
     .doc = "Requests at the same time, at most."},
    {.path = "upstreams.overload.target-latency",
     .type = duration,
     .min = 1,
     .max = hour,
     .doc = "Latency to stay below."},

    {.path = "policies",
     .form = form::named,
     .doc = "Quotas by name. Clients see the name: printable ASCII."},
    {.path = "policies.quota",
     .type = quota,
     .available = required,
     .min = 1,
     .max = fifteen_digits,
     .doc = "Units in a window, or held at the same time. A size for `content-bytes`."},
    {.path = "policies.window",
     .type = duration,
     .min = second,
     .max = 366 * day,
     .doc = "In whole seconds. Required, but for `concurrent-requests`, which has none."},
    {.path = "policies.unit",
     .type = choice,
     .initial = "requests",
     .words = "requests|content-bytes|concurrent-requests",
     .doc = "What is counted: requests, bytes of request and response content, or requests at the "
            "same time."},
    {.path = "policies.algorithm",
     .type = choice,
     .initial = "sliding",
     .words = "fixed|sliding|gcra",
     .doc = "`fixed`: a window begins with the first request. `sliding`: two windows, weighted. "
            "`gcra`: evenly, "
            "with bursts. Not for `concurrent-requests`."},
    {.path = "policies.burst",
     .type = quota,
     .min = 1,
     .max = fifteen_digits,
     .doc = "For `gcra`: units at once, at most. Left out: the quota."},
    {.path = "policies.partition",
     .type = source,
     .form = form::one_or_list,
     .initial = "client-ip",
     .later = "principal",
     .doc = "Requests with the same values of these share the quota. What a request has not is the "
            "empty value."},
    {.path = "policies.partition-key",
     .type = choice,
     .initial = "none",
     .words = "none|hashed|plain",
     .doc = "What clients are told of their partition in `pk`."},
    {.path = "policies.enforce",
     .type = choice,
     .initial = "true",
     .words = "true|shadow",
     .doc = "`shadow`: counted and shown to the operator, never refuses and not in the fields."},
    {.path = "policies.count",
     .type = choice,
     .initial = "all",
     .words = "all|successful",
     .doc = "`successful`: responses from 400 on are given back."},
    {.path = "policies.jitter",
     .type = duration,
     .initial = "0s",
     .min = 0,
     .max = day,
     .doc = "Up to this much is added to `t` and Retry-After, so that clients do not come back "
            "together."},
    {.path = "policies.max-advertised-rate",
     .type = rate,
     .words = "none",
     .doc = "`r` never invites to more than this over `t`."},
    {.path = "policies.abuse",
     .words = "off",
     .doc = "Block a partition that does not stop when it is refused. Left out: off."},
    {.path = "policies.abuse.refusals",
     .type = integer,
     .initial = "50",
     .min = 1,
     .max = 1'000'000'000,
     .doc = "So many refusals..."},
    {.path = "policies.abuse.within",
     .type = duration,
     .initial = "1m",
     .min = 1,
     .max = 366 * day,
     .doc = "...within this time..."},
    {.path = "policies.abuse.block",
     .type = duration,
     .initial = "10m",
     .min = 1,
     .max = 366 * day,
     .doc = "...block the partition for so long."},
    {.path = "policies.on-store-failure",
     .type = choice,
     .initial = "local",
     .words = "local|allow|deny",
     .doc = "While the store does not answer: count in this process, admit, or refuse."},

    {.path = "routes",
     .form = form::list,
     .available = required,
     .doc = "The first that matches a request takes it."},
    {.path = "routes.name",
     .type = name,
     .doc = "For logs and metrics. Left out: the match as it is written."},
    {.path = "routes.match", .available = required, .doc = "Which requests."},
    {.path = "routes.match.path",
     .type = path,
     .initial = "/**",
     .doc = "`*` stands for one segment, a last `**` for any number: `/v1/**` matches `/v1` and "
            "all below."},
    {.path = "routes.match.methods",
     .type = method,
     .form = form::one_or_list,
     .doc = "One of these; GET does not imply HEAD. Left out: any."},
    {.path = "routes.match.host",
     .type = host,
     .doc = "In any case; the port is ignored. Left out: any."},
    {.path = "routes.upstream",
     .type = upstream_name,
     .doc = "Where the requests go. This or `service`."},
    {.path = "routes.service",
     .type = choice,
     .words = "echo",
     .later = "scim",
     .doc = "A built-in service. `echo` answers with the request."},
    {.path = "routes.limits",
     .type = policy_name,
     .form = form::one_or_list,
     .doc = "Policies that all must admit a request, in the order of the fields."},
    {.path = "routes.cost",
     .type = integer,
     .form = form::patterns,
     .initial = "1",
     .min = 0,
     .max = fifteen_digits,
     .doc = "Units that a request spends of policies that count requests: a number, or `default` "
            "and patterns such as "
            "`POST /v1/search`, of which the first match wins."},
    {.path = "routes.idempotency", .available = later, .doc = "Idempotency-Key."},
    {.path = "routes.auth", .available = later, .doc = "Bearer tokens."},
    {.path = "routes.bridge",
     .available = later,
     .doc = "SCIM cursors before a server that has none."},
    {.path = "routes.default-page-size", .available = later, .doc = "SCIM."},
    {.path = "routes.max-page-size", .available = later, .doc = "SCIM."},
    {.path = "routes.pagination", .available = later, .doc = "SCIM."},
    {.path = "routes.default-method", .available = later, .doc = "SCIM."},
    {.path = "routes.cursor-timeout", .available = later, .doc = "SCIM."},
    {.path = "routes.count-over-max", .available = later, .doc = "SCIM."},
    {.path = "routes.schemas", .available = later, .doc = "SCIM."},
    {.path = "routes.indexes", .available = later, .doc = "SCIM."},
    {.path = "routes.scan-budget", .available = later, .doc = "SCIM."},
    {.path = "routes.max-body", .available = later, .doc = "SCIM."},
    {.path = "routes.bulk", .available = later, .doc = "SCIM."},
    {.path = "routes.public-url", .available = later, .doc = "SCIM."},
    {.path = "routes.unique-group-names", .available = later, .doc = "SCIM."},

    {.path = "fields", .doc = "What responses say of quotas."},
    {.path = "fields.ratelimit",
     .type = choice,
     .initial = "draft-09",
     .words = "draft-09|draft-07|none",
     .doc = "The draft that RateLimit and RateLimit-Policy follow. draft-07 tells two policies of "
            "one route apart "
            "by their quotas, so these must differ."},
    {.path = "fields.legacy",
     .type = boolean,
     .initial = "false",
     .doc = "Add X-RateLimit-Limit, -Remaining and -Reset."},

    {.path = "trusted-proxies",
     .type = network,
     .form = form::one_or_list,
     .doc = "Only from these is X-Forwarded-For, Forwarded or the PROXY protocol believed."},

    {.path = "http", .doc = "What a client may send, and how long it may take."},
    {.path = "http.header-timeout",
     .type = duration,
     .initial = "10s",
     .min = 1,
     .max = day,
     .doc = "For the head of a request."},
    {.path = "http.body-timeout",
     .type = duration,
     .initial = "30s",
     .min = 1,
     .max = day,
     .doc = "Between two reads of its content."},
    {.path = "http.idle-timeout",
     .type = duration,
     .initial = "60s",
     .min = 1,
     .max = day,
     .doc = "Between two requests of a connection."},
    {.path = "http.max-header-size",
     .type = size,
     .initial = "32KiB",
     .min = kib,
     .max = mib,
     .doc = "Octets of all fields; else 431."},
    {.path = "http.max-headers",
     .type = integer,
     .initial = "100",
     .min = 1,
     .max = 10'000,
     .doc = "Fields; else 431."},
    {.path = "http.max-uri",
     .type = size,
     .initial = "8KiB",
     .min = 64,
     .max = mib,
     .doc = "Octets; else 414."},
    {.path = "http.max-body",
     .type = size,
     .initial = "none",
     .words = "none",
     .doc = "Octets of content; else 413."},
    {.path = "http.max-connections",
     .type = integer,
     .initial = "20000",
     .min = 1,
     .max = 10'000'000,
     .doc = "Connections of clients at the same time, on all event loops together; one more is "
            "closed at once."},

    {.path = "access-log",
     .type = file,
     .initial = "off",
     .words = "off|stdout",
     .doc = "A line of JSON for each request; SIGHUP opens the file anew."},
    {.path = "access-log.file",
     .type = file,
     .available = required,
     .words = "stdout",
     .doc = "Where the lines go."},
    {.path = "access-log.query",
     .type = boolean,
     .initial = "false",
     .doc = "Log the query of the request, which may hold secrets."},
};

auto range(option const& option, std::string (*text)(std::int64_t)) -> std::string {
  bool const bounded = option.max != std::numeric_limits<std::int64_t>::max();
  return bounded ? ", " + text(option.min) + " to " + text(option.max) : std::string();
}

auto milliseconds_text(std::int64_t value) -> std::string {
  return format_duration(std::chrono::milliseconds(value));
}

auto number_text(std::int64_t value) -> std::string {
  return std::to_string(value);
}

auto allowed_besides_words(option const& option) -> std::string {
  switch (option.type) {
    case section: return option.form == form::list ? "mappings" : "a mapping";
    case boolean: return "true or false";
    case integer: return "a number" + range(option, number_text);
    case duration:
      return "a duration such as 500ms, 10s, 5m, 24h or 7d" + range(option, milliseconds_text);
    case size: return "a size such as 512, 64KiB or 10MiB" + range(option, format_size);
    case quota:
      return "a number" + range(option, number_text) + "; a size such as 10MiB for content-bytes";
    case option_type::rate: return "a rate such as 10/s or 100/m";
    case choice: return "";
    case file: return "the path of a file or folder, relative to the folder of the configuration";
    case address:
      return "HOST:PORT with an IPv4 address, an IPv6 address in brackets, localhost or nothing as "
             "HOST; unix:/PATH";
    case url: return "http://HOST[:PORT] or https://HOST[:PORT]";
    case network: return "a network such as 10.0.0.0/8 or 2001:db8::/32, or an address";
    case path: return "a path such as /v1/orders, /v1/*/items or /v1/**";
    case method: return "a method in upper case, such as GET";
    case host: return "a host such as api.example.com, without a port";
    case source:
      return "client-ip, header:NAME, query:NAME, cookie:NAME, method, host, path or route";
    case name: return "printable ASCII without spaces at its ends";
    case policy_name: return "the name of a policy";
    case upstream_name: return "the name of an upstream";
  }
  return "";
}

}  // namespace

auto option::key() const -> std::string_view {
  return path.substr(path.rfind('.') + 1);
}

auto options() -> std::span<option const> {
  return table;
}

auto option_at(std::string_view path) -> option const& {
  auto const* const found = std::find_if(std::begin(table), std::end(table),
                                         [&](option const& row) { return row.path == path; });
  assert(found != std::end(table));
  return *found;
}

auto options_under(std::string_view path) -> std::vector<option const*> {
  std::vector<option const*> found;
  for (auto const& row : table) {
    auto const dot = row.path.rfind('.');
    auto const parent =
        dot == std::string_view::npos ? std::string_view() : row.path.substr(0, dot);
    if (parent == path) {
      found.push_back(&row);
    }
  }
  return found;
}

auto split_words(std::string_view words) -> std::vector<std::string_view> {
  std::vector<std::string_view> found;
  while (!words.empty()) {
    auto const end = std::min(words.find('|'), words.size());
    found.push_back(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return found;
}

auto allowed_values(option const& option) -> std::string {
  std::vector<std::string> values;
  for (auto const word : split_words(option.words)) {
    values.emplace_back(word);
  }
  if (auto other = allowed_besides_words(option); !other.empty()) {
    values.push_back(std::move(other));
  }
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += i == 0 ? "" : i + 1 == values.size() ? " or " : ", ";
    text += values[i];
  }
  return text;
}

}  // namespace tidegate::gateway
