// SPDX-License-Identifier: Apache-2.0
#include "api/api_partitions.hpp"

#include "api/partition_quota.hpp"

#include "api/api_quotas.hpp"

#include <tidegate/http/ip_address.hpp>
#include <tidegate/http/path_readings.hpp>
#include <tidegate/http/query.hpp>
#include <tidegate/http/target.hpp>
#include <tidegate/json/parse.hpp>
#include <tidegate/ratelimit/abuse.hpp>
#include <tidegate/ratelimit/write.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace tidegate::gateway {

namespace {

using namespace std::chrono_literals;
using ratelimit::partition_source_kind;
using ratelimit::quota_unit;

constexpr std::string_view api_path = "/api/v1/partitions/";
constexpr auto override_longest = std::chrono::seconds(std::chrono::days(30));

[[nodiscard]] auto problem(int status, std::string const& detail) {
  return failure(admin_problem(status, detail));
}

/// A value as requests have it: addresses and hosts have one spelling.
[[nodiscard]] auto normal_value(ratelimit::partition_source const& source, std::string const& value,
                                config const& settings) -> result<std::string, admin_answer> {
  std::string normal;
  if (source.kind == partition_source_kind::client_ip) {
    // As it was shown: of IPv6 that is a network.
    auto const address = http::parse_ip_address(value.substr(0, value.find('/')));
    if (!address) {
      return problem(400, "The value of client-ip must be an address: " +
                              std::string(message(address.error().fault)) + ".");
    }
    http::append_client_key(normal, *address,
                            static_cast<unsigned>(settings.client_ip.ipv6_prefix));
    return normal;
  }
  if (source.kind == partition_source_kind::host) {
    if (auto const host = http::parse_host(value)) {
      http::append_normal_host(normal, *host);
      return normal;
    }
  }
  if (source.kind == partition_source_kind::path) {
    if (std::string path; http::append_normal_path(path, value)) {
      http::append_plain_path(normal, path);
      return normal;
    }
  }
  return value;
}

[[nodiscard]] auto sources_in_words(ratelimit::partition_rule const& rule) -> std::string {
  std::string words;
  for (auto const& source : rule.sources()) {
    words += (words.empty() ? "" : ", ") + to_string(source);
  }
  return words;
}

/// The partition of the values in a request.
[[nodiscard]] auto partition_of(ratelimit::partition_rule const& rule, json::value const& values,
                                config const& settings) -> result<std::string, admin_answer> {
  auto const* const list = values.if_array();
  auto const wanted = rule.sources().empty()
                          ? std::string("none: all requests are in one partition")
                          : "one for each source: " + sources_in_words(rule);
  if (list == nullptr || list->size() != rule.sources().size()) {
    return problem(400, "values must be an array of strings, " + wanted + ".");
  }
  std::string text;
  for (std::size_t i = 0; i < list->size(); ++i) {
    auto const* const value = (*list)[i].if_string();
    if (value == nullptr) {
      return problem(400, "values must be an array of strings, " + wanted + ".");
    }
    TIDEGATE_TRY(auto const normal, normal_value(rule.sources()[i], *value, settings));
    rule.append_source(text, i, normal);
  }
  return text;
}

}  // namespace

/// Which partition is meant, and what is to become of it. It owns what it needs: a store may answer
/// after a reload.
struct partition_api::partition_command {
  std::shared_ptr<active_config const> active;
  policy_config const* policy = nullptr;
  std::uint32_t id = 0;
  std::string partition;
  std::int64_t quota = 0;
  std::chrono::seconds lasts{0};
  std::optional<ratelimit::policy> asked_by;  ///< while the store is asked

  /// In the window that it is now, where windows are those of a calendar.
  [[nodiscard]] auto at(ratelimit::policy const& by, instant now) const -> ratelimit::policy {
    return policy->calendar ? ratelimit::in_window_of(by, *policy->calendar, now,
                                                      std::chrono::system_clock::now())
                            : by;
  }
  [[nodiscard]] auto charge(ratelimit::policy const& by) const -> store::charge {
    return {&by, id, partition, 0, false};
  }
  [[nodiscard]] auto is_concurrent() const -> bool {
    return policy->policy.unit() == quota_unit::concurrent_requests;
  }
  [[nodiscard]] auto in_words() const -> std::string {
    return "the partition " + partition_key_of(partition) + " of the policy " + policy->name;
  }
};

