// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the JSON form of a field: never a crash; what is accepted serialises to a value that
// parses to an equal tree.
#include "sf_field_fuzz.hpp"

namespace {

using namespace tidegate::sf;

template <dialect D, field_type T, class Value>
void check_written(tidegate::result<Value, json_error> const& value) {
  if (!value.has_value()) {
    return;
  }
  auto const again = fuzz::parse<D, T>(serialized(*value));
  fuzz::check(again.has_value());
  fuzz::check(*again == *value);
}

template <dialect D>
void check_all(std::string_view json) {
  check_written<D, field_type::item>(item_from_json<D>(json));
  check_written<D, field_type::list>(list_from_json<D>(json));
  check_written<D, field_type::dictionary>(dictionary_from_json<D>(json));
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(unsigned char const* data, std::size_t size) -> int {
  auto const json = std::string_view(reinterpret_cast<char const*>(data), size);
  check_all<dialect::rfc9651>(json);
  check_all<dialect::rfc8941>(json);
  check_all<dialect::draft11>(json);
  return 0;
}
