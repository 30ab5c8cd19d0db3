// SPDX-License-Identifier: Apache-2.0
#include <tidegate/ratelimit/read.hpp>

#include <tidegate/sf/parse.hpp>

#include "parsed_field.hpp"

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tidegate::TIDEGATE_ABI::ratelimit {

namespace detail {

namespace {

using bare_item = sf::basic_bare_item<field_dialect>;
using sf::bare_item_type;

/// A non-negative Integer, which is what nearly every value of both drafts has to be.
[[nodiscard]] auto count_in(bare_item const& value) noexcept -> std::optional<std::int64_t> {
  auto const number = value.get_integer();
  return number && number->value() >= 0 ? std::optional(number->value()) : std::nullopt;
}

[[nodiscard]] auto without(comment_parameters const& all, std::span<std::string_view const> defined)
    -> comment_parameters {
  std::vector<comment_parameters::entry> kept;
  for (auto const& entry : all) {
    if (!is_one_of(entry.key.text(), defined)) {
      kept.push_back(entry);
    }
  }
  return comment_parameters::from_entries(std::move(kept));
}

/// pk of both fields (draft-09, sections 3.1.4 and 4.1.3).
[[nodiscard]] auto read_partition_key(comment_parameters const& parameters)
    -> result<std::optional<std::string>, field_rule> {
  auto const* key = parameters.find("pk");
  if (key == nullptr) {
    return std::nullopt;
  }
  if (!key->is(bare_item_type::byte_sequence)) {
    return failure(field_rule::partition_key_type);
  }
  return std::string(key->as_byte_sequence().octets);
}

/// draft-09, section 3.1.
[[nodiscard]] auto read_policy(field_item const& item) -> result<quota_policy, field_rule> {
  if (!item.value.is(bare_item_type::string)) {
    return failure(field_rule::name_type);
  }
  quota_policy policy;
  policy.name = item.value.as_string().text();
  auto const* quota = item.parameters.find("q");
  if (quota == nullptr) {
    return failure(field_rule::quota_missing);
  }
  auto const count = count_in(*quota);
  if (!count) {
    return failure(field_rule::quota_value);
  }
  policy.quota = *count;
  if (auto const* unit = item.parameters.find("qu")) {
    if (!unit->is(bare_item_type::string)) {
      return failure(field_rule::unit_type);
    }
    policy.unit_name = unit->as_string().text();
    policy.unit = quota_unit_named(policy.unit_name);
  }
  if (auto const* window = item.parameters.find("w")) {
    policy.window = count_in(*window);
    if (!policy.window || *policy.window == 0) {
      return failure(field_rule::window_value);
    }
  }
  TIDEGATE_TRY(policy.partition_key, read_partition_key(item.parameters));
  policy.comments = without(item.parameters, policy_parameters);
  return policy;
}

/// draft-07, section 2.1. Unlike draft-09 it has no rule against a window of 0.
[[nodiscard]] auto read_older_policy(field_item const& item) -> result<quota_policy, field_rule> {
  auto const quota = count_in(item.value);
  if (!quota) {
    return failure(field_rule::quota_value);
  }
  quota_policy policy;
  policy.quota = *quota;
  auto const* window = item.parameters.find("w");
  if (window == nullptr) {
    return failure(field_rule::window_missing);
  }
  policy.window = count_in(*window);
  if (!policy.window) {
    return failure(field_rule::window_value);
  }
  policy.comments = without(item.parameters, older_policy_parameters);
  return policy;
}

/// draft-09, section 4.1.
[[nodiscard]] auto read_limit(field_item const& item) -> result<service_limit, field_rule> {
  if (!item.value.is(bare_item_type::string)) {
    return failure(field_rule::name_type);
  }
  service_limit limit;
  limit.name = item.value.as_string().text();
  auto const* remaining = item.parameters.find("r");
  if (remaining == nullptr) {
    return failure(field_rule::remaining_missing);
  }
  limit.remaining = count_in(*remaining);
  if (!limit.remaining) {
    return failure(field_rule::remaining_value);
  }
  if (auto const* reset = item.parameters.find("t")) {
    limit.reset = count_in(*reset);
    if (!limit.reset) {
      return failure(field_rule::reset_value);
    }
  }
  TIDEGATE_TRY(limit.partition_key, read_partition_key(item.parameters));
  limit.comments = without(item.parameters, limit_parameters);
  return limit;
}

/// draft-07, sections 3.1 to 3.4.
[[nodiscard]] auto read_older_limit(field_dictionary const& dictionary)
    -> result<service_limit, field_error> {
  auto fail = [](field_rule rule, std::size_t member) {
    return failure(field_error{rule, field_kind::limit, draft::draft_07, member, {}});
  };
  service_limit limit;
  std::vector<comment_parameters::entry> comments;
  for (std::size_t i = 0; i < dictionary.size(); ++i) {
    auto const& [key, member] = dictionary[i];
    auto const* item = std::get_if<0>(&member);
    if (!is_one_of(key.text(), older_limit_keys)) {
      if (item != nullptr) {
        comments.push_back({key, item->value});
      }
      continue;
    }
    if (item == nullptr) {
      return fail(field_rule::inner_list, i);
    }
    auto const count = count_in(item->value);
    if (key == "limit") {
      limit.limit = count;
    } else if (key == "remaining") {
      limit.remaining = count;
    } else {
      limit.reset = count;
    }
    if (!count) {
      return fail(key == "limit"       ? field_rule::limit_value
                  : key == "remaining" ? field_rule::remaining_value
                                       : field_rule::reset_value,
                  i);
    }
  }
  if (!limit.limit) {
    return fail(field_rule::limit_missing, 0);
  }
  if (!limit.reset) {
    return fail(field_rule::reset_missing, 0);
  }
  limit.comments = comment_parameters::from_entries(std::move(comments));
  return limit;
}

/// Reads each member of a List that must be an Item.
template <class Model, class Read>
[[nodiscard]] auto read_items(field_list const& list, field_kind field, draft version,
                              std::vector<Model>& models, Read read) -> result<void, field_error> {
  models.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    auto const* item = std::get_if<0>(&list[i]);
    auto model = item == nullptr ? failure(field_rule::inner_list) : read(*item);
    if (!model) {
      return failure(field_error{model.error(), field, version, i, {}});
    }
    models.push_back(*std::move(model));
  }
  return {};
}

/// draft-07, section 3.5.
[[nodiscard]] auto find_repeated_quota(std::span<quota_policy const> policies)
    -> std::optional<std::size_t> {
  std::set<std::int64_t> quotas;
  for (std::size_t i = 0; i < policies.size(); ++i) {
    if (!quotas.insert(policies[i].quota).second) {
      return i;
    }
  }
  return std::nullopt;
}

[[nodiscard]] auto has_older_key(field_dictionary const& dictionary) noexcept -> bool {
  return std::any_of(older_limit_keys.begin(), older_limit_keys.end(),
                     [&](auto key) { return dictionary.contains(key); });
}

}  // namespace

auto parse_policies(std::span<std::string_view const> lines)
    -> result<parsed_policies, field_error> {
  parsed_policies parsed;
  if (lines.empty()) {
    return parsed;
  }
  std::string scratch;
  auto list = sf::parse_list<field_dialect>(sf::combine(lines, scratch));
  if (!list) {
    return failure(
        field_error{field_rule::syntax, field_kind::policy, draft::draft_09, 0, list.error()});
  }
  if (list->empty()) {
    return failure(field_error{field_rule::no_items, field_kind::policy, draft::draft_09, 0, {}});
  }
  parsed.list = *std::move(list);
  auto const* first = std::get_if<0>(&parsed.list.front());
  bool const older = first != nullptr && first->value.is(bare_item_type::integer);
  parsed.model.version = older ? draft::draft_07 : draft::draft_09;
  TIDEGATE_TRY_VOID(read_items(parsed.list, field_kind::policy, parsed.model.version,
                               parsed.model.policies, older ? read_older_policy : read_policy));
  if (older) {
    if (auto const repeated = find_repeated_quota(parsed.model.policies)) {
      return failure(field_error{
          field_rule::quota_repeated, field_kind::policy, draft::draft_07, *repeated, {}});
    }
  }
  return parsed;
}

auto parse_limits(std::span<std::string_view const> lines) -> result<parsed_limits, field_error> {
  parsed_limits parsed;
  std::string scratch;
  auto const value = sf::combine(lines, scratch);
  auto list = sf::parse_list<field_dialect>(value);
  if (list && list->empty()) {
    return parsed;
  }
  // No Dictionary begins with a quote, and all of draft-09's fields do.
  bool const quoted =
      value.substr(std::min(value.find_first_not_of(' '), value.size())).starts_with('"');
  if (!quoted) {
    auto dictionary = sf::parse_dictionary<field_dialect>(value);
    bool const further =
        dictionary ? !list.has_value() : !list && dictionary.error().offset > list.error().offset;
    if (further && !dictionary) {
      return failure(field_error{field_rule::syntax, field_kind::limit, draft::draft_07, 0,
                                 dictionary.error()});
    }
    if (further || (dictionary && has_older_key(*dictionary))) {
      TIDEGATE_TRY(auto limit, read_older_limit(*dictionary));
      parsed.model.version = draft::draft_07;
      parsed.model.limits.push_back(std::move(limit));
      parsed.dictionary = *std::move(dictionary);
      return parsed;
    }
  }
  if (!list) {
    return failure(
        field_error{field_rule::syntax, field_kind::limit, draft::draft_09, 0, list.error()});
  }
  parsed.list = *std::move(list);
  TIDEGATE_TRY_VOID(
      read_items(parsed.list, field_kind::limit, draft::draft_09, parsed.model.limits, read_limit));
  return parsed;
}

}  // namespace detail

auto read_policies(std::span<std::string_view const> lines) -> result<policy_field, field_error> {
  TIDEGATE_TRY(auto parsed, detail::parse_policies(lines));
  return std::move(parsed.model);
}

auto read_limits(std::span<std::string_view const> lines) -> result<limit_field, field_error> {
  TIDEGATE_TRY(auto parsed, detail::parse_limits(lines));
  return std::move(parsed.model);
}

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
