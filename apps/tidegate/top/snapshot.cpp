// SPDX-License-Identifier: Apache-2.0
#include "top/snapshot.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/json/parse.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace tidegate::app::top {

namespace {

/// A line of /metrics.
struct sample {
  std::string_view name;
  std::vector<std::pair<std::string_view, std::string>> labels;
  double value = 0;

  [[nodiscard]] auto label(std::string_view wanted) const -> std::string {
    auto const found = std::ranges::find(labels, wanted, &decltype(labels)::value_type::first);
    return found == labels.end() ? std::string() : found->second;
  }
  [[nodiscard]] auto count() const -> std::uint64_t {
    return value > 0 && value < 1e18 ? static_cast<std::uint64_t>(value) : 0;
  }
};

/// `name{label="value",…} number`, the text format of Prometheus; nothing for comments and for what
/// is none.
[[nodiscard]] auto read_sample(std::string_view line) -> std::optional<sample> {
  sample read;
  auto const name_end = line.find_first_of("{ ");
  if (line.starts_with('#') || name_end == std::string_view::npos) {
    return std::nullopt;
  }
  read.name = line.substr(0, name_end);
  line.remove_prefix(name_end);
  if (line.starts_with('{')) {
    line.remove_prefix(1);
    while (!line.starts_with('}')) {
      auto const equals = line.find("=\"");
      if (equals == std::string_view::npos) {
        return std::nullopt;
      }
      auto& [name, value] = read.labels.emplace_back(line.substr(0, equals), "");
      line.remove_prefix(equals + 2);
      while (!line.empty() && line.front() != '"') {
        line.remove_prefix(line.front() == '\\' && line.size() > 1 ? 1 : 0);
        value.push_back(line.front());
        line.remove_prefix(1);
      }
      line.remove_prefix(std::min<std::size_t>(1, line.size()));
      line.remove_prefix(line.starts_with(',') ? 1 : 0);
      if (line.empty()) {
        return std::nullopt;
      }
    }
    line.remove_prefix(1);
  }
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  auto const [end, fault] = std::from_chars(line.data(), line.data() + line.size(), read.value);
  if (fault != std::errc{} || !std::isfinite(read.value)) {
    return std::nullopt;
  }
  return read;
}

template <class Figures>
[[nodiscard]] auto entry(std::map<std::string, Figures>& of, std::string name) -> Figures* {
  auto const found = of.find(name);
  if (found != of.end()) {
    return &found->second;
  }
  return of.size() < entries_max ? &of[std::move(name)] : nullptr;
}

void take_request(sample const& line, route_figures& route) {
  auto const status = line.label("status");
  auto const count = line.count();
  route.requests += count;
  if (status.size() == 3 && status[0] >= '0' && status[0] <= '5') {
    route.by_class[static_cast<std::size_t>(status[0] - '0')] += count;
  }
  route.throttled += status == "429" ? count : 0;
}

void take_keyed(sample const& line, route_figures& route) {
  auto const outcome = line.label("outcome");
  if (outcome == "replayed") {
    route.replayed += line.count();
  } else if (outcome == "conflict" || outcome == "reused" || outcome == "unknown") {
    route.conflicts += line.count();
  }
}

void take_bucket(sample const& line, route_figures& route) {
  auto const bound = line.label("le");
  double seconds = 0;
  auto const [end, fault] = std::from_chars(bound.data(), bound.data() + bound.size(), seconds);
  constexpr std::size_t buckets_max = 100;
  if (fault == std::errc{} && std::isfinite(seconds) && route.within.size() < buckets_max) {
    route.within[seconds] = line.count();
  }
}

void take_decision(sample const& line, policy_figures& policy) {
  auto const decision = line.label("decision");
  auto const count = line.count();
  if (decision == "admitted") {
    policy.admitted = count;
  } else if (decision == "refused") {
    policy.refused = count;
  } else if (decision == "shadow-refused") {
    policy.shadow_refused = count;
  } else if (decision == "blocked") {
    policy.blocked = count;
  }
}

void take_sample(sample const& line, snapshot& out) {
  auto const of_route = [&](auto take) {
    if (auto* const route = entry(out.routes, line.label("route"))) {
      take(line, *route);
    }
  };
  if (line.name == "tidegate_requests_total") {
    of_route(take_request);
  } else if (line.name == "tidegate_idempotency_total") {
    of_route(take_keyed);
  } else if (line.name == "tidegate_request_duration_seconds_bucket") {
    of_route(take_bucket);
  } else if (line.name == "tidegate_request_duration_seconds_sum") {
    of_route([](sample const& each, route_figures& route) { route.seconds = each.value; });
  } else if (line.name == "tidegate_decisions_total") {
    if (auto* const policy = entry(out.policies, line.label("policy"))) {
      take_decision(line, *policy);
    }
  } else if (line.name == "tidegate_connections_open") {
    out.connections = line.count();
  } else if (line.name == "tidegate_idempotency_waiting") {
    out.waiting = line.count();
  } else if (line.name == "process_cpu_seconds_total") {
    out.cpu_seconds = line.value;
  } else if (line.name == "process_resident_memory_bytes") {
    out.memory_octets = line.count();
  }
}

[[nodiscard]] auto integer_of(json::value const& object, std::string_view name)
    -> std::optional<std::int64_t> {
  auto const* const number = object.find<std::int64_t>(name);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

[[nodiscard]] auto decimal_of(json::value const& object, std::string_view name) -> double {
  auto const* const number = object.find<double>(name);
  return number != nullptr ? *number : static_cast<double>(integer_of(object, name).value_or(0));
}

/// The array that an object has under that name.
[[nodiscard]] auto array_of(result<json::value, json::error> const& message, std::string_view name)
    -> result<json::array const*, std::string> {
  auto const* const member = message ? message->find(name) : nullptr;
  auto const* const array = member == nullptr ? nullptr : member->if_array();
  if (array == nullptr) {
    return failure("the admin address does not say which " + std::string(name) +
                   " there are: is it a gateway of this version?");
  }
  return array;
}

/// Its sources with their values, or the beginning of its key in their place.
[[nodiscard]] auto partition_words(json::value const& partition) -> std::string {
  std::string text;
  if (auto const* const sources = partition.find<json::array>("partition")) {
    for (auto const& source : *sources) {
      text.append(text.empty() ? "" : " ").append(text_of(source, "source")).append("=");
      if (source.find("value") != nullptr) {
        text += text_of(source, "value");
      } else {
        text.append("#").append(text_of(partition, "key").substr(0, 8));
      }
    }
  }
  return text.empty() ? "everybody" : text;
}

}  // namespace

auto read_snapshot(admin_texts const& texts, instant taken) -> result<snapshot, std::string> {
  snapshot out{.taken = taken};
  for (auto rest = texts.metrics; !rest.empty();) {
    if (auto const line = read_sample(take_until(rest, '\n'))) {
      take_sample(*line, out);
    }
  }
  constexpr json::limits limits{.octets_max = std::size_t{4} << 20};
  auto const policies = json::parse(texts.policies, limits);
  TIDEGATE_TRY(auto const* const known, array_of(policies, "policies"));
  for (auto const& each : *known) {
    if (auto* const policy = entry(out.policies, std::string(text_of(each, "name")))) {
      policy->quota = integer_of(each, "quota").value_or(0);
      policy->window = integer_of(each, "window");
      policy->unit = text_of(each, "unit");
      auto const* const enforced = each.find<bool>("enforced");
      policy->enforced = enforced == nullptr || *enforced;
    }
  }
  auto const partitions = json::parse(texts.partitions, limits);
  TIDEGATE_TRY(auto const* const hottest, array_of(partitions, "partitions"));
  out.partition_window = integer_of(*partitions, "window").value_or(0);
  for (auto const& each : *hottest) {
    if (out.partitions.size() == entries_max) {
      break;
    }
    out.partitions.push_back({.policy = std::string(text_of(each, "policy")),
                              .text = partition_words(each),
                              .requests = decimal_of(each, "requests"),
                              .refused = decimal_of(each, "refused"),
                              .quota = integer_of(each, "quota").value_or(0),
                              .remaining = integer_of(each, "remaining").value_or(0),
                              .reset = integer_of(each, "reset")});
  }
  return out;
}

}  // namespace tidegate::app::top