void partition_api::answer(admin_request const& request, admin_note note, admin_reply reply) {
  auto const action = std::string_view(request.path).substr(api_path.size());
  if (action == "overrides") {
    if (request.method == wire::method::delete_) {
      take_back(request, std::move(note), std::move(reply));
    } else {
      reply(list());
    }
    return;
  }
  bool const is_look = action == "lookup";
  bool const is_reset = action == "reset";
  auto command = read_command(request);
  if (!command) {
    if (!is_look) {
      note(is_reset ? "reset a partition" : "give a partition another quota",
           command.error().status);
    }
    reply(std::move(command).error());
    return;
  }
  if (is_look) {
    look_up(*std::move(command), false, std::move(reply));
    return;
  }
  auto words = is_reset ? "reset " + command->in_words()
                        : "give " + command->in_words() + " a quota of " +
                              std::to_string(command->quota) + " for " +
                              std::to_string(command->lasts.count()) + " s";
  auto noted = [words = std::move(words), note = std::move(note),
                reply = std::move(reply)](admin_answer made) mutable {
    note(words, made.status);
    reply(std::move(made));
  };
  if (is_reset) {
    reset(*std::move(command), std::move(noted));
  } else {
    give_quota(*std::move(command), std::move(noted));
  }
}

// ---- which one ----

auto partition_api::read_command(admin_request const& request)
    -> result<partition_command, admin_answer> {
  if (!is_json(request.content_type)) {
    return problem(415, "The Content-Type must be application/json.");
  }
  auto const read = json::parse(request.content, {.depth_max = 4});
  if (!read || read->if_object() == nullptr) {
    return problem(400, read ? "The body must be a JSON object."
                             : "The body is not JSON: " + to_string(read.error()) + ".");
  }
  bool const gives = request.path.ends_with("/quota");
  for (auto const& member : read->if_object()->members()) {
    bool const is_known = member.name == "policy" || member.name == "values" ||
                          member.name == "key" ||
                          (gives && (member.name == "quota" || member.name == "seconds"));
    if (!is_known) {
      return problem(400, "Unknown member: expected policy, values or key" +
                              std::string(gives ? ", quota, seconds." : "."));
    }
  }
  auto const* const name = read->find("policy");
  if (name == nullptr || name->if_string() == nullptr) {
    return problem(400, "policy is missing: the name of a policy.");
  }
  partition_command command;
  command.active = control_.active;
  auto const& policies = command.active->config.policies;
  auto const found = std::ranges::find(policies, *name->if_string(), &policy_config::name);
  if (found == policies.end()) {
    return problem(404, "There is no such policy.");
  }
  auto const id = policy_id_of(*command.active, *found);
  if (!id) {
    return problem(409, "No route uses this policy, so it has no partitions.");
  }
  command.policy = &*found;
  command.id = *id;
  auto const* const values = read->find("values");
  auto const* const key = read->find("key");
  if ((values == nullptr) == (key == nullptr)) {
    return problem(400, "Either values or key is needed, to say which partition it is.");
  }
  if (values != nullptr) {
    TIDEGATE_TRY(command.partition,
                 partition_of(found->partition, *values, command.active->config));
  } else if (key->if_string() == nullptr) {
    return problem(400, "key must be a string, as the list of partitions has it.");
  } else if (auto partition = find_partition(command, *key->if_string(), loop_.now())) {
    command.partition = *std::move(partition);
  } else {
    return problem(
        404,
        "No partition with this key was seen lately: ask for it by the values of its sources.");
  }
  if (gives) {
    auto const* const quota = read->find("quota");
    auto const* const seconds = read->find("seconds");
    if (quota == nullptr || quota->if_integer() == nullptr ||
        !found->policy.with_quota(*quota->if_integer())) {
      return problem(400, "quota must be a whole number from 0 to 999999999999999.");
    }
    if (seconds == nullptr || seconds->if_integer() == nullptr || *seconds->if_integer() < 1 ||
        *seconds->if_integer() > override_longest.count()) {
      return problem(400, "seconds must be a whole number from 1 to " +
                              std::to_string(override_longest.count()) + " (30 days).");
    }
    command.quota = *quota->if_integer();
    command.lasts = std::chrono::seconds(*seconds->if_integer());
  }
  return command;
}

