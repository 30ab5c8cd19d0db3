// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tidegate/sf/values.hpp>

#include <string>

namespace tidegate::sf {

/// Appends the field value of a List (RFC 9651, section 4.1.1). Of an empty List nothing is written:
/// the field is left out of the message.
template <dialect D>
void serialize_list(basic_list<D> const& list, std::string& out);

/// Appends the field value of a Dictionary (section 4.1.2); an empty one is left out as well.
template <dialect D>
void serialize_dictionary(basic_dictionary<D> const& dictionary, std::string& out);

/// Appends the field value of an Item (section 4.1.3).
template <dialect D>
void serialize_item(basic_item<D> const& item, std::string& out);

// So that the dialect need not be spelled out: it is part of the value's type.
inline void serialize(list const& value, std::string& out) {
  serialize_list<dialect::rfc9651>(value, out);
}
inline void serialize(dictionary const& value, std::string& out) {
  serialize_dictionary<dialect::rfc9651>(value, out);
}
inline void serialize(item const& value, std::string& out) {
  serialize_item<dialect::rfc9651>(value, out);
}
inline void serialize(basic_list<dialect::rfc8941> const& value, std::string& out) {
  serialize_list<dialect::rfc8941>(value, out);
}
inline void serialize(basic_dictionary<dialect::rfc8941> const& value, std::string& out) {
  serialize_dictionary<dialect::rfc8941>(value, out);
}
inline void serialize(basic_item<dialect::rfc8941> const& value, std::string& out) {
  serialize_item<dialect::rfc8941>(value, out);
}
inline void serialize(basic_list<dialect::draft11> const& value, std::string& out) {
  serialize_list<dialect::draft11>(value, out);
}
inline void serialize(basic_dictionary<dialect::draft11> const& value, std::string& out) {
  serialize_dictionary<dialect::draft11>(value, out);
}
inline void serialize(basic_item<dialect::draft11> const& value, std::string& out) {
  serialize_item<dialect::draft11>(value, out);
}

/// The field value as a string of its own.
template <class Value>
[[nodiscard]] auto serialized(Value const& value) -> std::string {
  std::string out;
  serialize(value, out);
  return out;
}

#define TIDEGATE_SF_SERIALIZE(D)                                                          \
  extern template void serialize_list<D>(basic_list<D> const&, std::string&);             \
  extern template void serialize_dictionary<D>(basic_dictionary<D> const&, std::string&); \
  extern template void serialize_item<D>(basic_item<D> const&, std::string&);
TIDEGATE_SF_SERIALIZE(dialect::rfc9651)
TIDEGATE_SF_SERIALIZE(dialect::rfc8941)
TIDEGATE_SF_SERIALIZE(dialect::draft11)
#undef TIDEGATE_SF_SERIALIZE

}  // namespace tidegate::sf
