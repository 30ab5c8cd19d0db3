// SPDX-License-Identifier: Apache-2.0
//
// Flags become the YAML of a file that says the same, so that there is one reader of
// configurations.
#include <tidegate/config/config.hpp>

#include <tidegate/config/values.hpp>
#include "options/options.hpp"
#include "reader/wording.hpp"

#include <tidegate/json/string.hpp>

#include <algorithm>

namespace tidegate::gateway {

namespace {

/// JSON strings are YAML. Flags have no variables: a shell has replaced its own.
auto yaml(std::string_view text) -> std::string {
  std::string plain;
  for (auto at = text.find("${"); at != std::string_view::npos; at = text.find("${")) {
    plain.append(text.substr(0, at)).append("$${");
    text.remove_prefix(at + 2);
  }
  std::string out;
  json::append_string(out, plain.append(text));
  return out;
}

class flag_reader {
 public:
  std::vector<config_fault> faults;

  void fault(std::string_view flag, std::size_t offset, std::string message) {
    faults.push_back({std::string(flag), 1, offset + 1, std::move(message)});
  }

  /// `QUOTA/WINDOW [by SOURCE,...]` as the YAML of a policy.
  auto read_limit(std::string_view text) -> std::string {
    constexpr std::string_view by = " by ";
    constexpr std::string_view flag = "--limit";
    auto const rule = text.substr(0, text.find(by));
    auto const slash = std::min(rule.find('/'), rule.size());
    // `100/m` is 100/1m, as people write it elsewhere.
    std::string window(rule.substr(std::min(slash + 1, rule.size())));
    if (!window.empty() && (window.front() < '0' || window.front() > '9')) {
      window.insert(0, "1");
    }
    auto const quota = parse_count(rule.substr(0, slash));
    if (slash == rule.size() || !quota || *quota < 1 || *quota > 999'999'999'999'999) {
      fault(flag, 0, "expected QUOTA/WINDOW, such as 100/1m by header:x-api-key");
      return "";
    }
    auto const duration = parse_duration(window);
    ratelimit::policy_settings settings;
    settings.quota = *quota;
    settings.window =
        std::chrono::floor<std::chrono::seconds>(duration.value_or(std::chrono::nanoseconds(0)));
    if (!duration || settings.window != *duration || !ratelimit::policy::make(settings)) {
      fault(flag, slash + 1,
            "invalid window " + shown(rule.substr(slash + 1)) +
                " (expected 1s to 366d, in whole seconds)");
    }
    auto const sources = rule.size() == text.size()
                             ? std::string("\"client-ip\"")
                             : read_sources(flag, text, rule.size() + by.size());
    return "{quota: " + std::to_string(*quota) + ", window: " + yaml(window) + ", partition: [" +
           sources + "]}";
  }

 private:
  auto read_sources(std::string_view flag, std::string_view text, std::size_t begin)
      -> std::string {
    std::string out;
    std::vector<ratelimit::partition_source> seen;
    while (begin <= text.size()) {
      auto const end = std::min(text.find(',', begin), text.size());
      auto const source = text.substr(begin, end - begin);
      if (auto const parsed = ratelimit::parse_partition_source(source); !parsed) {
        fault(flag, begin + parsed.error().offset, to_string(parsed.error()));
      } else if (needs_principal(parsed->kind)) {
        fault(flag, begin, shown(source) + " needs \"auth\", which needs a configuration file");
      } else if (std::find(seen.begin(), seen.end(), *parsed) != seen.end()) {
        fault(flag, begin, "duplicate " + shown(source));
      } else {
        seen.push_back(*parsed);
      }
      out += (out.empty() ? "" : ", ") + yaml(source);
      begin = end + 1;
    }
    return out;
  }
};

}  // namespace

auto config_from_flags(serve_flags const& flags) -> result<config, std::vector<config_fault>> {
  flag_reader reader;
  if (auto const server = parse_server_url(flags.upstream); !server) {
    reader.fault("--upstream", 0, "invalid URL: " + server.error());
  }
  std::string text = "upstreams: {upstream: " + yaml(flags.upstream) + "}\n";
  if (flags.listen) {
    if (auto const address = parse_listen_address(*flags.listen); !address) {
      reader.fault("--listen", 0, "invalid address: " + address.error());
    }
    text += "listen: " + yaml(*flags.listen) + "\n";
  }
  if (flags.admin) {
    if (auto const address = parse_listen_address(*flags.admin); !address) {
      reader.fault("--admin", 0, "invalid address: " + address.error());
    } else if (!is_local_address(*address)) {
      reader.fault("--admin", 0,
                   "other machines can reach this address, so it needs tokens, which need a "
                   "configuration file (expected a loopback address, or unix:/PATH)");
    } else if (parse_listen_address(
                   flags.listen.value_or(std::string(option_at("listen").initial))) == *address &&
               !address->ends_with(":0")) {
      reader.fault("--admin", 0, "same address as --listen (expected another address)");
    }
    text += "admin: " + yaml(*flags.admin) + "\n";
  }
  std::string policies;
  std::string names;
  for (std::size_t i = 0; i < flags.limits.size(); ++i) {
    // Clients see the name.
    auto const name = flags.limits.size() == 1 ? "default" : "limit-" + std::to_string(i + 1);
    policies += "  " + name + ": " + reader.read_limit(flags.limits[i]) + "\n";
    names += (names.empty() ? "" : ", ") + name;
  }
  if (!policies.empty()) {
    text += "policies:\n" + policies;
  }
  std::string keys;
  if (flags.idempotency) {
    if (*flags.idempotency != "required" && *flags.idempotency != "optional" &&
        *flags.idempotency != "off") {
      reader.fault(
          "--idempotency", 0,
          "unknown mode " + shown(*flags.idempotency) + " (expected required, optional or off)");
    }
    keys = ", idempotency: {mode: " + yaml(*flags.idempotency) + ", anonymous: allow}";
  }
  text +=
      "routes: [{match: {path: /**}, upstream: upstream, limits: [" + names + "]" + keys + "}]\n";
  if (!reader.faults.empty()) {
    return failure(std::move(reader.faults));
  }
  auto made = parse_config(text, "");
  if (made) {
    made->warnings.clear();  // of a text that its author has not written
    if (keys.contains("mode") && *flags.idempotency != "off") {
      made->warnings.push_back(
          {"--idempotency", 1, 1,
           "requests without an Authorization header share their keys (anonymous: allow), so that "
           "one client may get the response of another; a configuration file can refuse them"});
    }
  }
  return made;
}

}  // namespace tidegate::gateway