/// Keys are digests, so that only what is at hand can be found by one.
auto partition_api::find_partition(partition_command const& command, std::string_view key,
                                   instant now) const -> std::optional<std::string> {
  if (auto const* const shown = shown_.find(key);
      shown != nullptr && is_partition_of(command.policy->partition, *shown)) {
    return *shown;
  }
  for (auto const& each : control_.overrides().list()) {
    if (each.policy_id == command.id &&
        is_partition_of(command.policy->partition, each.partition) &&
        partition_key_of(each.partition) == key) {
      return each.partition;
    }
  }
  for (auto const& each : control_.hottest_of(command.policy->name, now)) {
    if (is_partition_of(command.policy->partition, each.text) &&
        partition_key_of(each.text) == key) {
      return each.text;
    }
  }
  return std::nullopt;
}

// ---- what is done ----

auto partition_api::describe(partition_command const& command, ratelimit::service const& left) const
    -> admin_answer {
  auto const now = loop_.now();
  auto const other = control_.overrides().find(command.id, command.partition, now);
  std::string text;
  json::writer out(text);
  out.begin_object().member("policy", command.policy->name);
  append_partition(out, command.policy->partition, command.partition);
  auto const usual = usual_quota_of(*control_.consumers(), *command.policy, command.partition);
  out.member("quota", other ? other->quota : usual);
  out.member("remaining", left.remaining);
  if (!command.is_concurrent()) {
    out.member("reset", ratelimit::seconds_until(left.reset));
  }
  auto const blocked =
      command.policy->abuse
          ? ratelimit::blocked_for(control_.quota_table().peek<ratelimit::refusal_state>(
                                       abuse_domain + command.id, command.partition, now),
                                   now)
          : 0ns;
  out.member("blocked", blocked > 0ns);
  if (blocked > 0ns) {
    out.member("blocked-for", ratelimit::seconds_until(blocked));
  }
  if (other) {
    out.member("usual-quota", usual);
    out.member("seconds", ratelimit::seconds_until(other->until - now));
  }
  out.end_object();
  return admin_json(std::move(text));
}

void partition_api::look_up(partition_command command, bool was_changed, admin_reply reply) {
  auto const now = loop_.now();
  shown_.add(command.partition);
  if (!control_.quotas) {
    auto const other = control_.overrides().find(command.id, command.partition, now);
    auto const usual = usual_policy_of(*control_.consumers(), *command.policy, command.partition);
    auto const by = usual.with_quota(other ? other->quota : usual.quota());
    auto const current = command.at(*by, now);
    auto const left = control_.quota_table().look(command.charge(current), now);
    if (was_changed) {
      control_.correct_hottest(command.policy->name, command.partition, left);
    }
    reply(describe(command, left));
    return;
  }
  // Spending nothing tells what is left. It is asked exactly: slices that gateways took ahead count
  // as spent.
  auto const carried = std::make_shared<partition_command>(std::move(command));
  carried->asked_by = carried->at(
      usual_policy_of(*control_.consumers(), *carried->policy, carried->partition), now);
  store::shared_charge const asked{carried->charge(*carried->asked_by), carried->policy->name,
                                   store::counting::exact};
  control_.quotas->spend({&asked, 1}, now,
                         [this, carried, was_changed,
                          reply = std::move(reply)](store::spend_answer const& got) mutable {
                           if (!got && got.error().fault == store::store_fault::stopped) {
                             return;  // the gateway ends
                           }
                           if (!got) {
                             reply(admin_problem(503, "The store of quotas does not answer."));
                             return;
                           }
                           auto const& left = got->results[0].decision.left;
                           if (was_changed) {
                             control_.correct_hottest(carried->policy->name, carried->partition,
                                                      left);
                           }
                           reply(describe(*carried, left));
                         });
}

void partition_api::reset(partition_command command, admin_reply reply) {
  if (command.is_concurrent() && !command.policy->abuse) {
    reply(admin_problem(409,
                        "Concurrent requests are held until they end: there is nothing to reset."));
    return;
  }
  control_.quota_table().forget(abuse_domain + command.id, command.partition);
  if (!command.is_concurrent()) {
    control_.quota_table().forget(command.id, command.partition);
  }
  if (!control_.quotas) {
    look_up(std::move(command), true, std::move(reply));
    return;
  }
  // Every thread knows something of its own.
  auto const carried = std::make_shared<partition_command>(std::move(command));
  auto const forget_here = [this, carried] {
    auto const all = policies_of(*control_.consumers(), *carried->policy, carried->partition);
    control_.post_to_workers([carried, all](store::quota_store& quotas) {
      for (auto const& each : all) {
        quotas.forget_here(
            {carried->charge(each), carried->policy->name, carried->policy->counting});
      }
    });
  };
  control_.quotas->forget(
      {carried->charge(carried->policy->policy), carried->policy->name, carried->policy->counting},
      [this, carried, forget_here,
       reply = std::move(reply)](result<void, store::store_error> const& made) mutable {
        if (!made && made.error().fault == store::store_fault::stopped) {
          return;  // the gateway ends
        }
        if (!made) {
          reply(admin_problem(503, "The store of quotas does not answer."));
          return;
        }
        forget_here();
        look_up(*carried, true, std::move(reply));
      });
}

