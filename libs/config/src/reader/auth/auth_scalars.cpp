// SPDX-License-Identifier: Apache-2.0
#include "reader/auth/auth_scalars.hpp"

#include "reader/wording.hpp"

#include <tidegate/http/date.hpp>

namespace tidegate::gateway {

namespace {

auto invalid(std::string_view kind, scalar const& given) -> std::unexpected<std::string> {
  return failure("invalid " + std::string(kind) + " " + shown(given.text));
}

}  // namespace

auto read_expiry(option const&, scalar const& given) -> scalar_result<std::chrono::sys_seconds> {
  auto const time = http::parse_rfc3339(given.text);
  return time ? scalar_result<std::chrono::sys_seconds>(
                    std::chrono::floor<std::chrono::seconds>(*time))
              : invalid("time", given);
}

auto read_key_place(option const&, scalar const& given) -> scalar_result<key_place> {
  if (given.text == "bearer") {
    return key_place{key_place::place_kind::bearer, ""};
  }
  // Both name what partitions can be made of as well.
  auto const source = ratelimit::parse_partition_source(given.text);
  if (source && source->kind == ratelimit::partition_source_kind::header) {
    return key_place{key_place::place_kind::header, source->name};
  }
  if (source && source->kind == ratelimit::partition_source_kind::query) {
    return key_place{key_place::place_kind::query, source->name};
  }
  return invalid("place of a key", given);
}

auto read_quota_source(option const&, scalar const& given)
    -> scalar_result<ratelimit::partition_source> {
  auto source = ratelimit::parse_partition_source(given.text);
  bool const chooses = source && (source->kind == ratelimit::partition_source_kind::plan ||
                                  source->kind == ratelimit::partition_source_kind::attribute);
  return chooses ? scalar_result<ratelimit::partition_source>(*std::move(source))
                 : invalid("source of a quota", given);
}

}  // namespace tidegate::gateway
