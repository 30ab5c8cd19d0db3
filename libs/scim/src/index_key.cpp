// SPDX-License-Identifier: Apache-2.0
#include <tidegate/scim/index_key.hpp>

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

namespace tidegate::scim {

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

/// The same for an integer, among decimals. A double does not hold each one: the next below comes first, then
/// how much more it is, where it is more.
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

void append_ordered(std::string& out, std::string const& text) {
  out += text;
}

template <class Value>
auto key_of(Value const& value) -> std::string {
  std::string key(1, value_mark);
  append_ordered(key, value);
  if (key.size() > sort_key_octets_max) {
    key.resize(sort_key_octets_max);
  }
  return key;
}

auto is_primary(json const& value) noexcept -> bool {
  auto const* const primary = value.find("primary");
  auto const* const flag = primary == nullptr ? nullptr : primary->if_bool();
  return flag != nullptr && *flag;
}

/// Calls `each` with every value of an array, or with the only one.
template <class Each>
void for_each_value(json const* value, Each each) {
  if (value == nullptr) {
    return;
  }
  if (auto const* const array = value->if_array()) {
    std::ranges::for_each(*array, each);
  } else {
    each(*value);
  }
}

/// The keys of all values of one attribute, and by which of them the resource is sorted.
struct value_keys {
  std::vector<std::string> keys;
  std::string sorting;
  bool primary = false;

  void add(std::string key, bool of_primary) {
    if (key == missing_key) {
      return;
    }
    if (keys.empty() || (of_primary && !primary)) {
      sorting = key;
      primary = of_primary;
    }
    keys.push_back(std::move(key));
  }
};

auto keys_of(attribute_path const& path, json const& resource) -> value_keys {
  value_keys out;
  auto const* const owner =
      path.extension == nullptr ? &resource : resource.find(path.extension->id);
  if (owner == nullptr) {
    return out;
  }
  for_each_value(owner->find(path.parent->name), [&](json const& one) {
    if (path.sub == nullptr) {
      out.add(index_key(*path.parent, one), false);
      return;
    }
    for_each_value(one.find(path.sub->name), [&](json const& value) {
      out.add(index_key(*path.sub, value), is_primary(one));
    });
  });
  return out;
}

}  // namespace

auto index_key(attribute const& a, json const& value) -> std::string {
  auto const* const text = value.if_string();
  switch (a.type) {
    case attribute_type::string:
    case attribute_type::reference:
    case attribute_type::binary:
      if (text != nullptr) {
        return a.case_exact ? key_of(*text) : key_of(case_fold(*text));
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
          return a.case_exact ? key_of(one) : key_of(case_fold(one));
        } else {
          return key_of(one);
        }
      },
      value);
}

auto index_entries(model_type const& type, json const& resource) -> std::vector<index_entry> {
  std::vector<index_entry> entries;
  for (std::size_t i = 0; i < type.indexes.size(); ++i) {
    auto found = keys_of(type.indexes[i].path, resource);
    if (found.keys.empty()) {
      entries.push_back({i, std::string(missing_key), true});
      continue;
    }
    std::ranges::sort(found.keys);
    auto const same = std::ranges::unique(found.keys);
    found.keys.erase(same.begin(), same.end());
    for (auto& key : found.keys) {
      bool const sorts = key == found.sorting;
      entries.push_back({i, std::move(key), sorts});
    }
  }
  return entries;
}

}  // namespace tidegate::scim
