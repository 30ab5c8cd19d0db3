// SPDX-License-Identifier: Apache-2.0
//
// Any octets as what a server of Redis answers:
//
// - never a crash; an error names an octet or the end, and stays;
// - pieces of any size make the same answers and the same error as all of it at once;
// - no answer is deeper or has more values or octets than the limits say;
// - the same octets as the words of a command are read back as these words.
#include "check.hpp"

#include <tidegate/store_redis/resp.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace tidegate::store_redis;
using tidegate::fuzz::check;

constexpr resp_limits limits{
    .depth_max = 4, .values_max = 256, .octets_max = 4'096, .line_octets_max = 512};

struct answers {
  std::vector<resp_value> values;
  std::optional<resp_error> error;
};

auto read(std::string_view octets, std::size_t piece) -> answers {
  resp_reader reader(limits);
  answers out;
  for (std::size_t at = 0; at < octets.size() && !out.error; at += piece) {
    reader.feed(octets.substr(at, piece));
    for (;;) {
      auto value = reader.next();
      if (!value) {
        out.error = value.error();
        check(!reader.next() && reader.next().error() == *out.error, "an error stays");
        break;
      }
      if (!*value) {
        break;
      }
      out.values.push_back(**std::move(value));
    }
  }
  return out;
}

struct size {
  std::size_t depth = 0;
  std::size_t values = 1;
  std::size_t octets = 0;
};

auto measure(resp_value const& value) -> size {
  size out{.octets = value.text.size()};
  for (auto const& each : value.items) {
    auto const inner = measure(each);
    out.depth = std::max(out.depth, inner.depth);
    out.values += inner.values;
    out.octets += inner.octets;
  }
  out.depth += value.items.empty() ? 0U : 1U;
  return out;
}

/// NaN is itself here.
auto same(resp_value const& a, resp_value const& b) -> bool {
  bool const numbers = a.number == b.number || (std::isnan(a.number) && std::isnan(b.number));
  return a.kind == b.kind && a.integer == b.integer && numbers && a.text == b.text &&
         std::ranges::equal(a.items, b.items, same);
}

void check_command(std::string_view octets) {
  command made;
  std::vector<std::string_view> words;
  while (words.size() < 20 && (words.empty() || !octets.empty())) {
    auto const word = octets.substr(0, octets.find(' '));
    made.add(word);
    words.push_back(word);
    octets.remove_prefix(std::min(word.size() + 1, octets.size()));
  }
  std::string out;
  made.append_to(out);
  resp_reader reader;
  reader.feed(out);
  auto const got = reader.next();
  check(got.has_value() && got->has_value());
  check((*got)->kind == resp_kind::array);
  check(std::ranges::equal(words, (*got)->items, {}, {}, &resp_value::text));
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) -> int {
  auto const octets = std::string_view(reinterpret_cast<char const*>(data), size);
  auto const whole = read(octets, std::max<std::size_t>(size, 1));
  if (whole.error) {
    check(whole.error->offset <= size);
    check(!message(whole.error->fault).empty());
  }
  for (auto const& value : whole.values) {
    auto const measured = measure(value);
    check(measured.depth <= limits.depth_max);
    check(measured.values <= limits.values_max);
    check(measured.octets <= limits.octets_max);
  }
  for (std::size_t const piece : {std::size_t{1}, std::size_t{2}, 1 + size / 3}) {
    auto const split = read(octets, piece);
    check(split.error == whole.error, "the same error");
    check(std::ranges::equal(split.values, whole.values, same), "the same answers");
  }
  check_command(octets);
  return 0;
}
