// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "options/options.hpp"
#include "reader/option_reader.hpp"

#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

/// What the rows of the table of options are written with.
namespace tidegate::gateway {

/// What the values of an option are, `row`, and how one is read.
template <auto Read>
struct value_kind {
  option row;

  template <class Value>
  constexpr auto with(Value option::*member, Value value) const -> value_kind {
    auto made = *this;
    made.row.*member = value;
    return made;
  }
  constexpr auto list() const { return with(&option::form, option_form::list); }
  constexpr auto one_or_list() const { return with(&option::form, option_form::one_or_list); }
  constexpr auto named() const { return with(&option::form, option_form::named); }
  constexpr auto or_shares() const { return with(&option::form, option_form::one_or_shares); }
  constexpr auto patterns() const { return with(&option::form, option_form::patterns); }
  constexpr auto required() const { return with(&option::available, availability::required); }
  constexpr auto at_start() const { return with(&option::at_start, true); }
  constexpr auto of_scim() const { return with(&option::routes, route_kind::scim); }
  constexpr auto of_pages() const { return with(&option::routes, route_kind::pages); }
  constexpr auto left_out(std::string_view text) const {
    return with(&option::when_left_out, text);
  }
  constexpr auto formerly_in(std::string_view parent) const {
    return with(&option::former_parent, parent);
  }
  /// The last word is the first of the enumeration.
  constexpr auto reversed() const { return with(&option::reversed, true); }
  constexpr auto or_word(std::string_view words) const { return with(&option::words, words); }
  constexpr auto not_yet(std::string_view words) const { return with(&option::later, words); }
};

/// How an option is written in a row: its default, as it stands in a file, and its bounds.
namespace kinds {

// Durations in milliseconds, sizes in octets.
inline constexpr std::int64_t second = 1000;
inline constexpr std::int64_t minute = 60 * second;
inline constexpr std::int64_t hour = 60 * minute;
inline constexpr std::int64_t day = 24 * hour;
inline constexpr std::int64_t kib = 1024;
inline constexpr std::int64_t mib = 1024 * kib;
inline constexpr std::int64_t fifteen_digits = 999'999'999'999'999;

template <option_type Type, auto Read>
struct text_kind {
  std::string_view allowed{};
  std::string_view pattern{};

  constexpr auto operator()(std::string_view initial = "") const -> value_kind<Read> {
    return {{.type = Type, .initial = initial, .allowed = allowed, .pattern = pattern}};
  }
};

template <option_type Type, auto Read>
struct number_kind {
  std::string_view pattern{};

