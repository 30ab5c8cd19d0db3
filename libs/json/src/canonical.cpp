// SPDX-License-Identifier: Apache-2.0
#include <tidegate/json/canonical.hpp>

#include <tidegate/json/reader.hpp>
#include <tidegate/json/string.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

namespace tidegate::TIDEGATE_ABI::json {

namespace {

/// Writes the canonical form while the text is read: the members of an object are put in order when
/// it ends.
class canonical_writer : public reader<canonical_writer> {
 public:
  canonical_writer(std::string& out, std::string_view text)
      : reader(text, canonical_depth_max), out_(out) {}

  auto write() -> bool {
    if (!read_document()) {
      return false;
    }
    out_.pop_back();
    return true;
  }

 private:
  friend class reader<canonical_writer>;

  // One `"name":value,` in the output.
  struct member {
    std::size_t begin;
    std::size_t name_end;
    std::size_t end;
  };

  // A comma follows every value; the end of what holds it takes its place.
  void append(std::string_view value) {
    out_ += value;
    out_ += ',';
  }
  void on_null() { append("null"); }
  void on_boolean(bool is) { append(is ? "true" : "false"); }
  void on_string(std::string_view text) {
    append_string(out_, text);
    out_ += ',';
  }
  auto on_name(std::string_view name) -> bool {
    auto const begin = out_.size();
    append_string(out_, name);
    members_.push_back({begin, out_.size(), 0});
    out_ += ':';
    return true;
  }

  auto begin_array() -> bool {
    out_ += '[';
    return true;
  }
  void end_array(bool /*begun*/) { end(']'); }
  auto begin_object() -> std::size_t {
    out_ += '{';
    return members_.size();
  }
  auto end_object(std::size_t outer) -> bool {
    if (members_.size() != outer && !order_members(outer)) {
      return fail(fault::name_twice);
    }
    members_.resize(outer);
    end('}');
    return true;
  }
  void end(char bracket) {
    if (out_.back() == ',') {
      out_.pop_back();
    }
    out_ += bracket;
    out_ += ',';
  }

  /// Puts the members from number `first` on, which stand at the end of the output, in the order of
  /// their names. False when a name comes twice.
  auto order_members(std::size_t first) -> bool {
    auto const name = [this](member const& m) {
      return std::string_view(out_).substr(m.begin, m.name_end - m.begin);
    };
    auto const before = [&](member const& a, member const& b) { return name(a) < name(b); };
    auto const begin = members_.begin() + static_cast<std::ptrdiff_t>(first);
    auto const object = begin->begin;
    for (auto m = begin; m != members_.end(); ++m) {
      m->end = std::next(m) == members_.end() ? out_.size() : std::next(m)->begin;
    }
    bool const ordered = std::is_sorted(begin, members_.end(), before);
    if (!ordered) {
      std::sort(begin, members_.end(), before);
    }
    if (std::adjacent_find(begin, members_.end(), [&](member const& a, member const& b) {
          return name(a) == name(b);
        }) != members_.end()) {
      return false;
    }
    if (!ordered) {
      ordered_.clear();
      for (auto m = begin; m != members_.end(); ++m) {
        ordered_.append(out_, m->begin, m->end - m->begin);
      }
      out_.replace(object, std::string::npos, ordered_);
    }
    return true;
  }

  /// `[-]DIGITS[eN]`: neither a zero before nor one behind the digits.
  auto on_number(number_token const& number) -> bool {
    auto const text = number.text;
    auto const mantissa = text.substr(0, text.find_first_of("eE"));
    std::int64_t exponent = 0;
    if (mantissa.size() != text.size()) {
      auto const power = read_exponent(text.substr(mantissa.size() + 1));
      if (!power) {
        return fail(fault::number_out_of_range, value_offset());
      }
      exponent = *power;
    }
    digits_ = mantissa.substr(mantissa.starts_with('-') ? 1 : 0);
    if (auto const point = digits_.find('.'); point != std::string::npos) {
      digits_.erase(point, 1);
      exponent -= static_cast<std::int64_t>(digits_.size() - point);
    }
    auto const last = digits_.find_last_not_of('0');
    if (last == std::string::npos) {
      append("0");
      return true;
    }
    exponent += static_cast<std::int64_t>(digits_.size() - 1 - last);
    digits_.resize(last + 1);
    out_ += mantissa.starts_with('-') ? "-" : "";
    out_.append(digits_, digits_.find_first_not_of('0'));
    if (exponent != 0) {
      out_ += 'e';
      out_ += std::to_string(exponent);
    }
    out_ += ',';
    return true;
  }

  /// Of at most nine digits after zeros.
  static auto read_exponent(std::string_view text) -> std::optional<std::int64_t> {
    constexpr std::size_t digits_max = 9;
    bool const negative = text.front() == '-';
    text.remove_prefix(std::min(text.find_first_not_of("+-0"), text.size()));
    if (text.size() > digits_max) {
      return std::nullopt;
    }
    std::int64_t value = 0;
    for (char const digit : text) {
      value = value * 10 + (digit - '0');
    }
    return negative ? -value : value;
  }

  std::string& out_;
  std::vector<member> members_;  // of all objects that are open
  std::string ordered_;
  std::string digits_;
};

}  // namespace

auto append_canonical(std::string& out, std::string_view text) -> bool {
  auto const before = out.size();
  if (!canonical_writer(out, text).write()) {
    out.resize(before);
    return false;
  }
  return true;
}

}  // namespace tidegate::TIDEGATE_ABI::json
