// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/balance/health.hpp>
#include <tidegate/balance/name_record.hpp>
#include <tidegate/balance/outlier.hpp>
#include <tidegate/balance/picker.hpp>
#include <tidegate/balance/retry.hpp>
#include <tidegate/base/result.hpp>
#include <tidegate/base/sha256.hpp>
#include <tidegate/config/consumers.hpp>
#include <tidegate/config/edge.hpp>
#include <tidegate/config/hidden_values.hpp>
#include <tidegate/config/log_level.hpp>
#include <tidegate/config/route.hpp>
#include <tidegate/config/sources.hpp>
#include <tidegate/http/ip_address.hpp>
#include <tidegate/idempotency/fingerprint.hpp>
#include <tidegate/idempotency/key.hpp>
#include <tidegate/idempotency/policy.hpp>
#include <tidegate/ratelimit/abuse.hpp>
#include <tidegate/ratelimit/advertise.hpp>
#include <tidegate/ratelimit/calendar.hpp>
#include <tidegate/ratelimit/fields.hpp>
#include <tidegate/ratelimit/partition.hpp>
#include <tidegate/ratelimit/policy.hpp>
#include <tidegate/scim/list_request.hpp>
#include <tidegate/scim/resource.hpp>
#include <tidegate/store/quota_store.hpp>

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What an operator says of the gateway: the tree that `parse_config` makes of a YAML file and
/// `config_from_flags` of a command line. Every value in it was checked, what was left out has its
/// default, and names are resolved to positions. docs/reference/config.md describes each option.
namespace tidegate::gateway {

struct tls_files {
  std::string certificate;  ///< PEM, with the chain
  std::string key;          ///< PEM
  auto operator==(tls_files const&) const -> bool = default;
};

/// `listen`
struct listener_config {
  std::string address;  ///< `127.0.0.1:8080`, `[::1]:8080`, `:8080`, `unix:/path`: never a name
  std::optional<tls_files> tls;
  bool http2 = true;
  bool proxy_protocol = false;
  bool redirect_to_https = false;  ///< every request gets 308; see `config::https_port`
  auto operator==(listener_config const&) const -> bool = default;
};

/// One server of an upstream: an `http` or `https` URL, or a path of a socket.
struct upstream_server {
  bool tls = false;
  std::string host;  ///< a name or an address; IPv6 without its brackets; empty for a socket
  std::uint16_t port = 0;
  std::string path{};     ///< put before the request's; without a slash at its end
  std::string socket{};   ///< of `unix:/path`; else empty
  std::string written{};  ///< the URL as the operator wrote it
  std::int64_t weight = 1;
  auto operator==(upstream_server const&) const -> bool = default;
};

/// `http://127.0.0.1:3000`, with its path; `unix:/path`
[[nodiscard]] auto to_string(upstream_server const& server) -> std::string;

/// `upstreams.NAME.tls`, for servers with `https`.
struct upstream_tls {
  bool verify = true;
  std::optional<std::string> ca;  ///< PEM; the system's when it is missing
  std::optional<std::string>
      server_name;  ///< for SNI and verification; the URL's when it is missing
  std::optional<std::string> certificate{};  ///< PEM, for servers that ask for one; with its key
  std::optional<std::string> key{};
  auto operator==(upstream_tls const&) const -> bool = default;
};

/// `upstreams.NAME.overload`; at least one of the two is there.
struct overload_config {
  std::optional<std::int64_t> max_in_flight;
  std::optional<std::chrono::nanoseconds> target_latency;
  auto operator==(overload_config const&) const -> bool = default;
};

/// `upstreams.NAME.health`
struct health_config {
  std::string path;
  std::chrono::nanoseconds interval{0};
  std::chrono::nanoseconds timeout{0};
  balance::health_thresholds thresholds;
  std::vector<balance::status_range> expect;
  auto operator==(health_config const&) const -> bool = default;
};

/// `upstreams.NAME.resolve`
struct resolve_config {
  balance::resolve_bounds bounds;
  std::optional<std::string> server;  ///< `ADDRESS:PORT` of a DNS server; else the system's
  auto operator==(resolve_config const&) const -> bool = default;
};

/// Whether servers are spoken to by HTTP/2.
enum class upstream_http2 : std::uint8_t {
  never,
  always,   ///< by ALPN with TLS, else by prior knowledge
  by_alpn,  ///< where the server agrees to it; HTTP/1.1 without TLS
};

/// `upstreams.NAME`
struct upstream_config {
  std::string name;
  std::vector<upstream_server> servers;  ///< at least one
  std::chrono::nanoseconds connect_timeout{0};
  std::chrono::nanoseconds timeout{0};       ///< until the head of the response
  std::chrono::nanoseconds idle_timeout{0};  ///< between bytes
  balance::retry_settings retry;             ///< `retry`, or `retries`
  upstream_http2 http2 = upstream_http2::never;
  upstream_tls tls;
  std::optional<overload_config> overload;
  balance::method balance = balance::method::least;
  std::optional<ratelimit::partition_source> hash_by;  ///< for `balance::method::hash`
  resolve_config resolve;
  std::optional<balance::outlier_settings> outlier;  ///< missing for `off`
  std::optional<health_config> health;
  std::optional<std::int64_t> max_connections;  ///< from this process
  std::chrono::nanoseconds max_wait{0};         ///< for one of them
  auto operator==(upstream_config const&) const -> bool = default;
};

/// What is counted of a policy.
enum class counted : std::uint8_t {
  all,
  successful,  ///< responses from 400 on are given back
};

/// What to do while the store of quotas does not answer.
enum class store_failure : std::uint8_t { local, allow, deny };

/// `policies.NAME`
struct policy_config {
  std::string name;                                  ///< printable ASCII: clients see it
  ratelimit::policy policy;                          ///< quota, window, unit, algorithm, burst
  std::optional<ratelimit::calendar_rule> calendar;  ///< with `window: {calendar: ...}`
  std::optional<quota_choice> choice{};  ///< `quota: {by: …}`; the default is that of `policy`
  ratelimit::partition_rule partition;
  ratelimit::advertisement advertisement;  ///< `max-advertised-rate` and `jitter`
  bool shadow = false;                     ///< counted, never refuses and not in the fields
  counted count = counted::all;
  std::optional<ratelimit::abuse_settings> abuse;
  store::counting counting = store::counting::exact;  ///< where gateways share quotas
  store_failure on_store_failure = store_failure::local;
};

/// `routes[].idempotency` with a mode other than `off`.
struct idempotency_config {
  bool required = false;             ///< a request without a key is refused
  std::vector<std::string> methods;  ///< none of them is safe
  std::vector<ratelimit::partition_source> scope;
  /// Nothing else in `scope` tells clients apart, so that every request has an owner of its keys.
  bool owned_by_address = false;
  bool anonymous =
      true;  ///< requests without anything of `scope` that names a client may have keys
  idempotency::key_options key;
  idempotency::fingerprint_rule fingerprint;
  idempotency::policy policy;
  std::int64_t max_body = 0;
  std::int64_t max_response = 0;
  std::chrono::nanoseconds max_execution{0};
  bool pass_on_store_failure = false;
  std::int64_t replay_cost = 0;
  bool seal = true;
  std::string documentation;
};

/// One of `routes[].auth.bearer-tokens`.
struct bearer_token {
  std::string name;        ///< the principal; unique in its route
  sha256_digest digest{};  ///< of the token's bytes
  std::string tenant;      ///< whose data it sees
  bool read_only = false;  ///< only for methods that are safe
  auto operator==(bearer_token const&) const -> bool = default;
};

/// `routes[].auth`
struct auth_config {
  std::vector<bearer_token> tokens;
  std::vector<key_place> api_keys{};  ///< `api-keys.in`; tokens or these are there
  bool optional = false;              ///< who shows nothing passes
  /// Whether the upstream gets credentials; missing: tokens, and no API keys.
  std::optional<bool> forward_credentials{};
  std::vector<passed_field> pass{};
  auto operator==(auth_config const&) const -> bool = default;
};

/// `admin`
struct admin_config {
  std::string address;  ///< as of a listener
  /// Who may use it. None: all who reach it, and the address is of the loopback interface or a
  /// path.
  std::vector<bearer_token> tokens{};
  auto operator==(admin_config const&) const -> bool = default;
};

/// The options of a route with `service: scim`.
struct scim_config {
  scim::pagination_options pagination;
  std::vector<std::string> schemas;  ///< files with schemas and resource types
  std::vector<std::string> indexes;  ///< attributes that are indexed besides those that always are
  std::chrono::nanoseconds scan_budget{0};  ///< of a page, for what has no index
  std::int64_t max_body = 0;
  std::int64_t bulk_max_operations = 0;
  std::int64_t bulk_max_payload = 0;
  std::string public_url;  ///< without a slash at its end; empty: as the request says
  bool unique_group_names = false;
  scim::unknown_attributes unknown = scim::unknown_attributes::ignore;
  auto operator==(scim_config const&) const -> bool = default;
};

/// What answers the requests of a route.
enum class route_service : std::uint8_t {
  upstream,
  echo,
  scim,
  redirect,  ///< `route_config::redirect` is there
  respond,   ///< `route_config::respond` is there
};

/// One of `upstream: {stable: 95, canary: 5}` of a route.
struct upstream_share {
  std::size_t upstream = 0;  ///< position in `config::upstreams`
  std::int64_t share = 0;    ///< of the sum of all; at least one is not 0
  auto operator==(upstream_share const&) const -> bool = default;
};

/// One of `routes`; the first that matches a request takes it.
struct route_config {
  std::string name;  ///< unique; the match as it is written when the operator gave none
  request_match match;
  route_service service = route_service::upstream;
  std::size_t upstream = 0;  ///< position in `config::upstreams`, for `route_service::upstream`
  std::vector<upstream_share> split;  ///< where several upstreams share the requests; else empty
  std::vector<std::size_t> limits;  ///< positions in `config::policies`, in the order of the fields
  cost_config cost;
  std::optional<auth_config> auth;
  std::optional<idempotency_config> idempotency;
  std::optional<scim_config> scim;  ///< for `route_service::scim`
  /// `bridge: scim-cursor`: the upstream has pages by index only, and clients get these.
  std::optional<scim::pagination_options> bridge;
  bool upgrades_websocket = false;  ///< `upgrade: [websocket]`, for `route_service::upstream`
  std::chrono::nanoseconds tunnel_idle_timeout{0};  ///< of an open WebSocket, in both directions
  std::optional<cors_config> cors;
  field_rules request;                       ///< of what goes to the upstream
  field_rules response;                      ///< of every answer; `response.preset` is part of it
  std::optional<std::chrono::seconds> hsts;  ///< `response.hsts`: only over HTTPS is it said
  std::optional<rewrite_config> rewrite;
  std::optional<redirect_config> redirect;          ///< in the place of an upstream
  std::optional<respond_config> respond;            ///< the same
  std::vector<http::cidr> allow;                    ///< empty: all addresses
  std::vector<http::cidr> deny;                     ///< wins over `allow`
  std::optional<std::int64_t> max_body;             ///< in the place of `http.max-body`
  std::optional<std::chrono::nanoseconds> timeout;  ///< in the place of that of the upstream
};

/// `fields`
struct fields_config {
  std::optional<ratelimit::draft> ratelimit = ratelimit::draft::draft_09;  ///< missing for `none`
  bool legacy_x = false;                                                   ///< X-RateLimit-* too
  bool legacy_triple = false;  ///< RateLimit-Limit, -Remaining and -Reset, as in draft-06
  [[nodiscard]] auto has_legacy() const noexcept -> bool { return legacy_x || legacy_triple; }
  auto operator==(fields_config const&) const -> bool = default;
};

/// `client-address`: the field in which trusted proxies say who asked them.
enum class client_address_field : std::uint8_t { x_forwarded_for, forwarded };

/// `client-ip`: how addresses of clients are told apart.
struct client_ip_config {
  int ipv6_prefix = 64;  ///< addresses with the same bits are one client
  auto operator==(client_ip_config const&) const -> bool = default;
};

/// `http`: what a client may ask for, and how long it may take.
struct http_config {
  std::chrono::nanoseconds header_timeout{0};
  std::chrono::nanoseconds body_timeout{0};
  std::chrono::nanoseconds idle_timeout{0};
  std::int64_t max_header_size = 0;
  std::int64_t max_headers = 0;
  std::int64_t max_uri = 0;
  std::optional<std::int64_t> max_body;
  std::int64_t max_connections = 0;
  bool refuses_ambiguous_paths = true;
  std::int64_t max_buffered = 0;
  auto operator==(http_config const&) const -> bool = default;
};

/// `access-log`: one line of JSON for each request.
struct access_log_config {
  enum class destination : std::uint8_t { off, standard_output, file };
  destination to = destination::off;
  std::string file;    ///< for `destination::file`
  bool query = false;  ///< the query of the request too, which may hold secrets
  auto operator==(access_log_config const&) const -> bool = default;
};

/// `console.directory`: what the admin address lets people do with the directory.
enum class directory_access : std::uint8_t { off, read, write };

enum class store_kind : std::uint8_t { memory, sqlite, redis, postgres };

/// Where one kind of state is kept.
struct store_location {
  store_kind kind = store_kind::memory;
  std::string where{};  ///< a file of SQLite, or the URL of a server
  auto operator==(store_location const&) const -> bool = default;
};

/// `stores`
struct stores_config {
  store_location quota;
  std::int64_t quota_partitions = 0;  ///< how many are kept in memory
  store_location idempotency;
  std::int64_t idempotency_size = 0;      ///< of all keys and responses; 0: the server bounds them
  std::int64_t idempotency_replicas = 0;  ///< that have to have a change, of Redis
  store_location directory;
  auto operator==(stores_config const&) const -> bool = default;
};

/// One option as a configuration has it, for people to look at.
struct effective_option {
  std::string path;    ///< `policies.burst.quota`, `routes[/v1/**].match.path`
  std::string value;   ///< as it is written; what is secret or very long is not in it
  std::string origin;  ///< `FILE:LINE:COLUMN`, `command line` or `default`
  /// The option is looked at when the gateway starts, and not again.
  bool at_start = false;
  /// Of the whole value, where `value` does not have it: tells two apart that look the same.
  sha256_digest fingerprint{};
  auto operator==(effective_option const&) const -> bool = default;
};

/// So many options of a configuration are kept for people to look at.
inline constexpr std::size_t effective_options_max = 10'000;

/// One thing that is wrong with a configuration, and where.
struct config_fault {
  std::string file;
  std::size_t line = 1;    ///< from 1 on
  std::size_t column = 1;  ///< in bytes, from 1 on
  std::string message;     ///< what is wrong and what is allowed
  auto operator<=>(config_fault const&) const = default;
};

/// `FILE:LINE:COLUMN: MESSAGE`; of a flag of the command line, `--FLAG: MESSAGE`.
[[nodiscard]] auto to_string(config_fault const& fault) -> std::string;

/// The whole of it. Paths of files are relative to the working directory: those of a configuration
/// file were relative to its folder.
struct config {
  std::vector<listener_config> listen;  ///< at least one
  std::optional<admin_config> admin;
  directory_access console_directory = directory_access::read;
  std::optional<std::int64_t> workers;  ///< event loops; missing for `auto`, one for each core
  std::string data;                     ///< folder of what outlives a request
  std::string secrets;                  ///< file that keys are derived from
  stores_config stores;
  std::vector<upstream_config> upstreams;
  std::vector<policy_config> policies;
  std::vector<route_config> routes;
  fields_config fields;
  std::vector<http::cidr> trusted_proxies;
  client_address_field client_address = client_address_field::x_forwarded_for;
  client_ip_config client_ip;
  /// Where listeners with `redirect_to_https` send clients: the port of the first listener with
  /// TLS, or 443. 0: the one that the system chose for it.
  std::uint16_t https_port = 443;
  http_config http;
  consumers_config consumers;
  std::chrono::nanoseconds drain_delay{0};    ///< from SIGTERM until listeners close
  std::chrono::nanoseconds drain_timeout{0};  ///< from then on, for what is under way
  access_log_config access_log;
  log_level log = log_level::info;          ///< what is said on standard error
  std::vector<effective_option> effective;  ///< all of it again, option by option
  /// What is allowed and most likely not meant: a route that no request reaches, a policy of no
  /// route.
  std::vector<config_fault> warnings;
  hidden_values hidden;  ///< what came through variables, for messages about the configuration
};

/// Where the option of that path in `effective` is written, for a fault about it; the beginning of
/// the file when it has its default.
[[nodiscard]] auto place_of(config const& settings, std::string_view path) -> config_fault;

/// So many policies a route may have, and so many sources a partition.
inline constexpr std::size_t limits_max = 16;
inline constexpr std::size_t sources_max = 16;
/// So many tokens the admin address may have.
inline constexpr std::size_t admin_tokens_max = 64;

/// What is read at most of a configuration, with all that it includes.
inline constexpr std::size_t config_octets_max = 64 * 1024 * 1024;

/// Reads the YAML of a configuration. Reads no file but through `sources`: `file_name` is for the
/// faults, and its folder is what relative paths in all files are relative to.
///
/// All faults are collected, in the order of the files and of their text, up to a hundred. No value
/// that came through a variable is in a message or in `effective`.
[[nodiscard]] auto parse_config(std::string_view text, std::string_view file_name,
                                config_sources const& sources)
    -> result<config, std::vector<config_fault>>;

/// The same without variables and files.
[[nodiscard]] auto parse_config(std::string_view text, std::string_view file_name)
    -> result<config, std::vector<config_fault>>;

/// Reads the YAML of a file of consumers, which is the mapping from their names. `file_name` is for
/// the faults.
[[nodiscard]] auto parse_consumers(std::string_view text, std::string_view file_name)
    -> result<std::vector<consumer_config>, std::vector<config_fault>>;

/// The flags of `tidegate serve` that stand for a configuration file.
struct serve_flags {
  std::string upstream;                      ///< a URL
  std::optional<std::string> listen{};       ///< `HOST:PORT`
  std::optional<std::string> admin{};        ///< `HOST:PORT` of the loopback interface
  std::vector<std::string> limits{};         ///< `100/1m by header:x-api-key`
  std::optional<std::string> idempotency{};  ///< `required`, `optional` or `off`
};

/// The same configuration as a file with one upstream, one route `/**` and one policy for each
/// limit would make. The faults name the flag instead of a file, and the character of its value.
///
/// A limit is `QUOTA/WINDOW`, then ` by ` and sources with `,` between them; without sources it is
/// one for each client address.
[[nodiscard]] auto config_from_flags(serve_flags const& flags)
    -> result<config, std::vector<config_fault>>;

/// JSON Schema (2020-12) of the file, for editors.
[[nodiscard]] auto config_json_schema() -> std::string;

/// docs/reference/config.md: every option with its default, what is allowed and what it does.
[[nodiscard]] auto config_reference() -> std::string;

}  // namespace tidegate::gateway
