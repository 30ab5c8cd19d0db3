// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as lines, each a source of a partition and, behind a NUL, its value in a request:
//
// - never a crash; an error names a byte of the text or its end and says what is allowed;
// - a source is written again as it was read, but for the case of a field name, and then reads
//   equal;
// - the partition has one line for each source, from which the values can be read back, with a
//   space for each CR, LF and NUL;
// - a hashed key has 16 bytes, a plain one is the values, and none is empty.
#include "check.hpp"

#include <tidegate/base/ascii.hpp>
#include <tidegate/ratelimit/partition.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace tidegate::ratelimit;
using tidegate::fuzz::check;

void check_source(std::string_view text, std::vector<partition_source>& sources) {
  auto const source = parse_partition_source(text);
  if (!source) {
    check(source.error().offset <= text.size());
    check(to_string(source.error()).find("allowed") != std::string::npos);
    return;
  }
  auto const written = to_string(*source);
  check(written ==
        (source->kind == partition_source_kind::header ? tidegate::lower_case(text) : text));
  check(parse_partition_source(written) == *source);
  sources.push_back(*source);
}

auto key_of(std::vector<partition_source> const& sources, partition_key_form form,
            std::string_view partition) -> std::string {
  partition_rule const rule(sources, form);
  check(!describe(rule).empty());
  check(describe_as_json(rule).ends_with('}'));
  std::string out;
  rule.append_key(out, partition);
  return out;
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) -> int {
  auto input = std::string_view(reinterpret_cast<char const*>(data), size);
  std::vector<partition_source> sources;
  std::vector<std::string_view> values;
  for (bool more = true; more;) {
    auto const end = input.find('\n');
    auto const line = input.substr(0, end);
    auto const nul = line.find('\0');
    check_source(line.substr(0, nul), sources);
    if (values.size() < sources.size()) {
      values.push_back(nul == std::string_view::npos ? "" : line.substr(nul + 1));
    }
    more = end != std::string_view::npos;
    input.remove_prefix(more ? end + 1 : input.size());
  }

  std::string partition;
  partition_rule(sources).append_partition(partition, values);
  auto rest = std::string_view(partition);
  std::string joined;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    auto const end = rest.find('\n');
    check(end != std::string_view::npos);
    auto const equals = rest.find('=');
    check(rest.substr(0, equals) == to_string(sources[i]));
    auto const value = rest.substr(equals + 1, end - equals - 1);
    check(std::equal(value.begin(), value.end(), values[i].begin(), values[i].end(),
                     [](char is, char was) {
                       return is == (was == '\r' || was == '\n' || was == '\0' ? ' ' : was);
                     }));
    joined += i == 0 ? "" : "\n";
    joined += value;
    rest.remove_prefix(end + 1);
  }
  check(rest.empty());
  check(key_of(sources, partition_key_form::none, partition).empty());
  check(key_of(sources, partition_key_form::hashed, partition).size() ==
        partition_rule::hashed_size);
  check(key_of(sources, partition_key_form::plain, partition) == joined);
  return 0;
}
