// SPDX-License-Identifier: Apache-2.0
#include "json_templates.hpp"

namespace tidegate::TIDEGATE_ABI::sf {

template auto item_to_json<dialect::rfc8941>(basic_item<dialect::rfc8941> const&) -> std::string;
template auto list_to_json<dialect::rfc8941>(basic_list<dialect::rfc8941> const&) -> std::string;
template auto dictionary_to_json<dialect::rfc8941>(basic_dictionary<dialect::rfc8941> const&)
    -> std::string;
template auto item_from_json<dialect::rfc8941>(std::string_view)
    -> result<basic_item<dialect::rfc8941>, json_error>;
template auto list_from_json<dialect::rfc8941>(std::string_view)
    -> result<basic_list<dialect::rfc8941>, json_error>;
template auto dictionary_from_json<dialect::rfc8941>(std::string_view)
    -> result<basic_dictionary<dialect::rfc8941>, json_error>;
template auto detail::item_from_json<dialect::rfc8941>(json_value const&)
    -> result<basic_item<dialect::rfc8941>, json_error>;
template auto detail::list_from_json<dialect::rfc8941>(json_value const&)
    -> result<basic_list<dialect::rfc8941>, json_error>;
template auto detail::dictionary_from_json<dialect::rfc8941>(json_value const&)
    -> result<basic_dictionary<dialect::rfc8941>, json_error>;

}  // namespace tidegate::TIDEGATE_ABI::sf
