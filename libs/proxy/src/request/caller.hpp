// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request/request_context.hpp"

#include <tidegate/proxy/auth_fields.hpp>

#include <span>
#include <string>
#include <string_view>

namespace tidegate::gateway {

/// Who asks: the name of the token or of the consumer; empty when that is not known.
[[nodiscard]] inline auto principal_of(request_context const& context) -> std::string_view {
  return context.token != nullptr      ? std::string_view(context.token->name)
         : context.consumer != nullptr ? std::string_view(context.consumer->name)
                                       : std::string_view();
}

/// What they have ordered; empty: nothing.
[[nodiscard]] inline auto plan_of(request_context const& context) -> std::string_view {
  return context.credential == shown_credential::anonymous ? anonymous_plan
         : context.consumer != nullptr ? std::string_view(context.consumer->plan)
                                       : std::string_view();
}

/// What is known of them under that name; empty: nothing.
[[nodiscard]] inline auto attribute_of(request_context const& context, std::string_view name)
    -> std::string_view {
  if (context.consumer != nullptr) {
    for (auto const& each : context.consumer->attributes) {
      if (each.name == name) {
        return each.value;
      }
    }
  }
  return {};
}

/// Names of trailers that do not go to the upstream of its route.
[[nodiscard]] inline auto dropped_trailers_of(request_context const& context)
    -> std::span<std::string const> {
  if (context.route == nullptr || context.route_settings().auth == nullptr) {
    return {};
  }
  return context.route_settings().auth->trailer_names;
}

/// One of these, or empty for any other source.
[[nodiscard]] inline auto value_of_caller(ratelimit::partition_source const& source,
                                          request_context const& context) -> std::string_view {
  switch (source.kind) {
    case ratelimit::partition_source_kind::principal: return principal_of(context);
    case ratelimit::partition_source_kind::plan: return plan_of(context);
    case ratelimit::partition_source_kind::attribute: return attribute_of(context, source.name);
    default: return {};
  }
}

}  // namespace tidegate::gateway
