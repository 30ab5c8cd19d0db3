// SPDX-License-Identifier: Apache-2.0
#include "parse_templates.hpp"

namespace tidegate::TIDEGATE_ABI::sf {

template auto parse_item<dialect::draft11>(std::string_view)
    -> result<basic_item<dialect::draft11>, parse_error>;
template auto parse_list<dialect::draft11>(std::string_view)
    -> result<basic_list<dialect::draft11>, parse_error>;
template auto to_value<dialect::draft11>(bare_item_view const&)
    -> basic_bare_item<dialect::draft11>;

}  // namespace tidegate::TIDEGATE_ABI::sf
