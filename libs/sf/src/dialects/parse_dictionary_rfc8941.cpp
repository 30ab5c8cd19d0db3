// SPDX-License-Identifier: Apache-2.0
#include "parse_templates.hpp"

namespace tidegate::TIDEGATE_ABI::sf {

template auto parse_dictionary<dialect::rfc8941>(std::string_view)
    -> result<basic_dictionary<dialect::rfc8941>, parse_error>;

}  // namespace tidegate::TIDEGATE_ABI::sf
