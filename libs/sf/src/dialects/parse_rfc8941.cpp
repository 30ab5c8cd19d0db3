// SPDX-License-Identifier: Apache-2.0
#include "parse_templates.hpp"

namespace tidegate::TIDEGATE_ABI::sf {

template auto parse_item<dialect::rfc8941>(std::string_view)
    -> result<basic_item<dialect::rfc8941>, parse_error>;
template auto parse_list<dialect::rfc8941>(std::string_view)
    -> result<basic_list<dialect::rfc8941>, parse_error>;
template auto to_value<dialect::rfc8941>(bare_item_view const&)
    -> basic_bare_item<dialect::rfc8941>;

}  // namespace tidegate::TIDEGATE_ABI::sf
