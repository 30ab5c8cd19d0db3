// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Quota partitions (draft-09, sections 2 and 6.1): which requests share a quota, by what name
/// their bucket is kept, and how a client can know the partition key of a request before it sends
/// it.
namespace tidegate::TIDEGATE_ABI::ratelimit {

/// What of a request a partition is made of.
enum class partition_source_kind : std::uint8_t {
  client_ip,  ///< the address that the request came from, as the gateway believes it
  header,     ///< the value of a field; several lines are joined with ", "
  query,      ///< the value of a parameter of the query
  cookie,
  method,
  host,
  path,       ///< without the query
  route,      ///< the name of the route that the request took
  principal,  ///< who the request was authenticated as
  plan,       ///< what the principal has ordered
  attribute,  ///< what is known of the principal under a name
};

/// `client-ip`, `header`, `query` and so on.
[[nodiscard]] auto name_of(partition_source_kind kind) noexcept -> std::string_view;

/// One source; what `parse_partition_source` makes.
struct partition_source {
  partition_source_kind kind = partition_source_kind::client_ip;
  // NOLINTNEXTLINE(readability-redundant-member-init): so that it may be left out
  std::string name{};  ///< of the field (in lower case), parameter, cookie or attribute; else empty
  auto operator==(partition_source const&) const -> bool = default;
};

/// As it is written: `client-ip`, `header:x-api-key`.
[[nodiscard]] auto to_string(partition_source const& source) -> std::string;

/// Whether a source says who was authenticated: `principal`, `plan` or `attribute`.
[[nodiscard]] constexpr auto needs_principal(partition_source_kind kind) noexcept -> bool {
  using enum partition_source_kind;
  return kind == principal || kind == plan || kind == attribute;
}

/// Whether the value of a source may let in: a cookie, and a field or parameter whose name has
/// `key`, `token`, `secret`, `pass`, `auth`, `session`, `sid`, `sig`, `code`, `credential`, `jwt`,
/// `dpop` or the like in it, such as `authorization`, `x-functions-key`, `access_token`. Clients
/// are not told such a value: a partition key has nothing sensitive in it (draft-09, section 6.1).
[[nodiscard]] auto is_credential(partition_source const& source) -> bool;

/// Why a text names no source.
enum class partition_source_fault : std::uint8_t {
  unknown_source,
  name_missing,             ///< `header`, `query`, `cookie` and `attribute` have one
  name_not_allowed,         ///< the others have none
  invalid_name_character,   ///< in the name of any other than a parameter: no token of RFC 9110
  invalid_query_character,  ///< in the name of a parameter: a control character, "=" or "&"
};

/// Why, and at which byte.
struct partition_source_error {
  partition_source_fault fault{};
  std::size_t offset{};
  auto operator==(partition_source_error const&) const -> bool = default;
};

/// One line for people: what is wrong and what is allowed.
[[nodiscard]] auto to_string(partition_source_error const& error) -> std::string;

/// Reads `client-ip`, `header:NAME`, `query:NAME`, `cookie:NAME`, `method`, `host`, `path`,
/// `route`, `principal`, `plan` or `attribute:NAME`. The name of a field may be in any case; the
/// others are taken as they are, a parameter's as it is after percent-decoding.
[[nodiscard]] auto parse_partition_source(std::string_view text)
    -> result<partition_source, partition_source_error>;

/// What a client is told of its partition in `pk`.
enum class partition_key_form : std::uint8_t { none, hashed, plain };

/// `none`, `hashed`, `plain`.
[[nodiscard]] auto name_of(partition_key_form form) noexcept -> std::string_view;

/// How a policy divides its quota: the sources in order, and what clients see of it.
///
/// Without sources all requests are in one partition.
class partition_rule {
 public:
  /// How many bytes a hashed partition key has.
  static constexpr std::size_t hashed_size = 16;

  explicit partition_rule(std::vector<partition_source> sources,
                          partition_key_form form = partition_key_form::none);

  /// What the rule was made of.
  [[nodiscard]] auto sources() const noexcept -> std::span<partition_source const> {
    return sources_;
  }
  [[nodiscard]] auto form() const noexcept -> partition_key_form { return form_; }

  /// Appends the partition of a request, the text by which its bucket is kept: one line for each
  /// source, such as `header:x-api-key=VALUE` with a line feed at the end.
  ///
  /// `values[i]` is what the request has for `sources()[i]`; what is missing is the empty value.
  /// CR, LF and NUL in a value become a space (RFC 9110, section 5.5), so two requests have the
  /// same text only when all their values are the same after that. Allocates nothing when `out` has
  /// room.
  void append_partition(std::string& out, std::span<std::string_view const> values) const;
  /// Appends one of these lines: a partition is the lines of all sources in their order.
  void append_source(std::string& out, std::size_t source, std::string_view value) const;

  /// Appends the partition key for `pk`, made of a `partition` that `append_partition` made.
  /// `partition` must not be part of `out`. Allocates nothing when `out` has room.
  ///
  /// - `none`: nothing, and `pk` is to be left out.
  /// - `hashed`: the first 16 bytes of the SHA-256 of `partition`. Nothing secret goes into it, so
  ///   it is the same after a restart and on every gateway, and a client can make it by itself:
  ///   `printf 'header:x-api-key=%s\n' "$KEY" | sha256sum | head -c 32`. For the same reason it
  ///   does not hide a value of which there are few: all IPv4 addresses or user numbers can be
  ///   tried within minutes. It does hide a random key of 128 bits.
  /// - `plain`: the values, with a line feed between two. For values that are not secret to those
  ///   who see the response.
  void append_key(std::string& out, std::string_view partition) const;

 private:
  std::vector<partition_source> sources_;
  std::vector<std::string> beginnings_;  // of the lines: the source and "="
  partition_key_form form_;
};

/// The rule for people: a paragraph that says which requests share a quota and how to make the
/// partition key (draft-09, section 6.1 asks to document that).
[[nodiscard]] auto describe(partition_rule const& rule) -> std::string;

/// The rule for programs, a JSON object:
///
///     {"sources":["header:x-api-key"],"partition-key":"hashed",
///      "digest":"sha-256","digest-octets":16,"line":"SOURCE=VALUE\n"}
///
/// `digest`, `digest-octets` and `line` are there for `hashed` only; `plain` has
/// `"separator":"\n"`.
[[nodiscard]] auto describe_as_json(partition_rule const& rule) -> std::string;

}  // namespace tidegate::TIDEGATE_ABI::ratelimit
