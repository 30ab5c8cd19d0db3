// SPDX-License-Identifier: Apache-2.0
#include "parse_templates.hpp"

namespace tidegate::TIDEGATE_ABI::sf {

template auto parse_dictionary<dialect::rfc9651>(std::string_view)
    -> result<basic_dictionary<dialect::rfc9651>, parse_error>;

}  // namespace tidegate::TIDEGATE_ABI::sf
