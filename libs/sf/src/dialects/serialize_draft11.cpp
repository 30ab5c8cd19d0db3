// SPDX-License-Identifier: Apache-2.0
#include "serialize_templates.hpp"

namespace tidegate::TIDEGATE_ABI::sf {

template void serialize<dialect::draft11>(basic_list<dialect::draft11> const&, std::string&);
template void serialize<dialect::draft11>(basic_dictionary<dialect::draft11> const&, std::string&);
template void serialize<dialect::draft11>(basic_item<dialect::draft11> const&, std::string&);

}  // namespace tidegate::TIDEGATE_ABI::sf
