// SPDX-License-Identifier: Apache-2.0
#include "json_value.hpp"

#include <tidegate/json/reader.hpp>

#include <algorithm>

namespace tidegate::TIDEGATE_ABI::sf::detail {

auto json_value::member(std::string_view name) const noexcept -> json_value const* {
  auto const found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? nullptr
                              : &elements[static_cast<std::size_t>(found - names.begin())];
}

namespace {

class tree_reader : public json::reader<tree_reader> {
 public:
  explicit tree_reader(std::string_view text) : reader(text, depth_max) {}

  auto read() -> result<json_value, json_error> {
    if (!read_document()) {
      return failure(json_error{std::string(json::message(error().fault)), position()});
    }
    return std::move(root_);
  }

 private:
  friend class json::reader<tree_reader>;

  static constexpr int depth_max = 64;
  static constexpr std::size_t names_max = 64;

  /// Where the value that was read belongs.
  auto next(json_type type, std::string_view text = {}) -> json_value& {
    auto& value = open_ == nullptr ? root_ : open_->elements.emplace_back();
    value.type = type;
    value.offset = value_offset();
    value.text = text;
    return value;
  }

  void on_null() { next(json_type::null, "null"); }
  void on_boolean(bool is) { next(json_type::boolean, is ? "true" : "false"); }
  void on_string(std::string_view text) { next(json_type::string, text); }
  auto on_number(number_token const& number) -> bool {
    next(json_type::number, number.text);
    return true;
  }
  auto on_name(std::string_view name) -> bool {
    if (open_->names.size() == names_max) {
      return fail(json::fault::too_long);
    }
    if (open_->member(name) != nullptr) {
      return fail(json::fault::name_twice);
    }
    open_->names.emplace_back(name);
    return true;
  }

  // The one around it does not grow, and so does not move, while one is open.
  auto begin_array() -> json_value* { return std::exchange(open_, &next(json_type::array)); }
  auto begin_object() -> json_value* { return std::exchange(open_, &next(json_type::object)); }
  void end_array(json_value* outer) { open_ = outer; }
  auto end_object(json_value* outer) -> bool {
    open_ = outer;
    return true;
  }

  json_value root_;
  json_value* open_ = nullptr;
};

}  // namespace

auto parse_json(std::string_view text) -> result<json_value, json_error> {
  return tree_reader(text).read();
}

}  // namespace tidegate::TIDEGATE_ABI::sf::detail
