// SPDX-License-Identifier: Apache-2.0
#include "serialize_templates.hpp"

namespace tidegate::TIDEGATE_ABI::sf {

template void serialize<dialect::rfc9651>(basic_list<dialect::rfc9651> const&, std::string&);
template void serialize<dialect::rfc9651>(basic_dictionary<dialect::rfc9651> const&, std::string&);
template void serialize<dialect::rfc9651>(basic_item<dialect::rfc9651> const&, std::string&);

}  // namespace tidegate::TIDEGATE_ABI::sf
