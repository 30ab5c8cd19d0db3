// SPDX-License-Identifier: Apache-2.0
//
// Reads a configuration by the table of options. Faults are collected and reading goes on with the default,
// so that an operator sees all of them at once.
#include <tidegate/config/config.hpp>

#include <tidegate/config/effective.hpp>
#include <tidegate/config/key_scope.hpp>
#include <tidegate/config/values.hpp>
#include <tidegate/config/yaml.hpp>
#include "options.hpp"

#include <tidegate/http/target.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <utility>

namespace tidegate::gateway {

namespace {

constexpr std::size_t faults_max = 100;
constexpr std::string_view not_available = " is not available in this version";

auto shown(std::string_view text) -> std::string {
  constexpr std::size_t shown_max = 60;
  return "\"" + std::string(text.substr(0, shown_max)) + (text.size() > shown_max ? "...\"" : "\"");
}

/// How many characters must be changed, added or removed to make one text of the other (Levenshtein).
auto distance(std::string_view a, std::string_view b) -> std::size_t {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (char const next : a) {
    auto diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      auto const changed = diagonal + (next != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

/// `; did you mean "x"?` when one of the candidates is near enough to be meant.
auto did_you_mean(std::string_view text, std::vector<std::string_view> const& candidates)
    -> std::string {
  constexpr std::size_t text_max = 64;
  auto best = std::min(text.size() / 2, std::size_t{3}) + 1;
  std::string_view meant;
  for (auto const candidate : candidates) {
    if (text.size() > text_max || candidate.size() > text_max) {
      continue;
    }
    if (auto const away = distance(text, candidate); away < best) {
      best = away;
      meant = candidate;
    }
  }
  return meant.empty() ? "" : "; did you mean " + shown(meant) + "?";
}

auto joined(std::vector<std::string_view> const& words, std::string_view separator) -> std::string {
  std::string out;
  for (auto const word : words) {
    out += out.empty() ? "" : separator;
    out += word;
  }
  return out;
}

/// One value as it is written.
struct scalar {
  std::string_view text;
  bool in_quotes = false;
};

// How each type of option is read. An error says what is wrong; what is allowed is added to it.

template <class T>
using value = result<T, std::string>;

auto no(scalar const& given, std::string_view what) -> std::unexpected<std::string> {
  return failure(shown(given.text) + " is no " + std::string(what));
}

auto in_range(option const& rule, std::int64_t number, scalar const& given) -> value<std::int64_t> {
  if (number < rule.min || number > rule.max) {
    return failure(shown(given.text) + " is out of range");
  }
  return number;
}

auto read_boolean(option const&, scalar const& given) -> value<bool> {
  if (given.in_quotes || (given.text != "true" && given.text != "false")) {
    return no(given, given.in_quotes ? "boolean but text in quotes" : "boolean");
  }
  return given.text == "true";
}

auto read_integer(option const& rule, scalar const& given) -> value<std::int64_t> {
  auto const number = parse_count(given.text);
  if (!number || given.in_quotes) {
    return no(given, given.in_quotes ? "number but text in quotes" : "decimal number");
  }
  return in_range(rule, *number, given);
}

auto read_duration(option const& rule, scalar const& given) -> value<std::chrono::nanoseconds> {
  auto const duration = parse_duration(given.text);
  if (!duration) {
    return no(given, "duration");
  }
  auto const milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(*duration);
  TIDEGATE_TRY_VOID(in_range(rule, milliseconds.count(), given));
  return *duration;
}

auto read_size(option const& rule, scalar const& given) -> value<std::int64_t> {
  auto const size = parse_size(given.text);
  return size ? in_range(rule, *size, given) : no(given, "size");
}

auto read_quota(option const& rule, scalar const& given) -> value<std::int64_t> {
  auto const units = parse_size(given.text);
  return units ? in_range(rule, *units, given) : no(given, "quota");
}

auto read_rate(option const&, scalar const& given) -> value<ratelimit::rate> {
  auto const rate = parse_rate(given.text);
  return rate ? value<ratelimit::rate>(*rate) : no(given, "rate");
}

auto read_choice(option const& rule, scalar const& given) -> value<std::string_view> {
  auto const words = split_words(rule.words);
  auto const found = std::find(words.begin(), words.end(), given.text);
  if (found == words.end()) {
    return failure(shown(given.text) + " is unknown" + did_you_mean(given.text, words));
  }
  return *found;
}

auto read_file(option const&, scalar const& given) -> value<std::string> {
  return given.text.empty() ? no(given, "path") : value<std::string>(std::string(given.text));
}

auto read_address(option const&, scalar const& given) -> value<std::string> {
  return parse_listen_address(given.text);
}

auto read_url(option const&, scalar const& given) -> value<upstream_server> {
  return parse_server_url(given.text);
}

auto read_network(option const&, scalar const& given) -> value<http::cidr> {
  auto const network = http::parse_cidr(given.text);
  if (!network) {
    return no(given, "network: " + std::string(http::message(network.error().fault)));
  }
  auto const address = http::parse_ip_address(given.text.substr(0, given.text.find('/')));
  if (address && *address != network->address) {
    return failure(shown(given.text) + " has bits behind its prefix; did you mean " +
                   shown(to_string(*network)) + "?");
  }
  return *network;
}

auto read_path(option const&, scalar const& given) -> value<std::string> {
  if (auto const checked = check_path_pattern(given.text); !checked) {
    return no(given, "path pattern: " + std::string(message(checked.error().fault)));
  }
  return std::string(given.text);
}

auto read_method(option const&, scalar const& given) -> value<std::string> {
  // Methods are case-sensitive (RFC 9110, section 9.1), so `get` would match nothing that anybody sends.
  bool const lower = std::any_of(given.text.begin(), given.text.end(),
                                 [](char c) { return c >= 'a' && c <= 'z'; });
  return lower || !is_token(given.text) ? no(given, "method")
                                        : value<std::string>(std::string(given.text));
}

auto read_host(option const&, scalar const& given) -> value<std::string> {
  auto const host = http::parse_host(given.text);
  if (!host || host->name.empty()) {
    return no(given, "host");
  }
  std::string normal;
  http::append_normal_host(normal, *host);
  if (host->port || given.text.ends_with(':')) {
    return failure(shown(given.text) + " has a port");
  }
  return normal;
}

auto read_source(option const&, scalar const& given) -> value<ratelimit::partition_source> {
  auto source = ratelimit::parse_partition_source(given.text);
  return source ? value<ratelimit::partition_source>(*std::move(source)) : no(given, "source");
}

auto read_pointer(option const&, scalar const& given) -> value<json::pointer> {
  auto pointer = json::pointer::parse(given.text);
  return pointer ? value<json::pointer>(*std::move(pointer))
                 : no(given, "JSON pointer: " + to_string(pointer.error()));
}

/// A path or a URL that can stand between "<" and ">".
auto read_reference(option const&, scalar const& given) -> value<std::string> {
  bool const is_clean = std::all_of(given.text.begin(), given.text.end(), [](char c) {
    return c > ' ' && c < '\x7f' && !std::string_view("<>\"\\^`{|}#").contains(c);
  });
  bool const is_absolute = given.text.starts_with('/') || given.text.starts_with("https://") ||
                           given.text.starts_with("http://");
  return is_clean && is_absolute ? value<std::string>(std::string(given.text))
                                 : no(given, "URL or absolute path");
}

auto read_store(option const& rule, scalar const& given) -> value<store_place> {
  for (auto const form : split_words(rule.forms)) {
    auto const begin = beginning_of(form);
    if (!given.text.starts_with(begin) || given.text.size() == begin.size()) {
      continue;
    }
    if (begin == "sqlite:") {
      return store_place{store_kind::sqlite, std::string(given.text.substr(begin.size()))};
    }
    return store_place{begin.starts_with("redis") ? store_kind::redis : store_kind::postgres,
                       std::string(given.text)};
  }
  // What is in doubt is left out: passwords stand anywhere in what people write for a database.
  bool const is_odd =
      !given.text.contains("://") && given.text.find_first_of("=@ /") != std::string_view::npos;
  return no({is_odd ? std::string(given.text.substr(0, given.text.find_first_of(":=@ /")))
                    : without_passwords(given.text)},
            "store");
}

/// What is wrong is not shown: it may be the token itself.
auto read_digest(option const&, scalar const& given) -> value<sha256_digest> {
  sha256_digest digest{};
  auto const no_digest = failure(std::string("this is no digest of SHA-256"));
  if (given.text.size() != 2 * digest.size()) {
    return no_digest;
  }
  for (std::size_t i = 0; i < digest.size(); ++i) {
    unsigned octet = 0;
    for (auto const c : given.text.substr(2 * i, 2)) {
      auto const place = std::string_view("0123456789abcdef").find(c);
      if (place == std::string_view::npos) {
        return no_digest;
      }
      octet = octet * 16 + static_cast<unsigned>(place);
    }
    digest[i] = static_cast<std::byte>(octet);
  }
  return digest;
}

auto read_name(option const&, scalar const& given) -> value<std::string> {
  return is_printable_name(given.text) ? value<std::string>(std::string(given.text))
                                       : no(given, "name");
}

auto is_word(option const& rule, std::string_view text) -> bool {
  auto const words = split_words(rule.words);
  return std::find(words.begin(), words.end(), text) != words.end();
}

/// One mapping of the file and where in the table its options are. Without a node all have their default.
struct section {
  std::string path;
  yaml_node const* node = nullptr;
  yaml_place place{};

  [[nodiscard]] auto find(std::string_view key) const -> yaml_node::member const* {
    if (node == nullptr) {
      return nullptr;
    }
    auto const found =
        std::find_if(node->members.begin(), node->members.end(),
                     [&](yaml_node::member const& member) { return member.key->text == key; });
    return found == node->members.end() ? nullptr : &*found;
  }

  [[nodiscard]] auto path_of(std::string_view key) const -> std::string {
    return path.empty() ? std::string(key) : path + "." + std::string(key);
  }
  [[nodiscard]] auto rule(std::string_view key) const -> option const& {
    return option_at(path_of(key));
  }
  [[nodiscard]] auto place_of(std::string_view key) const -> yaml_place {
    auto const* const member = find(key);
    return member == nullptr ? place : member->value->place;
  }
};

class config_reader {
 public:
  config_reader(std::string_view file_name, std::vector<config_fault>& faults)
      : file_name_(file_name), faults_(faults) {}

  auto read(yaml_node const& root) -> config {
    config made;
    refuse_variables(root);
    section const top = root.is == yaml_node::kind::null ? open_empty() : open(root, "");
    read_process(top, made);
    read_fields(top, made);
    read_http(top, made);
    read_upstreams(top, made);
    read_policies(top, made);
    read_routes(top, made);
    warn_of_unused(top, made);
    return made;
  }

  void fault(yaml_place place, std::string message) {
    // A suggestion ends in a question mark.
    constexpr std::string_view behind_question = "?; allowed:";
    if (auto const at = message.find(behind_question); at != std::string::npos) {
      message.erase(at + 1, 1);
    }
    if (!with_variables_.contains(place)) {
      faults_.push_back({file_name_, place.line, place.column, std::move(message)});
    }
  }

  [[nodiscard]] auto take_warnings() -> std::vector<config_fault> { return std::move(warnings_); }

 private:
  void warn(yaml_place place, std::string message) {
    warnings_.push_back({file_name_, place.line, place.column, std::move(message)});
  }

  /// `${NAME}` is what people know from elsewhere. Taken as it stands it would be a strange value at best.
  void refuse_variables(yaml_node const& node) {
    switch (node.is) {
      case yaml_node::kind::null: break;
      case yaml_node::kind::scalar: {
        auto const begin = node.text.find("${");
        auto const end = node.text.find('}', std::min(begin, node.text.size()));
        if (end != std::string::npos) {
          fault(node.place, shown(std::string_view(node.text).substr(begin, end + 1 - begin)) +
                                ": variables are not replaced by their values in this version; "
                                "allowed: the value itself");
          with_variables_.insert(node.place);
        }
        break;
      }
      case yaml_node::kind::sequence:
        for (auto const* const item : node.items) {
          refuse_variables(*item);
        }
        break;
      case yaml_node::kind::mapping:
        for (auto const& [key, value] : node.members) {
          refuse_variables(*key);
          refuse_variables(*value);
        }
        break;
    }
  }

  using names = std::map<std::string, std::optional<std::size_t>, std::less<>>;

  // ---- the tree ----

  /// Checks the keys of a mapping.
  auto open(yaml_node const& node, std::string path) -> section {
    section opened{std::move(path), nullptr, node.place};
    if (node.is != yaml_node::kind::mapping) {
      fault(node.place, "expected a mapping" +
                            (opened.path.empty() ? "" : " for " + shown(key_of(opened.path))) +
                            "; allowed keys: " + keys_of(opened.path, false));
      return opened;
    }
    opened.node = &node;
    auto const rules = options_under(opened.path);
    check_repetitions(node, "key");
    auto const* const service = opened.find("service");
    bool const has_scim =
        opened.find("bridge") != nullptr || (service != nullptr && service->value->text == "scim");
    for (auto const& [key, value] : node.members) {
      check_key(*key, rules, has_scim);
    }
    check_required(opened, rules);
    return opened;
  }

  auto open_empty() -> section {
    section opened{};
    check_required(opened, options_under(""));
    return opened;
  }

  /// The mapping at `key`; when there is none, one where all options have their default.
  auto open_at(section const& parent, std::string_view key) -> section {
    auto const* const member = parent.find(key);
    if (member == nullptr || has_no_value(*member)) {
      return {parent.path_of(key), nullptr, parent.place};
    }
    return open(*member->value, parent.path_of(key));
  }

  static auto key_of(std::string_view path) -> std::string_view {
    return path.substr(path.rfind('.') + 1);
  }

  /// Of a route those of SCIM only `with_scim`: they are many.
  static auto keys_of(std::string_view path, bool with_scim) -> std::string {
    std::vector<std::string_view> keys;
    bool is_all = true;
    for (auto const* const rule : options_under(path)) {
      if (rule->available == availability::later) {
        continue;
      }
      if (rule->of_scim && !with_scim) {
        is_all = false;
      } else {
        keys.push_back(rule->key());
      }
    }
    return joined(keys, ", ") + (is_all ? "" : ", and more with \"service: scim\"");
  }

  void check_key(yaml_node const& key, std::vector<option const*> const& rules, bool with_scim) {
    auto const parent = parent_of(*rules.front());
    auto const found = std::find_if(rules.begin(), rules.end(),
                                    [&](option const* rule) { return rule->key() == key.text; });
    if (found != rules.end() ? (*found)->available == availability::later
                             : is_known_elsewhere(parent, key.text)) {
      fault(key.place, shown(key.text) + std::string(not_available) +
                           "; allowed: " + keys_of(parent, with_scim));
    } else if (found == rules.end()) {
      std::vector<std::string_view> known;
      for (auto const* const rule : rules) {
        if (rule->available != availability::later) {
          known.push_back(rule->key());
        }
      }
      fault(key.place, "unknown key " + shown(key.text) + did_you_mean(key.text, known) +
                           "; allowed: " + keys_of(parent, with_scim));
    }
  }

  static auto parent_of(option const& rule) -> std::string_view {
    auto const dot = rule.path.rfind('.');
    return dot == std::string_view::npos ? std::string_view() : rule.path.substr(0, dot);
  }

  void check_repetitions(yaml_node const& mapping, std::string_view what) {
    std::map<std::string_view, yaml_place> seen;
    for (auto const& [key, value] : mapping.members) {
      auto const [at, first] = seen.try_emplace(key->text, key->place);
      if (!first) {
        fault(key->place, "duplicate " + std::string(what) + " " + shown(key->text) +
                              "; it is already in line " + std::to_string(at->second.line));
      }
    }
  }

  void check_required(section const& opened, std::vector<option const*> const& rules) {
    for (auto const* const rule : rules) {
      if (rule->available == availability::required && opened.find(rule->key()) == nullptr) {
        fault(opened.place, shown(rule->key()) + " is missing; allowed: " +
                                (rule->form == option_form::list ? "a list of " : "") +
                                allowed_values(*rule));
      }
    }
  }

  auto has_no_value(yaml_node::member const& member) -> bool {
    if (member.value->is != yaml_node::kind::null) {
      return false;
    }
    fault(member.key->place, shown(member.key->text) + " has no value");
    return true;
  }

  // ---- values ----

  /// Reads one value by its rule. Nothing for a word, such as `none`, and after a fault.
  template <class Read>
  auto take_node(option const& rule, yaml_node const& node, Read read) {
    using type = typename std::invoke_result_t<Read, option const&, scalar const&>::value_type;
    auto const allowed = "; allowed: " + allowed_values(rule);
    if (node.is != yaml_node::kind::scalar) {
      fault(node.place, std::string(rule.key()) + ": expected a value" + allowed);
      return std::optional<type>();
    }
    for (auto const later : split_words(rule.later)) {
      if (node.text.starts_with(later)) {
        fault(node.place, std::string(rule.key()) + ": " + shown(node.text) +
                              std::string(not_available) + allowed);
        return std::optional<type>();
      }
    }
    if (rule.type != option_type::choice && is_word(rule, node.text)) {
      return std::optional<type>();
    }
    auto value = read(rule, {node.text, node.quoted});
    if (!value) {
      fault(node.place, std::string(rule.key()) + ": " + value.error() + allowed);
      return std::optional<type>();
    }
    return std::optional<type>(*std::move(value));
  }

  /// The value at `key`, or its default.
  template <class Read>
  auto take(section const& from, std::string_view key, Read read) {
    using type = typename std::invoke_result_t<Read, option const&, scalar const&>::value_type;
    auto const& rule = from.rule(key);
    auto const* const member = from.find(key);
    if (member != nullptr) {
      return has_no_value(*member) ? std::optional<type>() : take_node(rule, *member->value, read);
    }
    if (rule.initial.empty() || (rule.type != option_type::choice && is_word(rule, rule.initial))) {
      return std::optional<type>();
    }
    return std::optional<type>(*read(rule, {rule.initial}));
  }

  /// The same for an option that has a default: after a fault any value will do.
  template <class Read>
  auto take_or_default(section const& from, std::string_view key, Read read) {
    using type = typename std::invoke_result_t<Read, option const&, scalar const&>::value_type;
    return take(from, key, read).value_or(type{});
  }

  /// The values of a list, or the one value that stands for a list of one.
  auto items_at(section const& from, std::string_view key) -> std::vector<yaml_node const*> {
    auto const* const member = from.find(key);
    if (member == nullptr || has_no_value(*member)) {
      return {};
    }
    if (member->value->is == yaml_node::kind::sequence) {
      return member->value->items;
    }
    if (from.rule(key).form == option_form::one_or_list) {
      return {member->value};
    }
    fault(member->value->place, std::string(key) + ": expected a list");
    return {};
  }

  template <class Read>
  auto take_list(section const& from, std::string_view key, Read read) {
    using type = typename std::invoke_result_t<Read, option const&, scalar const&>::value_type;
    std::vector<type> values;
    for (auto const* const item : items_at(from, key)) {
      if (auto value = take_node(from.rule(key), *item, read)) {
        values.push_back(*std::move(value));
      }
    }
    return values;
  }

  /// The members of a mapping from names to values.
  auto named_at(section const& from, std::string_view key) -> std::vector<yaml_node::member> {
    auto const* const member = from.find(key);
    if (member == nullptr || has_no_value(*member)) {
      return {};
    }
    if (member->value->is != yaml_node::kind::mapping) {
      fault(member->value->place, std::string(key) + ": expected a mapping from names");
      return {};
    }
    check_repetitions(*member->value, "name");
    for (auto const& [name, value] : member->value->members) {
      if (!is_printable_name(name->text)) {
        fault(name->place, shown(name->text) +
                               " is no name; allowed: printable ASCII without spaces at its ends");
      }
    }
    return member->value->members;
  }

  /// Paths in the file are relative to its folder.
  [[nodiscard]] auto beside_file(std::string_view path) const -> std::string {
    return (std::filesystem::path(file_name_).parent_path() / path).lexically_normal().string();
  }

  // ---- parts of the configuration ----

  void read_process(section const& top, config& made) {
    read_listeners(top, made);
    read_admin(top, made);
    auto const directory = take(open_at(top, "console"), "directory", read_choice);
    made.console_directory = directory == "off"     ? directory_access::off
                             : directory == "write" ? directory_access::write
                                                    : directory_access::read;
    made.workers = take(top, "workers", read_integer);
    made.log =
        log_level_named(take(top, "log-level", read_choice).value_or("")).value_or(log_level::info);
    made.drain_delay = take_or_default(top, "drain-delay", read_duration);
    made.data = beside_file(take_or_default(top, "data", read_file));
    auto const secrets = take(top, "secrets", read_file);
    made.secrets = secrets ? beside_file(*secrets)
                           : (std::filesystem::path(made.data) / "secrets.key").string();
    auto const stores = open_at(top, "stores");
    made.quota_store = take_store(stores, "quota");
    made.quota_partitions = take_or_default(stores, "quota-partitions", read_integer);
    auto const in_data = [&](char const* file) {
      return store_place{store_kind::sqlite, (std::filesystem::path(made.data) / file).string()};
    };
    bool const has_idempotency = stores.find("idempotency") != nullptr;
    bool const has_directory = stores.find("directory") != nullptr;
    made.idempotency_store =
        has_idempotency ? take_store(stores, "idempotency") : in_data("idempotency.db");
    made.idempotency_size = take_or_default(stores, "idempotency-size", read_size);
    if (made.idempotency_store.kind == store_kind::redis ||
        made.idempotency_store.kind == store_kind::postgres) {
      made.idempotency_size = 0;
      if (stores.find("idempotency-size") != nullptr) {
        fault(stores.place_of("idempotency-size"),
              "idempotency-size: only where \"idempotency\" is in memory or in SQLite; Redis is "
              "bounded by its maxmemory, PostgreSQL by its disk");
      }
    }
    made.idempotency_replicas = take_or_default(stores, "idempotency-replicas", read_integer);
    if (made.idempotency_replicas != 0 && made.idempotency_store.kind != store_kind::redis) {
      fault(stores.place_of("idempotency-replicas"),
            "idempotency-replicas: only where \"idempotency\" is in Redis");
    }
    made.directory_store =
        has_directory ? take_store(stores, "directory") : in_data("directory.db");
    if (made.directory_store == made.idempotency_store &&
        made.directory_store.kind == store_kind::sqlite) {
      fault(stores.place_of(has_directory ? "directory" : "idempotency"),
            "directory: the file of \"idempotency\" too; allowed: another file");
    }
    read_access_log(top, made);
  }

  void read_admin(section const& top, config& made) {
    auto const* const given = top.find("admin");
    bool const is_mapping = given != nullptr && given->value->is == yaml_node::kind::mapping;
    auto const from = is_mapping ? open_at(top, "admin") : top;
    auto const* const key = is_mapping ? "address" : "admin";
    auto const faults_before = faults_.size();
    auto const address = take(from, key, read_address);
    std::vector<bearer_token> tokens;
    if (is_mapping) {
      tokens = read_tokens(from, "tokens",
                           "an empty list lets nobody in; leave it out on the loopback interface",
                           false);
    }
    if (tokens.size() > admin_tokens_max) {
      fault(from.place_of("tokens"),
            "tokens: too many; allowed: " + std::to_string(admin_tokens_max));
    }
    if (!address || faults_.size() != faults_before) {
      return;
    }
    if (std::any_of(made.listen.begin(), made.listen.end(), [&](auto const& other) {
          return other.address == *address && !other.address.ends_with(":0");
        })) {
      fault(from.place_of(key),
            "admin: the gateway listens on " + shown(*address) + " too; allowed: another address");
    } else if (tokens.empty() && !is_local_address(*address)) {
      fault(from.place_of(key),
            "admin: others reach " + shown(*address) +
                ", so it needs tokens; allowed: {address: " + shown(*address) +
                ", tokens: [{name: NAME, sha256: DIGEST}]} with what `printf %s TOKEN | sha256sum` "
                "prints, or an address of the loopback interface such as \"127.0.0.1:9901\"");
    }
    made.admin = admin_config{*address, std::move(tokens)};
  }

  auto take_store(section const& stores, std::string_view key) -> store_place {
    auto place = take_or_default(stores, key, read_store);
    if (place.kind == store_kind::sqlite) {
      place.where = beside_file(place.where);
    }
    return place;
  }

  void read_access_log(section const& top, config& made) {
    auto const* const given = top.find("access-log");
    bool const is_mapping = given != nullptr && given->value->is == yaml_node::kind::mapping;
    auto const from = is_mapping ? open_at(top, "access-log") : top;
    auto const* const key = is_mapping ? "file" : "access-log";
    if (auto const file = take(from, key, read_file)) {
      made.access_log = {access_log_config::destination::file, beside_file(*file)};
    } else if (auto const* const word = from.find(key);
               word != nullptr && word->value->text == "stdout") {
      made.access_log.to = access_log_config::destination::standard_output;
    }
    made.access_log.query = is_mapping && take_or_default(from, "query", read_boolean);
  }

  void read_listeners(section const& top, config& made) {
    made.trusted_proxies = take_list(top, "trusted-proxies", read_network);
    made.client_address = take_or_default(top, "client-address", read_choice) == "forwarded"
                              ? client_address_field::forwarded
                              : client_address_field::x_forwarded_for;
    auto const& rule = top.rule("listen");
    auto const items = items_at(top, "listen");
    if (top.find("listen") == nullptr) {
      made.listen.push_back({*read_address(rule, {rule.initial}), std::nullopt, true, false});
    } else if (items.empty()) {
      fault(top.place_of("listen"), "listen: an empty list; allowed: at least one address");
    }
    std::set<std::string> seen;
    for (auto const* const item : items) {
      listener_config listener;
      if (item->is == yaml_node::kind::mapping) {
        listener = read_listener(open(*item, "listen"), made);
      } else {
        listener.address = take_node(rule, *item, read_address).value_or("");
      }
      bool const any_port = listener.address.ends_with(":0");
      if (!listener.address.empty() && !any_port && !seen.insert(listener.address).second) {
        fault(item->place, "listen: " + shown(listener.address) + " is there twice");
      }
      made.listen.push_back(std::move(listener));
    }
  }

  auto read_listener(section const& from, config const& made) -> listener_config {
    listener_config listener;
    listener.address = take_or_default(from, "address", read_address);
    if (from.find("tls") != nullptr) {
      auto const tls = open_at(from, "tls");
      listener.tls = {beside_file(take_or_default(tls, "certificate", read_file)),
                      beside_file(take_or_default(tls, "key", read_file))};
    }
    listener.http2 = take_or_default(from, "http2", read_boolean);
    listener.proxy_protocol = take_or_default(from, "proxy-protocol", read_boolean);
    if (listener.proxy_protocol && made.trusted_proxies.empty()) {
      fault(from.place_of("proxy-protocol"),
            "proxy-protocol: believed only from trusted-proxies, and there are none");
    } else if (listener.proxy_protocol && listener.address.starts_with("unix:")) {
      fault(from.place_of("proxy-protocol"),
            "proxy-protocol: who connects through a path has no address that could be trusted");
    }
    return listener;
  }

  void read_fields(section const& top, config& made) {
    auto const fields = open_at(top, "fields");
    auto const version = take(fields, "ratelimit", read_choice);
    if (version == "none") {
      made.fields.ratelimit = std::nullopt;
    } else if (version == "draft-07") {
      made.fields.ratelimit = ratelimit::draft::draft_07;
    }
    made.fields.legacy = take_or_default(fields, "legacy", read_boolean);
  }

  void read_http(section const& top, config& made) {
    auto const http = open_at(top, "http");
    made.http = {
        .header_timeout = take_or_default(http, "header-timeout", read_duration),
        .body_timeout = take_or_default(http, "body-timeout", read_duration),
        .idle_timeout = take_or_default(http, "idle-timeout", read_duration),
        .max_header_size = take_or_default(http, "max-header-size", read_size),
        .max_headers = take_or_default(http, "max-headers", read_integer),
        .max_uri = take_or_default(http, "max-uri", read_size),
        .max_body = take(http, "max-body", read_size),
        .max_connections = take_or_default(http, "max-connections", read_integer),
        .refuses_ambiguous_paths =
            take_or_default(http, "ambiguous-paths", read_choice) == "refuse",
        .max_buffered = take_or_default(http, "max-buffered", read_size),
    };
  }

  void read_upstreams(section const& top, config& made) {
    for (auto const& member : named_at(top, "upstreams")) {
      upstreams_.try_emplace(member.key->text, made.upstreams.size());
      made.upstreams.push_back(read_upstream(top, member));
    }
  }

  auto read_upstream(section const& top, yaml_node::member const& member) -> upstream_config {
    upstream_config upstream;
    upstream.name = member.key->text;
    section from{"upstreams", nullptr, member.key->place};
    if (member.value->is == yaml_node::kind::mapping) {
      from = open(*member.value, "upstreams");
      upstream.servers = read_servers(from);
    } else if (!has_no_value(member)) {
      if (auto server = take_node(top.rule("upstreams"), *member.value, read_url)) {
        upstream.servers.push_back(*std::move(server));
      }
    }
    upstream.connect_timeout = take_or_default(from, "connect-timeout", read_duration);
    upstream.timeout = take_or_default(from, "timeout", read_duration);
    upstream.idle_timeout = take_or_default(from, "idle-timeout", read_duration);
    upstream.retries = take_or_default(from, "retries", read_integer);
    (void)take(from, "http2", read_choice);  // checked only: HTTP/1.1 is all there is so far
    read_upstream_tls(from, upstream);
    read_overload(from, upstream);
    return upstream;
  }

  auto read_servers(section const& from) -> std::vector<upstream_server> {
    std::vector<upstream_server> servers;
    auto const items = items_at(from, "servers");
    if (auto const* const given = from.find("servers");
        given != nullptr && given->value->is == yaml_node::kind::sequence && items.empty()) {
      fault(given->value->place, "servers: an empty list; allowed: at least one URL");
    }
    for (auto const* const item : items) {
      auto server = take_node(from.rule("servers"), *item, read_url);
      if (!server) {
        continue;
      }
      if (std::find(servers.begin(), servers.end(), *server) != servers.end()) {
        fault(item->place, "servers: " + shown(to_string(*server)) + " is there twice");
      }
      servers.push_back(*std::move(server));
    }
    return servers;
  }

  void read_upstream_tls(section const& from, upstream_config& upstream) {
    auto const tls = open_at(from, "tls");
    upstream.tls.verify = take_or_default(tls, "verify", read_boolean);
    if (auto const ca = take(tls, "ca", read_file)) {
      upstream.tls.ca = beside_file(*ca);
    }
    upstream.tls.server_name = take(tls, "server-name", read_host);
    bool const any_tls = std::any_of(upstream.servers.begin(), upstream.servers.end(),
                                     [](upstream_server const& server) { return server.tls; });
    if (tls.node != nullptr && !upstream.servers.empty() && !any_tls) {
      fault(tls.place, "tls: none of the servers is https://");
    }
  }

  void read_overload(section const& from, upstream_config& upstream) {
    if (from.find("overload") == nullptr) {
      return;
    }
    auto const overload = open_at(from, "overload");
    upstream.overload = {take(overload, "max-in-flight", read_integer),
                         take(overload, "target-latency", read_duration)};
    if (overload.node != nullptr && overload.node->members.empty()) {
      fault(overload.place,
            "overload: nothing to go by; allowed: " + keys_of(overload.path, false));
    }
  }

  void read_policies(section const& top, config& made) {
    for (auto const& member : named_at(top, "policies")) {
      auto const faults_before = faults_.size();
      auto const from = has_no_value(member) ? section{"policies", nullptr, member.key->place}
                                             : open(*member.value, "policies");
      auto policy = read_policy(from, member.key->text);
      // A policy with faults has a name all the same, which routes may use.
      if (policy && faults_.size() == faults_before) {
        policies_.try_emplace(member.key->text, made.policies.size());
        made.policies.push_back(*std::move(policy));
      } else {
        policies_.try_emplace(member.key->text, std::nullopt);
      }
    }
  }

  auto read_policy(section const& from, std::string_view name) -> std::optional<policy_config> {
    auto const policy = read_limit(from);
    auto const form = take(from, "partition-key", read_choice);
    auto sources = read_sources(from, "partition");
    auto const shadow = take(from, "enforce", read_choice) == "shadow";
    auto const count = take(from, "count", read_choice);
    auto const jitter = take_or_default(from, "jitter", read_duration);
    auto const max_rate = take(from, "max-advertised-rate", read_rate);
    auto const abuse = read_abuse(from);
    bool const leases = take(from, "counting", read_choice) == "lease";
    auto const failure = take(from, "on-store-failure", read_choice);
    if (auto const secret = std::ranges::find_if(sources, ratelimit::is_credential);
        form == "plain" && secret != sources.end()) {
      fault(from.place_of("partition-key"),
            "partition-key: \"plain\" would tell " + shown(to_string(*secret)) +
                ", which is a credential, in every response; allowed: none, hashed");
    }
    if (!policy) {
      return std::nullopt;
    }
    // What was taken ahead drains before it is used: more than the burst could come at once.
    if (leases && policy->algorithm() == ratelimit::algorithm::gcra &&
        policy->unit() != ratelimit::quota_unit::concurrent_requests) {
      fault(from.place_of("counting"), "counting: gcra cannot be counted by lease; allowed: exact");
    }
    using ratelimit::partition_key_form;
    return policy_config{
        .name = std::string(name),
        .policy = *policy,
        .partition = ratelimit::partition_rule(std::move(sources),
                                               form == "hashed"  ? partition_key_form::hashed
                                               : form == "plain" ? partition_key_form::plain
                                                                 : partition_key_form::none),
        .advertisement = {.max_rate = max_rate, .jitter = jitter},
        .shadow = shadow,
        .count = count == "successful" ? counted::successful : counted::all,
        .abuse = abuse,
        .counting = leases ? store::counting::lease : store::counting::exact,
        .on_store_failure = failure == "allow"  ? store_failure::allow
                            : failure == "deny" ? store_failure::deny
                                                : store_failure::local,
    };
  }

  /// Quota, window, unit, algorithm and burst, which depend on each other.
  auto read_limit(section const& from) -> std::optional<ratelimit::policy> {
    ratelimit::policy_settings settings;
    auto const unit = take(from, "unit", read_choice);
    auto const algorithm = take(from, "algorithm", read_choice);
    auto const quota = take(from, "quota", read_quota);
    auto const window = take(from, "window", read_duration);
    settings.burst = take(from, "burst", read_quota);
    if (!unit || !algorithm || from.node == nullptr) {
      return std::nullopt;
    }
    settings.unit = ratelimit::quota_unit_named(*unit);
    settings.algorithm = *algorithm == "fixed"  ? ratelimit::algorithm::fixed
                         : *algorithm == "gcra" ? ratelimit::algorithm::gcra
                                                : ratelimit::algorithm::sliding;
    check_units(from, settings.unit);
    bool const concurrent = settings.unit == ratelimit::quota_unit::concurrent_requests;
    if (concurrent) {
      for (auto const* const key : {"window", "algorithm", "burst"}) {
        if (auto const* const given = from.find(key)) {
          fault(given->key->place, std::string(key) + ": not for concurrent-requests");
        }
      }
    } else if (from.find("window") == nullptr) {
      fault(from.place, "\"window\" is missing; allowed: " + allowed_values(from.rule("window")));
    } else if (window && *window % std::chrono::seconds(1) != std::chrono::nanoseconds(0)) {
      fault(from.place_of("window"), "window: not in whole seconds; allowed: whole seconds");
    }
    if (!concurrent && settings.burst && settings.algorithm != ratelimit::algorithm::gcra) {
      fault(from.find("burst")->key->place, "burst: only for algorithm gcra");
      settings.burst = std::nullopt;
    }
    if (!quota || (concurrent ? settings.burst.has_value() : !window)) {
      return std::nullopt;
    }
    settings.quota = *quota;
    settings.window = concurrent ? std::chrono::seconds(0)
                                 : std::chrono::duration_cast<std::chrono::seconds>(*window);
    auto const policy = ratelimit::policy::make(settings);
    if (!policy) {
      // What is left are bounds that depend on several values.
      fault(from.place_of("burst"), std::string(ratelimit::message(policy.error())));
      return std::nullopt;
    }
    return *policy;
  }

  /// A size such as 10MiB is for octets.
  void check_units(section const& from, ratelimit::quota_unit unit) {
    for (auto const* const key : {"quota", "burst"}) {
      auto const* const given = from.find(key);
      if (unit != ratelimit::quota_unit::content_bytes && given != nullptr &&
          parse_size(given->value->text) && !parse_count(given->value->text)) {
        fault(given->value->place,
              std::string(key) + ": a size is for unit content-bytes; allowed: a number");
      }
    }
  }

  auto read_sources(section const& from, std::string const& key)
      -> std::vector<ratelimit::partition_source> {
    auto const& rule = from.rule(key);
    if (from.find(key) == nullptr) {
      return {*read_source(rule, {rule.initial})};
    }
    std::vector<ratelimit::partition_source> sources;
    for (auto const* const item : items_at(from, key)) {
      auto source = take_node(rule, *item, read_source);
      if (source && std::find(sources.begin(), sources.end(), *source) != sources.end()) {
        fault(item->place, key + ": " + shown(item->text) + " is there twice");
      } else if (sources.size() == sources_max) {
        fault(item->place, key + ": too many sources; allowed: " + std::to_string(sources_max));
        break;
      } else if (source) {
        sources.push_back(*std::move(source));
      }
    }
    return sources;
  }

  auto read_abuse(section const& from) -> std::optional<ratelimit::abuse_settings> {
    auto const* const given = from.find("abuse");
    if (given == nullptr || (given->value->is == yaml_node::kind::scalar &&
                             is_word(from.rule("abuse"), given->value->text))) {
      return std::nullopt;
    }
    auto const abuse = open_at(from, "abuse");
    return ratelimit::abuse_settings{
        .refusals = static_cast<std::uint32_t>(take_or_default(abuse, "refusals", read_integer)),
        .within = take_or_default(abuse, "within", read_duration),
        .block = take_or_default(abuse, "block", read_duration),
    };
  }

  void read_routes(section const& top, config& made) {
    auto const items = items_at(top, "routes");
    if (auto const* const given = top.find("routes");
        given != nullptr && given->value->is == yaml_node::kind::sequence && items.empty()) {
      fault(given->value->place, "routes: an empty list; allowed: at least one route");
    }
    std::map<std::string, std::size_t> lines;  // of the names
    for (auto const* const item : items) {
      auto const from = open(*item, "routes");
      if (from.node == nullptr) {
        continue;
      }
      auto route = read_route(from, made);
      auto const [first, fresh] = lines.try_emplace(route.name, item->place.line);
      if (!fresh) {
        auto const line = " in line " + std::to_string(first->second);
        fault(from.find("name") != nullptr ? from.place_of("name") : item->place,
              from.find("name") != nullptr
                  ? "name: the route" + line + " is called " + shown(route.name) + " too"
                  : "never reached: the route" + line + " has the same match");
      } else {
        warn_of_shadow(made, route, item->place);
      }
      route_lines_.push_back(item->place.line);
      made.routes.push_back(std::move(route));
    }
  }

  /// The first that matches takes a request, so that a narrow route behind a wide one, or behind several that take its
  /// methods one by one, gets none.
  void warn_of_shadow(config const& made, route_config const& route, yaml_place place) {
    auto const taker_of = [&](request_match const& match) -> std::optional<std::size_t> {
      auto const found = std::ranges::find_if(
          made.routes, [&](route_config const& wide) { return covers(wide.match, match); });
      return found != made.routes.end()
                 ? std::optional(static_cast<std::size_t>(found - made.routes.begin()))
                 : std::nullopt;
    };
    std::vector<std::size_t> takers;
    if (auto const whole = taker_of(route.match)) {
      takers.push_back(*whole);
    } else {
      auto part = route.match;
      for (auto const& method : route.match.methods) {
        part.methods = {method};
        auto const taker = taker_of(part);
        if (!taker) {
          return;
        }
        takers.push_back(*taker);
      }
      std::ranges::sort(takers);
      takers.erase(std::ranges::unique(takers).begin(), takers.end());
    }
    if (takers.empty()) {
      return;
    }
    std::string names;
    for (auto const taker : takers) {
      names += (names.empty() ? "" : " and ") + shown(made.routes[taker].name) + " in line " +
               std::to_string(route_lines_[taker]);
    }
    warn(place, "never reached: the route" + std::string(takers.size() == 1 ? " " : "s ") + names +
                    (takers.size() == 1 ? " takes" : " take") +
                    " all of its requests; the first match wins, so put the narrower one first");
  }

  void warn_of_unused(section const& top, config const& made) {
    auto const* const given = top.find("policies");
    if (given == nullptr) {
      return;
    }
    for (auto const& member : given->value->members) {
      auto const is_it = [&](std::size_t position) {
        return made.policies[position].name == member.key->text;
      };
      bool const is_used = std::ranges::any_of(made.routes, [&](route_config const& route) {
        return std::ranges::any_of(route.limits, is_it);
      });
      if (!is_used) {
        warn(member.key->place,
             "the policy " + shown(member.key->text) + " is in the limits of no route");
      }
    }
  }

  auto read_route(section const& from, config const& made) -> route_config {
    route_config route;
    route.match = read_match(open_at(from, "match"));
    route.name = take(from, "name", read_name).value_or(name_of(route.match));
    read_target(from, route);
    if (from.find("auth") != nullptr) {
      route.auth = read_auth(open_at(from, "auth"), route);
    }
    read_scim(from, made, route);
    read_limits(from, made, route);
    read_costs(from, made, route);
    if (from.find("idempotency") != nullptr) {
      read_idempotency(open_at(from, "idempotency"), route);
    }
    return route;
  }

  /// What `service: scim` has of options, which no other route may have but for those of pages with a bridge.
  void read_scim(section const& from, config const& made, route_config& route) {
    bool const is_scim = route.service == route_service::scim;
    bool const is_bridge = take(from, "bridge", read_choice).has_value();
    scim_config scim;
    read_pagination(from, scim.pagination);
    for (auto const& file : take_list(from, "schemas", read_file)) {
      scim.schemas.push_back(beside_file(file));
    }
    scim.indexes = take_list(from, "indexes", read_name);
    scim.scan_budget = take_or_default(from, "scan-budget", read_duration);
    scim.max_body = take_or_default(from, "max-body", read_size);
    auto const bulk = open_at(from, "bulk");
    scim.bulk_max_operations = take_or_default(bulk, "max-operations", read_integer);
    scim.bulk_max_payload = take_or_default(bulk, "max-payload", read_size);
    scim.public_url = take(from, "public-url", read_reference).value_or("");
    if (scim.public_url.starts_with('/') || scim.public_url.contains('?')) {
      fault(from.place_of("public-url"), "public-url: " + shown(scim.public_url) +
                                             " is no base; allowed: a URL without a query");
    }
    while (scim.public_url.ends_with('/')) {
      scim.public_url.pop_back();
    }
    scim.unique_group_names = take_or_default(from, "unique-group-names", read_boolean);
    scim.unknown = take(from, "unknown-attributes", read_choice) == "refuse"
                       ? scim::unknown_attributes::refuse
                       : scim::unknown_attributes::ignore;
    if (is_bridge && route.service != route_service::upstream) {
      fault(from.find("bridge")->key->place, "bridge: only for a route with \"upstream\"");
    }
    if (!is_scim) {
      for (auto const* const key : {"schemas", "indexes", "scan-budget", "max-body", "bulk",
                                    "public-url", "unique-group-names", "unknown-attributes"}) {
        if (auto const* const given = from.find(key)) {
          fault(given->key->place, std::string(key) + ": only for \"service: scim\"");
        }
      }
      for (auto const* const key : {"default-page-size", "max-page-size", "pagination",
                                    "default-method", "cursor-timeout", "count-over-max"}) {
        if (auto const* const given = from.find(key); given != nullptr && !is_bridge) {
          fault(given->key->place,
                std::string(key) + ": only for \"service: scim\" or \"bridge: scim-cursor\"");
        }
      }
      if (is_bridge && !scim.pagination.cursor) {
        fault(from.place_of("pagination"), "pagination: a bridge without cursors does nothing");
      }
      if (is_bridge) {
        route.bridge = scim.pagination;
      }
      return;
    }
    if (!route.match.path.ends_with("/**")) {
      fault(from.place_of("match"),
            "service: scim has many paths; allowed: one that ends with /**");
    }
    for (auto const& other : made.routes) {
      if (other.scim &&
          (other.scim->schemas != scim.schemas || other.scim->indexes != scim.indexes)) {
        fault(from.place_of("service"), "service: the route " + shown(other.name) +
                                            " has the same directory; allowed: the same "
                                            "\"schemas\" and \"indexes\"");
        break;
      }
    }
    route.scim = std::move(scim);
  }

  void read_pagination(section const& from, scim::pagination_options& made) {
    auto const methods = take(from, "pagination", read_choice);
    auto const first = take(from, "default-method", read_choice);
    made.cursor = methods != "index";
    made.index = methods != "cursor";
    bool const by_cursor =
        first == "cursor" || (!made.index && from.find("default-method") == nullptr);
    made.default_method =
        by_cursor ? scim::pagination_method::cursor : scim::pagination_method::index;
    if (first && (by_cursor ? !made.cursor : !made.index)) {
      fault(from.place_of("default-method"),
            "default-method: " + shown(*first) + " is not one of \"pagination\"");
    }
    made.default_page_size =
        static_cast<std::uint32_t>(take_or_default(from, "default-page-size", read_integer));
    made.max_page_size =
        static_cast<std::uint32_t>(take_or_default(from, "max-page-size", read_integer));
    if (made.max_page_size != 0 && made.default_page_size > made.max_page_size) {
      if (auto const* const given = from.find("default-page-size")) {
        fault(given->value->place, "default-page-size: more than max-page-size");
      }
      made.default_page_size = made.max_page_size;
    }
    made.count_over_max_is_error = take(from, "count-over-max", read_choice) == "error";
    made.cursor_timeout = take_seconds(from, "cursor-timeout");
  }

  auto take_seconds(section const& from, char const* key) -> std::chrono::seconds {
    auto const given = take_or_default(from, key, read_duration);
    if (given % std::chrono::seconds(1) != std::chrono::nanoseconds(0)) {
      fault(from.place_of(key),
            std::string(key) + ": not in whole seconds; allowed: whole seconds");
    }
    return std::chrono::duration_cast<std::chrono::seconds>(given);
  }

  auto read_auth(section const& from, route_config const& route) -> auth_config {
    auth_config auth;
    auth.tokens =
        read_tokens(from, "bearer-tokens",
                    "an empty list lets nobody in; leave out auth to let everybody in", true);
    if (route.service != route_service::scim) {
      for (auto const* const item : items_at(from, "bearer-tokens")) {
        for (auto const& [key, value] : item->members) {
          if (key->text == "tenant") {
            fault(key->place, "tenant: only for \"service: scim\"");
          }
        }
      }
    }
    return auth;
  }

  /// The tokens at `key`. `when_empty` is what is wrong with none.
  auto read_tokens(section const& from, std::string const& key, std::string_view when_empty,
                   bool has_tenants) -> std::vector<bearer_token> {
    std::vector<bearer_token> tokens;
    auto const items = items_at(from, key);
    if (auto const* const given = from.find(key);
        given != nullptr && given->value->is == yaml_node::kind::sequence && items.empty()) {
      fault(given->value->place, key + ": " + std::string(when_empty));
    }
    for (auto const* const item : items) {
      auto const each = open(*item, from.path_of(key));
      auto const name = take(each, "name", read_name);
      auto const digest = take(each, "sha256", read_digest);
      auto const tenant = has_tenants ? take_or_default(each, "tenant", read_name) : std::string();
      auto const read_only = take_or_default(each, "read-only", read_boolean);
      if (!name || !digest) {
        continue;
      }
      for (auto const& other : tokens) {
        if (other.name == *name) {
          fault(each.place_of("name"), "name: " + shown(*name) + " is there twice");
        }
        if (other.digest == *digest) {
          fault(each.place_of("sha256"), "sha256: the token of " + shown(other.name) + " too");
        }
      }
      tokens.push_back({*name, *digest, tenant, read_only});
    }
    return tokens;
  }

  /// `principal` says something only where tokens do.
  void check_principal(yaml_place place, std::string_view key,
                       std::span<ratelimit::partition_source const> sources,
                       route_config const& route) {
    bool const asks = std::ranges::any_of(sources, [](auto const& source) {
      return source.kind == ratelimit::partition_source_kind::principal;
    });
    if (asks && !route.auth) {
      fault(place, std::string(key) + ": \"principal\" says nothing on a route without \"auth\"");
    }
  }

  void read_idempotency(section const& from, route_config& route) {
    auto const mode = take(from, "mode", read_choice);
    auto const faults_before = faults_.size();
    idempotency_config made;
    made.required = mode == "required";
    read_keys(from, route, made);
    read_fingerprint(from, made);
    read_outcomes(from, made);
    made.max_body = take_or_default(from, "max-body", read_size);
    made.max_response = take_or_default(from, "max-response", read_size);
    made.pass_on_store_failure = take(from, "on-store-failure", read_choice) == "pass";
    made.replay_cost = take_or_default(from, "replay-cost", read_integer);
    made.seal = take_or_default(from, "seal", read_boolean);
    made.documentation = take_or_default(from, "documentation", read_reference);
    if (!mode || mode == "off" || faults_.size() != faults_before) {
      return;
    }
    if (route.service == route_service::echo) {
      fault(from.place, "idempotency: not for \"service: echo\"");
    }
    auto const secret = std::ranges::find_if(made.scope, ratelimit::is_credential);
    if (secret != made.scope.end()) {
      warn(
          from.find("scope") != nullptr ? from.place_of("scope") : from.place,
          "scope: \"" + to_string(*secret) +
              "\" is a credential: where it is renewed, a retry with the same key is a new request "
              "and runs a second time; better: \"principal\" on a route with \"auth\", or a field "
              "that names the client");
    }
    if (made.owned_by_address) {
      warn(from.place_of("scope"),
           "scope: \"client-ip\" alone: clients behind one address own their keys together, and a "
           "client whose address changes loses them; better: \"principal\" on a route with "
           "\"auth\", "
           "or a field that names the client");
    }
    route.idempotency = std::move(made);
  }

  /// What every request has tells no client from another, but for the address, to some degree.
  void check_scope(section const& from, idempotency_config& made) {
    using ratelimit::partition_source;
    auto const has = [&](auto const& wanted) { return std::ranges::any_of(made.scope, wanted); };
    if (has([](partition_source const& source) { return names_client(source.kind); })) {
      return;
    }
    made.owned_by_address = has([](partition_source const& source) {
      return source.kind == ratelimit::partition_source_kind::client_ip;
    });
    if (!made.owned_by_address) {
      fault(from.place_of("scope"),
            "scope: nothing in it tells one client from another; allowed: principal, header:NAME, "
            "query:NAME, cookie:NAME or client-ip, and others besides");
    }
  }

  /// Whose keys, and which.
  void read_keys(section const& from, route_config const& route, idempotency_config& made) {
    made.methods = take_list(from, "methods", read_method);
    if (from.find("methods") == nullptr) {
      made.methods = {"POST", "PATCH"};
    } else if (made.methods.empty()) {
      fault(from.place_of("methods"), "methods: an empty list; mode: off says the same");
    }
    for (auto const* const safe : {"GET", "HEAD", "OPTIONS", "TRACE"}) {
      if (std::ranges::find(made.methods, safe) != made.methods.end()) {
        fault(from.place_of("methods"), "methods: " + std::string(safe) +
                                            " is safe and needs no key; allowed: other methods");
      }
    }
    auto const faults_before = faults_.size();
    made.scope = read_sources(from, "scope");
    if (route.auth && from.find("scope") == nullptr) {
      made.scope = {{ratelimit::partition_source_kind::principal, ""}};
    }
    check_principal(from.place_of("scope"), "scope", made.scope, route);
    if (faults_.size() == faults_before) {
      check_scope(from, made);
    }
    made.anonymous = take(from, "anonymous", read_choice) == "allow";
    auto const format = take(from, "key-format", read_choice);
    made.key.format = format == "uuid"     ? idempotency::key_format::uuid
                      : format == "uuidv7" ? idempotency::key_format::uuidv7
                                           : idempotency::key_format::any;
    made.key.length_max =
        static_cast<std::size_t>(take_or_default(from, "key-length-max", read_integer));
    made.key.accept_unquoted = take_or_default(from, "accept-unquoted", read_boolean);
    if (auto const age = take(from, "key-age-max", read_duration)) {
      made.key.age_max = std::chrono::duration_cast<std::chrono::milliseconds>(*age);
      if (made.key.format != idempotency::key_format::uuidv7) {
        fault(from.place_of("key-age-max"),
              "key-age-max: only a UUID of version 7 says when it was made; allowed: with "
              "key-format uuidv7");
      }
    }
  }

  void read_fingerprint(section const& from, idempotency_config& made) {
    auto const* const given = from.find("fingerprint");
    if (given != nullptr && given->value->is == yaml_node::kind::mapping) {
      auto const chosen = open_at(from, "fingerprint");
      auto const faults_before = faults_.size();
      auto rule = idempotency::fingerprint_rule::json(take_list(chosen, "json", read_pointer));
      if (!rule && faults_.size() == faults_before) {
        fault(chosen.place, "fingerprint: allowed: 1 to " +
                                std::to_string(idempotency::fingerprint_rule::pointers_max) +
                                " JSON pointers");
      } else if (rule) {
        made.fingerprint = *std::move(rule);
      }
      return;
    }
    auto const rule = take(from, "fingerprint", read_choice);
    made.fingerprint = rule == "json"   ? idempotency::fingerprint_rule::json()
                       : rule == "none" ? idempotency::fingerprint_rule::none()
                                        : idempotency::fingerprint_rule::body();
  }

  /// How long things are remembered, and what becomes of what nobody knows.
  void read_outcomes(section const& from, idempotency_config& made) {
    auto& policy = made.policy;
    policy.ttl = take_seconds(from, "ttl");
    policy.tombstone = take_seconds(from, "tombstone");
    policy.wait_in_flight = take(from, "in-flight", read_choice) == "wait";
    policy.waiters_max =
        static_cast<std::size_t>(take_or_default(from, "waiters-max", read_integer));
    policy.keys_max = static_cast<std::size_t>(take_or_default(from, "keys-max", read_integer));
    made.max_execution = take_or_default(from, "max-execution", read_duration);
    policy.lease = std::chrono::duration_cast<std::chrono::milliseconds>(
        take_or_default(from, "lease", read_duration));
    policy.store_5xx = take_or_default(from, "store-5xx", read_boolean);
    policy.upstream_deduplicates = take_or_default(from, "upstream-deduplicates", read_boolean);
    policy.retry_unknown = take(from, "on-unknown-outcome", read_choice) == "retry";
    if (policy.retry_unknown && !policy.upstream_deduplicates) {
      fault(from.place_of("on-unknown-outcome"),
            "on-unknown-outcome: retry could do a thing twice; allowed: with "
            "upstream-deduplicates: true");
    }
  }

  auto read_match(section const& from) -> request_match {
    request_match match;
    match.path = take(from, "path", read_path).value_or("/**");
    match.host = take(from, "host", read_host).value_or("");
    match.methods = take_list(from, "methods", read_method);
    auto const* const given = from.find("methods");
    if (given != nullptr && given->value->is == yaml_node::kind::sequence &&
        given->value->items.empty()) {
      fault(given->value->place, "methods: an empty list matches nothing; leave it out for any");
    }
    return match;
  }

  static auto name_of(request_match const& match) -> std::string {
    std::vector<std::string_view> const methods(match.methods.begin(), match.methods.end());
    return joined(methods, ",") + (methods.empty() ? "" : " ") + match.host + match.path;
  }

  void read_target(section const& from, route_config& route) {
    auto const service = take(from, "service", read_choice);
    auto const upstream = take(from, "upstream", read_name);
    auto const* const given_service = from.find("service");
    auto const* const given_upstream = from.find("upstream");
    if (given_service != nullptr && given_upstream != nullptr) {
      fault(given_service->key->place, "a route has either \"upstream\" or \"service\"");
    } else if (given_service == nullptr && given_upstream == nullptr) {
      fault(from.place, "nothing answers this route; allowed: \"upstream\" or \"service\"");
    }
    if (upstream && given_upstream != nullptr) {
      route.upstream = resolve("upstream", upstreams_, *given_upstream->value).value_or(0);
    }
    if (service) {
      route.service = service == "scim" ? route_service::scim : route_service::echo;
    }
  }

  auto resolve(std::string_view what, names const& known, yaml_node const& reference)
      -> std::optional<std::size_t> {
    auto const found = known.find(reference.text);
    if (found != known.end()) {
      return found->second;
    }
    std::vector<std::string_view> candidates;
    for (auto const& [name, position] : known) {
      candidates.push_back(name);
    }
    fault(reference.place, "there is no " + std::string(what) + " " + shown(reference.text) +
                               did_you_mean(reference.text, candidates) + "; allowed: " +
                               (candidates.empty() ? "none is defined" : joined(candidates, ", ")));
    return std::nullopt;
  }

  void read_limits(section const& from, config const& made, route_config& route) {
    std::set<std::string_view> seen;
    std::map<std::int64_t, std::string_view> quotas;  // that draft-07 would show
    for (auto const* const item : items_at(from, "limits")) {
      if (!take_node(from.rule("limits"), *item, read_name)) {
        continue;
      }
      if (!seen.insert(item->text).second) {
        fault(item->place, "limits: " + shown(item->text) + " is there twice");
        continue;
      }
      if (seen.size() > limits_max) {
        fault(item->place, "limits: too many policies; allowed: " + std::to_string(limits_max));
        break;
      }
      auto const position = resolve("policy", policies_, *item);
      if (!position) {
        continue;
      }
      auto const& limit = made.policies[*position];
      check_principal(item->place, "limits", limit.partition.sources(), route);
      bool const in_fields =
          !limit.shadow && limit.policy.unit() != ratelimit::quota_unit::concurrent_requests;
      if (made.fields.ratelimit == ratelimit::draft::draft_07 && in_fields) {
        auto const [other, fresh] = quotas.try_emplace(limit.policy.quota(), limit.name);
        if (!fresh) {
          fault(item->place,
                "limits: " + shown(item->text) + " has the same quota as " + shown(other->second) +
                    ", and draft-07 tells them apart by nothing else; allowed: another "
                    "quota, or fields: {ratelimit: draft-09}");
        }
      }
      route.limits.push_back(*position);
    }
  }

  void read_costs(section const& from, config const& made, route_config& route) {
    auto const& rule = from.rule("cost");
    auto const* const given = from.find("cost");
    route.cost.otherwise = *read_integer(rule, {rule.initial});
    if (given == nullptr || has_no_value(*given)) {
      return;
    }
    if (given->value->is != yaml_node::kind::mapping) {
      route.cost.otherwise = read_cost(rule, *given->value, made, route);
      return;
    }
    check_repetitions(*given->value, "pattern");
    for (auto const& member : given->value->members) {
      if (has_no_value(member)) {
        continue;
      }
      auto const cost = read_cost(rule, *member.value, made, route);
      if (member.key->text == "default") {
        route.cost.otherwise = cost;
      } else if (auto match = read_cost_pattern(*member.key)) {
        route.cost.rules.push_back({*std::move(match), cost});
      }
    }
  }

  auto read_cost(option const& rule, yaml_node const& node, config const& made,
                 route_config const& route) -> std::int64_t {
    auto const cost = take_node(rule, node, read_integer).value_or(0);
    for (auto const position : route.limits) {
      auto const& limit = made.policies[position];
      if (limit.policy.unit() == ratelimit::quota_unit::requests &&
          cost > limit.policy.cost_max()) {
        fault(node.place, "cost: " + std::to_string(cost) + " is more than policy " +
                              shown(limit.name) + " ever admits; allowed: up to " +
                              std::to_string(limit.policy.cost_max()));
      }
    }
    return cost;
  }

  /// `METHOD /path/**`
  auto read_cost_pattern(yaml_node const& key) -> std::optional<request_match> {
    auto const text = std::string_view(key.text);
    auto const space = std::min(text.find(' '), text.size());
    auto const path = text.substr(std::min(space + 1, text.size()));
    auto const method = read_method({}, {text.substr(0, space)});
    auto const checked = check_path_pattern(path);
    if (!method || !checked) {
      fault(key.place,
            "cost: " + shown(text) + " is no pattern" +
                (method && !path.empty() ? ": " + std::string(message(checked.error().fault))
                                         : did_you_mean(text, {"default"})) +
                "; allowed: default, or a method and a path such as \"POST /v1/**\"");
      return std::nullopt;
    }
    return request_match{std::string(path), {*method}, ""};
  }

  std::string file_name_;
  std::vector<config_fault>& faults_;
  std::set<yaml_place> with_variables_;  // nothing else is said of these
  std::vector<config_fault> warnings_;
  names upstreams_;
  names policies_;
  std::vector<std::size_t> route_lines_;  // in the order of the routes
};

/// Puts faults in the order of the text and inside of it, and leaves those that come after many others.
void arrange(std::vector<config_fault>& faults, std::string_view text) {
  // yaml-cpp says of what is missing at the end that it is behind it.
  std::vector<std::size_t> lengths;
  for (std::size_t begin = 0; begin <= text.size();) {
    auto const end = std::min(text.find('\n', begin), text.size());
    lengths.push_back(end - begin);
    begin = end + 1;
  }
  for (auto& fault : faults) {
    fault.line = std::min(fault.line, lengths.size());
    fault.column = std::min(fault.column, lengths[fault.line - 1] + 1);
  }
  std::sort(faults.begin(), faults.end());
  // What an alias repeats is at fault at the same place.
  faults.erase(std::unique(faults.begin(), faults.end()), faults.end());
  if (faults.size() > faults_max) {
    faults.resize(faults_max);
  }
}

}  // namespace

auto to_string(config_fault const& fault) -> std::string {
  if (fault.file.starts_with("--")) {
    return fault.file +
           (fault.column == 1 ? ": " : ", character " + std::to_string(fault.column) + ": ") +
           fault.message;
  }
  return fault.file + ":" + std::to_string(fault.line) + ":" + std::to_string(fault.column) + ": " +
         fault.message;
}

auto place_of(config const& settings, std::string_view path) -> config_fault {
  auto const found = std::ranges::find(settings.effective, path, &effective_option::path);
  config_fault place;
  if (found == settings.effective.end()) {
    return place;
  }
  // FILE:LINE:COLUMN; the name of a file may have colons.
  std::string_view const origin = found->origin;
  auto const column = origin.rfind(':');
  auto const line = column == std::string_view::npos ? column : origin.rfind(':', column - 1);
  if (line != std::string_view::npos) {
    place.file = origin.substr(0, line);
    place.line = static_cast<std::size_t>(
        parse_count(origin.substr(line + 1, column - line - 1)).value_or(1));
    place.column = static_cast<std::size_t>(parse_count(origin.substr(column + 1)).value_or(1));
  }
  return place;
}

auto parse_config(std::string_view text, std::string_view file_name)
    -> result<config, std::vector<config_fault>> {
  std::vector<config_fault> faults;
  config_reader reader(file_name, faults);
  config made;
  if (text.size() > config_octets_max) {
    reader.fault(
        {}, "the file is larger than " + format_size(static_cast<std::int64_t>(config_octets_max)));
  } else if (auto const document = read_yaml(text); document) {
    made = reader.read(*document->root);
    if (faults.empty()) {
      made.effective = effective_options(*document->root, made, file_name);
      made.warnings = reader.take_warnings();
    }
  } else {
    reader.fault(document.error().place, document.error().message);
  }
  if (!faults.empty()) {
    arrange(faults, text);
    return failure(std::move(faults));
  }
  arrange(made.warnings, text);
  return made;
}

}  // namespace tidegate::gateway