void partition_api::give_quota(partition_command command, admin_reply reply) {
  if (control_.quotas) {
    reply(admin_problem(
        501,
        "Several gateways share these quotas, and the others would not know of it: a temporary "
        "quota is for quotas in memory. Raise the quota of the policy, or reset the partition."));
    return;
  }
  if (!control_.overrides().set(
          {command.id, command.partition, command.quota, loop_.now() + command.lasts})) {
    reply(admin_problem(409, "There are as many temporary quotas as are allowed (" +
                                 std::to_string(store::quota_overrides::entries_max) +
                                 "): remove one first."));
    return;
  }
  policies_[command.id] = command.policy->name;
  await_end();
  look_up(std::move(command), true, std::move(reply));
}

// ---- all that have one ----

auto partition_api::list() const -> admin_answer {
  auto const now = loop_.now();
  auto const& active = *control_.active;
  std::string text;
  json::writer out(text);
  out.begin_object().begin_array("overrides");
  for (auto const& each : control_.overrides().list()) {
    if (each.until <= now) {
      continue;
    }
    auto const& name = policies_.at(each.policy_id);
    auto const policy = std::ranges::find(active.config.policies, name, &policy_config::name);
    out.begin_object().member("policy", name);
    if (policy != active.config.policies.end()) {
      append_partition(out, policy->partition, each.partition);
      out.member("usual-quota", usual_quota_of(*control_.consumers(), *policy, each.partition));
    } else {  // a reload has taken the policy away
      out.begin_array("partition").end_array().member("key", partition_key_of(each.partition));
    }
    out.member("quota", each.quota);
    out.member("seconds", ratelimit::seconds_until(each.until - now)).end_object();
  }
  out.end_array().member("most", store::quota_overrides::entries_max).end_object();
  return admin_json(std::move(text));
}

void partition_api::take_back(admin_request const& request, admin_note note, admin_reply reply) {
  std::string policy_text;
  std::string key_text;
  auto const policy = http::query_value(request.query, "policy", policy_text);
  auto const key = http::query_value(request.query, "key", key_text);
  if (!policy || !key) {
    reply(
        admin_problem(400, "policy and key are needed, as the list of temporary quotas has them."));
    return;
  }
  for (auto const& each : control_.overrides().list()) {
    if (policies_.at(each.policy_id) == *policy && partition_key_of(each.partition) == *key &&
        control_.overrides().remove(each.policy_id, each.partition)) {
      forgive(each);
      note("remove the temporary quota of the partition " + std::string(*key) + " of the policy " +
               std::string(*policy),
           204);
      await_end();
      reply({204, {}, {}});
      return;
    }
  }
  reply(admin_problem(404, "This partition has no temporary quota."));
}

/// What was spent of the larger quota is not to be made up for afterwards.
void partition_api::forgive(store::quota_overrides::entry const& ended) const {
  auto const& all = control_.active->config.policies;
  auto const policy = std::ranges::find(all, policies_.at(ended.policy_id), &policy_config::name);
  if (policy != all.end()) {
    auto const usual = usual_policy_of(*control_.consumers(), *policy, ended.partition);
    control_.quota_table().forgive(
        {.policy = &usual, .policy_id = ended.policy_id, .partition = ended.partition},
        loop_.now());
  }
}

void partition_api::await_end() {
  auto const all = control_.overrides().list();
  if (all.empty()) {
    cancel();
  } else {
    set(loop_.timers(), all.front().until);
  }
}

void partition_api::expired() {
  for (auto const& ended : control_.overrides().take_ended(loop_.now())) {
    forgive(ended);
    control_.events()->info("the temporary quota of the partition " +
                            partition_key_of(ended.partition) + " of the policy " +
                            policies_.at(ended.policy_id) + " has ended");
  }
  await_end();
}

}  // namespace tidegate::gateway
