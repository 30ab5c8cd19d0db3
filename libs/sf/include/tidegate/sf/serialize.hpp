// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/sf/values.hpp>

#include <string>

namespace tidegate::TIDEGATE_ABI::sf {

/// Appends the field value of a List (RFC 9651, section 4.1.1). Of an empty List nothing is
/// written: the field is left out of the message. The dialect is part of the value's type.
template <dialect D>
void serialize(basic_list<D> const& list, std::string& out);

/// Appends the field value of a Dictionary (section 4.1.2); an empty one is left out as well.
template <dialect D>
void serialize(basic_dictionary<D> const& dictionary, std::string& out);

/// Appends the field value of an Item (section 4.1.3).
template <dialect D>
void serialize(basic_item<D> const& item, std::string& out);

/// The field value as a string of its own.
template <class Value>
[[nodiscard]] auto serialized(Value const& value) -> std::string {
  std::string out;
  serialize(value, out);
  return out;
}

#define TIDEGATE_SF_SERIALIZE(D)                                               \
  extern template void serialize<D>(basic_list<D> const&, std::string&);       \
  extern template void serialize<D>(basic_dictionary<D> const&, std::string&); \
  extern template void serialize<D>(basic_item<D> const&, std::string&);
TIDEGATE_SF_SERIALIZE(dialect::rfc9651)
TIDEGATE_SF_SERIALIZE(dialect::rfc8941)
TIDEGATE_SF_SERIALIZE(dialect::draft11)
#undef TIDEGATE_SF_SERIALIZE

}  // namespace tidegate::TIDEGATE_ABI::sf