  constexpr auto operator()(std::string_view initial, std::int64_t min = 0,
                            std::int64_t max = std::numeric_limits<std::int64_t>::max()) const
      -> value_kind<Read> {
    return {{.type = Type, .initial = initial, .pattern = pattern, .min = min, .max = max}};
  }
};

inline constexpr number_kind<option_type::integer, read_integer> integer;
inline constexpr number_kind<option_type::duration, read_duration> duration{"^[0-9]+(ms|s|m|h|d)$"};
inline constexpr std::string_view size_pattern = "^[0-9]+(KiB|MiB|GiB|TiB)?$";
inline constexpr number_kind<option_type::size, read_size> size{size_pattern};
inline constexpr number_kind<option_type::quota, read_quota> quota{size_pattern};
inline constexpr number_kind<option_type::percent, read_percent> percent{"^[0-9]+%$"};
inline constexpr text_kind<option_type::section, nullptr> mapping;
inline constexpr text_kind<option_type::boolean, read_boolean> boolean{"true or false"};
inline constexpr text_kind<option_type::file, read_file> file{
    "a path, relative to the folder of the configuration"};
inline constexpr text_kind<option_type::file, read_file> file_pattern{
    "a path, e.g. limits.yaml, routes.d/*.yaml"};
inline constexpr text_kind<option_type::digest, read_digest> digest{
    "64 lower-case hexadecimal digits", "^[0-9a-f]{64}$"};

constexpr auto text = option_type::text;
inline constexpr text_kind<text, read_rate> rate{"a rate, e.g. 10/s, 100/m",
                                                 "^[0-9]+/[0-9]*(ms|s|m|h|d)$"};
inline constexpr text_kind<text, read_address> address{
    "an address, e.g. 127.0.0.1:8080, [::1]:8080, :8080, unix:/run/tidegate.sock"};
inline constexpr text_kind<text, read_url> url{
    "a URL, e.g. http://10.0.0.5:3000, https://api.example.com/v2, unix:/run/api.sock",
    "^(https?://|unix:/)"};
inline constexpr text_kind<text, read_balance> balance_method{
    "a method, e.g. least, round-robin, hash:client-ip, hash:header:x-user",
    "^(least|round-robin|hash:.+)$"};
inline constexpr text_kind<text, read_statuses> statuses{"statuses, e.g. 200-299, 304",
                                                         "^[0-9, -]+$"};
inline constexpr text_kind<text, read_request_path> request_path{"a path, e.g. /healthz", "^/"};
inline constexpr text_kind<text, read_dns_server> dns_server{
    "an IPv4 address, e.g. 10.0.0.53, 127.0.0.1:5353", "^[0-9.]+(:[0-9]+)?$"};
inline constexpr text_kind<text, read_network> network{
    "a network or an address, e.g. 10.0.0.0/8, 2001:db8::/32, 192.0.2.1"};
inline constexpr text_kind<text, read_path> path{"a path, e.g. /v1/orders, /v1/*/items, /v1/**",
                                                 "^/"};
inline constexpr text_kind<text, read_method> method{"a method in upper case, e.g. GET",
                                                     "^[^a-z ]+$"};
inline constexpr text_kind<text, read_host> host{"a host without a port, e.g. api.example.com"};
inline constexpr text_kind<text, read_source> source{
    "client-ip, header:NAME, query:NAME, cookie:NAME, method, host, path, route, principal, plan "
    "or "
    "attribute:NAME",
    "^(client-ip|method|host|path|route|principal|plan|(header|query|cookie|attribute):.+)$"};
inline constexpr text_kind<text, read_pointer> pointer{"a JSON pointer, e.g. /order/id",
                                                       "^(/.*)?$"};
inline constexpr text_kind<text, read_reference> reference{
    "a URL or an absolute path, without #fragment", "^(/|https?://)[^#]*$"};
inline constexpr std::string_view name_pattern = "^[!-~]([ -~]*[!-~])?$";
inline constexpr text_kind<text, read_name> name{"a name of printable ASCII characters",
                                                 name_pattern};
inline constexpr text_kind<text, read_name> policy_name{"the name of a policy", name_pattern};
inline constexpr text_kind<text, read_name> time_zone{"a time zone, e.g. Europe/Berlin",
                                                      "^[A-Za-z0-9_+/-]+$"};
inline constexpr text_kind<text, read_name> upstream_name{"the name of an upstream", name_pattern};

/// The words, with `|` between, are in the order of the enumeration, or of false and true.
constexpr auto choice(std::string_view initial, std::string_view words) -> value_kind<read_choice> {
  return {{.type = option_type::choice, .initial = initial, .words = words}};
}
constexpr auto store(std::string_view initial, std::string_view forms) -> value_kind<read_store> {
  return {{.type = option_type::store, .initial = initial, .forms = forms}};
}

}  // namespace kinds

/// An option that a function of the reader takes, since it depends on others.
template <auto Read>
constexpr auto row(std::string_view path, value_kind<Read> const& kind, std::string_view doc)
    -> option {
  return kind.with(&option::path, path).with(&option::doc, doc).row;
}

/// An option that is promised.
constexpr auto later(std::string_view path, std::string_view doc) -> option {
  return {.path = path, .available = availability::later, .doc = doc};
}

template <class Owner, class Member>
auto owner_of(Member Owner::*) -> Owner;

template <class Owner, auto Read, auto... Members>
void read_member(option_reader& in, section const& from, option const& rule, void* owner) {
  auto& made = *static_cast<Owner*>(owner);
  auto& member = (made.*....*Members);
  if constexpr (std::is_null_pointer_v<decltype(Read)>) {
    in.read_mapping(from, rule, member);
  } else {
    in.read_into<Read>(from, rule, member);
  }
}

/// An option whose value is a member of `Owner`, or its options are when it is a mapping.
template <class Owner, auto... Members, auto Read>
constexpr auto field(std::string_view path, value_kind<Read> const& kind, std::string_view doc)
    -> option {
  return row(path,
             kind.with(&option::owner, static_cast<void const*>(&type_tag<Owner>))
                 .with(&option::read, &read_member<Owner, Read, Members...>),
             doc);
}

/// The same for the member that a path of members leads to.
template <auto First, auto... Members, auto Read>
constexpr auto field(std::string_view path, value_kind<Read> const& kind, std::string_view doc)
    -> option {
  return field<decltype(owner_of(First)), First, Members...>(path, kind, doc);
}

}  // namespace tidegate::gateway
