// SPDX-License-Identifier: Apache-2.0
#include <tidegate/json/parse.hpp>

#include <tidegate/base/ascii.hpp>
#include <tidegate/json/reader.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <span>
#include <vector>

namespace tidegate::TIDEGATE_ABI::json {

namespace {

class value_reader : public reader<value_reader> {
 public:
  value_reader(std::string_view text, int depth_max) : reader(text, depth_max) {}

  auto document() -> result<value, json::error> {
    if (!read_document()) {
      return failure(error());
    }
    return std::move(root_);
  }

  auto literal() -> result<prefix, json::error> {
    if (!read_literal()) {
      return failure(error());
    }
    return prefix{std::move(root_), position()};
  }

 private:
  friend class reader<value_reader>;

  enum class container : std::uint8_t { none, array, object };

  /// What was open when an array or object began, and how much of it had been read.
  struct outer {
    container open;
    std::size_t count;
  };

  /// Where the value that was read belongs.
  auto next() -> value& {
    switch (open_) {
      case container::array: return items_.emplace_back();
      case container::object: return members_.back().value;
      case container::none: break;
    }
    return root_;
  }

  void on_null() { next(); }
  void on_boolean(bool is) { next().emplace<bool>(is); }
  void on_string(std::string_view text) { next().emplace<std::string>(text); }
  auto on_name(std::string_view name) -> bool {
    members_.emplace_back().name = name;
    return true;
  }
  auto on_number(number_token const& number) -> bool {
    return number.is_integer ? convert(number.text, next().emplace<std::int64_t>())
                             : convert(number.text, next().emplace<double>());
  }

  auto begin_array() -> outer { return {std::exchange(open_, container::array), items_.size()}; }
  auto begin_object() -> outer {
    members_.reserve(members_usual);
    return {std::exchange(open_, container::object), members_.size()};
  }
  void end_array(outer const& begun) {
    open_ = begun.open;
    auto ended = move_out(items_, begun.count);
    next().emplace<array>(std::move(ended));
  }
  auto end_object(outer const& begun) -> bool {
    if (has_name_twice(std::span(members_).subspan(begun.count))) {
      return fail(fault::name_twice);
    }
    open_ = begun.open;
    auto ended = move_out(members_, begun.count);
    next().emplace<object>().members() = std::move(ended);
    return true;
  }

  /// What was read from number `first` on.
  template <class T>
  static auto move_out(std::vector<T>& read, std::size_t first) -> std::vector<T> {
    if (first == 0 && read.size() > read.capacity() / 2) {
      return std::exchange(read, {});
    }
    auto const begin = read.begin() + static_cast<std::ptrdiff_t>(first);
    std::vector<T> ended{std::move_iterator(begin), std::move_iterator(read.end())};
    read.erase(begin, read.end());
    return ended;
  }

  template <class Number>
  auto convert(std::string_view text, Number& out) -> bool {
    auto const read = std::from_chars(text.data(), text.data() + text.size(), out);
    return read.ec == std::errc() || fail(fault::number_out_of_range, value_offset());
  }

  static constexpr std::size_t members_usual = 32;  // of all objects that are open, in 3 KiB
  static constexpr std::size_t few_members = 24;    // to compare each with each
  static auto has_name_twice(std::span<member const> members) -> bool {
    if (members.size() <= few_members) {
      std::uint64_t seen = 0;
      for (std::size_t i = 0; i < members.size(); ++i) {
        auto const& name = members[i].name;
        auto const bit = std::uint64_t{1} << (likeness_of(name) % 64);
        if ((seen & bit) != 0 && std::ranges::any_of(members.first(i), [&](member const& other) {
              return equal_ignoring_case(name, other.name);
            })) {
          return true;
        }
        seen |= bit;
      }
      return false;
    }
    std::vector<std::string> names;
    names.reserve(members.size());
    for (auto const& m : members) {
      names.push_back(lower_case(m.name));
    }
    std::ranges::sort(names);
    return std::ranges::adjacent_find(names) != names.end();
  }

  /// The same of names that are the same.
  static auto likeness_of(std::string_view name) noexcept -> std::size_t {
    return name.empty() ? 0
                        : name.size() * 5 + static_cast<std::uint8_t>(to_lower(name.front())) +
                              static_cast<std::uint8_t>(to_lower(name.back())) * std::size_t{3};
  }

  value root_;
  container open_ = container::none;
  // Of all arrays and objects that are open: they grow here once, and take no more than they need.
  std::vector<value> items_;
  std::vector<member> members_;
};

}  // namespace

auto parse(std::string_view text, limits const& limits) -> result<value, error> {
  if (text.size() > limits.octets_max) {
    return failure(error{fault::too_long, limits.octets_max});
  }
  return value_reader(text, limits.depth_max).document();
}

auto parse_literal(std::string_view text) -> result<prefix, error> {
  return value_reader(text, 0).literal();
}

}  // namespace tidegate::TIDEGATE_ABI::json
