// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/index_key.hpp>

#include "resource/index_entries.hpp"

#include <tidegate/scim/case_fold.hpp>
#include <tidegate/scim/date_time.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

namespace tidegate::TIDEGATE_ABI::scim {

namespace {

constexpr char value_mark = '\x01';

template <std::unsigned_integral Number>
void append_big_endian(std::string& out, Number number) {
  for (int shift = std::numeric_limits<Number>::digits - 8; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(number >> shift & 0xff));
  }
}

constexpr std::uint64_t sign_bit = std::uint64_t{1} << 63;

/// Octets in the order of the numbers.
void append_ordered(std::string& out, double number) {
  // Both zeros are one.
  auto const bits = std::bit_cast<std::uint64_t>(number == 0 ? 0.0 : number);
  append_big_endian(out, (bits & sign_bit) != 0 ? ~bits : bits | sign_bit);
}

/// The same for an integer, among decimals. A double does not hold each one: the next below comes
/// first, then how much more it is, where it is more.
void append_ordered(std::string& out, std::int64_t number) {
  constexpr double bound = 9223372036854775808.0;  // 2^63
  auto below = static_cast<double>(number);
  if (below >= bound || static_cast<std::int64_t>(below) > number) {
    below = std::nextafter(below, -bound);
  }
  append_ordered(out, below);
  if (auto const rest = number - static_cast<std::int64_t>(below); rest != 0) {
    append_big_endian(out, static_cast<std::uint16_t>(rest));  // doubles are 1024 apart at most
  }
}

void append_ordered(std::string& out, date_time const& moment) {
  auto const second = static_cast<std::uint64_t>(moment.second.time_since_epoch().count());
  append_big_endian(out, second ^ sign_bit);
  append_big_endian(out, moment.nanosecond);
}

void append_ordered(std::string& out, bool flag) {
  out.push_back(flag ? '\x01' : '\x00');
}

template <class Append>
auto make_key(Append append) -> std::string {
  std::string key(1, value_mark);
  append(key);
  if (key.size() > sort_key_octets_max) {
    key.resize(sort_key_octets_max);
  }
  return key;
}

template <class Value>
auto key_of(Value const& value) -> std::string {
  return make_key([&](std::string& key) { append_ordered(key, value); });
}

/// Calls `each` with every value of an array, or with the only one.
template <class Each>
void for_each_value(json::value const* value, Each each) {
  if (value == nullptr) {
    return;
  }
  if (auto const* const array = value->if_array()) {
    std::ranges::for_each(*array, each);
  } else {
    each(*value);
  }
}

/// Calls `each` with every value at `path`, and whether it is of a primary one.
template <class Each>
void for_each_value(attribute_path const& path, json::value const& resource, Each each) {
  auto const* const owner =
      path.extension == nullptr ? &resource : resource.find(path.extension->id);
  if (owner == nullptr) {
    return;
  }
  for_each_value(owner->find(path.parent->name), [&](json::value const& one) {
    if (path.sub == nullptr) {
      each(one, false);
      return;
    }
    for_each_value(one.find(path.sub->name),
                   [&](json::value const& value) { each(value, is_true(one, "primary")); });
  });
}

}  // namespace

auto index_key(attribute const& a, std::string_view text) -> std::string {
  return make_key([&](std::string& key) {
    key.reserve(1 + text.size());
    if (a.case_exact) {
      key += text;
    } else {
      append_case_fold(key, text);
    }
  });
}

auto index_key(attribute const& a, json::value const& value) -> std::string {
  auto const* const text = value.if_string();
  switch (a.type) {
    case attribute_type::string:
    case attribute_type::reference:
    case attribute_type::binary:
      if (text != nullptr) {
        return index_key(a, std::string_view(*text));
      }
      break;
    case attribute_type::boolean:
      if (auto const* const flag = value.if_bool()) {
        return key_of(*flag);
      }
      break;
    case attribute_type::integer:
    case attribute_type::decimal:
      if (auto const* const integer = value.if_integer()) {
        return key_of(*integer);
      }
      if (auto const* const decimal = value.if_decimal()) {
        return key_of(*decimal);
      }
      break;
    case attribute_type::date_time:
      if (auto const moment = text == nullptr ? std::nullopt : parse_date_time(*text)) {
        return key_of(*moment);
      }
      break;
    case attribute_type::complex: break;
  }
  return std::string(missing_key);
}

auto index_key(attribute const& a, filter_value const& value) -> std::string {
  return std::visit(
      [&]<class Value>(Value const& one) {
        if constexpr (std::same_as<Value, std::nullptr_t>) {
          return std::string(missing_key);
        } else if constexpr (std::same_as<Value, std::string>) {
          return index_key(a, std::string_view(one));
        } else {
          return key_of(one);
        }
      },
      value);
}

void append_entries(std::vector<index_entry>& entries, std::size_t index,
                    attribute_path const& path, json::value const& resource) {
  auto const first = entries.size();
  auto sorting = first;  // by which the resource is sorted
  bool primary = false;
  for_each_value(path, resource, [&](json::value const& value, bool of_primary) {
    auto key = index_key(*path.leaf(), value);
    if (key == missing_key) {
      return;
    }
    if (of_primary && !primary) {
      sorting = entries.size();
      primary = true;
    }
    entries.push_back({index, std::move(key), false});
  });
  if (entries.size() == first) {
    entries.push_back({index, std::string(missing_key), true});
    return;
  }
  entries[sorting].sorts = true;
  if (entries.size() - first == 1) {
    return;
  }
  // Of entries with the same key, the one that sorts is first, and stays.
  std::ranges::subrange const all(entries.begin() + static_cast<std::ptrdiff_t>(first),
                                  entries.end());
  std::ranges::sort(all, {}, [](index_entry const& e) {
    return std::pair<std::string_view, bool>(e.key, !e.sorts);
  });
  auto const same = std::ranges::unique(all, {}, &index_entry::key);
  entries.erase(same.begin(), same.end());
}

auto index_entries(model_type const& type, json::value const& resource)
    -> std::vector<index_entry> {
  std::vector<index_entry> entries;
  entries.reserve(type.indexes.size());
  for (std::size_t i = 0; i < type.indexes.size(); ++i) {
    append_entries(entries, i, type.indexes[i].path, resource);
  }
  return entries;
}

}  // namespace tidegate::TIDEGATE_ABI::scim
