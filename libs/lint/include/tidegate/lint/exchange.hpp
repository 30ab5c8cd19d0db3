// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/http/field.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace tidegate::TIDEGATE_ABI::lint {

/// What a request is sent for.
enum class probe : std::uint8_t {
  sample,               ///< the URL as it is
  missing_page,         ///< a path below it that is hardly there
  key_missing,          ///< a write without a key, where one is said to be required
  key_first,            ///< a write with a fresh key
  key_retry,            ///< the same again
  key_reused,           ///< the same key with other content
  key_malformed,        ///< a write with a key that is not a String
  key_concurrent,       ///< two writes at once with one fresh key
  scim_config,          ///< ServiceProviderConfig
  scim_first_page,      ///< `cursor=&count=2`
  scim_next_page,       ///< by its nextCursor
  scim_previous_page,   ///< by the previousCursor of that
  scim_invalid_cursor,  ///< a cursor that the server did not make
  scim_count_zero,      ///< `count=0`
  scim_count_negative,  ///< `count=-1`
  scim_count_word,      ///< `count=some`
  scim_default_page,    ///< without pagination parameters
};

/// What is sent.
struct planned_request {
  probe purpose{};
  std::string method = "GET";
  std::string url;
  std::vector<http::field> fields{};
  std::string content{};
  auto operator==(planned_request const&) const -> bool = default;
};

/// A request and what came back.
struct exchange {
  planned_request request;
  int status = 0;  ///< 0: no answer came
  std::vector<http::field> fields{};
  std::string content{};
  std::string failure{};  ///< without an answer: why
  std::chrono::sys_seconds received{};
};

}  // namespace tidegate::TIDEGATE_ABI::lint
